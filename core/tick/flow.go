package tick

import (
	"encoding/json"
	"path/filepath"

	"example.com/AutoAgentProject/core/conductor"
	"example.com/AutoAgentProject/core/files"
	"example.com/AutoAgentProject/core/plan"
)

// Course is what the mission's flow is followed by; empty where it has none.
func (t *Tick) Course() plan.Course {
	if t.Flow == nil {
		return plan.Course{}
	}
	return plan.Course{Flow: *t.Flow, Verify: t.Mission.Verify, Professions: t.Professions, World: conductor.World{
		Mode: t.Mission.Mode, Short: t.Pressure() >= Tight,
		Gates: func(name string) []string { p, _ := t.Professions.Get(name); return p.Gates },
	}}
}

// aliases are names of models that subagent files use, as tiers.
var aliases = map[string]string{"haiku": "cheap", "sonnet": "standard", "opus": "strong"}

// ModelOf is the exact model behind a tier, an alias or an exact id; empty: the mission's.
func (t *Tick) ModelOf(said string) string {
	if tier, ok := aliases[said]; ok {
		said = tier
	}
	if m, ok := t.Mission.Tiers[said]; ok {
		return m
	}
	return said
}

// ContextName is the report of what a run was told, in its folder: bytes of each part.
const ContextName = "context.json"

func (t *Tick) reportContext(dir string, a Ask) error {
	parts := map[string]int{"soul": len(a.Profession.Soul), "profession": len(a.Profession.Body), "workplace": len(a.Profession.Workplace)}
	for name, n := range a.Context {
		parts[name] = n
	}
	b, err := json.MarshalIndent(map[string]any{"parts": parts, "system_bytes": len(a.Profession.SystemPrompt()), "prompt_bytes": len(a.Prompt)}, "", "  ")
	if err != nil {
		return err
	}
	return files.Replace(filepath.Join(dir, ContextName), append(b, '\n'), 0o600)
}
