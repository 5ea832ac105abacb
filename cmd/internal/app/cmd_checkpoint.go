package app

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"example.com/AutoAgentProject/core/files"
	"example.com/AutoAgentProject/core/git"
	"example.com/AutoAgentProject/core/journal"
	"example.com/AutoAgentProject/core/mission"
	"example.com/AutoAgentProject/core/money"
	"example.com/AutoAgentProject/core/plan"
	"example.com/AutoAgentProject/core/store"
	"example.com/AutoAgentProject/core/tick"
	"example.com/AutoAgentProject/core/usererr"
)

func (c *cli) checkpointCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "checkpoint", Short: "Show the checkpoints of a mission",
		Long:    "Show the checkpoints of a mission: its state after each accepted handoff, with commit, specifications and spend.",
		Example: "  AutoAgentProject checkpoint list my-site",
	}
	return group(cmd, &cobra.Command{
		Use: "list <id>", Short: "List the checkpoints", Long: "List the checkpoints of a mission, oldest first.",
		Example: "  AutoAgentProject checkpoint list my-site --json", Args: exactly(1, "the mission's id"), ValidArgsFunction: c.completeID,
		RunE: func(_ *cobra.Command, args []string) error { return c.listCheckpoints(args[0]) },
	}, &cobra.Command{
		Use: "show <id> <n>", Short: "Show a checkpoint", Long: "Show a checkpoint: what was accepted, the document that came with it, and the specifications.",
		Example: "  AutoAgentProject checkpoint show my-site 3", Args: exactly(2, "the mission's id and a number"), ValidArgsFunction: c.completeID,
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.showCheckpoint(cmd.Context(), args[0], args[1])
		},
	}, &cobra.Command{
		Use: "diff <id> <n> [m]", Short: "Show what changed between two checkpoints", Long: "Show what changed in the product since a checkpoint, up to another one or up to now.",
		Example: "  AutoAgentProject checkpoint diff my-site 3 5",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 2 && len(args) != 3 {
				return usererr.New(usererr.Usage, "see "+cmd.CommandPath()+" --help", "diff takes the mission's id and one or two numbers")
			}
			return nil
		},
		ValidArgsFunction: c.completeID,
		RunE:              func(cmd *cobra.Command, args []string) error { return c.diffCheckpoints(cmd.Context(), args) },
	})
}

func (c *cli) rollbackCommand() *cobra.Command {
	reason := ""
	cmd := &cobra.Command{
		Use: "rollback <id> <n>", Short: "Take a mission that follows a flow back to a checkpoint",
		Long: "Take a mission that follows a flow back to a checkpoint: the integrated work, the documents and specifications,\n" +
			"and who holds the baton. What came later stays reachable by a rescue ref. The next agent is told the reason.\n" +
			"Nothing may run meanwhile: pause it first.",
		Example: `  AutoAgentProject rollback my-site 3 --reason "the design was wrong"`, Args: exactly(2, "the mission's id and a number"), ValidArgsFunction: c.completeID,
		RunE: func(cmd *cobra.Command, args []string) error {
			if strings.TrimSpace(reason) == "" {
				return usererr.New(usererr.Usage, "say --reason why; the next agent is told", "the rollback has no reason")
			}
			return c.rollback(cmd.Context(), args[0], args[1], reason)
		},
	}
	cmd.Flags().StringVar(&reason, "reason", "", "`words` why, for the agent that goes on")
	return cmd
}

// checkpoint finds one by the number that was typed.
func checkpoint(st *store.Store, typed string) (tick.Checkpoint, error) {
	all, err := tick.Checkpoints(st)
	if err != nil {
		return tick.Checkpoint{}, err
	}
	n, err := strconv.Atoi(typed)
	if err != nil {
		return tick.Checkpoint{}, usererr.New(usererr.Usage, "checkpoint list shows the numbers", "%q is no number", typed)
	}
	for _, x := range all {
		if x.N == n {
			return x, nil
		}
	}
	return tick.Checkpoint{}, usererr.New(usererr.NotFound, "AutoAgentProject checkpoint list "+st.ID()+" shows what there is", "there is no checkpoint %d", n)
}

// checkpointShown is a checkpoint in JSON: all but the plan.
type checkpointShown struct {
	N        int               `json:"n"`
	At       time.Time         `json:"at"`
	Step     string            `json:"step"`
	Title    string            `json:"title"`
	Agent    string            `json:"agent"`
	Commit   string            `json:"commit"`
	Tree     string            `json:"tree"`
	Specs    map[string]string `json:"specs"`
	Nano     int64             `json:"nano_usd"`
	Tokens   int64             `json:"tokens"`
	Document string            `json:"document,omitempty"`
}

func shownCheckpoint(x tick.Checkpoint) checkpointShown {
	return checkpointShown{x.N, x.At, x.Step, x.Title, x.Agent, x.Commit, x.Tree, x.Specs, x.Nano, x.Tokens, ""}
}

func (c *cli) listCheckpoints(id string) error {
	_, st, _, err := c.mission(id)
	if err != nil {
		return err
	}
	all, err := tick.Checkpoints(st)
	if err != nil {
		return err
	}
	rows := []checkpointShown{}
	t := table{{"N", "TIME", "STEP", "AGENT", "COMMIT", "SPENT", "WHAT"}}
	for _, x := range all {
		rows = append(rows, shownCheckpoint(x))
		t = append(t, []string{strconv.Itoa(x.N), x.At.Local().Format("01-02 15:04"), x.Step, x.Agent, x.Commit[:min(10, len(x.Commit))], money.FormatUSD(money.Nano(x.Nano)), x.Title})
	}
	if c.json {
		return c.printJSON(rows)
	}
	if len(all) == 0 {
		c.say("no checkpoint yet")
		return nil
	}
	c.printTable(t)
	return nil
}

func (c *cli) showCheckpoint(ctx context.Context, id, typed string) error {
	_, st, _, err := c.mission(id)
	if err != nil {
		return err
	}
	x, err := checkpoint(st, typed)
	if err != nil {
		return err
	}
	s := shownCheckpoint(x)
	if x.Docs != "" {
		if data, err := (git.Repo{Dir: st.Repo()}).Document(ctx, x.Docs, x.Document); err == nil {
			s.Document = string(data)
		}
	}
	if c.json {
		return c.printJSON(s)
	}
	c.printTable(table{{"checkpoint", strconv.Itoa(x.N)}, {"time", x.At.Local().Format("2006-01-02 15:04:05 MST")}, {"step", x.Step + ": " + x.Title}, {"agent", x.Agent},
		{"commit", x.Commit}, {"tree", x.Tree}, {"spent", fmt.Sprintf("%s, %s", money.FormatUSD(money.Nano(x.Nano)), money.Amount{Unit: money.Tokens, N: x.Tokens})}})
	for name, sum := range x.Specs {
		c.say("  spec %s %s", name, sum[:12])
	}
	if s.Document != "" {
		c.say("\n%s", strings.TrimRight(s.Document, "\n"))
	}
	return nil
}

// shownPatch is how much of a diff is printed, in bytes.
const shownPatch = 4 << 20

func (c *cli) diffCheckpoints(ctx context.Context, args []string) error {
	_, st, _, err := c.mission(args[0])
	if err != nil {
		return err
	}
	a, err := checkpoint(st, args[1])
	if err != nil {
		return err
	}
	repo := git.Repo{Dir: st.Repo()}
	to := ""
	if len(args) == 3 {
		b, err := checkpoint(st, args[2])
		if err != nil {
			return err
		}
		to = b.Commit
	} else if to, err = repo.Resolve(ctx, "refs/heads/main"); err != nil {
		return err
	}
	if c.json {
		stats, err := repo.DiffStat(ctx, a.Commit, to)
		if err != nil {
			return err
		}
		rows := []map[string]any{}
		for _, f := range stats {
			rows = append(rows, map[string]any{"path": f.Path, "added": f.Added, "deleted": f.Deleted})
		}
		return c.printJSON(rows)
	}
	patch, more, err := repo.Patch(ctx, a.Commit, to, shownPatch)
	if err != nil {
		return err
	}
	c.say("%s", strings.TrimRight(patch, "\n"))
	if more {
		return usererr.New(usererr.Failed, "git diff in "+st.Repo()+" shows all of it", "there is more than %d bytes of it", shownPatch)
	}
	return nil
}

// rollingBack is the pause while a rollback is carried out. One that was cut off leaves it, and the same command goes on.
const rollingBack = "rollback"

func (c *cli) rollback(ctx context.Context, id, typed, reason string) error {
	_, st, m, err := c.mission(id)
	if err != nil {
		return err
	}
	if err := owned(st.Dir()); err != nil {
		return err
	}
	x, err := checkpoint(st, typed)
	if err != nil {
		return err
	}
	if m.Flow == "" || x.Plan.Baton == nil {
		return usererr.New(usererr.Usage, "tell AutoAgentProject tell "+id+" what to do differently", "mission %s follows no flow, and a planned one cannot be rolled back", id)
	}
	if stop, err := st.Stopped(); err != nil || stop != nil && stop.Cause.Final() {
		return errors.Join(err, usererr.New(usererr.Conflict, "start another one from its result", "mission %s has ended for good", id))
	}
	for _, a := range m.Roster {
		if a.Role != mission.Manager && a.Role != mission.Specialist {
			continue
		}
		unlock, err := files.TryLock(st.AgentLock(a.Name))
		if errors.Is(err, files.ErrLocked) {
			return usererr.New(usererr.Later, "AutoAgentProject pause "+id+", wait until status shows nobody at work, and try again", "%s works just now", a.Name)
		}
		if err != nil {
			return err
		}
		defer unlock()
	}
	if err := c.moveBack(ctx, st, m, x, reason); err != nil {
		return err
	}
	return c.done(id, fmt.Sprintf("mission %s is back at checkpoint %d, after step %s", id, x.N, x.Step), nil)
}

// moveBack carries a rollback out; the caller holds the locks of all who could work. It can be repeated after a death.
func (c *cli) moveBack(ctx context.Context, st *store.Store, m mission.Mission, x tick.Checkpoint, reason string) error {
	repo := git.Repo{Dir: st.Repo()}
	now := time.Now()
	p, err := st.Plan()
	if err != nil {
		return err
	}
	main, err := repo.Resolve(ctx, "refs/heads/main")
	if err != nil {
		return err
	}
	known := func(commit string) bool {
		return commit == m.Base || commit == x.Commit || slices.ContainsFunc(p.Steps, func(s plan.Step) bool { return s.Merge == commit })
	}
	if !known(main) {
		return usererr.New(usererr.Conflict, "look at it with git log in "+st.Repo(), "main holds a change that is no step of the mission: %s", main)
	}
	docs, err := repo.Resolve(ctx, git.DocsRef(m.ID))
	if err != nil && !errors.Is(err, git.ErrNoCommit) {
		return err
	}
	if _, err := st.Pause(ctx, mission.Pause{Cause: rollingBack, Reason: fmt.Sprintf("a rollback to checkpoint %d was begun: give the same command again", x.N)}, now); err != nil {
		return err
	}
	stamp := now.UTC().Format("20060102T150405Z")
	for kind, commit := range map[string]string{"work": main, "docs": docs} {
		if commit == "" {
			continue
		}
		if err := tick.Point(ctx, repo, fmt.Sprintf("refs/autoagent/%s/rescue/%s/%s", m.ID, kind, stamp), commit); err != nil {
			return err
		}
	}
	if err := repo.CompareAndSwap(ctx, "refs/heads/main", x.Commit, main); err != nil {
		return err
	}
	if x.Docs != "" {
		if err := repo.CompareAndSwap(ctx, git.DocsRef(m.ID), x.Docs, docs); err != nil {
			return err
		}
	}
	if err := st.ChangePlan(ctx, func(p *plan.Plan) (bool, error) {
		p.Back(x.Plan, x.N, reason)
		return true, nil
	}); err != nil {
		return err
	}
	if err := repo.Publish(ctx, x.Commit, st.Work(), st.Result()); err != nil {
		return err
	}
	_ = st.Journal().Add(journal.Event{At: now.UTC(), Kind: journal.Repaired, Text: fmt.Sprintf("rolled back to checkpoint %d (%s): %s; what there was is kept by refs/autoagent/%s/rescue/work/%s", x.N, x.Step, reason, m.ID, stamp)})
	for _, cause := range []string{rollingBack, tick.WaitCause} { // what was asked is asked no more
		if err := st.Unpause(ctx, cause, now); err != nil {
			return err
		}
	}
	wakeUp(st, "manager")
	return nil
}
