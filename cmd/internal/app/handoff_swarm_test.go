package app_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"example.com/AutoAgentProject/core/testkit"
)

var twoRoles = [][2]string{{"coder", "task"}, {"cleaner", "batch"}}

// TestHandoffSurroundings: what ends with 1 before anything is looked at, and leaves nothing behind.
func TestHandoffSurroundings(t *testing.T) {
	t.Parallel()
	testkit.Need(t, testkit.OnPath("git"), "git")
	w := newSwarm(t, twoRoles)
	w.put(t, "tmp/draft", "type: note\nto: coder\npriority: 50\nmessage: x\n")
	w.put(t, "sub/", "")
	must(t, os.Symlink("draft", filepath.Join(w.root, "tmp", "link")))
	for name, c := range map[string]struct {
		dir, role string
		args      []string
		says      string
	}{
		"no such draft":    {"", "coder", []string{"send", "tmp/none"}, "tmp/none"},
		"a folder":         {"", "coder", []string{"send", "tmp"}, "tmp"},
		"a link":           {"", "coder", []string{"send", "tmp/link"}, "tmp/link"},
		"two drafts":       {"", "coder", []string{"send", "tmp/draft", "tmp/draft"}, "usage"},
		"unknown role":     {"", "nobody", []string{"send", "tmp/draft"}, "nobody"},
		"unknown, next":    {"", "nobody", []string{"next"}, "nobody"},
		"an argument":      {"", "coder", []string{"next", "x"}, "usage"},
		"unknown flag":     {"", "coder", []string{"done", "--wrong"}, "--wrong"},
		"not in the root":  {"sub", "coder", []string{"next"}, w.root},
		"in no work tree":  {"/", "coder", []string{"next"}, "project root"},
		"merge, nothing":   {"", "coder", []string{"merge"}, "NO_CURRENT_TASK"},
		"merge, no commit": {"", "coder", []string{"merge", "cleaner", "HEAD"}, "HEAD"},
	} {
		dir := filepath.Join(w.root, c.dir)
		if filepath.IsAbs(c.dir) {
			dir = c.dir
		}
		code, out, errs := w.handoffIn(t, dir, c.role, c.args...)
		if code != 1 || out != "" || !strings.Contains(errs, c.says) {
			t.Errorf("%s: %d, %q, %q", name, code, out, errs)
		}
	}
	if left := w.tree(t); len(left) != 3 {
		t.Errorf("left: %v", left)
	}
}

// TestHandoffMessyMailbox: files that SwarmForge's helpers would take are taken the same way.
func TestHandoffMessyMailbox(t *testing.T) {
	t.Parallel()
	testkit.Need(t, testkit.OnPath("git"), "git")
	w := newSwarm(t, twoRoles)
	const box = ".swarmforge/handoffs/"
	w.put(t, box+"sequence", "damaged\n")
	w.put(t, box+"inbox/new/10_folder.handoff/", "")
	w.put(t, box+"inbox/new/20_crlf.handoff", "id: a\r\nfrom: cleaner\r\ntype: note\r\n\r\nbody\r\n")
	must(t, os.Symlink("nowhere", filepath.Join(w.root, box, "inbox/new/15_link.handoff")))
	w.put(t, "tmp/draft", "type: note\nto: coder\npriority: 50\nmessage: x")
	if code, out, errs := w.handoff(t, "coder", "send", "tmp/draft"); code != 0 || !strings.Contains(out, "_000001_from_coder_to_coder.handoff\n") {
		t.Error(code, out, errs)
	}
	want := "TASK: $ROOT/" + box + "inbox/in_process/20_crlf.handoff\nFROM: cleaner\nTYPE: note\nPRIORITY: 50\nPAYLOAD:\nbody\n"
	if code, out, errs := w.handoff(t, "coder", "next"); code != 0 || w.plain(out) != want || errs != "" {
		t.Errorf("%d, %q, %q", code, out, errs)
	}
	w.put(t, box+"inbox/in_process/30_second.handoff", "id: b\n\n")
	for _, verb := range []string{"next", "done"} {
		code, out, errs := w.handoff(t, "coder", verb)
		if code != 2 || out != "" || !strings.HasPrefix(errs, "AMBIGUOUS_TASK_STATE: ") || strings.Count(errs, "\n- "+w.root) != 2 {
			t.Errorf("%s: %d, %q, %q", verb, code, out, errs)
		}
	}
}

// TestHandoffInWorktrees: the rules of a mission in a real swarm's work tree, on request, and merging.
func TestHandoffInWorktrees(t *testing.T) {
	t.Parallel()
	testkit.Need(t, testkit.OnPath("git"), "git")
	w := newSwarm(t, twoRoles)
	coder := filepath.Join(w.root, ".worktrees", "coder")
	w.git(t, w.root, "worktree", "add", "--quiet", "-B", "swarmforge-coder", coder, "HEAD")
	w.git(t, w.root, "config", "user.name", "Pat Example")
	w.git(t, w.root, "config", "user.email", "pat@example.com")
	w.put(t, ".swarmforge/roles.tsv", strings.Join([]string{"coder", "coder", coder, "s", "Coder", "claude", "task"}, "\t")+"\n"+
		strings.Join([]string{"cleaner", "master", w.root, "s", "Cleaner", "claude", "batch"}, "\t")+"\n")
	commit := func(message string) string {
		w.git(t, coder, "commit", "--quiet", "--allow-empty", "-m", message)
		return w.git(t, coder, "rev-parse", "--short=10", "HEAD")
	}
	send := func(commit string, more ...string) (int, string) {
		t.Helper()
		draft := filepath.Join(coder, "tmp", "draft")
		must(t, os.MkdirAll(filepath.Dir(draft), 0o755))
		must(t, os.WriteFile(draft, []byte("type: git_handoff\nto: cleaner\npriority: 50\ntask: t\ncommit: "+commit+"\n"), 0o644))
		code, out, errs := w.handoffIn(t, coder, "coder", append([]string{"send", "tmp/draft"}, more...)...)
		return code, out + errs
	}
	if code, said := send(commit("no byline"), "--strict"); code != 2 || !strings.Contains(said, "byline") {
		t.Error(code, said)
	}
	good := commit("work\n\nBy coder.")
	w.git(t, coder, "checkout", "--quiet", "-b", "elsewhere")
	if code, said := send(good, "--strict"); code != 2 || !strings.Contains(said, "swarmforge-coder") {
		t.Error(code, said)
	}
	w.git(t, coder, "checkout", "--quiet", "swarmforge-coder")
	must(t, os.WriteFile(filepath.Join(coder, "f.txt"), []byte("1\n"), 0o644))
	if code, said := send(good, "--strict"); code != 2 || !strings.Contains(said, "f.txt") {
		t.Error(code, said)
	}
	w.git(t, coder, "add", "f.txt")
	good = commit("more\n\nBy coder.")
	code, said := send(good, "--strict")
	path := strings.TrimSpace(strings.TrimPrefix(said, "HANDOFF QUEUED: "))
	if code != 0 || filepath.Dir(path) != filepath.Join(coder, ".swarmforge", "handoffs", "outbox") {
		t.Fatal(code, said)
	}
	// The swarm's daemon would deliver it.
	text, err := os.ReadFile(path)
	must(t, err)
	w.put(t, ".swarmforge/handoffs/inbox/new/"+filepath.Base(path), string(text))
	if code, out, errs := w.handoff(t, "cleaner", "next"); code != 0 || !strings.HasPrefix(out, "BATCH: ") {
		t.Fatal(code, out, errs)
	}
	w.put(t, "f.txt", "mine\n")
	if code, _, errs := w.handoff(t, "cleaner", "merge"); code != 1 || !strings.Contains(errs, "f.txt") {
		t.Error(code, errs)
	}
	w.git(t, w.root, "add", "f.txt")
	w.git(t, w.root, "commit", "--quiet", "-m", "mine")
	if code, _, errs := w.handoff(t, "cleaner", "merge"); code != 1 || errs != "MERGE_CONFLICT: coder "+good+"\n- f.txt\nsolve them and commit, with the line By cleaner. in the message\n" {
		t.Errorf("%d, %q", code, errs)
	}
	w.git(t, w.root, "add", "f.txt")
	w.git(t, w.root, "commit", "--quiet", "-m", "merged\n\nBy cleaner.")
	if code, out, errs := w.handoff(t, "cleaner", "merge"); code != 0 || out != "UP_TO_DATE: coder "+good+"\n" {
		t.Error(code, out, errs)
	}
	if code, _, errs := w.handoff(t, "cleaner", "done", "--strict"); code != 2 || !strings.Contains(errs, `forward "t"`) {
		t.Error(code, errs)
	}
	if code, out, errs := w.handoff(t, "cleaner", "done", "--strict", "--merge-only"); code != 0 || !strings.HasSuffix(out, "NO_TASK\n") {
		t.Error(code, out, errs)
	}
	if code, out, _ := w.handoff(t, "cleaner", "trace", "t"); code != 0 || !strings.Contains(out, "done") {
		t.Error(code, out)
	}
	if code, out, _ := w.handoff(t, "cleaner", "list", "--all"); code != 0 || !strings.Contains(out, "outbox") || !strings.Contains(out, "completed") {
		t.Error(code, out)
	}
}
