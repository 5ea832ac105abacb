package queue

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"example.com/AutoAgentProject/core/handoff"
	"time"

	"example.com/AutoAgentProject/core/proc"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// The test binary, started again with these variables, is another tick.
const (
	childDoes = "QUEUE_TEST_CHILD"
	childPath = "QUEUE_TEST_PATH"
)

func TestMain(m *testing.M) {
	q := Queue{Agents: os.Getenv(childPath)}
	var err error
	switch os.Getenv(childDoes) {
	case "":
		os.Exit(m.Run())
	case "session":
		err = session(q)
	case "bury":
		err = bury(q)
	case "submit":
		err = submit(q)
	case "batch":
		err = batch(q)
	case "random":
		err = random(q)
	case "crowd":
		err = crowd(context.Background(), q, "child")
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func child(ctx context.Context, does string, q Queue, env ...string) *exec.Cmd {
	c := exec.CommandContext(ctx, os.Args[0])
	c.Env = append(append(os.Environ(), childDoes+"="+does, childPath+"="+q.Agents), env...)
	return c
}

func ok(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// agents of the queues under test.
var agents = []string{"manager", "coder", "reviewer", "tester"}

func fresh(t testing.TB) Queue {
	t.Helper()
	q := Queue{Agents: filepath.Join(t.TempDir(), "agents")}
	ok(t, os.Mkdir(q.Agents, 0o700))
	for _, a := range agents {
		ok(t, q.Make(a))
	}
	return q
}

// note is an envelope to everybody in to.
func note(from, to, id string) (name string, e handoff.Envelope) {
	for _, h := range [][2]string{{"id", id}, {"from", from}, {"to", to}, {"priority", "50"}, {"type", handoff.Note}, {"message", "about " + id}, {"created_at", handoff.Instant(noon)}} {
		e.Set(h[0], h[1])
	}
	e.Body = "about " + id + "\n"
	return "50_" + id + handoff.Suffix, e
}

// sent puts a note into the sender's outbox and returns its name.
func sent(t testing.TB, q Queue, from, to, id string) string {
	t.Helper()
	name, e := note(from, to, id)
	ok(t, q.Send(from, name, e))
	return name
}

func deliver(t testing.TB, q Queue, from string) (woken string) {
	t.Helper()
	got, err := q.Deliver(from, noon)
	ok(t, err)
	return strings.Join(got, " ")
}

func claim(t testing.TB, q Queue, agent string) (*Held, []string) {
	t.Helper()
	return claimAs(t, q, agent, self(t))
}

func claimAs(t testing.TB, q Queue, agent string, owner proc.ID) (*Held, []string) {
	t.Helper()
	held, dead, err := q.Claim(agent, owner, noon)
	ok(t, err)
	return held, dead
}

func self(t testing.TB) proc.ID {
	t.Helper()
	id, err := proc.Self()
	ok(t, err)
	return id
}

// dead is a tick that is gone; n tells several apart.
func dead(t testing.TB, n int) proc.ID {
	t.Helper()
	return proc.ID{Boot: self(t).Boot, PID: 1<<30 + n, Start: 1}
}

// tree lists everything below an agent's folder, as "box/name", without folders and locks.
func tree(t testing.TB, q Queue, agent string) []string {
	t.Helper()
	var out []string
	root := filepath.Join(q.Agents, agent)
	for _, box := range []string{"inbox/new", "inbox/in_process", "inbox/completed", "inbox/failed", "outbox/new", "outbox/sent", "outbox/failed"} {
		entries, err := os.ReadDir(filepath.Join(root, box))
		ok(t, err)
		for _, e := range entries {
			out = append(out, box+"/"+e.Name())
		}
	}
	return out
}

func holds(t testing.TB, q Queue, agent string, want ...string) {
	t.Helper()
	if got := tree(t, q, agent); !slices.Equal(got, want) {
		t.Errorf("%s holds %q, want %q", agent, got, want)
	}
}

func content(t testing.TB, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	ok(t, err)
	return string(b)
}
