package e2e

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"example.com/AutoAgentProject/core/claude"
	"example.com/AutoAgentProject/core/journal"
	"example.com/AutoAgentProject/core/mission"
	"example.com/AutoAgentProject/core/scriptmodel"
	"example.com/AutoAgentProject/core/store"
	"example.com/AutoAgentProject/core/testkit"
	"example.com/AutoAgentProject/core/units"
	"example.com/AutoAgentProject/core/view"
)

const (
	owner    = "alice"          // whose missions they are
	programs = "/srv/autoagent" // where the host has them
)

// person is a user of a throwaway host with the real systemd, whose missions one of its managers ticks.
type person struct {
	t       testing.TB
	host    *testkit.Host
	manager units.Manager
	model   *scriptmodel.Server
	env     []string
	places  map[string]string // roots of missions that have one of their own
}

// both runs a test with both managers that can tick missions.
func both(t *testing.T, test func(t *testing.T, manager units.Manager)) {
	each(t, []units.Manager{units.User, units.System}, test)
}

// mostly runs a test with one manager, and with AUTOAGENT_FULL=1 also with the other one.
func mostly(t *testing.T, manager units.Manager, test func(t *testing.T, manager units.Manager)) {
	if full() {
		both(t, test)
		return
	}
	each(t, []units.Manager{manager}, test)
}

func each(t *testing.T, managers []units.Manager, test func(t *testing.T, manager units.Manager)) {
	t.Parallel()
	for _, m := range managers {
		t.Run(string(m), func(t *testing.T) {
			t.Parallel()
			test(t, m)
		})
	}
}

// newPerson boots a host whose user has a manager that lingers.
func newPerson(t testing.TB, rules ...scriptmodel.Rule) *person {
	t.Helper()
	return personOf(t, units.User, rules)
}

// personOf boots a host for missions of a manager. more are binds of the host beside the programs.
func personOf(t testing.TB, manager units.Manager, rules []scriptmodel.Rule, more ...testkit.Bind) *person {
	t.Helper()
	p := hostOf(t, manager, more...)
	p.plays(rules...)
	return p
}

// hostOf is personOf as yet without a model.
func hostOf(t testing.TB, manager units.Manager, more ...testkit.Bind) *person {
	t.Helper()
	testkit.Need(t, testkit.OnPath("bwrap"), "bwrap (apt-get install bubblewrap)")
	testkit.Need(t, testkit.OnPath("node"), "node")
	program, err := claude.Find(os.Getenv)
	testkit.Need(t, err == nil, "the agent program (make tools)")
	p := &person{t: t, manager: manager, places: map[string]string{}}
	p.host = testkit.NewHost(t, testkit.HostOptions{Users: []string{owner}, Linger: []string{owner}, Binds: append(more,
		testkit.Bind{Host: bin, Inside: programs}, testkit.Bind{Host: filepath.Dir(program), Inside: "/srv/claude"})})
	p.env = []string{"env", "AUTOAGENT_CLAUDE=/srv/claude/" + filepath.Base(program)}
	cmd := p.host.Command(t.Context(), owner, programs+"/AutoAgentProject", "login", "--kind", "api-key")
	cmd.Stdin = strings.NewReader("example-key-of-sixteen\n")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("login: %v\n%s", err, out)
	}
	return p
}

// plays makes the model, which plays a script.
func (p *person) plays(rules ...scriptmodel.Rule) {
	p.t.Helper()
	var err error
	if p.model, err = scriptmodel.New(scriptmodel.Script{Rules: rules}, scriptmodel.Options{}); err != nil {
		p.t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		p.t.Fatal(err)
	}
	go p.model.Serve(l)
	p.t.Cleanup(func() { p.model.Close() })
	p.env = append(p.env, "AUTOAGENT_UPSTREAM=http://"+l.Addr().String())
}

// asks is who starts and stops: with the system's manager root does.
func (p *person) asks() string {
	if p.manager == units.System {
		return ""
	}
	return owner
}

// unitDir is where the units lie, seen inside.
func (p *person) unitDir() string {
	if p.manager == units.System {
		return "/etc/systemd/system"
	}
	return "/home/" + owner + "/.config/systemd/user"
}

// missions is the root of all missions, seen inside.
func (p *person) missions() string {
	if p.manager == units.System {
		return "/var/lib/autoagent"
	}
	return "/home/" + owner + "/.local/share/autoagent"
}

// managerUnit is the service that is the manager of the owner.
func (p *person) managerUnit() string { return fmt.Sprintf("user@%d.service", p.host.UID(owner)) }

// logOut ends the owner's manager, which may be ending already.
func (p *person) logOut() {
	p.t.Helper()
	p.host.Systemctl("", "stop", p.managerUnit())
	p.until("the user's manager has ended", func() bool { return p.host.Systemctl("", "is-active", p.managerUnit()) == "inactive" })
}

// home is the owner's, seen inside.
func (p *person) home() string { return "/home/" + owner }

// place gives a mission another root than the others have.
func (p *person) place(id, root string) { p.places[id] = root }

// store is a mission's, read from outside. It is another one after a boot.
func (p *person) store(id string) *store.Store {
	return store.Root(p.host.Path(cmp.Or(p.places[id], p.missions()))).Mission(id)
}

// inside runs a line of shell in the host, which has to end well.
func (p *person) inside(user, line string) string {
	p.t.Helper()
	out, exit := p.host.Run(p.t.Context(), user, "sh", "-c", line)
	if exit != 0 {
		p.t.Fatalf("%s: exit status %d\n%s", line, exit, out)
	}
	return out
}

// do runs AutoAgentProject as whoever starts missions.
func (p *person) do(args ...string) (int, string) {
	p.t.Helper()
	return p.as(p.asks(), args...)
}

// as runs AutoAgentProject as a user of the host.
func (p *person) as(user string, args ...string) (int, string) {
	p.t.Helper()
	ctx, done := context.WithTimeout(p.t.Context(), patience)
	defer done()
	argv := append(slices.Clone(p.env), programs+"/AutoAgentProject")
	if len(args) > 1 && p.places[args[1]] != "" {
		argv = append(argv, "--root", p.places[args[1]])
	}
	out, exit := p.host.Run(ctx, user, append(argv, args...)...)
	return exit, out
}

// start starts a mission that has to start.
func (p *person) start(id, goal string, more ...string) string {
	p.t.Helper()
	code, out := p.do(p.starting(id, goal, more...)...)
	if code != 0 {
		p.t.Fatalf("start %s: exit status %d\n%s", id, code, out)
	}
	return out
}

// starting are the arguments of a start.
func (p *person) starting(id, goal string, more ...string) []string {
	args := []string{"start", id, goal, "--engine", "systemd", "--budget", "5usd"}
	if p.manager == units.System {
		args = append(args, "--system", "--run-as", owner)
	}
	return append(args, more...)
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

// systemctl asks the manager that ticks.
func (p *person) systemctl(args ...string) string {
	p.t.Helper()
	return p.host.Systemctl(p.asks(), args...)
}

// events are what happened in a mission, or what of one kind did.
func (p *person) events(id, kind string) []journal.Event {
	all, _, _, _ := p.store(id).Journal().Read(0)
	var out []journal.Event
	for _, e := range all {
		if kind == "" || e.Kind == kind {
			out = append(out, e)
		}
	}
	return out
}

// history is what there is to say about a failed test.
func (p *person) history() string {
	var b strings.Builder
	ids, _ := store.Root(p.host.Path(p.missions())).IDs()
	for _, id := range ids {
		for _, e := range p.events(id, "") {
			fmt.Fprintf(&b, "%s %s %s\n", id, e.At.Format("15:04:05.000"), e.Text)
		}
	}
	b.WriteString(p.systemctl("list-units", "--all", "--no-legend", "--plain", "forge-autoagent*"))
	journal := p.host.Journal(p.asks())
	for _, e := range journal[max(0, len(journal)-60):] {
		fmt.Fprintf(&b, "\n%s: %s", e["SYSLOG_IDENTIFIER"], e["MESSAGE"])
	}
	return b.String()
}

// until waits for a condition.
func (p *person) until(what string, ok func() bool) {
	p.t.Helper()
	if !comes(ok) {
		p.t.Fatalf("waited in vain until %s\n%s", what, p.history())
	}
}

// over waits until a mission has ended and its units are away.
func (p *person) over(id string) {
	p.t.Helper()
	p.until(id+" is over", func() bool {
		stop, err := p.store(id).Stopped()
		return err == nil && stop != nil && len(p.installed(id)) == 0
	})
	p.until("systemd has forgotten "+id, func() bool { return p.loaded(id) == "" })
}

// names are the units of a mission of these specialists.
func (p *person) names(id string) []string {
	m, err := p.store(id).Mission()
	if err != nil {
		p.t.Fatal(err)
	}
	return mission.UnitNames(id, m.Roster)
}

// loaded is what systemd knows of a mission.
func (p *person) loaded(id string) string {
	p.t.Helper()
	return p.listed(p.names(id)...)
}

// listed are the units that systemd knows, a line each; slices that it makes for others to lie in are not ours.
func (p *person) listed(patterns ...string) string {
	p.t.Helper()
	return strings.TrimSpace(p.systemctl(append([]string{"list-units", "--all", "--no-legend", "--plain"}, patterns...)...))
}

// installed are the files of a mission's units, links to them too.
func (p *person) installed(id string) []string {
	p.t.Helper()
	names := map[string]bool{}
	for _, n := range p.names(id) {
		names[n] = true
	}
	var out []string
	_ = filepath.WalkDir(p.host.Path(p.unitDir()), func(path string, d fs.DirEntry, err error) error {
		if err == nil && names[d.Name()] {
			out = append(out, path)
		}
		return nil
	})
	return out
}

// nothingLeft fails the test if systemd knows a unit of any mission, if a file of one is installed, if a control group holds
// a process or if a process with that mark in its arguments lives. An empty group that systemd forgot is told: in a hybrid
// tree nobody hears that one got empty.
func (p *person) nothingLeft(marks ...string) {
	p.t.Helper()
	// The slices above all missions, forge-autoagent.slice and its like, belong to none.
	for line := range strings.Lines(p.listed("forge-autoagent-*", "forge-autoagentguard-*")) {
		if !hostUnit(strings.Fields(line)[0]) {
			p.t.Errorf("still loaded: %s", line)
		}
	}
	_ = filepath.WalkDir(p.host.Path(p.unitDir()), func(path string, d fs.DirEntry, err error) error {
		if err == nil && strings.HasPrefix(d.Name(), "forge-autoagent") && !hostUnit(d.Name()) {
			p.t.Errorf("still installed: %s", path)
		}
		return nil
	})
	_ = filepath.WalkDir(p.host.CgroupRoot(), func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && (strings.HasPrefix(d.Name(), "forge-autoagent-") || strings.HasPrefix(d.Name(), "forge-autoagentguard-")) && !hostUnit(d.Name()) {
			if b, err := os.ReadFile(filepath.Join(path, "cgroup.procs")); err == nil && len(b) > 0 {
				p.t.Errorf("still processes in %s: %q", path, b)
			} else {
				p.t.Logf("an empty control group is left: %s", path)
			}
		}
		return nil
	})
	for _, mark := range marks {
		if left := p.marked(mark); len(left) > 0 {
			p.t.Errorf("still alive: %v", left)
		}
	}
}

// hostUnit says whether a unit belongs to the host and not to a mission.
func hostUnit(name string) bool {
	for _, base := range []string{"reconcile", "bridge", "ping", "poller"} {
		if strings.HasPrefix(name, "forge-autoagent-"+base+".") || strings.HasPrefix(name, "forge-autoagent-"+base+"@") {
			return true
		}
	}
	return false
}

// marked are the processes with a mark in their arguments.
func (p *person) marked(mark string) []testkit.Proc {
	var out []testkit.Proc
	for _, x := range p.host.Processes() {
		if strings.Contains(strings.Join(x.Args, " "), mark) {
			out = append(out, x)
		}
	}
	return out
}

// git asks a mission's repository, as its owner.
func (p *person) git(id string, args ...string) string {
	p.t.Helper()
	repo := store.Root(cmp.Or(p.places[id], p.missions())).Mission(id).Repo()
	out, exit := p.host.Run(p.t.Context(), owner, append([]string{"git", "--git-dir", repo}, args...)...)
	if exit != 0 {
		p.t.Fatalf("git %v: exit status %d\n%s", args, exit, out)
	}
	return out
}

// full says whether the long forms are wanted.
func full() bool { return os.Getenv("AUTOAGENT_FULL") != "" }
