package app

import (
	"fmt"
	"strings"
	"time"

	"example.com/AutoAgentProject/core/mission"
	"example.com/AutoAgentProject/core/store"
	"example.com/AutoAgentProject/core/systemdengine"
	"example.com/AutoAgentProject/core/units"
)

// showDraft shows what would be fixed, and the units that would be put in place.
func (c *cli) showDraft(d *draft) error {
	var list []units.File
	if d.mission.Engine == systemdengine.Name {
		e, err := c.newSystemd(d.root, units.Manager(d.mission.Manager), discard())
		if err != nil {
			return err
		}
		if list, err = units.Render(d.mission, e.Settings); err != nil {
			return err
		}
	}
	if c.json {
		shown := struct {
			mission.Mission
			Units map[string]string `json:"units,omitempty"`
		}{d.mission, map[string]string{}}
		for _, f := range list {
			shown.Units[f.Name] = string(f.Text)
		}
		return c.printJSON(shown)
	}
	c.describe(d)
	for _, f := range list {
		c.say("")
		c.say("# %s", f.Name)
		c.say("%s", strings.TrimRight(string(f.Text), "\n"))
	}
	c.say("Nothing was made (--dry-run).")
	return nil
}

// describe shows what was fixed.
func (c *cli) describe(d *draft) {
	m := d.mission
	row := func(name, format string, args ...any) { c.say("  %-8s %s", name, fmt.Sprintf(format, args...)) }
	c.say("Mission %s", m.ID)
	row("pays", "%s", m.Payer)
	row("budget", "%s", m.BudgetSentence)
	if m.Gateway == mission.GatewayOff {
		row("", "%s", mission.WithoutGateway)
	}
	switch {
	case !m.Until.IsZero():
		row("time", "until %s", m.Until.Local().Format("2006-01-02 15:04 MST"))
	default:
		row("time", "%s in which it can run", shortDuration(time.Duration(m.MaxRun)))
	}
	var names []string
	for _, a := range mission.Specialists(m.Roster) {
		names = append(names, a.Name)
	}
	if m.Flow != "" {
		row("flow", "%s, mode %s", m.Flow, m.Mode)
	}
	row("agents", "manager, %s (%s, model %s)", strings.Join(names, ", "), m.Agents, m.Model)
	for _, w := range d.warnings {
		row("warning", "%s", w)
	}
	row("engine", "%s", d.engineSentence)
	row("walls", "%s", d.walls)
	row("network", "%s", networkText(m.Network))
	row("bounds", "of each cell: %s", d.bounds)
	switch {
	case m.From == nil:
	case m.From.Kind == "git":
		row("from", "%s, HEAD %s", m.From.Path, strings.TrimSpace(m.From.Commit[:10]+" "+m.From.Branch))
	default:
		row("from", "%s, all its files", m.From.Path)
	}
	if m.From != nil {
		row("loads", "%s", fromRepoText(m.FromRepo))
		for _, f := range d.taken.Found {
			row("", "%s", f)
		}
		for _, l := range d.taken.Left {
			row("warning", "%s", l)
		}
	}
	if len(m.Read) > 0 {
		row("read", "agents may read %s", strings.Join(m.Read, ", "))
	}
	for _, dir := range []string{m.Caches.Go, m.Caches.NPM} {
		if dir != "" {
			row("cache", "agents may read %s", dir)
		}
	}
	if m.Verify != "" {
		row("verify", "%s", m.Verify)
	}
	row("told", "%s", c.channelSentence())
	at := c.rootHint(d.root)
	row("watch", "AutoAgentProject status %s%s · AutoAgentProject logs %s%s -f", m.ID, at, m.ID, at)
	if m.Engine == systemdengine.Name {
		row("journal", "%s -f", strings.Join(journalCommand(m.Manager, m.ID), " "))
		row("stop", "AutoAgentProject abort %s%s", m.ID, at)
		return
	}
	row("stop", "Ctrl-C here, or AutoAgentProject abort %s%s", m.ID, at)
}

// rootHint repeats --root where it is needed to find the mission.
func (c *cli) rootHint(root store.Root) string {
	if c.rootFlag == "" && !c.movedHome && !c.handOver {
		return ""
	}
	return " --root " + shellQuote(string(root))
}

func shellQuote(s string) string {
	if s != "" && strings.IndexFunc(s, func(r rune) bool {
		return !(r == '/' || r == '.' || r == '-' || r == '_' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z')
	}) < 0 {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
