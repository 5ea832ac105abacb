package tick

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"example.com/AutoAgentProject/core/journal"
	"example.com/AutoAgentProject/core/plan"
	"example.com/AutoAgentProject/core/runner"
)

// BlockedCause is the cause of the pause while nothing can go on before a person looked at a step.
const BlockedCause = "blocked"

// BlockedIncident names the condition that a step waits for a person.
func BlockedIncident(s plan.Step) string { return "blocked-" + s.Last().Name }

// TellBlocked tells a person that a step waits, once, and writes it down for them. A tick that died in between is made up
// for by the manager's next one: the entry comes last.
func (t *Tick) TellBlocked(ctx context.Context, s plan.Step) error {
	has, err := t.Store.HasTodo(BlockedIncident(s))
	if has || err != nil {
		return err
	}
	reason := ""
	if n := len(s.Reasons); n > 0 {
		reason = s.Reasons[n-1]
	}
	reason, _, _ = strings.Cut(reason, "\n")
	text := fmt.Sprintf("step %s (%s) of %s is blocked: %s", s.ID, s.Title, s.Agent, reason)
	how := fmt.Sprintf("AutoAgentProject resume %s %s tries it again", t.Mission.ID, s.Agent)
	t.Event(journal.Event{Kind: journal.StepBlocked, Level: journal.Blocker, Step: s.ID, Incident: BlockedIncident(s), Text: text + "\n" + how})
	return t.Store.AddTodo(ctx, BlockedIncident(s), text+"; "+how, t.Now())
}

// Worked says whether files in a folder were changed since a time.
func Worked(dir string, since time.Time) bool {
	found := errors.New("found")
	err := walk(dir, func(path string, info fs.FileInfo) error {
		if !info.IsDir() && !strings.HasPrefix(path, ".git/") && !strings.HasPrefix(path, ".autoagent/") && !info.ModTime().Before(since) {
			return found
		}
		return nil
	})
	return err != nil // also what could not be looked through: then there is a lot
}

// Transcript tells each what happened in a run, in order; of one that cannot be read, nothing.
func (t *Tick) Transcript(run string, each func(runner.Event)) {
	f, err := os.Open(filepath.Join(t.Store.Run(t.Agent.Name, run), "stream.jsonl"))
	if err != nil {
		return
	}
	defer f.Close()
	if err := t.Runner.Describe(f, each); err != nil {
		t.Log.Warn("the transcript of a run cannot be read", "run", run, "err", err)
	}
}
