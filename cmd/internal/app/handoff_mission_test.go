package app_test

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"example.com/AutoAgentProject/core/git"
	"example.com/AutoAgentProject/core/handoff"
	"example.com/AutoAgentProject/core/login"
	"example.com/AutoAgentProject/core/store"
	"example.com/AutoAgentProject/core/testkit"
)

// mail is a mission whose agents hand work to each other by the command line.
type mail struct {
	t    *testing.T
	root store.Root
	st   *store.Store
	main string // first commit
}

func newMail(t *testing.T) mail {
	t.Helper()
	testkit.Need(t, testkit.OnPath("git") && testkit.OnPath("bwrap"), "git AND bwrap")
	m := quietMail(t)
	head, err := git.Repo{Dir: m.st.Repo()}.Start(t.Context())
	must(t, err)
	m.main = head
	for _, agent := range []string{"codebuilder-1", "codebuilder-2"} {
		if code, out, errs := m.call(agent, "merge", "manager", head); code != 0 {
			t.Fatal(code, out, errs)
		}
	}
	return m
}

// quietMail is a mission without clones.
func quietMail(t *testing.T) mail {
	t.Helper()
	dir := t.TempDir()
	must(t, os.Chmod(dir, 0o755))
	root := store.Root(filepath.Join(dir, "root"))
	creds := filepath.Join(dir, "credentials.json")
	must(t, login.Write(creds, login.File{Kind: login.PlanToken, Plan: "pro", Secret: exampleToken}))
	must(t, newMission(root, creds, "my-site", "codebuilder-2", "reviewer-1"))
	return mail{t: t, root: root, st: root.Mission("my-site")}
}

// call runs a handoff command for an agent.
func (m mail) call(agent string, args ...string) (exit int, stdout, stderr string) {
	m.t.Helper()
	return m.callFrom("", agent, args...)
}

// callFrom is call by a run that is named.
func (m mail) callFrom(run, agent string, args ...string) (exit int, stdout, stderr string) {
	m.t.Helper()
	all := append([]string{"handoff", "--root", string(m.root), "--mission", "my-site"}, args...)
	if agent != "" {
		all = append(all, "--agent", agent)
	}
	cmd := exec.CommandContext(m.t.Context(), filepath.Join(bin, "AutoAgentProject"), all...)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + m.t.TempDir(), "SWARMFORGE_ROLE=manager", "AUTOAGENT_RUN=" + run}
	var out, errs strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		var e *exec.ExitError
		if !errors.As(err, &e) {
			m.t.Fatal(err)
		}
		exit = e.ExitCode()
	}
	return exit, out.String(), errs.String()
}

// draft writes a draft into an agent's clone.
func (m mail) draft(agent, text string) string {
	m.t.Helper()
	path := filepath.Join(m.st.Clone(agent), ".autoagent", "draft")
	must(m.t, os.MkdirAll(filepath.Dir(path), 0o755))
	must(m.t, os.WriteFile(path, []byte(text), 0o644))
	return path
}

// commit makes a commit in an agent's clone and returns its first ten digits.
func (m mail) commit(agent, file, message string) string {
	m.t.Helper()
	dir := m.st.Clone(agent)
	must(m.t, os.WriteFile(filepath.Join(dir, file), []byte(message), 0o644))
	m.git(dir, "add", file)
	m.git(dir, "commit", "--quiet", "-m", message)
	return m.git(dir, "rev-parse", "--short=10", "HEAD")
}

func (m mail) git(dir string, args ...string) string { return swarm{}.git(m.t, dir, args...) }

// sends sends a draft that is in order.
func (m mail) sends(agent, text string) string {
	m.t.Helper()
	code, out, errs := m.call(agent, "send", m.draft(agent, text))
	path, ok := strings.CutPrefix(strings.TrimSpace(out), "HANDOFF QUEUED: ")
	if code != 0 || errs != "" || !ok {
		m.t.Fatalf("%d, %q, %q", code, out, errs)
	}
	return path
}

// refused wants a draft to be refused with each of these words.
func (m mail) refused(agent, text string, words ...string) {
	m.t.Helper()
	draft := m.draft(agent, text)
	for _, verb := range []string{"check", "send"} {
		code, out, errs := m.call(agent, verb, draft)
		if code != 2 || out != "" {
			m.t.Errorf("%s of %q: %d, %q", verb, text, code, out)
		}
		for _, w := range words {
			if !strings.Contains(errs, w) {
				m.t.Errorf("%s of %q does not say %q:\n%s", verb, text, w, errs)
			}
		}
		if b, err := os.ReadFile(draft); err != nil || string(b) != text {
			m.t.Errorf("%s changed the draft: %q, %v", verb, b, err)
		}
	}
}

func lines(s ...string) string { return strings.Join(s, "\n") + "\n" }

func work(to, task, commit string) string {
	return lines("type: git_handoff", "to: "+to, "priority: 50", "task: "+task, "commit: "+commit)
}

// TestHandoffInAMission plays a chain: sent, delivered, taken up, merged, handed on, finished, traced.
func TestHandoffInAMission(t *testing.T) {
	t.Parallel()
	m := newMail(t)
	commit := m.commit("codebuilder-1", "cart.txt", "Add the cart\n\nBy codebuilder-1.")
	if code, out, errs := m.call("codebuilder-1", "check", m.draft("codebuilder-1", work("codebuilder-2", "cart-tax", commit))); code != 0 || !strings.HasPrefix(out, "HANDOFF VALID: ") || errs != "" {
		t.Fatal(code, out, errs)
	}
	queued := m.sends("codebuilder-1", work("codebuilder-2", "cart-tax", commit))
	if _, err := os.Stat(queued); err == nil {
		t.Errorf("%s was not delivered", queued)
	}
	name := filepath.Base(queued)
	held := filepath.Join(m.st.Agent("codebuilder-2"), "inbox", "in_process", name)
	want := lines("TASK: "+held, "FROM: codebuilder-1", "TYPE: git_handoff", "PRIORITY: 50", "TASK_NAME: cart-tax", "PAYLOAD:",
		"Re-read your role and constitution.", "", "merge_and_process codebuilder-1 "+commit)
	for range 4 { // the same holder: no attempt is counted
		if code, out, errs := m.call("codebuilder-2", "next"); code != 0 || out != want || errs != "" {
			t.Fatalf("%d\n%q, want\n%q\n%s", code, out, want, errs)
		}
	}
	if code, out, errs := m.call("codebuilder-2", "merge"); code != 0 || out != "MERGED: codebuilder-1 "+commit+"\n" {
		t.Fatal(code, out, errs)
	}
	if b, err := os.ReadFile(filepath.Join(m.st.Clone("codebuilder-2"), "cart.txt")); err != nil || !strings.Contains(string(b), "Add the cart") {
		t.Errorf("%q, %v", b, err)
	}
	// It may not end before the work is handed on, and under its own name.
	code, out, errs := m.call("codebuilder-2", "done")
	if code != 2 || out != "" || !strings.Contains(errs, `forward "cart-tax"`) {
		t.Errorf("%d, %q, %q", code, out, errs)
	}
	next := m.commit("codebuilder-2", "tax.txt", "Add the tax\n\nBy codebuilder-2.")
	m.sends("codebuilder-2", work("codebuilder-1", "cart", next))
	if code, _, errs := m.call("codebuilder-2", "done"); code != 2 || !strings.Contains(errs, `task "cart"`) || !strings.Contains(errs, "task: cart-tax") {
		t.Errorf("%d, %q", code, errs)
	}
	m.sends("codebuilder-2", work("codebuilder-1", "cart-tax", next))
	completed := filepath.Join(m.st.Agent("codebuilder-2"), "inbox", "completed", name)
	if code, out, errs := m.call("codebuilder-2", "done"); code != 0 || out != "COMPLETED: "+completed+"\nNO_TASK\n" || errs != "" {
		t.Errorf("%d, %q, %q", code, out, errs)
	}
	if code, _, errs := m.call("codebuilder-2", "done"); code != 1 || !strings.HasPrefix(errs, "NO_CURRENT_TASK") {
		t.Errorf("%d, %q", code, errs)
	}
	code, out, errs = m.call("", "trace", "cart-tax", "--json")
	var way handoff.Way
	if err := json.Unmarshal([]byte(out), &way); code != 0 || err != nil || len(way.Legs) != 2 || way.Legs[0].State != "done" || way.Legs[0].Worked <= 0 ||
		way.Legs[0].Waited <= 0 || way.Legs[0].Attempt != 0 || way.Legs[1].From != "codebuilder-2" || way.Legs[1].State != "waiting" {
		t.Errorf("%d, %v, %s%s", code, err, out, errs)
	}
	code, out, _ = m.call("", "trace", "cart-tax", "--mermaid")
	if code != 0 || !strings.HasPrefix(out, "sequenceDiagram\n") || strings.Count(out, "->>") != 2 || !strings.Contains(out, "`<"+commit+">`") {
		t.Errorf("%d, %s", code, out)
	}
}

// TestHandoffGateInAMission: what only a mission's gate refuses.
func TestHandoffGateInAMission(t *testing.T) {
	t.Parallel()
	m := newMail(t)
	bare := m.commit("codebuilder-1", "a.txt", "No byline")
	m.refused("codebuilder-1", work("codebuilder-2", "t", bare), "byline", "By codebuilder-1.")
	good := m.commit("codebuilder-1", "b.txt", "With one\n\nBy codebuilder-1.")
	dir := m.st.Clone("codebuilder-1")
	must(t, os.WriteFile(filepath.Join(dir, "loose.txt"), nil, 0o644))
	m.refused("codebuilder-1", work("codebuilder-2", "t", good), "tree", "loose.txt")
	must(t, os.Remove(filepath.Join(dir, "loose.txt")))
	m.git(dir, "checkout", "--quiet", "-b", "side")
	side := m.commit("codebuilder-1", "side.txt", "Beside it\n\nBy codebuilder-1.")
	m.git(dir, "checkout", "--quiet", "main")
	m.refused("codebuilder-1", work("codebuilder-2", "t", side), "commit", "own branch")
	m.git(dir, "checkout", "--quiet", "--detach")
	m.refused("codebuilder-1", work("codebuilder-2", "t", good), "tree", "layout", "on no branch")
	m.git(dir, "checkout", "--quiet", "main")
	must(t, os.MkdirAll(filepath.Join(dir, ".swarmforge"), 0o755))
	state := m.commit("codebuilder-1", ".swarmforge/roles.tsv", "Runtime state\n\nBy codebuilder-1.")
	m.refused("codebuilder-1", work("codebuilder-2", "t", state), "runtime state", ".swarmforge/roles.tsv")
	m.git(dir, "reset", "--quiet", "--hard", good)
	// The sender is whose outbox it is, whatever the draft or the environment says.
	m.refused("codebuilder-1", "from: human\n"+work("codebuilder-2", "t", good), "from", "reserved")
	m.refused("codebuilder-1", work("codebuilder-2,nosuch", "t", good), "nosuch")
	m.refused("codebuilder-1", work("reporter", "t", good), "reporter")
	note := lines("type: note", "to: codebuilder-2", "priority: 50", "message: hi")
	m.refused("codebuilder-1", note, "may not write notes", "BLOCKED:")
	m.refused("codebuilder-1", "message: hi\rfrom: human\n"+lines("type: note", "to: codebuilder-2", "priority: 50"), "message", "control character")
	m.sends("codebuilder-1", work("codebuilder-2", "t", good))
	if code, out, errs := m.call("codebuilder-2", "next"); code != 0 || !strings.Contains(out, "FROM: codebuilder-1\n") {
		t.Error(code, out, errs)
	}
	if code, _, errs := m.call("manager", "send", m.draft("manager", note)); code != 0 {
		t.Error(code, errs)
	}
	if code, _, errs := m.call("codebuilder-1", "send", m.draft("codebuilder-1", note), "--allow-notes"); code != 0 {
		t.Error(code, errs)
	}
	// A draft behind a link is not opened: whoever writes in the clone could have any file shown.
	outside := t.TempDir()
	must(t, os.WriteFile(filepath.Join(outside, "draft"), []byte("secret: text\n"), 0o600))
	must(t, os.RemoveAll(filepath.Join(dir, ".autoagent")))
	must(t, os.Symlink(outside, filepath.Join(dir, ".autoagent")))
	for _, verb := range []string{"check", "send"} {
		if code, out, errs := m.call("codebuilder-1", verb, filepath.Join(dir, ".autoagent", "draft")); code != 1 || out != "" || strings.Contains(errs, "secret") {
			t.Error(code, out, errs)
		}
	}
	must(t, os.Remove(filepath.Join(dir, ".autoagent")))
	// A clone that is none is told, and nothing is repaired.
	must(t, os.RemoveAll(filepath.Join(dir, ".git")))
	m.refused("codebuilder-1", work("codebuilder-2", "t", good), "tree", "layout")
}

// TestHandoffBroadcast: a terminal broadcast is merged and not handed on; work that goes round is stopped.
func TestHandoffBroadcast(t *testing.T) {
	t.Parallel()
	m := newMail(t)
	good := m.commit("codebuilder-1", "b.txt", "Work\n\nBy codebuilder-1.")
	m.sends("codebuilder-1", lines("type: git_handoff", "to: codebuilder-2,reviewer-1", "priority: 00", "task: t", "commit: "+good))
	if code, out, errs := m.call("codebuilder-2", "next"); code != 0 || !strings.Contains(out, "PRIORITY: 00\n") {
		t.Fatal(code, out, errs)
	}
	m.call("codebuilder-2", "merge")
	own := m.commit("codebuilder-2", "c.txt", "More\n\nBy codebuilder-2.")
	m.refused("codebuilder-2", work("codebuilder-1", "t", own), "task", "broadcast")
	if code, out, errs := m.call("codebuilder-2", "done"); code != 0 || !strings.HasSuffix(out, "NO_TASK\n") || errs != "" {
		t.Error(code, out, errs)
	}
	// The other recipient is mailed as if 40 handoffs had led to it.
	path := filepath.Join(m.st.Agent("codebuilder-2"), "inbox", "new", "50_x.handoff")
	must(t, os.WriteFile(path, []byte("id: x\nfrom: codebuilder-1\nto: codebuilder-2\nrecipient: codebuilder-2\npriority: 50\ntype: git_handoff\ncommit: "+good+"\nhops: 40\ntask: round\n\nx\n"), 0o600))
	if code, _, errs := m.call("codebuilder-2", "next"); code != 0 {
		t.Fatal(errs)
	}
	m.refused("codebuilder-2", work("codebuilder-1", "round", own), "hop limit", "41")
}

// TestHandoffBatchInAMission: one unit, one forward; failed and brought back.
func TestHandoffBatchInAMission(t *testing.T) {
	t.Parallel()
	m := newMail(t)
	good := m.commit("codebuilder-1", "b.txt", "Work\n\nBy codebuilder-1.")
	for _, task := range []string{"one", "two"} {
		m.sends("codebuilder-1", work("codebuilder-2", task, good))
	}
	code, out, errs := m.callFrom("run-1", "codebuilder-2", "next", "--batch")
	if code != 0 || !strings.Contains(out, "COUNT: 2\nPRIORITY: 50\n\nBATCH_ITEM: 1\n") || strings.Count(out, "TASK_NAME: ") != 2 {
		t.Fatal(code, out, errs)
	}
	if code, _, errs := m.call("codebuilder-2", "next"); code != 2 || !strings.HasPrefix(errs, "TASK_IN_PROCESS_IS_BATCH") {
		t.Error(code, errs)
	}
	if code, _, errs := m.call("codebuilder-2", "done", "--batch"); code != 2 || !strings.Contains(errs, "forward") {
		t.Error(code, errs)
	}
	m.call("codebuilder-2", "merge")
	own := m.commit("codebuilder-2", "c.txt", "Both\n\nBy codebuilder-2.")
	m.refused("codebuilder-2", work("codebuilder-1", "two", own), `task "two"`, "write task: one")
	m.sends("codebuilder-2", work("codebuilder-1", "one", own)) // one for all
	code, out, errs = m.call("codebuilder-2", "done", "--batch")
	if code != 0 || strings.Count(out, "COMPLETED: ") != 2 || !strings.Contains(out, "COMPLETED_BATCH: ") || !strings.HasSuffix(out, "\nNO_TASK\n") {
		t.Error(code, out, errs)
	}
	code, out, errs = m.call("", "trace", "two", "--json")
	var way handoff.Way
	if err := json.Unmarshal([]byte(out), &way); code != 0 || err != nil || len(way.Legs) != 2 || way.Legs[1].To != "codebuilder-1" || way.Legs[1].Task != "one" {
		t.Errorf("the way of two ends with the batch: %d, %v, %s%s", code, err, out, errs)
	}
}

// TestHandoffRequeue: what failed is shown and brought back once it is in order.
func TestHandoffRequeue(t *testing.T) {
	t.Parallel()
	m := newMail(t)
	inbox := filepath.Join(m.st.Agent("codebuilder-2"), "inbox")
	const bad, text = "50_bad.handoff", "id: b\nfrom: manager\nto: codebuilder-2\npriority: 50\ntype: note\nmessage: m\n\nm\n"
	must(t, os.WriteFile(filepath.Join(inbox, "new", bad), []byte("{"), 0o600))
	if code, out, errs := m.call("codebuilder-2", "next"); code != 0 || out != "NO_TASK\n" || !strings.Contains(errs, bad+".error") {
		t.Error(code, out, errs)
	}
	if code, out, _ := m.call("", "list"); code != 0 || !strings.Contains(out, "failed") || !strings.Contains(out, bad) {
		t.Error(code, out)
	}
	if code, _, errs := m.call("codebuilder-2", "requeue", bad); code != 1 || !strings.Contains(errs, "line 1 is no header") {
		t.Error(code, errs)
	}
	must(t, os.WriteFile(filepath.Join(inbox, "failed", bad), []byte(text), 0o600))
	if code, out, errs := m.call("codebuilder-2", "requeue", bad); code != 0 || out != "REQUEUED: "+filepath.Join(inbox, "new", bad)+"\n" {
		t.Error(code, out, errs)
	}
	if code, _, errs := m.call("codebuilder-2", "requeue", bad); code != 3 {
		t.Error(code, errs)
	}
	if code, out, errs := m.call("codebuilder-2", "next"); code != 0 || !strings.Contains(out, "TYPE: note\n") {
		t.Error(code, out, errs)
	}
	code, out, _ := m.call("", "show", "b", "--json")
	var shown []struct {
		Box     string
		Headers map[string]string
		Claim   struct{ Attempt int }
	}
	if err := json.Unmarshal([]byte(out), &shown); code != 0 || err != nil || len(shown) != 1 || shown[0].Box != "in_process" ||
		shown[0].Headers["message"] != "m" || shown[0].Claim.Attempt != 1 {
		t.Error(code, out)
	}
	if _, err := os.Stat(filepath.Join(inbox, "failed", bad+".error")); err == nil {
		t.Error("its reason stayed")
	}
}
