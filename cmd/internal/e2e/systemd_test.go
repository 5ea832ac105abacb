package e2e

import (
	"context"
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"example.com/AutoAgentProject/core/claude"
	"example.com/AutoAgentProject/core/scriptmodel"
	"example.com/AutoAgentProject/core/testkit"
	"example.com/AutoAgentProject/core/view"
)

// person is a user of a throwaway host with the real systemd.
type person struct {
	t     *testing.T
	host  *testkit.Host
	model *scriptmodel.Server
	env   []string
}

func newPerson(t *testing.T, rules ...scriptmodel.Rule) *person {
	t.Helper()
	program, err := claude.Find(os.Getenv)
	testkit.Need(t, err == nil, "the agent program (make tools)")
	host := testkit.NewHost(t, testkit.HostOptions{Users: []string{"alice"}, Linger: []string{"alice"}, Binds: []testkit.Bind{
		{Host: bin, Inside: "/srv/autoagent"}, {Host: filepath.Dir(program), Inside: "/srv/claude"}}})
	p := &person{t: t, host: host}
	if p.model, err = scriptmodel.New(scriptmodel.Script{Rules: rules}, scriptmodel.Options{}); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go p.model.Serve(l)
	t.Cleanup(func() { p.model.Close() })
	p.env = []string{"env", "AUTOAGENT_UPSTREAM=http://" + l.Addr().String(), "AUTOAGENT_CLAUDE=/srv/claude/" + filepath.Base(program)}
	cmd := host.Command(t.Context(), "alice", "/srv/autoagent/AutoAgentProject", "login", "--kind", "api-key")
	cmd.Stdin = strings.NewReader("example-key-of-sixteen\n")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("login: %v\n%s", err, out)
	}
	return p
}

// do runs AutoAgentProject as the person.
func (p *person) do(args ...string) (int, string) {
	p.t.Helper()
	ctx, done := context.WithTimeout(p.t.Context(), 3*time.Minute)
	defer done()
	out, exit := p.host.Run(ctx, "alice", append(append([]string{}, append(p.env, "/srv/autoagent/AutoAgentProject")...), args...)...)
	return exit, out
}

func (p *person) status(id string) view.Mission {
	p.t.Helper()
	var v view.Mission
	_, out := p.do("status", id, "--json")
	if err := json.Unmarshal([]byte(out), &v); err != nil {
		p.t.Fatalf("status --json: %v\n%s", err, out)
	}
	return v
}

// nothingLeft fails the test if systemd knows a unit of a mission or a file of one is installed.
func (p *person) nothingLeft() {
	p.t.Helper()
	// The slices above all missions, forge-autoagent.slice and its like, belong to none.
	if out := p.host.Systemctl("alice", "list-units", "--all", "--no-legend", "--plain", "forge-autoagent-*", "forge-autoagentguard-*"); strings.TrimSpace(out) != "" {
		p.t.Errorf("still loaded:\n%s", out)
	}
	left, _ := filepath.Glob(p.host.Path("/home/alice/.config/systemd/user/forge-autoagent*"))
	if len(left) > 0 {
		p.t.Errorf("still installed: %v", left)
	}
}

// TestSystemdMission: handed to the user manager, a mission finishes by itself and leaves no unit behind.
func TestSystemdMission(t *testing.T) {
	p := newPerson(t, planned(step("one", "test -f one"), step("two", "test -f two", "one")), works("one", bash("echo 1 > one")), works("two", bash("echo 2 > two")))
	code, out := p.do("start", "my-site", "Two steps", "--engine", "systemd", "--budget", "5usd", "--verify", "test -f one && test -f two")
	if code != 0 || !strings.Contains(out, "journalctl --user MISSION=my-site") {
		t.Fatalf("start: %d\n%s", code, out)
	}
	if v := p.status("my-site"); !v.Live.Ticking || len(v.Live.Next) == 0 {
		t.Errorf("nobody ticks it: %+v", v.Live)
	}
	for end := time.Now().Add(90 * time.Second); p.status("my-site").Phase != "completed"; time.Sleep(300 * time.Millisecond) {
		if time.Now().After(end) {
			_, events := p.do("logs", "my-site")
			_, st := p.do("status", "my-site")
			t.Fatalf("it does not finish\n%s\n%s\n%v", events, st, p.host.Journal("alice"))
		}
	}
	time.Sleep(500 * time.Millisecond)
	p.nothingLeft()
}

// TestSystemdAbort: abort ends a mission of the user manager with everything that an agent left behind.
func TestSystemdAbort(t *testing.T) {
	p := newPerson(t, planned(step("zero", "test -f zero"), step("first", "true", "zero")), works("zero", bash("echo 0 > zero")), stubborn("mark-in-the-host"))
	if code, out := p.do("start", "my-site", "Work that never ends", "--engine", "systemd", "--budget", "5usd"); code != 0 {
		t.Fatalf("start: %d\n%s", code, out)
	}
	living := func() int {
		n := 0
		for _, x := range p.host.Processes() {
			if strings.Contains(strings.Join(x.Args, " "), "mark-in-the-host") {
				n++
			}
		}
		return n
	}
	for end := time.Now().Add(60 * time.Second); living() < 4; time.Sleep(200 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the agent does not work")
		}
	}
	began := time.Now()
	code, out := p.do("abort", "my-site")
	t.Logf("abort took %v", time.Since(began).Round(10*time.Millisecond))
	if code != 0 || living() != 0 {
		t.Errorf("abort: %d, %d alive\n%s", code, living(), out)
	}
	if v := p.status("my-site"); v.Phase != "aborted" || v.Budget.Reserved != 0 {
		t.Errorf("phase %q, reserved %d", v.Phase, v.Budget.Reserved)
	}
	p.nothingLeft()
}
