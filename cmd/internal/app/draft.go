package app

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"example.com/AutoAgentProject/core/login"
	"example.com/AutoAgentProject/core/mission"
	"example.com/AutoAgentProject/core/money"
	"example.com/AutoAgentProject/core/runner"
	"example.com/AutoAgentProject/core/store"
	"example.com/AutoAgentProject/core/supervisor"
	"example.com/AutoAgentProject/core/systemdengine"
	"example.com/AutoAgentProject/core/units"
	"example.com/AutoAgentProject/core/usererr"
)

// draft is a mission that passed every check and was not made yet.
type draft struct {
	root           store.Root
	mission        mission.Mission
	goal           []byte
	craft          craft
	engineSentence string
	walls          string
	bounds         string
	warnings       []string
	taken          runner.Taken // known once it is made
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
	if err := c.fixCraft(d, o, cfg); err != nil {
		return nil, err
	}
	if err := d.fixTime(o, cfg); err != nil {
		return nil, err
	}
	if m.Config = c.configPath(); m.Config != "" {
		if m.Config, err = filepath.Abs(m.Config); err != nil {
			return nil, err
		}
	}
	m.Model = first(o.model, cfg.Model, defaultModel)
	m.CheapModel = cheapModel(m.Model, first(cfg.CheapModel, defaultCheapModel))
	if err := errors.Join(checkModel(m.Model), checkModel(m.CheapModel)); err != nil {
		return nil, err
	}
	if m.Flow != "" {
		m.Tiers = cfg.tiers(*m)
	}
	switch o.gateway {
	case "", "on":
	case mission.GatewayOff:
		m.Gateway = mission.GatewayOff
	default:
		return nil, usererr.New(usererr.Usage, "write --gateway on or off", "--gateway %q is neither", o.gateway)
	}
	m.Verify, m.KeepDocs = o.verify, o.keepDocs
	if err := checkCommand(m.Verify); err != nil {
		return nil, err
	}
	m.VerifyLimit = mission.Duration(time.Duration(cfg.VerifyMinutes) * time.Minute)
	if err := fixTelling(m, o, cfg); err != nil {
		return nil, err
	}
	m.Bounds = cfg.bounds()
	budget, daily, err := parseBudget(first(o.budget, cfg.Budget, "10%"), first(o.daily, cfg.Daily))
	if err != nil {
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
	if m.Read, err = c.readable(string(d.root), append(slices.Clone(cfg.Read), o.read...), m.Credentials); err != nil {
		return nil, err
	}
	if err := c.fixCaches(d, o.caches, cfg.Caches); err != nil {
		return nil, err
	}
	if err := source(ctx, d.root, m, o); err != nil {
		return nil, err
	}
	if err := fixFromRepo(m, o.fromRepo, cfg.FromRepo); err != nil {
		return nil, err
	}
	// From here on it is about this machine.
	cred, err := login.Read(m.Credentials)
	if _, serr := os.Stat(m.Credentials); errors.Is(serr, fs.ErrNotExist) && o.runAs != "" && o.login == "" {
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
	if m.Network, err = network(first(o.network, cfg.Network), *m); err != nil {
		return nil, err
	}
	m.Payer = payer(cred, o.scripted)
	if m.Upstream != "" && !o.scripted {
		m.Payer = "whoever pays for the gateway at " + m.Upstream
	}
	if err := c.machine(ctx, d, cfg); err != nil {
		return nil, err
	}
	sentence, warning, err := c.resolveEngine(ctx, d.root, m, o)
	if err != nil {
		return nil, err
	}
	if d.engineSentence = sentence; warning != "" {
		d.warnings = append(d.warnings, warning)
	}
	if m.Engine == systemdengine.Name { // what cannot be put into units is found out now
		if err := d.craft.fitsUnits(m.Roster); err != nil {
			return nil, err
		}
		e, err := c.newSystemd(d.root, units.Manager(m.Manager), discard())
		if err == nil {
			_, err = units.Render(*m, e.Settings)
		}
		if err != nil {
			return nil, err
		}
	}
	if o.dryRun && c.handOver {
		return d, nil // root makes the folder if need be
	}
	return d, writable(string(d.root))
}

// cheapModel is the model for runs when money is short: cheap, unless the mission's own costs no more.
func cheapModel(own, cheap string) string {
	at := time.Now()
	rates := func(model string) money.Nano {
		n, _ := prices().Cost(model, money.Usage{Input: 1000, Output: 1000}, at, false)
		return n
	}
	if rates(cheap) >= rates(own) {
		return own
	}
	return cheap
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

// checkEngine refuses what cannot be meant; which engine it is comes last.
func checkEngine(o startOptions) error {
	switch {
	case o.engine != "" && o.engine != supervisor.Name && o.engine != systemdengine.Name:
		return usererr.New(usererr.Usage, "use --engine embedded or systemd", "there is no engine %q", o.engine)
	case o.engine == supervisor.Name && (o.user || o.system || o.noLinger):
		return usererr.New(usererr.Usage, "leave them out", "--user, --system and --no-linger belong to --engine systemd")
	case o.user && o.system:
		return usererr.New(usererr.Usage, "give one of them", "--user and --system exclude each other")
	}
	return nil
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
