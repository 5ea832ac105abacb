package view_test

import (
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"example.com/AutoAgentProject/core/claude"
	"example.com/AutoAgentProject/core/engine"
	"example.com/AutoAgentProject/core/runner"
	"example.com/AutoAgentProject/core/store"
	"example.com/AutoAgentProject/core/testkit"
	"example.com/AutoAgentProject/core/view"
)

func describe(r io.Reader, each func(runner.Event)) error {
	return claude.New(claude.Config{}).Describe(r, each)
}

// readerOf reads a root in which everything with a supervisor.json is ticked.
func readerOf(root store.Root) *view.Reader {
	return &view.Reader{Root: root, Describe: describe, Hint: " --root " + string(root), Live: func(_ context.Context, st *store.Store) (engine.Live, error) {
		_, err := os.Stat(filepath.Join(st.Dir(), "supervisor.json"))
		return engine.Live{Ticking: err == nil, By: "embedded"}, nil
	}}
}

func ok(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// snapshot is every file below a folder with its size and time.
func snapshot(t testing.TB, dir string) []string {
	t.Helper()
	var out []string
	ok(t, filepath.WalkDir(dir, func(p string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		i, err := d.Info()
		if err == nil {
			out = append(out, p+" "+i.ModTime().String()+" "+i.Mode().String())
		}
		return err
	}))
	return out
}

// TestReader: the missions of all kinds are read as they are, in the order in which a person wants to see them; nothing is
// written, and nothing waits for a lock that somebody holds.
func TestReader(t *testing.T) {
	root := store.Root(t.TempDir())
	now := time.Now()
	scenes := testkit.Scenes(t, root, now)
	for _, w := range scenes { // all locks that ticks take
		for _, p := range []string{"lock", "ledger.jsonl.lock", "supervisor.lock", "agents/codebuilder-1/tick.lock", "agents/codebuilder-1/sequence.lock", "agents/codebuilder-1/outbox/lock", "agents/codebuilder-1/inbox"} {
			flags := os.O_RDWR | os.O_CREATE
			if strings.HasSuffix(p, "inbox") {
				flags = os.O_RDONLY
			}
			f, err := os.OpenFile(filepath.Join(w.St.Dir(), p), flags, 0o600)
			ok(t, err)
			defer f.Close()
			ok(t, unix.Flock(int(f.Fd()), unix.LOCK_EX))
		}
	}
	before := snapshot(t, string(root))
	r, ctx := readerOf(root), t.Context()

	o, err := r.Overview(ctx, "", 1)
	ok(t, err)
	var order []string
	for _, m := range o.Missions {
		order = append(order, m.Group+" "+m.ID)
	}
	want := []string{"waiting hostile", "waiting shop-cart", "waiting torn", "running my-site", "halted api-port", "halted old-import", "ended docs-cleanup"}
	slices.Sort(order[:3])
	if !slices.Equal(order, want) || o.Total != 7 || o.Counts != (view.Counts{Waiting: 3, Running: 1, Halted: 2, Ended: 1}) {
		t.Errorf("%q %+v", order, o.Counts)
	}
	if o, err = r.Overview(ctx, view.Halted, 9); err != nil || len(o.Missions) != 2 || o.Page != 1 {
		t.Errorf("%+v %v", o, err)
	}

	d, err := r.Detail(ctx, "my-site", -1, 0)
	ok(t, err)
	if d.Unreadable || len(d.Steps) != 6 || d.Runs.Total != 7 || len(d.Handoffs) != 6 || len(d.Burn.Points) != 5 || len(d.Events) < 12 || len(d.Needs) != 0 || d.Older != 0 {
		t.Errorf("%+v", d)
	}
	if n := len(d.Burn.Points); d.Burn.Points[n-1].Used != d.Budget.Used || d.Burn.Until.IsZero() {
		t.Errorf("%+v %+v", d.Burn, d.Budget)
	}
	if d.Runs.Runs[0].State != "running" || d.Runs.Runs[0].Agent != "tester-1" || d.Runs.Runs[6].Agent != "manager" {
		t.Errorf("%+v", d.Runs.Runs)
	}
	if len(d.Work.Files) != 4 || len(d.Work.Commits) != 4 || d.Work.Commits[0].Subject != "site: add a page" || !strings.Contains(d.Work.Patch.Text, "+<h1>Bread</h1>") || len(d.Work.Changed) != 4 {
		t.Errorf("%+v", d.Work)
	}
	if f, err := r.FileOf(ctx, "my-site", "bread.html"); err != nil || f.Text != "<h1>Bread</h1>\n" {
		t.Errorf("%+v %v", f, err)
	}
	for _, p := range []string{"no", "../x", "/etc/passwd", "a\x00b", ":(glob)*", ""} {
		if _, err := r.FileOf(ctx, "my-site", p); err != view.ErrNotFound {
			t.Errorf("%q: %v", p, err)
		}
	}
	x, err := r.Run(ctx, "my-site", d.Runs.Runs[5].Run, 0)
	ok(t, err)
	if x.Step != "layout" || len(x.Tools) != 2 || len(x.Talk.Entries) != 6 || x.Talk.Next != 0 || x.Prompt.Size == 0 || x.Turns != 7 || x.Nano == 0 {
		t.Errorf("%+v", x)
	}
	task, err := r.Task(ctx, "my-site", "bread")
	ok(t, err)
	if len(task.Way.Legs) != 2 || len(task.Runs) != 2 || len(task.Reasons) != 1 || len(task.Events) < 5 || task.Runs[0].State != "failed" {
		t.Errorf("%+v", task)
	}
	for _, id := range []string{"nope", "../my-site", "", "my-site/x"} {
		if _, err := r.Detail(ctx, id, -1, 0); err != view.ErrNotFound {
			t.Errorf("%q: %v", id, err)
		}
		if _, err := r.Run(ctx, "my-site", id, 0); err != view.ErrNotFound {
			t.Errorf("%q: %v", id, err)
		}
		if _, err := r.Task(ctx, "my-site", id); err != view.ErrNotFound {
			t.Errorf("%q: %v", id, err)
		}
	}

	d, err = r.Detail(ctx, "shop-cart", -1, 0)
	ok(t, err)
	if len(d.Needs) != 1 || d.Needs[0].Commands[0] != "AutoAgentProject approve shop-cart 1 --root "+string(root) || len(d.Approvals) != 1 || d.Approvals[0].Nonce != "" {
		t.Errorf("%+v", d.Needs)
	}
	d, err = r.Detail(ctx, "api-port", -1, 0)
	ok(t, err)
	if len(d.Needs) != 1 || !strings.HasPrefix(d.Needs[0].Commands[0], "AutoAgentProject budget add api-port 2usd") {
		t.Errorf("%+v", d.Needs)
	}
	if after := snapshot(t, string(root)); !slices.Equal(before, after) {
		t.Error("reading changed something")
	}
}

// TestDamageHidesNothing: what cannot be read is named, and the rest is there.
func TestDamageHidesNothing(t *testing.T) {
	root := store.Root(t.TempDir())
	scenes := testkit.Scenes(t, root, time.Now())
	r, ctx := readerOf(root), t.Context()
	see := func(id string, words ...string) view.Detail {
		t.Helper()
		d, err := r.Detail(ctx, id, -1, 0)
		ok(t, err)
		all := strings.Join(d.Warnings, "\n")
		for _, w := range words {
			if !strings.Contains(all, w) {
				t.Errorf("%s: nothing says %q:\n%s", id, w, all)
			}
		}
		if !d.Unreadable {
			t.Errorf("%s seems whole", id)
		}
		return d
	}
	d := see("old-import", "plan.json", "state.json")
	if d.Budget.Used == 0 || len(d.Runs.Runs) != 1 || d.GoalText.Text != "Import the old orders.\n" || len(d.Events) == 0 || d.Phase != "halted: damage" {
		t.Errorf("%+v", d)
	}
	d = see("torn", "mission.json")
	if d.Budget.Used == 0 || len(d.Runs.Runs) != 1 || len(d.Steps) != 1 || len(d.Events) == 0 || d.Phase != "unreadable" || len(d.Agents) != 6 {
		t.Errorf("%+v", d)
	}
	w := scenes["docs-cleanup"]
	all := []string{"goal.md", "plan.json", "state.json", "ledger.jsonl", "clock.json", "pauses.json", "events.jsonl", "stop.json", "stopping.json", "approvals/0001.json"}
	for _, bad := range []func(string){
		func(p string) { ok(t, os.WriteFile(p, []byte("{"), 0o600)) },
		func(p string) { ok(t, os.Symlink("/etc/passwd", p)) },
		func(p string) { ok(t, unix.Mkfifo(p, 0o600)) },
		func(p string) { ok(t, os.Mkdir(p, 0o700)) },
	} {
		for _, name := range all {
			p := filepath.Join(w.St.Dir(), name)
			_ = os.Remove(p)
			bad(p)
		}
		d, err := r.Detail(ctx, "docs-cleanup", -1, 0)
		ok(t, err)
		b, err := json.Marshal(d)
		ok(t, err)
		if strings.Contains(string(b), "root:x:0") {
			t.Error("a link was followed")
		}
		if !d.Unreadable || len(d.Runs.Runs) != 3 || len(d.Handoffs) != 3 || len(d.Work.Files) != 2 {
			t.Errorf("%+v", d)
		}
		if o, err := r.Overview(ctx, "", 1); err != nil || len(o.Missions) != 7 {
			t.Errorf("%d %v", len(o.Missions), err)
		}
	}
}

// TestNoSecretIsRead: what a view holds has no secret in it, and no character that tricks the eye.
func TestNoSecretIsRead(t *testing.T) {
	root := store.Root(t.TempDir())
	w := testkit.Scenes(t, root, time.Now())["hostile"]
	r, ctx := readerOf(root), t.Context()
	d, err := r.Detail(ctx, "hostile", -1, 0)
	ok(t, err)
	x, err := r.Run(ctx, "hostile", d.Runs.Runs[0].Run, 0)
	ok(t, err)
	task, err := r.Task(ctx, "hostile", "step")
	ok(t, err)
	o, err := r.Overview(ctx, "", 1)
	ok(t, err)
	f, err := r.FileOf(ctx, "hostile", "plain.txt")
	ok(t, err)
	for what, v := range map[string]any{"detail": d, "run": x, "task": task, "overview": o, "file": f} {
		b, err := json.Marshal(v)
		ok(t, err)
		for _, s := range append(testkit.Secrets(), "\u202e") {
			if strings.Contains(string(b), s) {
				t.Errorf("%s holds %q", what, s)
			}
		}
	}
	if len(x.Talk.Entries) != 4 || !strings.Contains(x.Talk.Entries[1].Text, view.Hidden) {
		t.Errorf("%+v", x.Talk.Entries)
	}
	// The files are larger than anybody reads.
	for _, name := range []string{"prompt.md", "stream.jsonl"} {
		ok(t, os.Truncate(filepath.Join(w.St.Run("codebuilder-1", x.Run.Run), name), 1<<30))
	}
	x, err = r.Run(ctx, "hostile", x.Run.Run, 0)
	if err != nil || !x.Prompt.Cut || x.Prompt.Size != 1<<30 || len(x.Prompt.Text) > 1<<20 || !x.ToolsCut || x.Talk.Next == 0 {
		t.Errorf("%v %d %+v", err, len(x.Prompt.Text), x.Talk)
	}
}

// TestWindows: however a transcript is cut into windows, each entry is read once.
func TestWindows(t *testing.T) {
	root := store.Root(t.TempDir())
	w := testkit.Tell(t, root, "m", "x", time.Now(), time.Hour)
	var talk []string
	for i := range 1200 {
		talk = append(talk, testkit.Said(strings.Repeat("x", i)))
	}
	run := w.Run("codebuilder-1", "a", time.Hour, time.Minute, runner.Done, 1, talk...)
	w.Write("working")
	r := readerOf(root)
	n, from := 0, int64(0)
	for range 100 {
		d, err := r.Run(t.Context(), "m", run, from)
		ok(t, err)
		for _, e := range d.Talk.Entries {
			if e.Kind == "text" {
				if len(e.Text) != n {
					t.Fatalf("entry %d has %d", n, len(e.Text))
				}
				n++
			}
		}
		if from = d.Talk.Next; from == 0 {
			break
		}
	}
	if n != 1200 {
		t.Errorf("%d", n)
	}
}

func TestShown(t *testing.T) {
	for in, want := range map[string]string{
		"plain":                                      "plain",
		"a\x1b[31mb\x00\u202ec\nd\te":                "a\uFFFD[31mb\uFFFD\uFFFDc\nd\te",
		"x \xff y":                                   "x \uFFFD y",
		"password: hunter22 and more":                "[hidden] and more",
		"see https://u:pw@h.example/":                "see [hidden]h.example/",
		"Authorization: Bearer abcdefghijklmnop1234": "Authorization: [hidden]",
		"the token of a button":                      "the token of a button",
		"-----BEGIN RSA PRIVATE KEY-----\nabc":       "[hidden]",
	} {
		if got := view.Shown(in); got != want {
			t.Errorf("%q: %q", in, got)
		}
		if got := view.Shown(view.Shown(in)); got != want {
			t.Errorf("%q twice: %q", in, got)
		}
	}
	for _, s := range testkit.Secrets()[:3] {
		if got := view.Shown("a " + s + " b"); got != "a [hidden] b" {
			t.Errorf("%q", got)
		}
	}
	if got := view.Line("a\n b\tc "+strings.Repeat("x", 9), 8); got != "a b c x…" {
		t.Errorf("%q", got)
	}
}
