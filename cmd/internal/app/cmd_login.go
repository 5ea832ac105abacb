package app

import (
	"io"
	"os"
	"slices"
	"strings"
	"unicode"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"example.com/AutoAgentProject/core/login"
	"example.com/AutoAgentProject/core/usererr"
)

func (c *cli) loginCommand() *cobra.Command {
	plan, kind := "", ""
	cmd := &cobra.Command{
		Use:   "login",
		Short: "Store the login that missions are paid with",
		Long: "Store the login that missions are paid with, read from standard input: a token of `claude setup-token` (a\n" +
			"subscription) or an API key. It goes into a file that only you can read; nothing is tried with it.",
		Example: "  claude setup-token   # shows a token; then:\n  AutoAgentProject login --plan max5",
		Args:    exactly(0, "no arguments: the token is read from standard input"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if plan != "" && !slices.Contains(plans(), plan) {
				return usererr.New(usererr.Usage, "write --plan "+strings.Join(plans(), ", "), "there is no plan %q", plan)
			}
			if kind != "" && kind != login.APIKey && kind != login.PlanToken {
				return usererr.New(usererr.Usage, "write --kind plan-token or api-key", "there is no kind %q", kind)
			}
			secret, err := c.readSecret()
			if err != nil {
				return err
			}
			if kind == "" {
				kind = login.Kind(secret)
			}
			if kind == "" {
				return usererr.New(usererr.Usage, "add --kind plan-token or --kind api-key if it is one", "this looks neither like a token of claude setup-token nor like an API key")
			}
			if kind == login.APIKey && plan != "" {
				return usererr.New(usererr.Usage, "leave --plan out", "an API key has no plan")
			}
			path, err := c.credentials()
			if err != nil {
				return err
			}
			if err := login.Write(path, login.File{Kind: kind, Plan: plan, Secret: secret}); err != nil {
				return usererr.Wrap(err, usererr.Environment, "", "the login cannot be written")
			}
			if c.json {
				return c.printJSON(map[string]string{"kind": kind, "plan": plan, "file": path})
			}
			what := "an API key: missions are paid by use; give budgets like --budget 5usd"
			if kind == login.PlanToken {
				what = "a token of a subscription"
				if plan == "" {
					what += "; without --plan a budget in percent takes the smallest plan"
				}
			}
			c.say("Stored %s", what)
			c.say("  %-8s %s", "file", path)
			return nil
		},
	}
	cmd.Flags().StringVar(&plan, "plan", "", "the subscription's `plan`: pro, max5, max20")
	cmd.Flags().StringVar(&kind, "kind", "", "`kind` of the login, plan-token or api-key, where it cannot be told by its beginning")
	return cmd
}

// readSecret reads one line; at a terminal it is not shown.
func (c *cli) readSecret() (string, error) {
	var b []byte
	var err error
	if f, ok := c.env.Stdin.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		c.progress("Paste the token or key and press Enter (it is not shown):")
		b, err = term.ReadPassword(int(f.Fd()))
	} else {
		b, err = io.ReadAll(io.LimitReader(c.env.Stdin, 1<<14))
	}
	if err != nil {
		return "", usererr.Wrap(err, usererr.Usage, "", "standard input cannot be read")
	}
	s := strings.TrimSpace(string(b))
	switch {
	case s == "":
		return "", usererr.New(usererr.Usage, "AutoAgentProject login < file, or paste it at the terminal", "there is nothing on standard input")
	case len(s) > 1000 || strings.IndexFunc(s, func(r rune) bool { return r > unicode.MaxASCII || !unicode.IsPrint(r) || r == ' ' }) >= 0:
		return "", usererr.New(usererr.Usage, "give the token or key alone, on one line", "this is no token and no key")
	}
	return s, nil
}
