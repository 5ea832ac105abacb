package app

import (
	"context"
	"errors"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"example.com/AutoAgentProject/bridge"
	"example.com/AutoAgentProject/core/engine"
	"example.com/AutoAgentProject/core/files"
	"example.com/AutoAgentProject/core/store"
	"example.com/AutoAgentProject/core/usererr"
	"example.com/AutoAgentProject/core/view"
)

func (c *cli) reportCommand() *cobra.Command {
	html, markdown := false, false
	cmd := &cobra.Command{
		Use:   "report <id>",
		Short: "Print what a mission did, by whom, and what it cost",
		Long: "Print one self-contained file about a mission: its goal, what was done and by whom, what each step cost, the decisions,\n" +
			"the checkpoints and what is open. At the end of every mission report.html and report.md are written beside its result.",
		Example:           "  AutoAgentProject report my-site\n  AutoAgentProject report my-site --html > my-site.html",
		Args:              exactly(1, "one id"),
		ValidArgsFunction: c.completeID,
		RunE: func(cmd *cobra.Command, args []string) error {
			if html && markdown || c.json && (html || markdown) {
				return usererr.New(usererr.Usage, "choose one", "--html, --md and --json exclude each other")
			}
			root, st, _, err := c.mission(args[0])
			if err != nil && (st == nil || !st.Exists() || usererr.CodeOf(err) != usererr.Unreadable) { // a damaged one is told as far as it can be
				return err
			}
			r, err := c.reader(root)
			if err != nil {
				return err
			}
			d, err := r.Detail(cmd.Context(), st.ID(), -1, 0)
			if err != nil {
				return err
			}
			var out []byte
			switch {
			case c.json:
				err = c.printJSON(d)
			case html:
				out, err = bridge.HTML(d, Version(), time.Now())
			default:
				out = bridge.Markdown(d, Version(), time.Now())
			}
			if err == nil {
				_, err = c.env.Stdout.Write(out)
			}
			if err == nil && d.Unreadable {
				err = quiet(usererr.Unreadable)
			}
			return err
		},
	}
	cmd.Flags().BoolVar(&html, "html", false, "as a page for a browser")
	cmd.Flags().BoolVar(&markdown, "md", false, "as Markdown, the default")
	return cmd
}

// nobody ticks a mission that ends.
func nobody(context.Context, *store.Store) (engine.Live, error) { return engine.Live{}, nil }

// writeReport puts the reports of a mission that ends beside its result. What it shows is as it is in that moment.
func writeReport(ctx context.Context, st *store.Store) error {
	ctx, done := context.WithTimeout(ctx, time.Minute)
	defer done()
	profs, err := professions()
	if err != nil {
		return err
	}
	r := &view.Reader{Root: st.Root(), Professions: profs, Live: nobody, Flow: flowOf}
	d, err := r.Detail(ctx, st.ID(), -1, 0)
	if err != nil {
		return err
	}
	now := time.Now()
	page, err := bridge.HTML(d, Version(), now)
	if err != nil {
		return err
	}
	return errors.Join(
		files.Replace(filepath.Join(st.Work(), "report.html"), page, 0o644),
		files.Replace(filepath.Join(st.Work(), "report.md"), bridge.Markdown(d, Version(), now), 0o644))
}
