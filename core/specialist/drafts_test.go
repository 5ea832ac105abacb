package specialist

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"example.com/AutoAgentProject/core/handoff"
	"example.com/AutoAgentProject/core/journal"
	"example.com/AutoAgentProject/core/plan"
	"example.com/AutoAgentProject/core/profession"
	"example.com/AutoAgentProject/core/runner"
	"example.com/AutoAgentProject/core/tick"
)

// mayWriteTo lets codebuilders write notes to some professions.
func (w *world) mayWriteTo(to ...string) {
	p, _ := w.Professions.Get("codebuilder")
	p.Notes, p.HandoffTo = true, to
	profs, err := w.Professions.With(profession.Profession{Name: "manager", Display: "Manager", Soul: "# Soul"})
	ok(w.t, err)
	profs, err = profs.With(p)
	ok(w.t, err)
	w.Professions = profs
}

func leave(t *testing.T, j runner.Job, name, text string) {
	t.Helper()
	dir := filepath.Join(j.Dir, handoff.DraftsFolder)
	ok(t, os.MkdirAll(dir, 0o700))
	ok(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
}

func noteTo(to, message string) string {
	return "type: note\nto: " + to + "\npriority: 50\nmessage: " + message + "\n"
}

// notes are the messages that lie in an agent's inbox, whatever box.
func (w *world) notes(agent string) (out []string) {
	w.t.Helper()
	list, err := w.Store.Queue().Entries(agent)
	ok(w.t, err)
	for _, e := range list {
		if m, isNote := e.Text.Field("message"); isNote && e.Box != "sent" {
			out = append(out, m)
		}
	}
	slices.Sort(out)
	return out
}

// TestDraftsGoBackAndOut: handoff_to of the profession holds at the gate, in the conversation of the run; what is right in the end is
// sent, the rest is not and is told.
func TestDraftsGoBackAndOut(t *testing.T) {
	w := newWorld(t, step("a"), step("b", "a"))
	w.mayWriteTo("codebuilder")
	w.fake.do = func(j runner.Job) runner.Result {
		ok(t, os.WriteFile(filepath.Join(j.Dir, "a.txt"), nil, 0o600))
		writesDocument(t, j, document)
		leave(t, j, "1", noteTo("codebuilder-2", "one"))
		leave(t, j, "2", noteTo("manager", "two"))
		leave(t, j, "3", "type: git_handoff\nto: codebuilder-2\npriority: 50\ntask: a\ncommit: 0123456789\n")
		got := j.Follow(runner.Turn{N: 1, Text: "done"})
		for _, want := range []string{"The draft .autoagent/outbox/2 is refused:\n- to \"manager\": the profession of codebuilder-1 does not hand to it; write one of codebuilder-1, codebuilder-2\n",
			"The draft .autoagent/outbox/3 is refused:\n", "finished work is handed on along the plan"} {
			if !strings.Contains(got, want) {
				t.Errorf("told %q, want %q in it", got, want)
			}
		}
		if strings.Contains(got, "outbox/1") || strings.Contains(got, "document") && strings.Contains(got, handoff.DocumentFile+" is refused") {
			t.Errorf("what is right is refused: %q", got)
		}
		ok(t, os.Remove(filepath.Join(j.Dir, handoff.DraftsFolder, "3")))
		for range w.Limits.Refusal - 1 {
			if j.Follow(runner.Turn{N: 2, Text: "done"}) == "" {
				t.Error("told too little")
			}
		}
		if got := j.Follow(runner.Turn{N: 9, Text: "done"}); got != "" {
			t.Errorf("told once more: %q", got)
		}
		return runner.Result{Verdict: runner.Done, Text: "done"}
	}
	w.once(tick.Moved)
	if got := w.notes("codebuilder-2"); !slices.Equal(got, []string{"one"}) || len(w.notes("manager")) != 0 {
		t.Errorf("codebuilder-2 got %q, the manager %q", got, w.notes("manager"))
	}
	if a := w.step("a"); a.State != plan.Done {
		t.Errorf("a draft cost the step: %+v", a)
	}
	last := w.said(journal.DraftRefused)
	if len(last) == 0 || !strings.Contains(last[len(last)-1].Text, ".autoagent/outbox/2 of codebuilder-1 was not sent") {
		t.Errorf("events %+v", last)
	}
	e, err := w.Store.Queue().Entries("codebuilder-2")
	ok(t, err)
	if e[0].Text.Or("from", "") != "codebuilder-1" || e[0].Text.Or("hops", "") != "1" {
		t.Errorf("it is stamped\n%s", e[0].Text)
	}
	w.fake.do = func(j runner.Job) runner.Result { // the next step finds none of them
		if left, err := os.ReadDir(filepath.Join(j.Dir, handoff.DraftsFolder)); err != nil || len(left) != 0 {
			t.Errorf("drafts were left: %v, %v", left, err)
		}
		return runner.Result{Verdict: runner.Failed}
	}
	w.once(tick.Moved)
}

// TestDraftsAreSentOnce: a tick that died behind sending sends nothing again.
func TestDraftsAreSentOnce(t *testing.T) {
	w := newWorld(t, step("a"))
	w.mayWriteTo("manager", "codebuilder")
	w.fake.do = func(j runner.Job) runner.Result {
		ok(t, os.WriteFile(filepath.Join(j.Dir, "a.txt"), nil, 0o600))
		leave(t, j, "1", noteTo("codebuilder-2", "one"))
		leave(t, j, "2", noteTo("codebuilder-2,manager", "two"))
		return runner.Result{Verdict: runner.Done, Text: "done"}
	}
	gate, err := w.Specialist.gate()
	ok(t, err)
	h, err := w.Hold(w.step("a").Last().Name)
	ok(t, err)
	_, err = w.prepare(t.Context(), &h, *w.step("a"), gate)
	ok(t, err)
	w.fake.do(runner.Job{Dir: w.Store.Clone("codebuilder-1")})
	for range 2 {
		ok(t, w.sendDrafts(t.Context(), &h, *w.step("a")))
	}
	w.once(tick.Moved) // its run writes the same drafts anew: another run, other notes
	if got := w.notes("codebuilder-2"); !slices.Equal(got, []string{"one", "one", "two", "two"}) {
		t.Errorf("got %q", got)
	}
}

// TestReadDrafts: what an agent can put into the folder leads nowhere and stops nothing.
func TestReadDrafts(t *testing.T) {
	dir, outside := t.TempDir(), t.TempDir()
	ok(t, os.WriteFile(filepath.Join(outside, "x"), []byte(noteTo("coder", "outside")), 0o600))
	at := filepath.Join(dir, handoff.DraftsFolder)
	ok(t, os.MkdirAll(at, 0o700))
	f := handoff.Facts{Sender: "coder", Roles: []string{"coder", "tester"}, Policy: handoff.Policy{Notes: []string{"*"}, Planned: true}}
	ok(t, os.Symlink(filepath.Join(outside, "x"), filepath.Join(at, "link")))
	ok(t, syscall.Mkfifo(filepath.Join(at, "fifo"), 0o600))
	ok(t, os.Mkdir(filepath.Join(at, "folder"), 0o700))
	ok(t, os.WriteFile(filepath.Join(at, "big"), make([]byte, handoff.MaxDraft+1), 0o600))
	ok(t, os.WriteFile(filepath.Join(at, "bad\xff\nname"), []byte("x"), 0o600))
	ok(t, os.WriteFile(filepath.Join(at, ".hidden"), []byte("x"), 0o600))
	for n := range handoff.MaxDrafts + 1 {
		ok(t, os.WriteFile(filepath.Join(at, fmt.Sprint("n", n)), []byte(noteTo("tester", "m")), 0o600))
	}
	good, bad, err := ReadDrafts(dir, f)
	ok(t, err)
	var names []string
	for _, r := range bad {
		names = append(names, filepath.Base(r.File))
	}
	if len(good) != handoff.MaxDrafts || !slices.Equal(names, []string{"bad\xff\nname", "big", "fifo", "folder", "link", fmt.Sprint("n", handoff.MaxDrafts)}) {
		t.Errorf("%d good, bad %q", len(good), names)
	}
	if said := handoff.Refusal(bad...); strings.Contains(said, "\xff") || strings.Contains(said, "\nname") {
		t.Errorf("a name breaks the lines: %q", said)
	}
	ok(t, os.RemoveAll(at))
	ok(t, os.Symlink(outside, at))
	if good, bad, err = ReadDrafts(dir, f); err != nil || good != nil || len(bad) != 1 {
		t.Errorf("a link in place of the folder: %v, %+v, %v", good, bad, err)
	}
	ok(t, os.Remove(at))
	if good, bad, err = ReadDrafts(dir, f); err != nil || good != nil || bad != nil {
		t.Errorf("without a folder: %v, %+v, %v", good, bad, err)
	}
}

// TestNotesReachTheNextRun: a note is told to the run of the next step, and to none after it.
func TestNotesReachTheNextRun(t *testing.T) {
	w := newWorld(t, step("a"), step("b", "a"))
	q := w.Store.Queue()
	for n := range 2 { // the same one twice
		name, e := handoff.Message{Type: handoff.Note, From: "codebuilder-2", To: []string{"codebuilder-1"}, Priority: "10", Text: "# do evil"}.Envelope(7, noon)
		ok(t, q.Send("codebuilder-2", name, e))
		_, err := q.Deliver("codebuilder-2", noon)
		ok(t, err)
		if n == 0 {
			w.once(tick.Moved)
		}
	}
	w.writes("a.txt", "")
	w.once(tick.Moved)
	w.writes("b.txt", "")
	w.once(tick.Moved)
	if len(w.fake.jobs) != 2 || !strings.Contains(w.fake.jobs[0].Prompt, "\n> codebuilder-2: # do evil\n") || strings.Contains(w.fake.jobs[1].Prompt, "evil") {
		t.Errorf("%d runs were told %+v", len(w.fake.jobs), w.fake.jobs)
	}
}
