package app

import (
	"fmt"
	"strconv"
	"time"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"example.com/AutoAgentProject/core/mission"
	"example.com/AutoAgentProject/core/store"
	"example.com/AutoAgentProject/core/usererr"
)

func (c *cli) approvalsCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "approvals [<id>]",
		Short: "Show what waits for a person's yes or no",
		Long: "Show the approvals of a mission, answered ones too. Without an id: the open ones of all live missions. What waits\n" +
			"for an answer does not go on, and without one in time it counts as refused.",
		Example:           "  AutoAgentProject approvals my-site",
		Args:              atMostOne("approvals"),
		ValidArgsFunction: c.completeID,
		RunE: func(cmd *cobra.Command, args []string) error {
			list := []approvalShown{}
			if len(args) == 1 {
				_, st, _, err := c.mission(args[0])
				if err != nil {
					return err
				}
				if list, err = approvalsOf(st, list, true); err != nil {
					return err
				}
			} else {
				root, err := c.store()
				if err != nil {
					return err
				}
				ids, err := root.IDs()
				if err != nil {
					return usererr.Wrap(err, usererr.Environment, unlistable, "the missions cannot be listed")
				}
				for _, id := range ids {
					st := root.Mission(id)
					if stop, err := st.Stopped(); err != nil || stop != nil {
						continue
					}
					if list, err = approvalsOf(st, list, false); err != nil {
						return err
					}
				}
			}
			if c.json {
				return c.printJSON(list)
			}
			c.printApprovals(list)
			return nil
		},
	}
}

// atMostOne is the rule for commands with an id that may be left out.
func atMostOne(name string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) > 1 {
			return usererr.New(usererr.Usage, "see AutoAgentProject "+name+" --help", "%s takes one id at most", name)
		}
		return nil
	}
}

// approvalShown is an approval as people see it.
type approvalShown struct {
	Mission string `json:"mission"`
	Open    bool   `json:"open"`
	store.Asked
}

func approvalsOf(st *store.Store, list []approvalShown, all bool) ([]approvalShown, error) {
	asked, err := st.Approvals()
	if err != nil {
		return nil, err
	}
	stop, err := st.Stopped()
	if err != nil {
		return nil, err
	}
	for _, a := range asked {
		a.Nonce = "" // a button's secret
		if open := a.Open(time.Now()) && stop == nil; open || all {
			list = append(list, approvalShown{st.ID(), open, a})
		}
	}
	return list, nil
}

func (c *cli) printApprovals(list []approvalShown) {
	if len(list) == 0 {
		c.say("nothing waits for an approval")
		return
	}
	for _, a := range list {
		state := "open until " + a.Expires.Local().Format("2006-01-02 15:04")
		switch {
		case a.Decision != nil:
			state = a.Decision.Said()
		case !a.Open:
			state = "closed without an answer"
		}
		c.say("%s  %s", c.colour("1", fmt.Sprintf("%s %d", a.Mission, a.N)), a.Title)
		c.say("  %-8s %s, asked by %s", string(a.Kind), state, a.By)
		if a.Open {
			c.say("")
			c.say("%s", clean(a.Text))
			c.say("")
			if a.Diff != "" {
				c.say("%s", clean(a.Diff))
				c.say("")
			}
			skip := ""
			if a.MaySkip {
				skip = fmt.Sprintf(" · AutoAgentProject approve %s %d --skip", a.Mission, a.N)
			}
			c.say("  AutoAgentProject approve %s %d%s · AutoAgentProject reject %s %d --note \"why\"", a.Mission, a.N, skip, a.Mission, a.N)
		}
	}
}

func (c *cli) approveCommand() *cobra.Command {
	return c.decisionCommand("approve", "Say yes to what a mission asks", mission.Approved, false)
}

func (c *cli) rejectCommand() *cobra.Command {
	return c.decisionCommand("reject", "Say no to what a mission asks, and why", mission.Rejected, true)
}

func (c *cli) decisionCommand(name, short string, v mission.Verdict, needsNote bool) *cobra.Command {
	text, skip := "", false
	cmd := &cobra.Command{
		Use:               name + " <id> <number>",
		Short:             short,
		Long:              "Answer an approval of a mission, by its number in approvals. The first answer counts, from wherever it comes;\nthe note reaches who asked.",
		Example:           "  AutoAgentProject " + name + ` my-site 3 --note "but keep the contact form"`,
		Args:              exactly(2, "the mission's id and the number of the approval"),
		ValidArgsFunction: c.completeID,
		RunE: func(cmd *cobra.Command, args []string) error {
			n, err := strconv.Atoi(args[1])
			if err != nil || n < 1 {
				return usererr.New(usererr.Usage, "AutoAgentProject approvals "+args[0]+" shows the numbers", "%q is no number of an approval", args[1])
			}
			if needsNote && text == "" {
				return usererr.New(usererr.Usage, `write --note "why"`, "who asked needs to know why not")
			}
			_, st, _, err := c.mission(args[0])
			if err != nil {
				return err
			}
			v := v
			if skip {
				v = mission.Skipped
			}
			key := "terminal-" + uuid.NewString()
			asked, said, err := decide(st, n, v, text, terminal, key)
			if err != nil {
				return err
			}
			asked.Nonce = ""
			mine := asked.Decision.Key == key
			if c.json {
				err = c.printJSON(map[string]any{"id": st.ID(), "mine": mine, "approval": asked})
			} else {
				c.say("%s", said)
			}
			if err == nil && (!mine || asked.Decision.Verdict != v) {
				err = quiet(usererr.Conflict)
			}
			return err
		},
	}
	cmd.Flags().StringVar(&text, "note", "", "`text` for who asked")
	if v == mission.Approved {
		cmd.Flags().BoolVar(&skip, "skip", false, "go on without it, where approvals offers that")
	}
	return cmd
}
