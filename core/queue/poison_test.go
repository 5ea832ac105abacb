package queue

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"example.com/AutoAgentProject/core/handoff"
)

// poison puts everything into a folder that is no envelope, or none for this place. It returns the names.
func poison(t *testing.T, dir string) []string {
	t.Helper()
	_, wrong := note("coder", "reviewer", "wrong")
	right := `id: r
from: manager
to: coder
recipient: coder
priority: 50
type: note
message: m

m
`
	put := map[string]string{
		"00_brace": "{", "01_empty": "", "02_nuls": strings.Repeat("\x00", 4096), "03_big": strings.Repeat("x", 5<<20),
		"04_not_utf8": "\xff\xfe", "05_html": "<html>\n\n</html>", "06_wrong_recipient": string(wrong.ForRecipient("reviewer", noon).Bytes()),
		"07_two_senders": strings.Replace(right, "to:", "from: human\nto:", 1), "08_new\nline": right, "09_escape\x1b[2J": right, "10_latin1\xe9": right,
		"11_" + strings.Repeat("l", 244-len(handoff.Suffix)): right, "12_" + strings.Repeat("\xe9", 244-len(handoff.Suffix)): right,
		"13_big_headers": strings.Repeat("a: b\n", 20_000), "14_body_only": "\nbody\n",
	}
	var names []string
	for name, text := range put {
		ok(t, os.WriteFile(filepath.Join(dir, name+handoff.Suffix), []byte(text), 0o600))
		names = append(names, name+handoff.Suffix)
	}
	for name, make := range map[string]func(path string) error{
		"20_folder":     func(p string) error { return os.Mkdir(p, 0o700) },
		"21_full":       func(p string) error { return os.MkdirAll(filepath.Join(p, "x", "y.handoff"), 0o700) },
		"22_fifo":       func(p string) error { return syscall.Mkfifo(p, 0o600) },
		"23_dangling":   func(p string) error { return os.Symlink("nowhere", p) },
		"24_link":       func(p string) error { return os.Symlink("/etc/passwd", p) },
		"25_loop":       func(p string) error { return os.Symlink("25_loop"+handoff.Suffix, p) },
		"26_device":     func(p string) error { return os.Symlink("/dev/zero", p) },
		"27_up":         func(p string) error { return os.Symlink("..", p) },
		"28_unreadable": func(p string) error { return os.WriteFile(p, []byte("no"), 0) },
	} {
		ok(t, make(filepath.Join(dir, name+handoff.Suffix)))
		names = append(names, name+handoff.Suffix)
	}
	slices.Sort(names)
	return names
}

// errorsIn checks that everything in a folder has a reason beside it, and counts.
func errorsIn(t *testing.T, dir string) int {
	t.Helper()
	entries, err := os.ReadDir(dir)
	ok(t, err)
	n := 0
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), ".error") {
			continue
		}
		n++
		if strings.ContainsFunc(e.Name(), func(r rune) bool { return r < ' ' || r == '\uFFFD' }) || len(e.Name()) > handoff.MaxName {
			t.Errorf("the name %q stayed as it was", e.Name())
		}
		if why, err := os.ReadFile(filepath.Join(dir, e.Name()+".error")); err != nil || len(why) < 10 || len(why) > 300 {
			t.Errorf("%s: %q, %v", e.Name(), why, err)
		}
	}
	if n*2 != len(entries) {
		t.Errorf("%d files for %d poisoned", len(entries), n)
	}
	return n
}

// TestPoisonInTheInbox: once into failed/, with the reason, and the others go on.
func TestPoisonInTheInbox(t *testing.T) {
	q := fresh(t)
	names := poison(t, q.inbox("coder", "new"))
	good := sent(t, q, "manager", "coder", "good") // between them by name
	deliver(t, q, "manager")
	held, gone := claim(t, q, "coder")
	if held == nil || held.Name != good {
		t.Fatalf("%+v, %q", held, gone)
	}
	ok(t, q.Complete("coder", good, noon))
	if held, more := claim(t, q, "coder"); held != nil || more != nil {
		t.Errorf("%+v, %q", held, more)
	}
	if !slices.Equal(gone, names) {
		t.Errorf("gone are %q, want %q", gone, names)
	}
	if n := errorsIn(t, q.inbox("coder", "failed")); n != len(names) {
		t.Errorf("%d in failed/, want %d", n, len(names))
	}
	if d, err := q.Depth("coder"); err != nil || d.New != 0 || d.InProcess != 0 || d.Failed != len(names) {
		t.Errorf("%+v, %v", d, err)
	}
	if b, err := os.ReadFile("/etc/passwd"); err != nil || len(b) == 0 {
		t.Error("a link was followed")
	}
}

// TestPoisonInProcess: what went bad while it was held.
func TestPoisonInProcess(t *testing.T) {
	q := fresh(t)
	names := poison(t, q.inbox("coder", "in_process"))
	names = slices.DeleteFunc(names, func(n string) bool {
		return strings.HasPrefix(n, "06") || strings.HasPrefix(n, "11") || strings.HasPrefix(n, "12")
	})
	for _, n := range names {
		ok(t, writeClaim(filepath.Join(q.inbox("coder", "in_process"), n), Claim{Owner: dead(t, 1), Attempt: 1}))
	}
	for range 3 {
		if held, _ := claim(t, q, "coder"); held != nil {
			if !strings.HasPrefix(held.Name, "06") {
				t.Fatalf("%+v", held)
			}
			ok(t, q.Complete("coder", held.Name, noon))
		}
	}
	errorsIn(t, q.inbox("coder", "failed"))
	if entries, _ := os.ReadDir(q.inbox("coder", "in_process")); len(entries) != 0 {
		t.Errorf("left: %v", entries)
	}
}

// TestPoisonInTheOutbox: the sender's own others are delivered.
func TestPoisonInTheOutbox(t *testing.T) {
	q := fresh(t)
	names := poison(t, q.outbox("coder", "new"))
	names = slices.DeleteFunc(names, func(n string) bool { return strings.HasPrefix(n, "06") }) // here it is a good one
	for n, want := range []string{"reviewer", ""} {
		if got := deliver(t, q, "coder"); got != want {
			t.Errorf("delivery %d woke %q", n, got)
		}
		if n := errorsIn(t, q.outbox("coder", "failed")); n != len(names) {
			t.Errorf("%d in failed/, want %d", n, len(names))
		}
	}
	if p, err := q.Pending("coder"); p || err != nil {
		t.Error(p, err)
	}
}

// TestPoisonTwice: a name that failed/ has already is given another one, and nothing is overwritten.
func TestPoisonTwice(t *testing.T) {
	q := fresh(t)
	for _, text := range []string{"{one", "{two", "{three"} {
		ok(t, os.WriteFile(filepath.Join(q.inbox("coder", "new"), "x"+handoff.Suffix), []byte(text), 0o600))
		claim(t, q, "coder")
	}
	dir := q.inbox("coder", "failed")
	for name, text := range map[string]string{"x.handoff": "{one", "x.2.handoff": "{two", "x.3.handoff": "{three"} {
		if got := content(t, filepath.Join(dir, name)); got != text {
			t.Errorf("%s: %q", name, got)
		}
	}
	if n := errorsIn(t, dir); n != 3 {
		t.Errorf("%d in failed/", n)
	}
}

// TestPutThereByHand: a good note is taken up without any wake-up or receipt, with or without its recipient.
func TestPutThereByHand(t *testing.T) {
	q := fresh(t)
	_, e := note("manager", "coder,reviewer", "x")
	for name, e := range map[string]handoff.Envelope{"a": e, "b": e.ForRecipient("coder", noon)} {
		ok(t, os.WriteFile(filepath.Join(q.inbox("coder", "new"), name+handoff.Suffix), e.Bytes(), 0o600))
		held, gone := claim(t, q, "coder")
		if held == nil || gone != nil {
			t.Fatalf("%s: %+v, %q", name, held, gone)
		}
		ok(t, q.Complete("coder", held.Name, noon))
	}
	_, other := note("manager", "reviewer", "y")
	ok(t, os.WriteFile(filepath.Join(q.inbox("coder", "new"), "c"+handoff.Suffix), other.Bytes(), 0o600))
	if held, gone := claim(t, q, "coder"); held != nil || len(gone) != 1 {
		t.Errorf("another's: %+v, %q", held, gone)
	}
}

// TestUnreadableStays: what the disk or its permissions keep from being read is no poison. It stays, the others go on, and it is taken
// when it can be read.
func TestUnreadableStays(t *testing.T) {
	if os.Geteuid() == 0 { // root can read everything
		dir, err := os.MkdirTemp("", "queue-")
		ok(t, err)
		defer os.RemoveAll(dir)
		ok(t, os.Chmod(dir, 0o755))
		program, err := os.ReadFile(os.Args[0])
		ok(t, errors.Join(err, os.WriteFile(dir+"/test", program, 0o755)))
		c := exec.CommandContext(t.Context(), dir+"/test", "-test.run=^TestUnreadableStays$")
		c.Dir, c.Env = "/", append(os.Environ(), "TMPDIR=/tmp")
		c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
		if out, err := c.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		return
	}
	for _, take := range []func(q Queue) (string, error){
		func(q Queue) (string, error) {
			h, dead, err := q.Claim("coder", self(t), noon)
			if h == nil || len(dead) > 0 {
				return "", errors.Join(err, fmt.Errorf("dead %q", dead))
			}
			return h.Name, q.Complete("coder", h.Name, noon)
		},
		func(q Queue) (string, error) {
			u, dead, err := q.Next("coder", Task, Holder{Owner: self(t)}, noon)
			if u == nil || len(dead) > 0 {
				return "", errors.Join(err, fmt.Errorf("dead %q", dead))
			}
			_, err = q.Done("coder", Task, Holder{Owner: self(t)}, nil, noon)
			return filepath.Base(u.Items[0].Path), err
		},
	} {
		q := fresh(t)
		sent(t, q, "manager", "coder", "a")
		sent(t, q, "manager", "coder", "b")
		deliver(t, q, "manager")
		first := filepath.Join(q.inbox("coder", "new"), "50_a"+handoff.Suffix)
		ok(t, os.Chmod(first, 0))
		if name, err := take(q); name != "50_b"+handoff.Suffix || err != nil {
			t.Errorf("took %q, %v", name, err)
		}
		if name, err := take(q); name != "" || err == nil || !exists(first) {
			t.Errorf("took %q, %v", name, err)
		}
		ok(t, os.Chmod(first, 0o600))
		if name, err := take(q); name != "50_a"+handoff.Suffix || err != nil {
			t.Errorf("took %q, %v", name, err)
		}
	}
}
