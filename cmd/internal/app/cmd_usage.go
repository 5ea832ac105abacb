package app

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"
	_ "time/tzdata" // zones must be known where the machine has none

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"example.com/AutoAgentProject/core/files"
	"example.com/AutoAgentProject/core/money"
	"example.com/AutoAgentProject/core/usage"
	"example.com/AutoAgentProject/core/usererr"
)

func (c *cli) usageCommand() *cobra.Command {
	return group(&cobra.Command{
		Use:     "usage",
		Short:   "Print what the agent program used, from its own files",
		Long:    "Print what the agent program used, whoever started it, by the same count that bounds a mission.",
		Example: "  AutoAgentProject usage scan ~/.claude",
	}, c.usageScanCommand())
}

// group makes a command of commands.
func group(cmd *cobra.Command, subs ...*cobra.Command) *cobra.Command {
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return nil
		}
		return unknownCommand(cmd, args[0])
	}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	cmd.AddCommand(subs...)
	return cmd
}

// scanOptions are the flags of usage scan.
type scanOptions struct{ under, zone, state string }

func (c *cli) usageScanCommand() *cobra.Command {
	o := scanOptions{}
	cmd := &cobra.Command{
		Use:   "scan <dir>",
		Short: "Print the tokens and the list price of all transcripts in a folder",
		Long: "Count the transcripts (*.jsonl, at any depth) below <dir>/projects, or below <dir> if it has no such folder.\n" +
			"Each response counts once, however often it was written down, at the list price of its day. With --state a\n" +
			"second call reads only what is new; what was counted stays counted when its file is removed.",
		Example: "  AutoAgentProject usage scan ~/.claude --under ~/my-site --tz Europe/Berlin\n" +
			"  AutoAgentProject usage scan ~/.claude --state ~/.cache/autoagent/usage --json",
		Args: exactly(1, "one folder"),
		RunE: func(cmd *cobra.Command, args []string) error { return c.usageScan(cmd.Context(), args[0], o) },
	}
	cmd.Flags().StringVar(&o.under, "under", "", "count only what was done in this `folder` or below it")
	cmd.Flags().StringVar(&o.zone, "tz", "UTC", "time `zone` of the days, for example Europe/Berlin, or Local")
	cmd.Flags().StringVar(&o.state, "state", "", "`file` to go on from and to keep the count in")
	return cmd
}

func (c *cli) usageScan(ctx context.Context, dir string, o scanOptions) error {
	zone, err := time.LoadLocation(o.zone)
	if err != nil {
		return usererr.New(usererr.Usage, "write it like Europe/Berlin, America/New_York, UTC or Local", "there is no time zone %q", o.zone)
	}
	if o.under != "" {
		if o.under, err = filepath.Abs(o.under); err != nil {
			return err
		}
	}
	scan := usage.NewScan(o.under)
	if o.state != "" {
		unlock, err := files.Lock(ctx, o.state+".lock")
		if err != nil {
			return usererr.Wrap(err, usererr.Environment, "give a --state in a folder that is there and writable", "the state of the scan")
		}
		defer unlock()
		if scan, err = usage.LoadScan(o.state, o.under); err != nil {
			return usererr.Wrap(err, usererr.Unreadable, "it was kept as it is; give another --state, or remove it to count all that is there anew", "the state of the scan")
		}
	}
	err = scan.Update(ctx, dir)
	switch {
	case ctx.Err() != nil:
		return err
	case errors.Is(err, fs.ErrNotExist):
		return usererr.New(usererr.NotFound, "give the agent program's configuration folder, most often ~/.claude", "there is no folder %s", dir)
	case errors.Is(err, unix.ENOTDIR):
		return usererr.New(usererr.Usage, "give the folder that holds it", "%s is no folder", dir)
	case err != nil:
		return usererr.Wrap(err, usererr.Unreadable, "", "the transcripts cannot be listed")
	}
	if o.state != "" {
		if err := scan.Save(o.state); err != nil {
			return usererr.Wrap(err, usererr.Environment, "", "the state of the scan cannot be written")
		}
	}
	sum := scan.Summary(prices().Cost, zone)
	if c.json {
		err = c.printJSON(sum)
	} else {
		c.printUsage(sum, o)
	}
	if missing := scan.Unreadable(); err == nil && len(missing) > 0 {
		return usererr.New(usererr.Unreadable, "make them readable; what they hold is not in the count", "%d files or folders cannot be read, %s is the first", len(missing), missing[0])
	}
	return err
}

func (c *cli) printUsage(s usage.Summary, o scanOptions) {
	t := s.Totals
	c.say("%s in %d responses, %s", money.FormatUSD(s.Nano), t.Messages, plural(s.Diagnostics.Files, "file"))
	c.say("  input        %s", money.FormatTokens(t.Input))
	c.say("  output       %s", money.FormatTokens(t.Output))
	c.say("  cache write  %s for 5 minutes, %s for 1 hour", money.FormatTokens(t.CacheWrite5m), money.FormatTokens(t.CacheWrite1h))
	c.say("  cache read   %s", money.FormatTokens(t.CacheRead))
	c.say("  all          %s, without cache reads %s", money.FormatTokens(t.All), money.FormatTokens(t.NoCacheRead))
	for _, part := range []struct {
		head string
		m    map[string]usage.Cost
	}{{"MODEL", s.ByModel}, {"DAY (" + o.zone + ")", s.ByDay}} {
		if len(part.m) == 0 {
			continue
		}
		rows := table{{part.head, "TOKENS", "LIST PRICE"}}
		for _, name := range slices.Sorted(maps.Keys(part.m)) {
			rows = append(rows, []string{name, money.FormatTokens(part.m[name].Tokens), money.FormatUSD(part.m[name].Nano)})
		}
		c.say("")
		c.printTable(rows)
	}
	d := s.Diagnostics
	note := func(n int64, noun, text string) {
		if n > 0 {
			c.say("  note: %s %s", plural(int(n), noun), text)
		}
	}
	note(d.Malformed, "line", "had something broken in them, which was left out")
	note(d.Tails, "line", "not finished yet, which the next scan reads")
	note(d.Undated, "response", "without a usable time, at the dearest price of any day")
	note(int64(d.Vanished), "file", "counted before and gone since")
	if len(s.Unpriced) > 0 {
		names := slices.Sorted(maps.Keys(s.Unpriced))
		c.say("  %s", c.colour("33", fmt.Sprintf("warning: no price is known for %s, charged at the dearest one", strings.Join(names, ", "))))
	}
}

// plural is a number with its noun.
func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
