package app

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/url"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"example.com/AutoAgentProject/core/cell"
	"example.com/AutoAgentProject/core/claude"
	"example.com/AutoAgentProject/core/git"
	"example.com/AutoAgentProject/core/login"
	"example.com/AutoAgentProject/core/mission"
	"example.com/AutoAgentProject/core/money"
	"example.com/AutoAgentProject/core/store"
	"example.com/AutoAgentProject/core/supervisor"
	"example.com/AutoAgentProject/core/usererr"
)

// draft is a mission that passed every check and was not made yet.
type draft struct {
	root           store.Root
	mission        mission.Mission
	goal           []byte
	engineSentence string
	walls          string
	bounds         string
	warnings       []string
}

// draft checks everything that start is told and everything that it needs, and changes nothing but proving that the
// root can be written.
func (c *cli) draft(ctx context.Context, id, goalArg string, given bool, o startOptions) (*draft, error) {
	if err := mission.CheckID(id); err != nil {
		return nil, err
	}
	cfg, err := c.config()
	if err != nil {
		return nil, err
	}
	d := &draft{mission: mission.Mission{Version: mission.Version, ID: id, CreatedAt: time.Now().UTC(), Tool: Version(), Scripted: o.scripted, Upstream: o.upstream}}
	m := &d.mission
	if d.goal, err = c.goal(goalArg, given, o.goalFile); err != nil {
		return nil, err
	}
	profs, err := professions()
	if err != nil {
		return nil, err
	}
	if m.Roster, err = mission.ParseRoster(o.specialists, profs.Names()); err != nil {
		return nil, err
	}
	if err := d.fixTime(o, cfg); err != nil {
		return nil, err
	}
	m.Model = first(o.model, cfg.Model, defaultModel)
	if err := checkModel(m.Model); err != nil {
		return nil, err
	}
	m.Verify = o.verify
	if err := checkCommand(m.Verify); err != nil {
		return nil, err
	}
	m.VerifyLimit = mission.Duration(time.Duration(cfg.VerifyMinutes) * time.Minute)
	budget, daily, err := parseBudget(first(o.budget, cfg.Budget, "10%"), first(o.daily, cfg.Daily))
	if err != nil {
		return nil, err
	}
	if err := d.fixEngine(o); err != nil {
		return nil, err
	}
	if d.root, err = c.store(); err != nil {
		return nil, err
	}
	if err := c.free(d.root, *m); err != nil {
		return nil, err
	}
	if m.Credentials = o.login; m.Credentials == "" {
		if m.Credentials, err = c.credentials(); err != nil {
			return nil, err
		}
	}
	if err := source(ctx, d.root, m, o); err != nil {
		return nil, err
	}
	// From here on it is about this machine.
	cred, err := login.Read(m.Credentials)
	if _, serr := os.Stat(m.Credentials); errors.Is(serr, fs.ErrNotExist) && o.runAs != "" {
		return nil, usererr.New(usererr.Environment, "run AutoAgentProject login as that user", "the user %s has no login yet", o.runAs)
	}
	if err != nil {
		return nil, err
	}
	if err := d.fixBudget(budget, daily, first(cfg.Plan, cred.Plan), cred.Kind, cfg, first(o.budget, cfg.Budget, "10%")); err != nil {
		return nil, err
	}
	if m.Upstream == "" {
		if m.Upstream, err = upstream(first(c.env.Getenv("AUTOAGENT_UPSTREAM"), cfg.Upstream)); err != nil {
			return nil, err
		}
	}
	m.Payer = payer(cred, o.scripted)
	if m.Upstream != "" && !o.scripted {
		m.Payer = "whoever pays for the gateway at " + m.Upstream
	}
	if err := c.machine(ctx, d, cfg); err != nil {
		return nil, err
	}
	return d, writable(string(d.root))
}

func first(values ...string) string {
	for _, v := range values {
		if v != "" {
			return v
		}
	}
	return ""
}

func payer(f login.File, scripted bool) string {
	switch {
	case scripted:
		return "nobody: the model's part is played from a script"
	case f.Kind == login.APIKey:
		return "the API key of the login, by use"
	case f.Plan != "":
		return "the subscription of the login (plan " + f.Plan + "); amounts are list prices"
	}
	return "the subscription of the login; amounts are list prices"
}

// upstream checks the address of a gateway. Without TLS it must be on this machine: the login travels to it.
func upstream(s string) (string, error) {
	if s == "" {
		return "", nil
	}
	const hint = "write for example https://gateway.example or http://127.0.0.1:4000"
	u, err := url.Parse(s)
	if err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return "", usererr.New(usererr.Usage, hint, "the upstream is no address of a gateway")
	}
	ip := net.ParseIP(u.Hostname())
	if u.Scheme != "https" && !(u.Scheme == "http" && (ip.IsLoopback() || u.Hostname() == "localhost")) {
		return "", usererr.New(usererr.Usage, hint, "the upstream is neither https nor on this machine")
	}
	return strings.TrimRight(s, "/"), nil
}

func (d *draft) fixTime(o startOptions, cfg config) error {
	if o.until != "" && o.maxHours != "" {
		return usererr.New(usererr.Usage, "give one of them", "--until and --max-hours exclude each other")
	}
	if o.until != "" {
		t, err := untilTime(o.until, time.Now())
		d.mission.Until = t
		return err
	}
	h, err := hours(first(o.maxHours, cfg.MaxHours, "4"))
	d.mission.MaxRun = mission.Duration(h)
	return err
}

func parseBudget(budget, daily string) (money.Budget, money.Nano, error) {
	b, err := money.ParseBudget(budget)
	if err != nil || daily == "" {
		return b, 0, err
	}
	n, err := money.ParseUSD(daily)
	if err != nil {
		return b, 0, usererr.Wrap(err, usererr.Usage, "write --daily 40usd", "the daily allowance")
	}
	return b, n, nil
}

// Defaults of one run's part of the budget.
const (
	defaultMinRun       = 20_000_000 // $0.02
	defaultMinRunTokens = 20_000
)

func (d *draft) fixBudget(b money.Budget, daily money.Nano, plan, kind string, cfg config, asked string) error {
	m := &d.mission
	var a money.Allowance
	if b.Kind == money.KindPercent {
		var err error
		if a, err = money.DailyAllowance(daily, plan, kind); err != nil {
			return err
		}
	}
	m.BudgetAsked = asked
	m.Budget, m.BudgetSentence = money.Fix(b, a)
	m.MinRun = defaultMinRun
	if m.Budget.Unit == money.Tokens {
		m.MinRun = defaultMinRunTokens
	}
	for _, x := range []struct {
		said, name string
		to         *int64
	}{{cfg.StepLimit, "step_limit", &m.StepLimit}, {cfg.MinRun, "min_run", &m.MinRun}} {
		if x.said == "" {
			continue
		}
		v, err := money.ParseBudget(x.said)
		if err != nil || v.Kind == money.KindPercent {
			return usererr.New(usererr.Usage, "write for example 0.50usd", "%s in the configuration is no amount", x.name)
		}
		n, _ := money.Fix(v, a)
		if n.Unit != m.Budget.Unit {
			continue // it bounds missions that count the other way
		}
		*x.to = n.N
	}
	if m.StepLimit > 0 && m.StepLimit < m.MinRun {
		return usererr.New(usererr.Usage, "correct step_limit or min_run in the configuration", "a step_limit of %s is less than the smallest run, %s",
			money.Amount{Unit: m.Budget.Unit, N: m.StepLimit}, money.Amount{Unit: m.Budget.Unit, N: m.MinRun})
	}
	if m.Budget.N < m.MinRun {
		return usererr.New(usererr.Usage, "give more, or set min_run lower", "a budget of %s is less than the smallest run, %s", m.Budget, money.Amount{Unit: m.Budget.Unit, N: m.MinRun})
	}
	return nil
}

func (d *draft) fixEngine(o startOptions) error {
	switch o.engine {
	case "", supervisor.Name:
		if o.user || o.system {
			return usererr.New(usererr.Usage, "leave them out", "--user and --system belong to --engine systemd")
		}
		d.mission.Engine = supervisor.Name
		d.engineSentence = "embedded: this process ticks until the mission ends; " + new(supervisor.Supervisor).Bound()
		return nil
	case "systemd":
		return usererr.New(usererr.Environment, "use --engine embedded", "this version has no systemd engine")
	}
	return usererr.New(usererr.Usage, "use --engine embedded", "there is no engine %q", o.engine)
}

// free says whether id, its folders and the names of its units are nobody else's.
func (c *cli) free(root store.Root, m mission.Mission) error {
	st := root.Mission(m.ID)
	if st.Exists() {
		return usererr.New(usererr.Conflict, "choose another id; AutoAgentProject status "+m.ID+" shows it", "there is a mission %s already", m.ID)
	}
	if _, err := os.Lstat(st.Work()); err == nil {
		return usererr.New(usererr.Conflict, "move it away or choose another id", "%s is there already", st.Work())
	}
	ids, err := root.IDs()
	if err != nil {
		return usererr.Wrap(err, usererr.Environment, unlistable, "the missions cannot be listed")
	}
	for _, id := range ids {
		other, err := root.Mission(id).Mission()
		if err != nil {
			continue // cannot say whom it has; its own commands complain
		}
		if name := mission.Collision(m.ID, m.Roster, id, other.Roster); name != "" {
			return usererr.New(usererr.Conflict, "choose another id", "the unit %s would belong to mission %s as well", name, id)
		}
	}
	return nil
}

// source looks at --from. What HEAD of a repository does not hold is listed and refused unless --from-head says so.
func source(ctx context.Context, root store.Root, m *mission.Mission, o startOptions) error {
	if o.from == "" {
		if o.fromHead {
			return usererr.New(usererr.Usage, "give --from as well", "--from-head is nothing without --from")
		}
		return nil
	}
	path, err := filepath.Abs(o.from)
	if err != nil {
		return err
	}
	st, err := os.Stat(path)
	if err != nil || !st.IsDir() {
		return usererr.New(usererr.Usage, "give a git repository or a folder", "--from %s is no folder", o.from)
	}
	s, err := git.Look(ctx, path)
	if err != nil {
		return err
	}
	if s.Inside != "" {
		return usererr.New(usererr.Usage, "give the repository, or a copy of the folder elsewhere", "--from %s is only a part of the git repository %s", o.from, s.Inside)
	}
	if !s.IsRepo {
		if o.fromHead {
			return usererr.New(usererr.Usage, "leave --from-head out", "--from %s is no git repository", o.from)
		}
		// All of a folder comes along, so it must hold nothing that no agent may see.
		for _, x := range []struct{ path, what string }{{string(root), "the root of the missions"}, {m.Credentials, "the login"}} {
			if within(x.path, path) {
				return usererr.New(usererr.Usage, "give the project's own folder", "--from %s holds %s, %s", o.from, x.what, x.path)
			}
		}
		if within(path, root.Home()) {
			return usererr.New(usererr.Usage, "give the result of a mission, or its repo.git", "--from %s holds the data of missions", o.from)
		}
		m.From = &mission.Source{Kind: "folder", Path: path}
		return nil
	}
	if s.Head == "" {
		return usererr.New(usererr.Usage, "commit something first", "--from %s has no commit yet", o.from)
	}
	if s.Shallow {
		return usererr.New(usererr.Usage, "run git fetch --unshallow in it", "--from %s is a shallow clone", o.from)
	}
	m.From = &mission.Source{Kind: "git", Path: path, Commit: s.Head, Branch: s.Branch}
	if left := leftBehind(s); left != "" && !o.fromHead {
		return usererr.New(usererr.Usage, "commit it, or add --from-head to leave it behind", "HEAD of %s does not hold everything: %s", o.from, left)
	}
	return nil
}

// within says whether path is dir or lies below it, symbolic links resolved as far as it exists.
func within(path, dir string) bool {
	rel, err := filepath.Rel(resolved(dir), resolved(path))
	return err == nil && rel != ".." && !strings.HasPrefix(rel, "../")
}

func resolved(path string) string {
	up := existing(path)
	if real, err := filepath.EvalSymlinks(up); err == nil {
		return filepath.Join(real, strings.TrimPrefix(path, up))
	}
	return path
}

// leftBehind lists what a mission would not see.
func leftBehind(s git.Survey) string {
	var out []string
	for _, x := range []struct {
		what string
		list git.List
	}{{"changed", s.Modified}, {"unknown to git", s.Untracked}, {"ignored", s.Ignored}, {"submodules", s.Submodules}, {"in LFS", s.LFS}} {
		if x.list.Count == 0 {
			continue
		}
		names := x.list.Names
		more := ""
		if len(names) > 5 {
			names = names[:5]
		}
		if n := x.list.Count - len(names); n > 0 {
			more = fmt.Sprintf(" and %d more", n)
		}
		out = append(out, fmt.Sprintf("%s: %s%s", x.what, strings.Join(names, ", "), more))
	}
	return strings.Join(out, "; ")
}

// machine checks programs and walls and takes down what the ticks need to know of them.
func (c *cli) machine(ctx context.Context, d *draft, cfg config) error {
	m := &d.mission
	if _, err := git.Check(ctx); err != nil {
		return err
	}
	for _, r := range []mission.Role{mission.Manager, mission.Specialist, mission.Reporter, mission.Quota} {
		if _, err := roleProgram(r); err != nil {
			return err
		}
	}
	rep, err := cell.Check(ctx)
	if err != nil {
		return err
	}
	d.walls, d.bounds = wallsSentence(rep), strings.Join(rep.Bounds, ", ")
	if _, priced := money.Default().Rates(m.Model, 0, m.CreatedAt); !priced {
		d.warnings = append(d.warnings, "no list price is known for "+m.Model+": the dearest one counts")
	}
	if n := len(mission.Specialists(m.Roster)); n > mission.WarnSpecialists {
		d.warnings = append(d.warnings, fmt.Sprintf("%d specialists are many for one manager; %d work well", n, mission.WarnSpecialists))
	}
	m.Path = cellPath(c.env.Getenv("PATH"))
	if m.Program, err = c.program(cfg); err != nil {
		return err
	}
	r := newRunner(m.Program, m.Path, cell.Launcher{})
	v, err := r.Check(ctx)
	if err != nil {
		return err
	}
	m.Agents = r.Name() + " " + v
	return nil
}

// wallsSentence says in a line what holds around everything untrusted.
func wallsSentence(r cell.Report) string {
	s := r.Version
	if r.Walls.Landlock > 0 {
		s += fmt.Sprintf(", Landlock %d", r.Walls.Landlock)
	} else {
		s += ", no Landlock in this kernel"
	}
	if r.Walls.Seccomp {
		s += ", system call filter"
	}
	return s
}

// program finds the agent program: AUTOAGENT_CLAUDE, the configuration, PATH, the pinned one.
func (c *cli) program(cfg config) (string, error) {
	if cfg.Claude == "" || c.env.Getenv("AUTOAGENT_CLAUDE") != "" {
		return claude.Find(c.env.Getenv)
	}
	path, err := claude.Find(func(k string) string {
		if k == "AUTOAGENT_CLAUDE" {
			return cfg.Claude
		}
		return c.env.Getenv(k)
	})
	if u, ok := errors.AsType[*usererr.Error](err); ok {
		err = usererr.Wrap(u.Cause, u.Code, "correct it in "+c.configPath(), "claude of the configuration names no program")
	}
	return path, err
}

// runAs drops root's rights before anything is done: a mission never runs as root unless that is said.
func (c *cli) runAs(o startOptions) error {
	const hint = "add --run-as USER, or --run-as root to let it run as root (inside the walls it is a plain user all the same)"
	if os.Geteuid() != 0 {
		if o.runAs != "" {
			return usererr.New(usererr.Usage, "leave it out", "--run-as is for root")
		}
		return nil
	}
	switch o.runAs {
	case "root":
		return nil
	case "":
		return usererr.New(usererr.Environment, hint, "a mission does not run as root just like that")
	}
	u, err := user.Lookup(o.runAs)
	if err != nil {
		return usererr.New(usererr.Usage, hint, "there is no user %q", o.runAs)
	}
	uid, err1 := strconv.Atoi(u.Uid)
	gid, err2 := strconv.Atoi(u.Gid)
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	groups, err := u.GroupIds()
	if err != nil {
		return err
	}
	var gids []int
	for _, g := range groups {
		if n, err := strconv.Atoi(g); err == nil {
			gids = append(gids, n)
		}
	}
	if err := errors.Join(syscall.Setgroups(gids), syscall.Setgid(gid), syscall.Setuid(uid)); err != nil {
		return usererr.Wrap(err, usererr.Environment, hint, "the rights of %s cannot be taken", o.runAs)
	}
	c.movedHome = true
	old := c.env.Getenv
	c.env.Getenv = func(k string) string {
		switch k {
		case "HOME":
			return u.HomeDir
		case "USER", "LOGNAME":
			return u.Username
		case "XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME", "XDG_RUNTIME_DIR":
			return "" // root's own
		}
		return old(k)
	}
	return nil
}
