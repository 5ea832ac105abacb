package app

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"example.com/AutoAgentProject/core/caps"
	"example.com/AutoAgentProject/core/money"
	"example.com/AutoAgentProject/core/usererr"
)

func (c *cli) budgetCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "budget",
		Short:   "Show or raise what a mission may spend",
		Long:    "Show what a mission may spend, how that came about and what is left, or add to it.",
		Example: "  AutoAgentProject budget show my-site",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(&cobra.Command{
		Use:               "show <id>",
		Short:             "Show how a budget came about and what is left of it",
		Long:              "Show what was asked for, the absolute amount that it became, what is used, reserved by runs, and left.",
		Example:           "  AutoAgentProject budget show my-site --json",
		Args:              exactly(1, "the mission's id"),
		ValidArgsFunction: c.completeID,
		RunE:              func(_ *cobra.Command, args []string) error { return c.showBudget(args[0]) },
	}, &cobra.Command{
		Use:   "add <id> <amount>",
		Short: "Add to the budget of a mission",
		Long: "Add an amount to the budget of a mission, live or halted, in the unit that it has. A halted one goes on with\n" +
			"resume.",
		Example:           "  AutoAgentProject budget add my-site 2usd",
		Args:              exactly(2, "the mission's id and the amount"),
		ValidArgsFunction: c.completeID,
		RunE:              func(cmd *cobra.Command, args []string) error { return c.addToBudget(cmd.Context(), args[0], args[1]) },
	})
	return group(cmd, c.budgetPricesCommand())
}

// budgetShown is budget show --json.
type budgetShown struct {
	ID       string       `json:"id"`
	Asked    string       `json:"asked"`    // as typed at the start
	Sentence string       `json:"sentence"` // how it became an amount then
	Started  money.Amount `json:"started"`
	Budget   money.Amount `json:"budget"` // with what was added since
	Used     money.Amount `json:"used"`
	Reserved money.Amount `json:"reserved"`
	Left     money.Amount `json:"left"` // of it nothing is reserved
	Percent  int64        `json:"percent"`

	Caps []caps.Standing `json:"caps"` // what all missions may spend together
}

func (c *cli) showBudget(id string) error {
	root, st, m, err := c.mission(id)
	if err != nil {
		return err
	}
	book, err := st.Ledger().Read()
	if err != nil {
		return err
	}
	unit := book.Budget.Unit
	v := budgetShown{ID: m.ID, Asked: m.BudgetAsked, Sentence: m.BudgetSentence, Started: m.Budget, Budget: book.Budget, Used: book.Used, Reserved: book.Reserved,
		Left: money.Amount{Unit: unit, N: money.Remaining(book.Budget.N, book.Used.N+book.Reserved.N)}, Percent: money.ShownPercent(book.Budget.N, book.Used.N)}
	cfg, err := readConfig(m.Config, false)
	if err != nil {
		return err
	}
	if v.Caps, err = (caps.Host{Dir: root.Caps()}).Standings(cfg.caps(), time.Now()); err != nil {
		return err
	}
	if c.json {
		return c.printJSON(v)
	}
	row := func(name string, text any) { c.say("  %-8s %s", name, text) }
	c.say("Budget of mission %s", m.ID)
	row("asked", v.Sentence)
	if v.Budget != v.Started {
		row("now", fmt.Sprintf("%s, with what was added", v.Budget))
	}
	row("used", fmt.Sprintf("%s (%d%%)", v.Used, v.Percent))
	row("reserved", v.Reserved)
	row("left", v.Left)
	for _, s := range v.Caps {
		row("cap", fmt.Sprintf("%s of %s used by all missions in %s (UTC), %s reserved", money.FormatUSD(s.Used), money.FormatUSD(s.Cap), s.Period, money.FormatUSD(s.Reserved)))
	}
	return nil
}

// addToBudget adds an amount to what a mission may spend.
func (c *cli) addToBudget(ctx context.Context, id, amount string) error {
	_, st, m, err := c.mission(id)
	if err != nil {
		return err
	}
	b, err := money.ParseBudget(amount)
	if err != nil {
		return err
	}
	if b.Kind == money.KindPercent {
		return usererr.New(usererr.Usage, "write an amount, for example 2usd", "a share of a day cannot be added")
	}
	more, _ := money.Fix(b, money.Allowance{})
	if err := c.mayRaise(st, m); err != nil {
		return err
	}
	book, err := st.Ledger().Read()
	if err != nil {
		return err
	}
	if more.Unit != book.Budget.Unit {
		return usererr.New(usererr.Usage, "give the amount in the same unit", "the budget of mission %s is %s, and %s is something else", m.ID, book.Budget, more)
	}
	next := money.Amount{Unit: more.Unit, N: book.Budget.N + more.N}
	if next.N < book.Budget.N || !next.Valid() {
		return usererr.New(usererr.Usage, "give less", "%s and %s are too much together", book.Budget, more)
	}
	if err := st.Ledger().SetBudget(ctx, next, "a person added "+more.String(), time.Now()); err != nil {
		return err
	}
	text := fmt.Sprintf("%s were added to the budget of mission %s: %s of %s are used", more, m.ID, book.Used, next)
	return c.raised(st, text, map[string]any{"id": m.ID, "added": more, "budget": next, "used": book.Used})
}
