package app

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"os"

	"github.com/spf13/cobra"

	"example.com/AutoAgentProject/core/mission"
	"example.com/AutoAgentProject/core/store"
	"example.com/AutoAgentProject/core/systemdengine"
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
	flow        string
	mode        string
	with        string
	from        string
	fromHead    bool
	fromRepo    []string
	verify      string
	read        []string
	caches      []string
	network     string
	engine      string
	user        bool
	system      bool
	noLinger    bool
	runAs       string
	model       string
	gateway     string
	quietHours  string
	onError     string
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
	f.StringVar(&o.specialists, "specialists", "", "`list` of who works: profession:count,… (default "+defaultSpecialists+")")
	f.StringVar(&o.flow, "flow", "", "`id` of a flow to follow instead of a planned list; flow list shows them")
	f.StringVar(&o.mode, "mode", "", "of the flow: `gsd`, which asks a person only when something is wrong, or check, at each gate (default the flow's)")
	f.StringVar(&o.with, "with", "", "`folder` with professions, souls and flows above all others")
	f.StringVar(&o.from, "from", "", "git repository or `folder` to start from")
	f.BoolVar(&o.fromHead, "from-head", false, "take HEAD of --from although it does not hold everything that lies there")
	f.StringArrayVar(&o.fromRepo, "allow-from-repo", nil, "`list` of what --from may say to the agent program, as it is now: claude-md,settings,hooks,mcp,craft (default none)")
	f.StringVar(&o.verify, "verify", "", "`command` that must pass at the end in a fresh checkout of the result")
	f.StringArrayVar(&o.read, "read", nil, "file or `folder` that agents may read besides their own clone; can be given several times")
	f.StringArrayVar(&o.caches, "caches", nil, "`list` of your caches that agents may read instead of downloading again: go,npm (default none)")
	f.StringVar(&o.network, "network", "", "`kind` of network that agents get: open, host (with this machine's own services), or none but the way to their model (default open)")
	f.StringVar(&o.engine, "engine", "", "`name` of who ticks: systemd, or embedded, which is this process (default systemd where it answers)")
	f.BoolVar(&o.user, "user", false, "with systemd: your user manager (default)")
	f.BoolVar(&o.system, "system", false, "with systemd: the system's manager (default for root, with --run-as)")
	f.BoolVar(&o.noLinger, "no-linger", false, "use a user manager although it ends when you log out")
	f.StringVar(&o.runAs, "run-as", "", "as root: the `user` that the mission runs as")
	f.StringVar(&o.model, "model", "", "exact `id` of the model (default "+defaultModel+")")
	f.StringVar(&o.gateway, "gateway", "on", "`on`: each run reaches the model through a gateway of ours that holds the login and bounds the spend; off: directly")
	f.StringVar(&o.quietHours, "quiet-hours", "", "`hours` in which only blockers, questions and the end are told: 22:00-07:00 Europe/Berlin")
	f.StringVar(&o.onError, "on-error", "", "`what` to do when all tries are used up: ask a person, or fail (default ask where a channel is set)")
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

func discard() *slog.Logger { return slog.New(slog.NewTextHandler(io.Discard, nil)) }

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
