package app

import (
	"encoding/csv"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"example.com/AutoAgentProject/core/ledger"
	"example.com/AutoAgentProject/core/money"
	"example.com/AutoAgentProject/core/usererr"
)

func (c *cli) costsCommand() *cobra.Command {
	by, asCSV := "", false
	cmd := &cobra.Command{
		Use:   "costs <id>",
		Short: "Show what a mission cost, by agent, step, model or run",
		Long: "Show what the settled runs of a mission cost, from its ledger: tokens by class, the part of the prompts that\n" +
			"came from a cache, list price, share of the budget. The last line estimates what one ever-growing\n" +
			"conversation would have cost instead.",
		Example:           "  AutoAgentProject costs my-site\n  AutoAgentProject costs my-site --by step --csv",
		Args:              exactly(1, "one id"),
		ValidArgsFunction: c.completeID,
		RunE: func(cmd *cobra.Command, args []string) error {
			if c.json && asCSV {
				return usererr.New(usererr.Usage, "choose one", "--json and --csv exclude each other")
			}
			if !slices.Contains([]ledger.By{ledger.ByAgent, ledger.ByStep, ledger.ByModel, ledger.ByRun}, ledger.By(by)) {
				return usererr.New(usererr.Usage, "use agent, step, model or run", "there are no costs by %q", by)
			}
			_, st, m, err := c.mission(args[0])
			if err != nil {
				return err
			}
			runs, book, err := st.Ledger().Entries()
			if err != nil {
				return err
			}
			r := costReport(m.ID, ledger.By(by), runs, book, prices())
			switch {
			case c.json:
				return c.printJSON(r)
			case asCSV:
				return c.printCostCSV(r)
			}
			c.printCosts(r)
			return nil
		},
	}
	cmd.Flags().StringVar(&by, "by", string(ledger.ByAgent), "`what` to tell apart: agent, step, model or run")
	cmd.Flags().BoolVar(&asCSV, "csv", false, "answer in comma-separated values")
	return cmd
}

// costs is what a mission cost. Shares are in hundredths of a percent.
type costs struct {
	ID       string         `json:"id"`
	By       ledger.By      `json:"by"`
	Rows     []costRow      `json:"rows"`
	Total    costRow        `json:"total"`
	Budget   money.Amount   `json:"budget"`
	Estimate sharedEstimate `json:"shared_context_estimate"`
	Unpriced []string       `json:"unpriced_models,omitempty"`
}

type costRow struct {
	Name         string     `json:"name"`
	Runs         int        `json:"runs"`
	Input        int64      `json:"input"`
	Output       int64      `json:"output"`
	CacheWrite5m int64      `json:"cache_write_5m"`
	CacheWrite1h int64      `json:"cache_write_1h"`
	CacheRead    int64      `json:"cache_read"`
	Tokens       int64      `json:"tokens_all"`
	CacheShare   int64      `json:"cache_share_bp"` // of the prompts
	Nano         money.Nano `json:"nano_usd"`
	BudgetShare  int64      `json:"budget_share_bp"`
}

// sharedEstimate is what one conversation for all runs would have cost; see money.SharedContext.
type sharedEstimate struct {
	Nano    money.Nano `json:"nano_usd"`
	Formula string     `json:"formula"`
	Note    string     `json:"note"`
}

const (
	sharedFormula = "cost of the mission + sum over its runs of requests x fresh tokens of all earlier runs x cache-read price"
	sharedNote    = "an estimate, not a measurement: as if no context had a limit and no cache ever forgot; fresh are input, cache writes and output; where the number of requests is not recorded, 1"
)

func costReport(id string, by ledger.By, runs []ledger.Entry, book ledger.Book, prices money.Table) costs {
	row := func(cost ledger.Cost) costRow {
		u := cost.Usage
		return costRow{Name: cost.Name, Runs: cost.Runs, Input: u.Input, Output: u.Output, CacheWrite5m: u.CacheWrite5m, CacheWrite1h: u.CacheWrite1h,
			CacheRead: u.CacheRead, Tokens: cost.Tokens, CacheShare: money.Part(u.CacheRead, u.Prompt()), Nano: cost.Nano,
			BudgetShare: money.Part(book.Budget.Unit.Of(cost.Nano, cost.Tokens), book.Budget.N)}
	}
	r := costs{ID: id, By: by, Rows: []costRow{}, Budget: book.Budget, Unpriced: book.Unpriced}
	total := ledger.Cost{Name: "total"}
	var stays []money.Stay
	for _, e := range runs {
		total.Runs++
		total.Tokens, total.Nano = money.Sum(total.Tokens, e.Tokens), money.Sum(total.Nano, e.Nano)
		model, fresh := e.Model, int64(0)
		for _, name := range slices.Sorted(maps.Keys(e.ByModel)) {
			u := e.ByModel[name]
			total.Usage = total.Usage.Add(u)
			fresh = money.Sum(fresh, u.Tokens()-u.CacheRead)
			if model == "" {
				model = name
			}
		}
		rates, _ := prices.Rates(model, 0, e.At)
		stays = append(stays, money.Stay{Fresh: fresh, Requests: e.Requests, Read: rates.CacheRead})
	}
	r.Total = row(total)
	at := time.Time{}
	if len(runs) > 0 {
		at = runs[len(runs)-1].At
	}
	for _, cost := range ledger.Costs(runs, by, func(model string, u money.Usage) money.Nano {
		n, _ := prices.Cost(model, u, at, false)
		return n
	}) {
		r.Rows = append(r.Rows, row(cost))
	}
	r.Estimate = sharedEstimate{money.Sum(total.Nano, money.SharedContext(stays)), sharedFormula, sharedNote}
	return r
}

func (c *cli) printCosts(r costs) {
	if len(r.Rows) == 0 {
		c.say("no run of mission %s is settled yet", r.ID)
		return
	}
	t := table{{map[ledger.By]string{ledger.ByAgent: "AGENT", ledger.ByStep: "STEP", ledger.ByModel: "MODEL", ledger.ByRun: "RUN"}[r.By],
		"RUNS", "INPUT", "OUTPUT", "CACHE WRITE", "CACHE READ", "CACHED", "LIST PRICE", "OF BUDGET"}}
	for _, row := range append(slices.Clone(r.Rows), r.Total) {
		name := row.Name
		if name == "" && r.By == ledger.ByStep {
			name = "(planning)" // no step's id
		}
		t = append(t, []string{dash(name), strconv.Itoa(row.Runs), money.FormatTokens(row.Input), money.FormatTokens(row.Output),
			money.FormatTokens(row.CacheWrite5m + row.CacheWrite1h), money.FormatTokens(row.CacheRead),
			percent(row.CacheShare), money.FormatUSD(row.Nano), percent(row.BudgetShare)})
	}
	c.printTable(t)
	c.say("")
	c.say("  of a budget of %s, at list price", r.Budget)
	c.say("  one ever-growing conversation instead: about %s (an estimate)", money.FormatUSD(r.Estimate.Nano))
	c.say("    = %s", r.Estimate.Formula)
	for _, m := range r.Unpriced {
		c.say("  %s", c.colour("33", "warning: no price is known for "+m+", charged at the dearest one"))
	}
}

func (c *cli) printCostCSV(r costs) error {
	w := csv.NewWriter(c.env.Stdout)
	_ = w.Write([]string{string(r.By), "runs", "input", "output", "cache_write_5m", "cache_write_1h", "cache_read", "tokens_all", "cache_share_bp", "nano_usd", "budget_share_bp"})
	for _, row := range r.Rows {
		cells := []string{row.Name}
		for _, n := range []int64{int64(row.Runs), row.Input, row.Output, row.CacheWrite5m, row.CacheWrite1h, row.CacheRead, row.Tokens, row.CacheShare, int64(row.Nano), row.BudgetShare} {
			cells = append(cells, strconv.FormatInt(n, 10))
		}
		_ = w.Write(cells)
	}
	w.Flush()
	return w.Error()
}

// percent writes hundredths of a percent.
func percent(bp int64) string { return fmt.Sprintf("%d.%d %%", bp/100, bp%100/10) }
