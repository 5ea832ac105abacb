// Package e2e runs whole missions: the built programs, the real agent program, git and walls. Only the model is played
// from a script on loopback.
package e2e

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"example.com/AutoAgentProject/core/cell"
	"example.com/AutoAgentProject/core/claude"
	"example.com/AutoAgentProject/core/journal"
	"example.com/AutoAgentProject/core/login"
	"example.com/AutoAgentProject/core/plan"
	"example.com/AutoAgentProject/core/scriptmodel"
	"example.com/AutoAgentProject/core/store"
	"example.com/AutoAgentProject/core/testkit"
	"example.com/AutoAgentProject/core/view"
)

var bin string // folder of the programs, built with the tag testonly

func TestMain(m *testing.M) {
	cell.ShimMain()
	if os.Getenv(sends) != "" {
		if err := asInside[os.Getenv(sends)](os.Args[1:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	dir, err := os.MkdirTemp("", "autoagent-e2e-")
	if err == nil {
		bin = filepath.Join(dir, "bin")
		err = errors.Join(os.Mkdir(bin, 0o755), testkit.Build(bin, "testonly"))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

// world is a root, a login, a scripted model, and a person at the command line.
type world struct {
	t     *testing.T
	root  string
	model *scriptmodel.Server
	env   []string
}

func newWorld(t *testing.T, rules ...scriptmodel.Rule) *world {
	t.Helper()
	testkit.Need(t, testkit.OnPath("bwrap"), "bwrap (apt-get install bubblewrap)")
	testkit.Need(t, testkit.OnPath("node"), "node")
	program, err := claude.Find(os.Getenv)
	testkit.Need(t, err == nil, "the agent program (make tools)")
	dir := t.TempDir()
	w := &world{t: t, root: filepath.Join(dir, "root")}
	if w.model, err = scriptmodel.New(scriptmodel.Script{Rules: rules}, scriptmodel.Options{}); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go w.model.Serve(l)
	t.Cleanup(func() { w.model.Close() })
	creds := filepath.Join(dir, "login.json")
	if err := login.Write(creds, login.File{Kind: login.APIKey, Secret: "example-key"}); err != nil {
		t.Fatal(err)
	}
	home := filepath.Join(dir, "home")
	if err := os.Mkdir(home, 0o700); err != nil {
		t.Fatal(err)
	}
	w.env = []string{"PATH=" + bin + ":" + os.Getenv("PATH"), "HOME=" + home, "AUTOAGENT_ROOT=" + w.root,
		"AUTOAGENT_CREDENTIALS=" + creds, "AUTOAGENT_CLAUDE=" + program, "AUTOAGENT_UPSTREAM=http://" + l.Addr().String()}
	t.Cleanup(func() { w.noneAlive() })
	return w
}

// command is AutoAgentProject with arguments, not started.
func (w *world) command(args ...string) *exec.Cmd {
	if args[0] == "start" {
		more := []string{"start"}
		if os.Geteuid() == 0 {
			more = append(more, "--run-as", "root")
		}
		if !slices.Contains(args, "--budget") {
			more = append(more, "--budget", "5usd")
		}
		args = append(more, args[1:]...)
	}
	cmd := exec.Command(filepath.Join(bin, "AutoAgentProject"), args...)
	cmd.Env = w.env
	return cmd
}

// do runs a command to its end and returns its exit status and output.
func (w *world) do(args ...string) (int, string) {
	w.t.Helper()
	cmd := w.command(args...)
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		w.t.Fatalf("%v: %v", args, err)
	}
	return cmd.ProcessState.ExitCode(), string(out)
}

// must runs a command that has to end with exit status want.
func (w *world) must(want int, args ...string) string {
	w.t.Helper()
	code, out := w.do(args...)
	if code != want {
		w.t.Fatalf("%s: exit status %d, want %d\n%s%s", strings.Join(args, " "), code, want, out, w.history())
	}
	return out
}

// background starts a command; the returned function waits for its end.
func (w *world) background(args ...string) (*exec.Cmd, func() (int, string)) {
	w.t.Helper()
	cmd := w.command(args...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	done := make(chan struct{})
	go func() { _ = cmd.Wait(); close(done) }()
	w.t.Cleanup(func() {
		select {
		case <-done:
		default:
			_ = cmd.Process.Signal(syscall.SIGTERM)
			select {
			case <-done:
			case <-time.After(30 * time.Second):
				_ = cmd.Process.Kill()
				<-done
			}
		}
	})
	return cmd, func() (int, string) {
		w.t.Helper()
		select {
		case <-done:
		case <-time.After(patience):
			w.t.Fatalf("%v does not end\n%s%s", args, out.String(), w.history())
		}
		return cmd.ProcessState.ExitCode(), out.String()
	}
}

func (w *world) store(id string) *store.Store { return store.Root(w.root).Mission(id) }

// status is what status --json says.
func (w *world) status(id string) view.Mission {
	w.t.Helper()
	var v view.Mission
	out := w.must(0, "status", id, "--json")
	if err := json.Unmarshal([]byte(out), &v); err != nil {
		w.t.Fatalf("status --json: %v\n%s", err, out)
	}
	return v
}

// history is all events of all missions, for a failed test.
func (w *world) history() string {
	var b strings.Builder
	ids, _ := store.Root(w.root).IDs()
	for _, id := range ids {
		events, _, _, _ := w.store(id).Journal().Read(0)
		for _, e := range events {
			fmt.Fprintf(&b, "%s %s\n", e.At.Format("15:04:05.000"), e.Text)
		}
	}
	return b.String()
}

// events returns the events of a kind.
func (w *world) events(id, kind string) []journal.Event {
	w.t.Helper()
	all, _, _, err := w.store(id).Journal().Read(0)
	if err != nil {
		w.t.Fatal(err)
	}
	var out []journal.Event
	for _, e := range all {
		if e.Kind == kind {
			out = append(out, e)
		}
	}
	return out
}

// until waits for a condition.
func (w *world) until(what string, ok func() bool) {
	w.t.Helper()
	if !comes(ok) {
		w.t.Fatalf("waited in vain until %s\n%s", what, w.history())
	}
}

// patience says only when to give up: a machine may be slow, and what does not come costs a run this much once.
const patience = 4 * time.Minute

// comes waits for a fact. Looking takes at most a third of the time, as it may cost more than what it waits for.
func comes(fact func() bool) bool {
	for end := time.Now().Add(patience); time.Now().Before(end); {
		began := time.Now()
		if fact() {
			return true
		}
		time.Sleep(max(15*time.Millisecond, 2*time.Since(began)))
	}
	return false
}

// alive returns the command lines of all processes that mention the text.
func alive(text string) []string {
	var out []string
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, f := range files {
		b, err := os.ReadFile(f)
		line := strings.ReplaceAll(string(b), "\x00", " ")
		if err == nil && strings.Contains(line, text) && !strings.Contains(f, fmt.Sprintf("/%d/", os.Getpid())) {
			out = append(out, line)
		}
	}
	return out
}

// noneAlive fails the test if any process of this world still lives.
func (w *world) noneAlive() {
	w.t.Helper()
	for end := time.Now().Add(30 * time.Second); len(alive(w.root)) > 0; time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			w.t.Errorf("still alive: %s", strings.Join(alive(w.root), "\n"))
			return
		}
	}
}

// The building blocks of scripts.

type block = map[string]any

func text(s string) scriptmodel.Step {
	return scriptmodel.Step{Content: []block{{"type": "text", "text": s}}}
}

func bash(command string) scriptmodel.Step {
	return scriptmodel.Step{Content: []block{{"type": "tool_use", "name": "Bash", "input": block{"command": command}}}}
}

func write(file, content string) scriptmodel.Step {
	return scriptmodel.Step{Content: []block{{"type": "tool_use", "name": "Write", "input": block{"file_path": "{{cwd}}/" + file, "content": content}}}}
}

func planned(steps ...plan.ProposedStep) scriptmodel.Rule {
	b, err := json.Marshal(plan.Proposal{Steps: steps})
	if err != nil {
		panic(err)
	}
	return scriptmodel.Rule{Name: "plan", When: []string{"Make the plan for this mission"}, Not: []string{"A new plan is needed"},
		Steps: []scriptmodel.Step{{Structured: b}, text("planned")}}
}

func step(id, verify string, deps ...string) plan.ProposedStep {
	if deps == nil {
		deps = []string{}
	}
	return plan.ProposedStep{ID: id, Title: "Step " + id, Brief: "Do " + id + ".", Profession: "codebuilder", DependsOn: deps, Verify: verify,
		Acceptance: []string{id + " is there"}}
}

// works is the lane of an agent that works on a step; where it uses a tool it leaves a document too.
func works(id string, steps ...scriptmodel.Step) scriptmodel.Rule {
	steps = also(steps, writesDocument(goodDocument))
	return scriptmodel.Rule{Name: id, When: []string{"# Your step: Step " + id + " (" + id + ")"}, Steps: append(steps, text("did "+id))}
}
