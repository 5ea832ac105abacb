package app

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"example.com/AutoAgentProject/core/handoff"
	"example.com/AutoAgentProject/core/queue"
	"example.com/AutoAgentProject/core/usererr"
)

// handoffFlags are what all handoff commands share.
type handoffFlags struct {
	layout  string // mission or swarmforge
	mission string
	agent   string
	batch   bool
	run     string
	strict  bool
	forward string
}

func (c *cli) handoffCommand() *cobra.Command {
	f := &handoffFlags{}
	cmd := &cobra.Command{
		Use:   "handoff",
		Short: "Send and take handoffs between agents",
		Long: "Send, take, finish and follow handoffs, the only messages between agents. In the mission layout --mission and --agent\n" +
			"say whose mailbox is meant; with --layout swarmforge it is that of SWARMFORGE_ROLE in the work tree it is run in.\n" +
			"send, check, next, done and merge end with 0 when done (also when there is no task), 1 when the surroundings do not\n" +
			"fit or there is nothing to finish, 2 when a draft is refused or the mailbox's state is ambiguous.",
		Example: "  AutoAgentProject handoff send .autoagent/draft --mission my-site --agent codebuilder-1\n" +
			"  SWARMFORGE_ROLE=coder AutoAgentProject handoff next --layout swarmforge\n" +
			"  AutoAgentProject handoff trace cart-tax --mission my-site",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return nil
			}
			return unknownCommand(cmd, args[0])
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	p := cmd.PersistentFlags()
	p.StringVar(&f.layout, "layout", "mission", "`layout` of the mailboxes: mission or swarmforge")
	p.StringVar(&f.mission, "mission", "", "`id` of the mission")
	p.StringVar(&f.agent, "agent", "", "`name` of the agent whose mailbox is meant")
	cmd.AddCommand(c.handoffSend(f), c.handoffCheck(f), c.handoffNext(f), c.handoffDone(f), c.handoffMerge(f),
		c.handoffList(f), c.handoffShow(f), c.handoffTrace(f), c.handoffRequeue(f))
	return cmd
}

// protocol makes a command speak as the protocol does: a wrong call is exit status 1.
func protocol(cmd *cobra.Command, args func(n int) bool) *cobra.Command {
	wrong := func(cmd *cobra.Command, err error) error {
		return usererr.New(usererr.Failed, "see "+cmd.CommandPath()+" --help", "%s", err)
	}
	cmd.Args = func(cmd *cobra.Command, given []string) error {
		if !args(len(given)) {
			return wrong(cmd, fmt.Errorf("usage: %s", cmd.UseLine()))
		}
		return nil
	}
	cmd.SetFlagErrorFunc(wrong)
	return cmd
}

func count(n int) func(int) bool { return func(got int) bool { return got == n } }

// refuse prints what is wrong with a draft or an end, all of it at once, one a line.
func (c *cli) refuse(head, path string, problems []handoff.Problem, usage string) error {
	if c.json {
		if err := c.printJSON(map[string]any{"refused": path, "problems": problems}); err != nil {
			return err
		}
	}
	fmt.Fprintf(c.env.Stderr, "%s: %s\n\nErrors:\n", head, clean(path))
	for _, p := range problems {
		fmt.Fprintf(c.env.Stderr, "- %s\n", clean(p.String()))
	}
	if usage != "" {
		fmt.Fprintf(c.env.Stderr, "\n%s\n", usage)
	}
	return quiet(usererr.Usage)
}

const draftUsage = `A draft has these lines, in any order, and nothing else:

type: git_handoff                 type: note
to: <role>[,<role>...]            to: <role>[,<role>...]
priority: <00 to 99>              priority: <00 to 99>
task: <name, 80 characters>       message: <one line, 80 characters>
commit: <10 digits>`

// state turns an error of the queue into what the protocol says and its exit status.
func (c *cli) state(err error) error {
	var state *queue.StateError
	if errors.As(err, &state) {
		fmt.Fprintln(c.env.Stderr, clean(state.Error()))
		if state.Empty {
			return quiet(usererr.Failed)
		}
		return quiet(usererr.Usage)
	}
	if errors.Is(err, queue.ErrBusy) {
		return usererr.Wrap(err, usererr.Failed, "wait until it is done, or end it", "somebody else who lives holds the work")
	}
	return environment(err)
}

// environment makes exit status 1 of whatever else goes wrong.
func environment(err error) error {
	if err == nil || errors.Is(err, errQuiet) {
		return err
	}
	var u *usererr.Error
	if errors.As(err, &u) {
		return usererr.Wrap(u.Cause, usererr.Failed, u.Hint, "%s", u.Sentence)
	}
	return usererr.Wrap(err, usererr.Failed, "", "the handoff cannot be seen to")
}
