package app

import (
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"example.com/AutoAgentProject/core/money"
)

// stale is the age from which on the price list is doubted.
const stale = 90 * 24 * time.Hour

func (c *cli) budgetPricesCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "prices",
		Short: "Print the price list in use, with its date and source",
		Long: "Print the price list that budgets are counted with, in US dollars per million tokens. It is part of the\n" +
			"program. A model that is not in it is charged at the last row.",
		Example: "  AutoAgentProject budget prices\n  AutoAgentProject budget prices --json",
		Args:    exactly(0, "no arguments"),
		RunE: func(cmd *cobra.Command, args []string) error {
			list := prices().List()
			age := prices().Age(time.Now())
			if c.json {
				return c.printJSON(struct {
					money.PriceList
					Source string `json:"source"`
					Days   int    `json:"age_days"`
					Stale  bool   `json:"stale"`
				}{list, priceSource, int(age.Hours() / 24), age > stale})
			}
			c.printPrices(list, age)
			return nil
		},
	}
}

// priceSource says where the price list comes from.
const priceSource = "embedded"

func (c *cli) printPrices(l money.PriceList, age time.Duration) {
	c.say("checked %s (%d days ago), part of this program: %s", l.Checked, int(age.Hours()/24), Version())
	c.say("US dollars per million tokens, from the vendor's public price pages")
	c.say("")
	t := table{{"MODEL", "INPUT", "OUTPUT", "WRITE 5M", "WRITE 1H", "READ", "REMARK"}}
	row := func(name string, r money.Rates, remark string) {
		t = append(t, []string{name, perMillion(r.Input), perMillion(r.Output), perMillion(r.CacheWrite5m), perMillion(r.CacheWrite1h), perMillion(r.CacheRead), dash(remark)})
	}
	for _, m := range l.Models {
		var remarks []string
		if m.Fast > 0 {
			remarks = append(remarks, "fast mode "+strconv.FormatInt(m.Fast, 10)+"x")
		}
		row(m.Model, m.Rates, strings.Join(remarks, ", "))
		if m.Long != nil {
			row("", *m.Long, "prompt over "+money.FormatTokens(m.LongOver)+" tokens")
		}
		for _, e := range m.Earlier {
			row("", e.Rates, "through "+e.Through)
		}
	}
	row("any other", l.Unknown, "fast mode "+strconv.FormatInt(l.UnknownFast, 10)+"x")
	c.printTable(t)
	c.say("")
	c.say("a web search %s; a model bound to one region %d %% of its price", money.FormatUSD(l.WebSearch), l.Regional)
	if age > stale {
		c.say("%s", c.colour("33", "warning: the list is older than 90 days, prices may have changed; a newer version of the program has a newer one"))
	}
}

// perMillion is a rate per million tokens, exactly.
func perMillion(n money.Nano) string {
	return strings.TrimPrefix(money.FormatUSD(n*1_000_000), "$")
}
