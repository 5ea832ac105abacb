package app

import (
	"github.com/spf13/cobra"

	"example.com/AutoAgentProject/core/git"
	"example.com/AutoAgentProject/core/usererr"
)

func (c *cli) deliverCommand() *cobra.Command {
	to, branch := "", ""
	cmd := &cobra.Command{
		Use:   "deliver <id>",
		Short: "Bring a mission's work into your repository as a branch",
		Long: "Bring the integrated work of a mission into a git repository of yours as a branch. Your work tree, your index and\n" +
			"the branches that are checked out stay untouched.",
		Example:           "  AutoAgentProject deliver fix-cart\n  AutoAgentProject deliver fix-cart --to ~/src/shop --branch cart-fix",
		Args:              exactly(1, "the mission's id"),
		ValidArgsFunction: c.completeID,
		RunE: func(cmd *cobra.Command, args []string) error {
			_, st, m, err := c.mission(args[0])
			if err != nil {
				return err
			}
			if to == "" {
				if m.From == nil || m.From.Kind != "git" {
					return usererr.New(usererr.Usage, "give --to REPOSITORY, or copy "+st.Result(), "mission %s did not start from a git repository", m.ID)
				}
				to = m.From.Path
			}
			if branch == "" {
				branch = "autoagent/" + m.ID
			}
			repo := git.Repo{Dir: st.Repo()}
			head, err := repo.Resolve(cmd.Context(), "refs/heads/main")
			if err != nil {
				return err
			}
			if head == m.Base {
				return usererr.New(usererr.Failed, "AutoAgentProject status "+m.ID+" shows how far it is", "mission %s has integrated nothing yet", m.ID)
			}
			d, err := git.Deliver(cmd.Context(), repo, head, to, branch)
			if err != nil {
				return err
			}
			commits, err := repo.Log(cmd.Context(), m.Base, head)
			if err != nil {
				return err
			}
			if c.json {
				return c.printJSON(map[string]any{"repository": d.Repo, "branch": d.Branch, "commit": d.Commit, "before": d.Before, "commits": len(commits)})
			}
			if d.Before == d.Commit {
				c.say("%s holds the work already in branch %s", d.Repo, d.Branch)
				return nil
			}
			c.say("%s has the work of %s in branch %s (%d commits, %s)", d.Repo, m.ID, d.Branch, len(commits), d.Commit[:10])
			c.say("  %-8s git -C %s diff %s...%s", "look", shellQuote(d.Repo), m.Base[:10], d.Branch)
			c.say("  %-8s git -C %s merge %s", "take it", shellQuote(d.Repo), d.Branch)
			return nil
		},
	}
	cmd.Flags().StringVar(&to, "to", "", "your `repository` (default: the one the mission started from)")
	cmd.Flags().StringVar(&branch, "branch", "", "`name` of the branch (default autoagent/<id>)")
	return cmd
}
