package app

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"example.com/AutoAgentProject/core/journal"
	"example.com/AutoAgentProject/core/mission"
	"example.com/AutoAgentProject/core/store"
	"example.com/AutoAgentProject/core/systemdengine"
	"example.com/AutoAgentProject/core/units"
	"example.com/AutoAgentProject/core/usererr"
)

func (c *cli) logsCommand() *cobra.Command {
	follow, inJournal := false, false
	cmd := &cobra.Command{
		Use:   "logs <id> [agent]",
		Short: "Show what happened in a mission",
		Long: "Show a mission's events, or the log of one agent's ticks, from its file. With --journal, show what the ticks wrote to\n" +
			"the journal of systemd: the same lines of all agents in one order, with the mission's stop.",
		Example: "  AutoAgentProject logs my-site -f\n  AutoAgentProject logs my-site codebuilder-1\n  AutoAgentProject logs my-site --journal -f",
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
			agent := ""
			if len(args) == 2 {
				agent = args[1]
				if _, ok := m.Agent(agent); !ok {
					return usererr.New(usererr.NotFound, "AutoAgentProject status "+m.ID+" shows the agents", "mission %s has no agent %q", m.ID, agent)
				}
			}
			switch {
			case inJournal:
				return c.journal(cmd.Context(), st, m, agent, follow)
			case agent != "":
				return c.tail(cmd.Context(), st, st.AgentLog(agent), follow)
			}
			return c.events(cmd.Context(), st, follow)
		},
	}
	cmd.Flags().BoolVar(&inJournal, "journal", false, "let journalctl show the ticks' lines; for missions that systemd ticks")
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
		if !follow || over || !pause(ctx) {
			return nil
		}
	}
}

// journal lets journalctl show a mission's lines in the journal.
func (c *cli) journal(ctx context.Context, st *store.Store, m mission.Mission, agent string, follow bool) error {
	if m.Engine != systemdengine.Name {
		return usererr.New(usererr.Usage, "AutoAgentProject logs "+m.ID+" AGENT shows the log of an agent", "mission %s is ticked by %s, which writes nothing to the journal", m.ID, m.Engine)
	}
	manager := m.Manager
	if os.Geteuid() == 0 { // sees everybody's journal, and --user would be root's own
		manager = string(units.System)
	}
	argv := append(journalCommand(manager, m.ID), "--no-pager")
	if agent != "" {
		argv = append(argv, "AGENT="+agent)
	}
	if c.json {
		argv = append(argv, "--output=json", "--all")
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if follow && !stopped(st) {
		argv = append(argv, "--follow", "--lines=all")
		go func() {
			for !stopped(st) && pause(ctx) {
			}
			pause(ctx) // for the last lines
			cancel()
		}()
	}
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = nil, c.env.Stdout, c.env.Stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 5 * time.Second
	err := cmd.Run()
	switch {
	case errors.Is(err, exec.ErrNotFound):
		return usererr.New(usererr.Environment, "AutoAgentProject logs "+m.ID+" AGENT shows the log of an agent", "journalctl is not installed")
	case err != nil && ctx.Err() == nil: // it said itself why
		return quiet(usererr.Failed)
	}
	return nil
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
				if err := c.copyLines(f); err != nil { // what came between the last look and the rotation
					return err
				}
				f.Close()
				f = nil
				continue
			}
		}
		if !follow || over || !pause(ctx) {
			return nil
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

// pause waits a moment before the next look. It says false if the person does not want to go on.
func pause(ctx context.Context) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(200 * time.Millisecond):
		return true
	}
}
