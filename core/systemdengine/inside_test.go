package systemdengine_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/coreos/go-systemd/v22/dbus"

	"example.com/AutoAgentProject/core/engine"
	"example.com/AutoAgentProject/core/mission"
	"example.com/AutoAgentProject/core/money"
	"example.com/AutoAgentProject/core/store"
	"example.com/AutoAgentProject/core/systemdengine"
	"example.com/AutoAgentProject/core/units"
	"example.com/AutoAgentProject/core/usererr"
)

// deaf is an agent that ends of SIGKILL only, or when the file release is there, and leaves a child that is no longer its own.
const deaf = `trap '' TERM HUP INT
echo "$agent $$" >>%[1]s/ticks
setsid sh -c "trap '' TERM; sleep 600; : %[1]s" &
while [ ! -e %[1]s/release ]; do sleep 0.1; done
`

// release lets the deaf agents of a mission end.
func (p *place) release(id string) {
	p.t.Helper()
	if err := os.WriteFile(filepath.Join(p.dir, "r", id, "release"), nil, 0o644); err != nil {
		p.t.Fatal(err)
	}
}

// place is one root with missions in it.
type place struct {
	t    testing.TB
	dir  string
	w    wired
	root store.Root
	e    owned
}

// newPlace makes a root in dir, or finds it there after a crash.
func newPlace(t testing.TB, dir string, every time.Duration, change func(*wired)) *place {
	t.Helper()
	p := &place{t: t, dir: dir, root: store.Root(filepath.Join(dir, "r/root"))}
	bin := filepath.Join(dir, "b/bin")
	for _, d := range []string{string(p.root), bin} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	p.w = wire(t, string(p.root), bin, every, change)
	file := filepath.Join(bin, "wired.json")
	p.e = owned{Engine: p.w.engine(file), file: file}
	return p
}

// fresh is a place that ends with the test, with its missions.
func fresh(t *testing.T, every time.Duration, change func(*wired)) *place {
	t.Helper()
	dir, err := os.MkdirTemp("", "p")
	if err == nil {
		err = os.Chmod(dir, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	p := newPlace(t, dir, every, change)
	t.Cleanup(func() {
		ids, _ := p.root.IDs()
		for _, id := range ids {
			p.tombstone(id)
			if _, err := p.e.Stop(context.Background(), id); err != nil {
				t.Error(err)
			}
		}
		_ = os.RemoveAll(dir)
	})
	return p
}

// mission makes one whose agents do what do says, by agent; all write their name into the file ticks.
func (p *place) mission(id string, do map[string]string) *store.Store {
	p.t.Helper()
	st := p.root.Mission(id)
	roster, err := mission.ParseRoster("codebuilder:1", []string{"manager", "codebuilder"})
	if err != nil {
		p.t.Fatal(err)
	}
	for _, a := range roster {
		script, ok := do[a.Name]
		if !ok {
			script = "echo " + a.Name + " >>%[1]s/ticks\n"
		}
		own := filepath.Join(p.dir, "r", id)
		script = strings.ReplaceAll(script, "%[1]s", own)
		err = errors.Join(err, os.MkdirAll(own, 0o755), os.MkdirAll(st.Agent(a.Name), 0o700), os.WriteFile(filepath.Join(p.w.Settings.Bin, "run-"+id+"-"+a.Name), []byte(script), 0o644))
	}
	m := mission.Mission{Version: mission.Version, ID: id, CreatedAt: time.Now().UTC(), Roster: roster, Engine: systemdengine.Name, Manager: string(manager()), Budget: money.Amount{Unit: money.NanoUSD, N: int64(money.USD)}}
	if err := errors.Join(err, st.CreateMission(m), st.PrepareTombstone(), give(filepath.Join(p.dir, "r"))); err != nil {
		p.t.Fatal(err)
	}
	return st
}

func (p *place) start(id string) {
	p.t.Helper()
	if stop, err := p.e.Engine.Start(context.Background(), id); err != nil || stop != (mission.Stop{}) {
		p.t.Fatalf("start of %s: %+v, %v", id, stop, err)
	}
}

func (p *place) tombstone(id string) {
	p.t.Helper()
	if _, err := p.root.Mission(id).Stop(mission.Stop{Cause: mission.Aborted, Reason: "for the test", By: "test", At: time.Now()}); err != nil {
		p.t.Fatal(err)
	}
	if err := give(filepath.Join(p.dir, "r")); err != nil {
		p.t.Fatal(err)
	}
}

func (p *place) ticks(id, agent string) int {
	b, _ := os.ReadFile(filepath.Join(p.dir, "r", id, "ticks"))
	n := 0
	for line := range strings.Lines(string(b)) {
		if f := strings.Fields(line); len(f) > 0 && f[0] == agent {
			n++
		}
	}
	return n
}

// socket is the one that wakes an agent.
func (p *place) socket(id, agent string) string {
	return units.WakeSocket(units.Runtime(manager()), id, agent)
}

func (p *place) until(what string, ok func() bool) {
	p.t.Helper()
	for end := time.Now().Add(2 * time.Minute); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if ok() {
			return
		}
	}
	p.t.Fatalf("waited in vain until %s", what)
}

// alive says whether a process mentions the mission's own folder.
func (p *place) alive(id string) bool {
	found, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	return slices.ContainsFunc(found, func(f string) bool {
		b, _ := os.ReadFile(f)
		return strings.Contains(string(b), filepath.Join(p.dir, "r", id)) && !strings.Contains(string(b), "test.run")
	})
}

// installed are the files of units whose names begin with the mission's.
func installed(t testing.TB, id string) []string {
	t.Helper()
	entries, err := os.ReadDir(unitDir())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	var out []string
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), "forge-autoagent-"+id) || strings.HasPrefix(e.Name(), "forge-autoagentguard-"+id) || strings.HasPrefix(e.Name(), ".tmp") {
			out = append(out, e.Name())
		}
	}
	return out
}

func systemctl(args ...string) string {
	if manager() == units.User {
		args = append([]string{"--user"}, args...)
	}
	out, _ := exec.Command("systemctl", append([]string{"--no-pager"}, args...)...).CombinedOutput()
	return strings.TrimSpace(string(out))
}

// nothing checks that neither files nor units of a mission are there.
func nothing(t testing.TB, id string) {
	t.Helper()
	if got := installed(t, id); len(got) > 0 {
		t.Errorf("left in %s: %q", unitDir(), got)
	}
	if got := systemctl("list-units", "--all", "--plain", "--no-legend", "forge-autoagent-"+id+"*"); got != "" {
		t.Errorf("left in the manager:\n%s", got)
	}
}

func TestEdges(t *testing.T) {
	needInside(t)
	ctx := context.Background()

	t.Run("a neighbour", func(t *testing.T) {
		p := fresh(t, time.Second, nil)
		p.mission("my", nil)
		p.mission("my-site", nil)
		p.start("my")
		p.start("my-site")
		p.until("both tick", func() bool { return p.ticks("my", "manager") > 0 && p.ticks("my-site", "manager") > 0 })
		before := installed(t, "my-site")
		pids := systemctl("show", "--property=ActiveEnterTimestampMonotonic", "forge-autoagent-my-site-manager.timer", "forge-autoagent-my-site.target", "forge-autoagent-my-site-quota.socket", `forge-autoagent-my\x2dsite.slice`)
		p.tombstone("my")
		rec, err := p.e.Stop(ctx, "my")
		if err != nil || !rec.Done {
			t.Fatalf("%+v, %v", rec, err)
		}
		if got := installed(t, "my-site"); !slices.Equal(got, before) || len(got) == 0 {
			t.Errorf("the neighbour's units were %q and are %q", before, got)
		}
		if got := systemctl("show", "--property=ActiveEnterTimestampMonotonic", "forge-autoagent-my-site-manager.timer", "forge-autoagent-my-site.target", "forge-autoagent-my-site-quota.socket", `forge-autoagent-my\x2dsite.slice`); got != pids {
			t.Errorf("the neighbour was restarted:\n%s\n%s", pids, got)
		}
		n := p.ticks("my-site", "manager")
		p.until("the neighbour goes on", func() bool { return p.ticks("my-site", "manager") > n })
		if said, err := p.e.Trouble(ctx, "my-site"); err != nil || len(said) > 0 {
			t.Errorf("the neighbour: %q, %v", said, err)
		}
		for _, name := range installed(t, "my") {
			if !slices.Contains(before, name) && !strings.Contains(name, `my\x2dsite`) {
				t.Errorf("%s is left", name)
			}
		}
	})

	t.Run("XDG_RUNTIME_DIR is not set", func(t *testing.T) {
		p := fresh(t, time.Hour, nil)
		t.Setenv("XDG_RUNTIME_DIR", "")
		t.Setenv("DBUS_SESSION_BUS_ADDRESS", "")
		os.Unsetenv("XDG_RUNTIME_DIR")
		os.Unsetenv("DBUS_SESSION_BUS_ADDRESS")
		p.mission("unset", nil)
		p.start("unset")
		p.until("it ticks", func() bool { return p.ticks("unset", "manager") > 0 })
		if _, err := os.Stat(p.socket("unset", "manager")); err != nil {
			t.Error(err)
		}
		p.tombstone("unset")
		if rec, err := p.e.Stop(ctx, "unset"); err != nil || !rec.Done {
			t.Errorf("%+v, %v", rec, err)
		}
	})

	if manager() == units.System {
		t.Run("somebody locks the folder of units", testLocked)
	}

	t.Run("a start that fails leaves nothing", func(t *testing.T) {
		testFailedStart(t)
	})

	t.Run("is said", func(t *testing.T) {
		p := fresh(t, time.Hour, nil)
		p.mission("said", map[string]string{"codebuilder-1": "exit 125\n", "manager": "exit 1\n", "reporter": "sleep 600\n"})
		p.start("said")
		p.until("all ticked", func() bool {
			return systemctl("is-failed", "forge-autoagent-said-codebuilder-1.service", "forge-autoagent-said-manager.service") == "failed\nfailed" && p.ticks("said", "quota") > 0
		})
		var live engine.Live
		p.until("quota's timer has a time", func() bool {
			var err error
			if live, err = p.e.Live(ctx, "said"); err != nil {
				t.Fatal(err)
			}
			return !live.Next["quota"].IsZero()
		})
		if !live.Ticking || live.By != "systemd ("+string(manager())+" manager)" {
			t.Errorf("%+v", live)
		}
		for agent, in := range map[string]time.Duration{"quota": time.Minute, "manager": time.Hour} {
			if d := time.Until(live.Next[agent]); d < in/2 || d > in+5*time.Second {
				t.Errorf("%s ticks in %v, not in %v", agent, d, in)
			}
		}
		if at, ok := live.Next["reporter"]; ok {
			t.Errorf("reporter, which runs, ticks next at %v", at)
		}
		systemctl("stop", "forge-autoagent-said-quota.socket", "forge-autoagent-said-reporter.timer")
		if err := os.Remove(filepath.Join(unitDir(), "forge-autoagent-said-reporter.timer")); err != nil {
			t.Fatal(err)
		}
		said, err := p.e.Trouble(ctx, "said")
		if err != nil {
			t.Fatal(err)
		}
		all := strings.Join(said, "\n")
		for _, want := range []string{"codebuilder-1 says that it must not be started again", "the last tick of manager ended badly", "nothing wakes quota", "reporter is not ticked by time", "forge-autoagent-said-reporter.timer is missing"} {
			if !strings.Contains(all, want) {
				t.Errorf("not said: %s\n%s", want, all)
			}
		}
		if len(said) != 5 {
			t.Errorf("said:\n%s", all)
		}
		if err := p.e.Answers(ctx, manager()); err != nil {
			t.Error(err)
		}
	})

	t.Run("nobody asked to stop it", func(t *testing.T) {
		p := fresh(t, time.Hour, nil)
		p.mission("goes-on", nil)
		p.start("goes-on")
		if _, err := p.e.Engine.Stop(ctx, "goes-on"); usererr.CodeOf(err) != usererr.NotFound {
			t.Errorf("stop: %v", err)
		}
		if err := p.e.Carry(ctx, "goes-on"); usererr.CodeOf(err) != usererr.NotFound {
			t.Errorf("carry: %v", err)
		}
		if l, err := p.e.Live(ctx, "goes-on"); err != nil || !l.Ticking {
			t.Errorf("%+v, %v", l, err)
		}
	})

	t.Run("the manager takes its time to answer", func(t *testing.T) {
		p := fresh(t, time.Hour, nil)
		p.mission("slow", nil)
		p.start("slow")
		p.tombstone("slow")
		e := *p.e.Engine
		began := time.Now()
		e.Connect = func(ctx context.Context) (*dbus.Conn, error) {
			if time.Since(began) < 4*time.Second { // longer than who only looks waits
				return nil, errors.New("no answer")
			}
			if manager() == units.User {
				return dbus.NewUserConnectionContext(ctx)
			}
			return dbus.NewSystemConnectionContext(ctx)
		}
		if rec, err := e.Stop(ctx, "slow"); err != nil || !rec.Done {
			t.Errorf("%+v, %v", rec, err)
		}
	})

	t.Run("the folder is gone", func(t *testing.T) {
		p := fresh(t, time.Hour, nil)
		st := p.mission("lost", nil)
		p.start("lost")
		p.until("it ticks", func() bool { return p.ticks("lost", "manager") > 0 })
		if err := os.RemoveAll(st.Dir()); err != nil {
			t.Fatal(err)
		}
		if _, err := p.e.Engine.Stop(ctx, "lost"); err != nil {
			t.Error(err)
		}
		nothing(t, "lost")
		if _, err := p.e.Engine.Stop(ctx, "lost"); usererr.CodeOf(err) != usererr.NotFound {
			t.Errorf("again: %v", err)
		}
	})

	t.Run("a stop that cannot be finished, and one that is killed", func(t *testing.T) {
		obstacle := filepath.Join(t.TempDir(), "obstacle")
		if err := os.WriteFile(obstacle, nil, 0o644); err != nil {
			t.Fatal(err)
		}
		p := fresh(t, time.Hour, func(w *wired) { w.Obstacle = obstacle })
		st := p.mission("stuck", nil)
		p.start("stuck")
		p.tombstone("stuck")
		rec, err := p.e.Engine.Stop(ctx, "stuck")
		if err == nil || !strings.Contains(err.Error(), "fails again and again") || rec.Done || !rec.Has(engine.Proven) {
			t.Errorf("%+v, %v", rec, err)
		}
		if err := os.Remove(obstacle); err != nil {
			t.Fatal(err)
		}
		p.until("it was finished", func() bool { return record(t, st).Done })
		if rec, err = p.e.Stop(ctx, "stuck"); err != nil || !rec.Done {
			t.Errorf("%+v, %v", rec, err)
		}
		nothing(t, "stuck")

		// what stays in the way does not hold it up for ever
		if err := os.WriteFile(obstacle, nil, 0o644); err != nil {
			t.Fatal(err)
		}
		tried := func(id string, n int) string {
			file := filepath.Join(units.Runtime(manager()), "forge-autoagent", id+".tries")
			if err := os.WriteFile(file, fmt.Appendf(nil, "%d %s\n", n, p.root), 0o644); err != nil {
				t.Fatal(err)
			}
			return file
		}
		st = p.mission("blocked", nil)
		p.start("blocked")
		count := tried("blocked", 18)
		p.tombstone("blocked")
		rec, err = p.e.Stop(ctx, "blocked")
		if err != nil || !rec.Done || len(rec.Steps) != 6 || !strings.Contains(rec.Steps[4].Note, "in 20 tries: ") {
			t.Errorf("%+v, %v", rec, err)
		}
		if _, err := os.Stat(count); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("the count is left: %v", err)
		}
		nothing(t, "blocked")
		if err := os.Remove(obstacle); err != nil {
			t.Fatal(err)
		}
		st = p.mission("no-record", nil)
		p.start("no-record")
		count = tried("no-record", 18)
		if err := errors.Join(os.Mkdir(filepath.Join(st.Dir(), "stopping.json"), 0o700), give(filepath.Join(p.dir, "r"))); err != nil {
			t.Fatal(err)
		}
		p.tombstone("no-record")
		if _, err := p.e.Engine.Stop(ctx, "no-record"); err != nil {
			t.Error(err)
		}
		nothing(t, "no-record")
		if rec, err := p.e.Engine.Stop(ctx, "no-record"); err != nil {
			t.Errorf("again: %+v, %v", rec, err)
		}
		if rep, err := p.e.Reconcile(ctx); err != nil || len(rep.Items) > 0 {
			t.Errorf("%+v, %v", rep, err)
		}
		if err := errors.Join(os.Remove(count), os.RemoveAll(st.Dir())); err != nil {
			t.Error(err)
		}

		st = p.mission("killed", map[string]string{"manager": deaf})
		p.start("killed")
		p.until("it ticks", func() bool { return p.ticks("killed", "manager") > 0 })
		p.tombstone("killed")
		stopped := make(chan error, 1)
		go func() { _, err := p.e.Engine.Stop(ctx, "killed"); stopped <- err }()
		p.until("the stop has begun", func() bool { return record(t, st).Has(engine.SocketsClosed) })
		systemctl("kill", "--signal=KILL", "forge-autoagent-killed-stop.service")
		if err := <-stopped; err != nil {
			t.Error(err)
		}
		if rec := record(t, st); !rec.Done || len(rec.Steps) != 6 {
			t.Errorf("%+v", rec)
		}
		nothing(t, "killed")
	})

	t.Run("another root's mission of the same name, and a roster that names others' units", func(t *testing.T) {
		p, q := fresh(t, time.Hour, nil), fresh(t, time.Hour, nil)
		p.mission("same", nil)
		p.mission("same-other", nil)
		p.start("same")
		p.start("same-other")
		before := installed(t, "same")
		q.mission("same", nil)
		if _, err := q.e.Engine.Start(ctx, "same"); usererr.CodeOf(err) != usererr.Conflict {
			t.Errorf("start: %v", err)
		}
		if l, err := q.e.Live(ctx, "same"); err != nil || l.Ticking {
			t.Errorf("live: %+v, %v", l, err)
		}
		q.tombstone("same")
		if err := q.e.Carry(ctx, "same"); usererr.CodeOf(err) != usererr.Conflict {
			t.Errorf("carry: %v", err)
		}
		if err := os.RemoveAll(q.root.Mission("same").Dir()); err != nil {
			t.Fatal(err)
		}
		if got := installed(t, "same"); !slices.Equal(got, before) {
			t.Errorf("of %q there is left %q", before, got)
		}
		name := filepath.Join(p.root.Mission("same").Dir(), "mission.json")
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		forged := strings.Replace(strings.Replace(string(b), `"codebuilder-1"`, `"other-manager"`, 1), `"reporter"`, `"../../x"`, 1)
		if err := os.WriteFile(name, []byte(forged), 0o600); err != nil || forged == string(b) {
			t.Fatal(err)
		}
		p.tombstone("same")
		if rec, err := p.e.Stop(ctx, "same"); err != nil || !rec.Done {
			t.Errorf("%+v, %v", rec, err)
		}
		if said, err := p.e.Trouble(ctx, "same-other"); err != nil || len(said) > 0 {
			t.Errorf("the other one: %q, %v", said, err)
		}
		for _, f := range installed(t, "same") {
			if !strings.HasPrefix(f, "forge-autoagent-same-other") && !strings.Contains(f, `same\x2dother`) {
				t.Errorf("%s is left", f)
			}
		}
	})

	t.Run("the stop's own units are gone", func(t *testing.T) {
		p := fresh(t, time.Hour, func(w *wired) { w.BusOnly = true })
		p.mission("deaf-stop", map[string]string{"manager": deaf})
		p.start("deaf-stop")
		p.until("it ticks", func() bool { return p.ticks("deaf-stop", "manager") > 0 })
		systemctl("stop", "forge-autoagent-deaf-stop-stop.socket")
		p.tombstone("deaf-stop")
		if _, err := p.e.Stop(ctx, "deaf-stop"); manager() == units.System {
			if err == nil || !strings.Contains(err.Error(), "only root can stop") {
				t.Errorf("the owner: %v", err)
			}
		} else if err != nil {
			t.Error(err)
		}
		if rec, err := p.e.Engine.Stop(ctx, "deaf-stop"); err != nil || !rec.Done {
			t.Errorf("%+v, %v", rec, err)
		}
		nothing(t, "deaf-stop")
		if p.alive("deaf-stop") {
			t.Error("something of it lives")
		}
	})
}

// testLocked: in the system's manager any user can lock the folder of units, and nobody waits for that.
func testLocked(t *testing.T) {
	uid, err := ownerID()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("flock", unitDir(), "sh", "-c", "echo locked; exec sleep 600")
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}, Setpgid: true}
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL); _ = cmd.Wait() }()
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "locked\n" {
		t.Fatalf("%q, %v", line, err)
	}
	p := fresh(t, time.Hour, nil)
	p.mission("locked", nil)
	p.start("locked")
	if st, err := os.Stat("/run/forge-autoagent.lock"); err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", st, err)
	}
}

func testFailedStart(t *testing.T) {
	ctx := context.Background()
	p := fresh(t, time.Hour, nil)
	p.mission("fails", nil)
	try := func(what, says string, code usererr.Code, change func(*systemdengine.Engine)) {
		t.Helper()
		e := *p.e.Engine
		change(&e)
		_, err := e.Start(ctx, "fails")
		if err == nil || !strings.Contains(err.Error(), says) || usererr.CodeOf(err) != code {
			t.Errorf("%s: %v", what, err)
		}
		nothing(t, "fails")
	}
	try("units' folder", "no unit can be put into", usererr.Environment, func(e *systemdengine.Engine) { e.Settings.UnitDir = "/proc/units" })
	try("no manager", "connect", usererr.Failed, func(e *systemdengine.Engine) {
		e.Connect = func(context.Context) (*dbus.Conn, error) { return nil, errors.New("cannot connect") }
	})
	missing := filepath.Join(p.w.Settings.Bin, "autoagent-reporter")
	if err := os.Rename(missing, missing+".x"); err != nil {
		t.Fatal(err)
	}
	try("no program", "systemd-analyze verify does not like", usererr.Environment, func(*systemdengine.Engine) {})
	if err := os.Rename(missing+".x", missing); err != nil {
		t.Fatal(err)
	}
	// A socket that cannot be opened shows only when it is started.
	gone := p.root.Mission("fails").Agent("codebuilder-1")
	if err := os.Rename(gone, gone+".x"); err != nil {
		t.Fatal(err)
	}
	try("no folder", "did not start forge-autoagent-fails-codebuilder-1.socket", usererr.Failed, func(*systemdengine.Engine) {})
	if err := os.Rename(gone+".x", gone); err != nil {
		t.Fatal(err)
	}
	foreign := filepath.Join(unitDir(), "forge-autoagent-fails-manager.timer")
	if err := errors.Join(os.MkdirAll(unitDir(), 0o755), os.WriteFile(foreign, []byte("[Timer]\nOnCalendar=yearly\n"), 0o644)); err != nil {
		t.Fatal(err)
	}
	if _, err := p.e.Engine.Start(ctx, "fails"); usererr.CodeOf(err) != usererr.Conflict {
		t.Errorf("foreign file: %v", err)
	}
	if b, err := os.ReadFile(foreign); err != nil || !strings.HasPrefix(string(b), "[Timer]") || len(installed(t, "fails")) != 1 {
		t.Errorf("foreign file: %q, %v, beside %q", b, err, installed(t, "fails"))
	}
	if err := os.Remove(foreign); err != nil {
		t.Fatal(err)
	}
	systemctl("daemon-reload")
	p.start("fails") // nothing of all that is in the way
	p.until("it ticks", func() bool { return p.ticks("fails", "manager") > 0 })
}
