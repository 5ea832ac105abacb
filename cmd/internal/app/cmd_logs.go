package app

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"

	"github.com/spf13/cobra"

	"example.com/AutoAgentProject/core/journal"
	"example.com/AutoAgentProject/core/store"
	"example.com/AutoAgentProject/core/usererr"
)

func (c *cli) logsCommand() *cobra.Command {
	follow := false
	cmd := &cobra.Command{
		Use:     "logs <id> [agent]",
		Short:   "Show what happened in a mission",
		Long:    "Show a mission's events, or the log of one agent's ticks.",
		Example: "  AutoAgentProject logs my-site -f\n  AutoAgentProject logs my-site codebuilder-1",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) < 1 || len(args) > 2 {
				return usererr.New(usererr.Usage, "see AutoAgentProject logs --help", "logs takes the mission's id and perhaps an agent")
			}
			return nil
		},
		ValidArgsFunction: c.completeID,
		RunE: func(cmd *cobra.Command, args []string) error {
			_, st, m, err := c.mission(args[0])
			if err != nil {
				return err
			}
			if len(args) == 1 {
				return c.events(cmd.Context(), st, follow)
			}
			if _, ok := m.Agent(args[1]); !ok {
				return usererr.New(usererr.NotFound, "AutoAgentProject status "+m.ID+" shows the agents", "mission %s has no agent %q", m.ID, args[1])
			}
			return c.tail(cmd.Context(), st, st.AgentLog(args[1]), follow)
		},
	}
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "go on until the mission ends")
	return cmd
}

// events prints the journal of events.
func (c *cli) events(ctx context.Context, st *store.Store, follow bool) error {
	var offset int64
	for {
		over := stopped(st) // before reading, so that the last events are not missed
		events, next, _, err := st.Journal().Read(offset)
		if err != nil {
			return err
		}
		offset = next
		for _, e := range events {
			if c.json {
				if err := c.printJSONLine(e); err != nil {
					return err
				}
				continue
			}
			text := fmt.Sprintf("%s  %s", e.At.Local().Format("2006-01-02 15:04:05"), e.Text)
			if e.Level == journal.Blocker {
				c.say("%s", c.colour("31;1", text))
				continue
			}
			c.say("%s", text)
		}
		if !follow || over {
			return nil
		}
		if err := pause(ctx); err != nil {
			return err
		}
	}
}

// tail prints a log file, and with follow what is added to it, over its rotation, until the mission ends.
func (c *cli) tail(ctx context.Context, st *store.Store, path string, follow bool) error {
	var f *os.File
	defer func() {
		if f != nil {
			f.Close()
		}
	}()
	for {
		over := stopped(st)
		if f == nil {
			var err error
			if f, err = os.Open(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
		if f != nil {
			if err := c.copyLines(f); err != nil {
				return err
			}
			if rotated(f, path) {
				f.Close()
				f = nil
				continue
			}
		}
		if !follow || over {
			return nil
		}
		if err := pause(ctx); err != nil {
			return err
		}
	}
}

func (c *cli) copyLines(f *os.File) error {
	r := bufio.NewReader(f)
	for {
		line, err := r.ReadString('\n')
		if line != "" {
			fmt.Fprint(c.env.Stdout, clean(line))
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func rotated(f *os.File, path string) bool {
	a, err := f.Stat()
	if err != nil {
		return false
	}
	b, err := os.Stat(path)
	return err == nil && !os.SameFile(a, b)
}

// stopped says whether a mission's stop is finished.
func stopped(st *store.Store) bool {
	var rec struct {
		Done bool `json:"done"`
	}
	return st.Load("stopping.json", &rec) == nil && rec.Done
}

func pause(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return quiet(usererr.OK)
	case <-time.After(200 * time.Millisecond):
		return nil
	}
}
