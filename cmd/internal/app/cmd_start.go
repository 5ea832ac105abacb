package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"example.com/AutoAgentProject/core/engine"
	"example.com/AutoAgentProject/core/mission"
	"example.com/AutoAgentProject/core/store"
	"example.com/AutoAgentProject/core/supervisor"
	"example.com/AutoAgentProject/core/systemdengine"
	"example.com/AutoAgentProject/core/tick"
	"example.com/AutoAgentProject/core/units"
	"example.com/AutoAgentProject/core/usererr"
)

// startOptions are the flags of start as typed.
type startOptions struct {
	goalFile    string
	budget      string
	daily       string
	maxHours    string
	until       string
	specialists string
	from        string
	fromHead    bool
	verify      string
	read        []string
	network     string
	engine      string
	user        bool
	system      bool
	noLinger    bool
	runAs       string
	model       string
	gateway     string
	quietHours  string
	keepDocs    bool
	dryRun      bool
	wait        bool   // the demo's: to the end, also if systemd ticks it
	fallback    string // why it is the embedded engine although nobody asked for it
	scripted    bool   // the demo's: the model's part is played from a script
	upstream    string // the demo's
	login       string // the demo's
}

func (c *cli) startCommand() *cobra.Command {
	o := startOptions{}
	cmd := &cobra.Command{
		Use:   `start <id> "<goal>"`,
		Short: "Start a mission and work on it until it ends",
		Long: "Start a mission: a goal, a budget and a time limit. systemd ticks it where it answers: your user manager, or for root\n" +
			"with --run-as the system's. Otherwise, and with --engine embedded, this process does until the mission ends; Ctrl-C\n" +
			"aborts it, a closed terminal or SIGTERM leaves it standing and run goes on. A goal that begins with - goes behind --.",
		Example: `  AutoAgentProject start my-site "Build a landing page" --budget 10% --max-hours 4 --specialists codebuilder:2,designer:1
  AutoAgentProject start fix-cart "Make the failing tests pass" --from ~/src/shop --verify "npm ci && npm test" --budget 3usd`,
		Args: func(cmd *cobra.Command, args []string) error {
			switch {
			case len(args) == 0:
				return usererr.New(usererr.Usage, `write AutoAgentProject start my-site "what to do"`, "the mission needs an id")
			case len(args) > 2:
				return usererr.New(usererr.Usage, "put quotes around the goal", "there are %d arguments, an id and a goal are two", len(args))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			goal := ""
			if len(args) == 2 {
				goal = args[1]
				if o.goalFile != "" {
					return usererr.New(usererr.Usage, "give one of them", "there is a goal and a --goal-file")
				}
			}
			return c.start(cmd.Context(), args[0], goal, len(args) == 2, o)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.goalFile, "goal-file", "", "`file` with the goal; - is standard input")
	f.StringVar(&o.budget, "budget", "", "`amount` that may be spent at most: 10% of a day of the plan, 5usd, $5 or 2Mtok (default 10%)")
	f.StringVar(&o.daily, "daily", "", "`amount` that 100% of a day is, for example 40usd")
	f.StringVar(&o.maxHours, "max-hours", "", "`hours` in which the mission can run (default 4)")
	f.StringVar(&o.until, "until", "", "end at a `time` instead: 2026-12-01T08:00:00Z, or 08:00 for the next one")
	f.StringVar(&o.specialists, "specialists", "codebuilder:1", "`list` of who works: profession:count,…")
	f.StringVar(&o.from, "from", "", "git repository or `folder` to start from")
	f.BoolVar(&o.fromHead, "from-head", false, "take HEAD of --from although it does not hold everything that lies there")
	f.StringVar(&o.verify, "verify", "", "`command` that must pass at the end in a fresh checkout of the result")
	f.StringArrayVar(&o.read, "read", nil, "file or `folder` that agents may read besides their own clone; can be given several times")
	f.StringVar(&o.network, "network", "", "`kind` of network that agents get: open, or none but the way to their model (default open)")
	f.StringVar(&o.engine, "engine", "", "`name` of who ticks: systemd, or embedded, which is this process (default systemd where it answers)")
	f.BoolVar(&o.user, "user", false, "with systemd: your user manager (default)")
	f.BoolVar(&o.system, "system", false, "with systemd: the system's manager (default for root, with --run-as)")
	f.BoolVar(&o.noLinger, "no-linger", false, "use a user manager although it ends when you log out")
	f.StringVar(&o.runAs, "run-as", "", "as root: the `user` that the mission runs as")
	f.StringVar(&o.model, "model", "", "exact `id` of the model (default "+defaultModel+")")
	f.StringVar(&o.gateway, "gateway", "on", "`on`: each run reaches the model through a gateway of ours that holds the login and bounds the spend; off: directly")
	f.StringVar(&o.quietHours, "quiet-hours", "", "`hours` in which only blockers, questions and the end are told: 22:00-07:00 Europe/Berlin")
	f.BoolVar(&o.keepDocs, "keep-docs", false, "deliver the documents of the steps too, below docs/handoffs/")
	f.BoolVar(&o.dryRun, "dry-run", false, "check everything, show what would be fixed, make nothing")
	return cmd
}

// start checks everything, makes the mission all or nothing, and ticks it to its end.
func (c *cli) start(ctx context.Context, id, goal string, given bool, o startOptions) error {
	if err := checkEngine(o); err != nil {
		return err
	}
	if c.handOver && os.Geteuid() == 0 {
		return usererr.New(usererr.Usage, "leave it out", "--hand-over is for what root starts as somebody else")
	}
	if !c.handOver {
		if mine, err := c.startForOwner(ctx, &o); mine || err != nil {
			return err
		}
		if err := c.runAs(o); err != nil {
			return err
		}
	}
	d, err := c.draft(ctx, id, goal, given, o)
	if err != nil {
		return cutOff(ctx, err)
	}
	if o.dryRun {
		return c.showDraft(d)
	}
	if err := c.create(ctx, d); err != nil {
		return cutOff(ctx, err)
	}
	if !c.json {
		c.describe(d)
	}
	if d.mission.Engine != systemdengine.Name {
		return c.tickToTheEnd(ctx, d.root, d.mission)
	}
	if err := c.hand(ctx, d); err != nil {
		return cutOff(ctx, err)
	}
	if o.wait {
		return c.waitForEnd(ctx, d.root, d.mission)
	}
	if c.json {
		return c.printJSON(d.mission)
	}
	return nil
}

// cutOff says what an error means for whoever ended the start: whatever was asked at that moment failed for that reason.
func cutOff(ctx context.Context, err error) error {
	if ctx.Err() == nil || usererr.CodeOf(err) == usererr.Aborted {
		return err
	}
	return usererr.Wrap(err, usererr.Aborted, "", "stopped before anything was made")
}

// showDraft shows what would be fixed, and the units that would be put in place.
func (c *cli) showDraft(d *draft) error {
	var list []units.File
	if d.mission.Engine == systemdengine.Name {
		e, err := c.newSystemd(d.root, units.Manager(d.mission.Manager), discard())
		if err != nil {
			return err
		}
		if list, err = units.Render(d.mission, e.Settings); err != nil {
			return err
		}
	}
	if c.json {
		shown := struct {
			mission.Mission
			Units map[string]string `json:"units,omitempty"`
		}{d.mission, map[string]string{}}
		for _, f := range list {
			shown.Units[f.Name] = string(f.Text)
		}
		return c.printJSON(shown)
	}
	c.describe(d)
	for _, f := range list {
		c.say("")
		c.say("# %s", f.Name)
		c.say("%s", strings.TrimRight(string(f.Text), "\n"))
	}
	c.say("Nothing was made (--dry-run).")
	return nil
}

// hand gives a mission to the engine that ticks it from now on, or takes all of it back.
func (c *cli) hand(ctx context.Context, d *draft) error {
	err := func() error {
		if c.handOver {
			return askRoot(d.mission.ID, c.pollerHash(d.root))
		}
		e, err := c.engineOf(d.root, d.mission)
		if err != nil {
			return err
		}
		if _, err := e.Start(ctx, d.mission.ID); err != nil {
			return err
		}
		if s, ok := e.(*systemdengine.Engine); ok {
			c.installHost(ctx, s)
			c.installPoller(ctx, d.root, s)
		}
		return nil
	}()
	if err == nil {
		// From now on reconcile puts the units back if they are lost; without this it takes the start for cut off.
		if err := d.root.Mission(d.mission.ID).Save(store.Handed, map[string]time.Time{"at": time.Now().UTC()}); err != nil {
			c.progress("warning: that it was started could not be written down: %v", err)
		}
		return nil
	}
	st := d.root.Mission(d.mission.ID)
	tick.Sweep(st.Dir())
	tick.Sweep(st.Work())
	tick.Sweep(st.Logs())
	return err
}

// installHost puts the units of the host in place. A mission does without them, so that it is told and no more.
func (c *cli) installHost(ctx context.Context, e *systemdengine.Engine) {
	if err := e.EnsureHost(ctx); err != nil {
		c.progress("warning: the hourly reconcile is not in place: %v", err)
	}
}

// waitForEnd shows what happens until the stop of a mission that systemd ticks is proven. Who ends it here aborts it.
func (c *cli) waitForEnd(ctx context.Context, root store.Root, m mission.Mission) error {
	st := root.Mission(m.ID)
	e, err := c.engineOf(root, m)
	if err != nil {
		return err
	}
	p := c.watchProgress(st, m)
	for !stopped(st) && ctx.Err() == nil {
		_ = pause(ctx)
	}
	if ctx.Err() != nil {
		_, err = st.Stop(mission.Stop{Cause: mission.Aborted, Reason: noReason, By: "person", At: time.Now()})
	}
	if err == nil {
		late, done := context.WithTimeout(context.WithoutCancel(ctx), abortWait)
		_, err = e.Stop(late, m.ID) // until no unit is left
		done()
	}
	p.stop()
	if err != nil {
		return err
	}
	stop, err := st.Stopped()
	if err != nil || stop == nil {
		return err
	}
	return c.tellEnd(ctx, root, m, *stop)
}

// describe shows what was fixed.
func (c *cli) describe(d *draft) {
	m := d.mission
	row := func(name, format string, args ...any) { c.say("  %-8s %s", name, fmt.Sprintf(format, args...)) }
	c.say("Mission %s", m.ID)
	row("pays", "%s", m.Payer)
	row("budget", "%s", m.BudgetSentence)
	if m.Gateway == mission.GatewayOff {
		row("", "%s", mission.WithoutGateway)
	}
	switch {
	case !m.Until.IsZero():
		row("time", "until %s", m.Until.Local().Format("2006-01-02 15:04 MST"))
	default:
		row("time", "%s in which it can run", shortDuration(time.Duration(m.MaxRun)))
	}
	var names []string
	for _, a := range mission.Specialists(m.Roster) {
		names = append(names, a.Name)
	}
	row("agents", "manager, %s (%s, model %s)", strings.Join(names, ", "), m.Agents, m.Model)
	for _, w := range d.warnings {
		row("warning", "%s", w)
	}
	row("engine", "%s", d.engineSentence)
	row("walls", "%s", d.walls)
	row("network", "%s", networkText(m.Network))
	row("bounds", "of each cell: %s", d.bounds)
	switch {
	case m.From == nil:
	case m.From.Kind == "git":
		row("from", "%s, HEAD %s", m.From.Path, strings.TrimSpace(m.From.Commit[:10]+" "+m.From.Branch))
	default:
		row("from", "%s, all its files", m.From.Path)
	}
	if len(m.Read) > 0 {
		row("read", "agents may read %s", strings.Join(m.Read, ", "))
	}
	if m.Verify != "" {
		row("verify", "%s", m.Verify)
	}
	row("told", "%s", c.channelSentence())
	at := c.rootHint(d.root)
	row("watch", "AutoAgentProject status %s%s · AutoAgentProject logs %s%s -f", m.ID, at, m.ID, at)
	if m.Engine == systemdengine.Name {
		row("journal", "%s -f", strings.Join(journalCommand(m.Manager, m.ID), " "))
		row("stop", "AutoAgentProject abort %s%s", m.ID, at)
		return
	}
	row("stop", "Ctrl-C here, or AutoAgentProject abort %s%s", m.ID, at)
}

// rootHint repeats --root where it is needed to find the mission.
func (c *cli) rootHint(root store.Root) string {
	if c.rootFlag == "" && !c.movedHome && !c.handOver {
		return ""
	}
	return " --root " + shellQuote(string(root))
}

func shellQuote(s string) string {
	if s != "" && strings.IndexFunc(s, func(r rune) bool {
		return !(r == '/' || r == '.' || r == '-' || r == '_' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z')
	}) < 0 {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// tickToTheEnd runs the embedded engine in the foreground and says how the mission ended.
func (c *cli) tickToTheEnd(ctx context.Context, root store.Root, m mission.Mission) error {
	st := root.Mission(m.ID)
	// A pipe that nobody reads any more (start | head) is no reason to stop; caught, not ignored, so that the ticks do not
	// inherit it.
	// The same for Ctrl-Z: who is suspended can neither guard nor stop.
	caught := make(chan os.Signal, 1)
	signal.Notify(caught, syscall.SIGPIPE, syscall.SIGTSTP)
	defer signal.Stop(caught)
	p := c.watchProgress(st, m)
	told := c.carryAlong(ctx, root, m)
	stop, err := c.newSupervisor(root, slog.New(slog.NewTextHandler(io.Discard, nil))).Start(ctx, m.ID)
	told()
	p.stop()
	if err != nil {
		return err
	}
	return c.tellEnd(ctx, root, m, stop)
}

// endCode is the exit status for the end of a mission.
func endCode(cause mission.Cause) usererr.Code {
	switch cause {
	case mission.Completed:
		return usererr.OK
	case mission.Budget, mission.Time:
		return usererr.Spent
	case mission.Aborted:
		return usererr.Aborted
	case mission.Damage:
		return usererr.Unreadable
	}
	return usererr.Failed
}

func (c *cli) runCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "run <id>",
		Short: "Go on with a mission that nobody ticks any more",
		Long: "Go on with a live mission that nobody ticks: of the embedded engine in the foreground, when its process is gone after a\n" +
			"crash, a reboot or a kill -9; of systemd by putting its units back, if they are lost.",
		Example:           "  AutoAgentProject run my-site",
		Args:              exactly(1, "the mission's id"),
		ValidArgsFunction: c.completeID,
		RunE: func(cmd *cobra.Command, args []string) error {
			root, st, m, err := c.mission(args[0])
			if err != nil {
				return err
			}
			stop, err := st.Stopped()
			if err != nil {
				return err
			}
			if m.Engine == systemdengine.Name {
				return c.putUnitsBack(cmd.Context(), root, m, stop)
			}
			if stop == nil {
				if err := owned(st.Dir()); err != nil {
					return err
				}
				return c.tickToTheEnd(cmd.Context(), root, m)
			}
			if _, err := c.newSupervisor(root, discard()).Stop(cmd.Context(), m.ID); err != nil {
				return err
			}
			return c.tellEnd(cmd.Context(), root, m, *stop)
		},
	}
}

// putUnitsBack lets systemd tick a live mission again whose units are lost.
func (c *cli) putUnitsBack(ctx context.Context, root store.Root, m mission.Mission, stop *mission.Stop) error {
	switch {
	case stop != nil:
		return usererr.New(usererr.Conflict, "AutoAgentProject status "+m.ID+" shows it", "mission %s was stopped", m.ID)
	case m.Manager != string(ownManager()) && os.Geteuid() != 0:
		return usererr.New(usererr.Environment, "sudo AutoAgentProject run "+m.ID+c.rootHint(root), "only root can put units into the system's manager")
	case m.Manager != string(ownManager()):
		return owned(root.Mission(m.ID).Dir())
	case os.Geteuid() == 0:
		if err := onlyRootsPrograms(); err != nil {
			return err
		}
	}
	e, err := c.engineOf(root, m)
	if err != nil {
		return err
	}
	if _, err := e.Start(ctx, m.ID); err != nil {
		return err
	}
	if c.json {
		return c.printJSON(map[string]any{"id": m.ID, "ticked": true})
	}
	c.say("Mission %s is ticked by systemd again", m.ID)
	return nil
}

func discard() *slog.Logger { return slog.New(slog.NewTextHandler(io.Discard, nil)) }

// engineOf wires the engine of a mission.
func (c *cli) engineOf(root store.Root, m mission.Mission) (engine.Engine, error) {
	switch m.Engine {
	case supervisor.Name:
		return c.newSupervisor(root, discard()), nil
	case systemdengine.Name:
		return c.newSystemd(root, units.Manager(m.Manager), discard())
	}
	return nil, usererr.New(usererr.Environment, "", "this version knows no engine %q", m.Engine)
}

// mission finds a mission by the id that was typed.
func (c *cli) mission(id string) (store.Root, *store.Store, mission.Mission, error) {
	root, err := c.store()
	if err != nil {
		return "", nil, mission.Mission{}, err
	}
	if err := mission.CheckID(id); err != nil {
		return "", nil, mission.Mission{}, err
	}
	st := root.Mission(id)
	m, err := st.Mission()
	if errors.Is(err, store.ErrNoMission) {
		err = usererr.New(usererr.NotFound, "AutoAgentProject list --all shows what there is below "+string(root), "there is no mission %s", id)
	}
	return root, st, m, err
}

// exactly is the rule for commands with a fixed number of arguments.
func exactly(n int, what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) != n {
			return usererr.New(usererr.Usage, "see "+cmd.CommandPath()+" --help", "%s takes %s", cmd.Name(), what)
		}
		return nil
	}
}

// owned refuses to touch a mission whose files belong to another user: as root it would leave files behind that the
// owner's ticks cannot write.
func owned(dir string) error {
	st, err := os.Stat(dir)
	if err != nil {
		return err
	}
	if uid := fileOwner(st); uid != os.Geteuid() {
		name := strconv.Itoa(uid)
		if u, err := user.LookupId(name); err == nil {
			name = u.Username
		}
		return usererr.New(usererr.Environment, fmt.Sprintf("sudo -u %s XDG_RUNTIME_DIR=/run/user/%d %s … does it as that user", name, uid, Program), "mission %s belongs to %s", filepath.Base(dir), name)
	}
	return nil
}
