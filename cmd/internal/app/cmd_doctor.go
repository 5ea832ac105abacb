package app

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"example.com/AutoAgentProject/core/login"
	"example.com/AutoAgentProject/core/mission"
	"example.com/AutoAgentProject/core/preflight"
	"example.com/AutoAgentProject/core/store"
	"example.com/AutoAgentProject/core/systemdengine"
	"example.com/AutoAgentProject/core/units"
	"example.com/AutoAgentProject/core/usererr"
)

func (c *cli) doctorCommand() *cobra.Command {
	bot, message := false, false
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Check what missions need on this machine",
		Long: "Check programs and their versions, walls, login, root, disk, memory, clock and systemd, and say what to do about what\n" +
			"is missing. Nothing paid is tried and nothing is changed.",
		Example: "  AutoAgentProject doctor --json",
		Args:    exactly(0, "no arguments"),
		RunE: func(cmd *cobra.Command, args []string) error {
			var list []preflight.Finding
			if bot || message {
				list = c.examineTelegram(cmd.Context(), message)
			} else {
				list = c.examine(cmd.Context())
			}
			if c.json {
				if err := c.printJSON(list); err != nil {
					return err
				}
			} else {
				for _, f := range list {
					c.say("%s  %-9s %s", c.colour(map[preflight.State]string{preflight.OK: "32", preflight.Warn: "33", preflight.Fail: "31"}[f.State], fmt.Sprintf("%-4s", f.State)), f.Name, f.Text)
					if f.Remedy != "" && f.State != preflight.OK {
						c.say("      %-9s %s", "", "remedy: "+f.Remedy)
					}
				}
			}
			if slices.ContainsFunc(list, func(f preflight.Finding) bool { return f.State == preflight.Fail }) {
				return quiet(usererr.Environment)
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&bot, "telegram", false, "check the bot, the chat and who is listened to instead")
	cmd.Flags().BoolVar(&message, "test-message", false, "the same, and send a message")
	return cmd
}

func configSentence(path string) string {
	if _, err := os.Stat(path); err != nil {
		return "none, defaults hold"
	}
	return path
}

// examine makes all findings.
func (c *cli) examine(ctx context.Context) []preflight.Finding {
	cfg, cerr := c.config()
	root, rerr := c.store()
	m := c.machineOf(string(root), cfg)
	m.Config = func() (string, error) { return configSentence(c.configPath()), cerr }
	m.Login = func() (login.File, error) {
		path, err := c.credentials()
		if err != nil {
			return login.File{}, err
		}
		return login.Read(path)
	}
	m.Payer = func(f login.File) string { return payer(f, false) }
	m.Place = func() error { return rerr }
	m.Writable = writable
	m.Manager = ownManager()
	e := &systemdengine.Engine{Root: root}
	m.Systemd, m.Lingers = e.Version, e.Lingers
	list := preflight.All(ctx, m).Findings
	if !slices.ContainsFunc(list, func(f preflight.Finding) bool { return f.Name == "walls" && f.State == preflight.Fail }) {
		list = append(list, c.tryToEscape(ctx))
	}
	if f, ok := c.exposure(ctx, root, m.Manager); ok {
		list = append(list, f)
	}
	for i, f := range list {
		list[i].Text = clean(f.Text)
	}
	return list
}

// tryToEscape lets a cell, as an agent would get it, try each way out, in a folder that is gone afterwards.
func (c *cli) tryToEscape(ctx context.Context) preflight.Finding {
	f := preflight.Finding{Name: "escape", State: preflight.Fail}
	dir, err := os.MkdirTemp("", "autoagent-probe-")
	if err == nil {
		defer os.RemoveAll(dir)
		st := store.Root(dir).Mission("probe")
		path, _ := c.credentials()
		if err = errors.Join(os.MkdirAll(st.Dir(), 0o700), os.MkdirAll(st.Work(), 0o700)); err == nil {
			err = proveWalls(ctx, st, c.secrets(path)...)
		}
	}
	if err != nil {
		f.Text = err.Error()
		if u, ok := errors.AsType[*usererr.Error](err); ok {
			f.Remedy = u.Hint
		}
		return f
	}
	f.State, f.Text = preflight.OK, "a cell tried each way out that start tries, and found none"
	return f
}

// exposure says what systemd thinks of the unit of a tick that starts cells; ok is false where there is no systemd to ask.
func (c *cli) exposure(ctx context.Context, root store.Root, manager units.Manager) (f preflight.Finding, ok bool) {
	e, err := c.newSystemd(root, manager, discard())
	if err != nil || e.Answers(ctx, manager) != nil {
		return f, false
	}
	if manager == units.System && e.Settings.User == "root" {
		e.Settings.User = "nobody" // of a root that is not there yet
	}
	roster, err := mission.ParseRoster("codebuilder:1", []string{"codebuilder"})
	if err != nil {
		return f, false
	}
	files, err := units.Render(mission.Mission{ID: "my-site", Roster: roster}, e.Settings)
	if err != nil {
		return preflight.Finding{Name: "exposure", State: preflight.Warn, Text: err.Error()}, true
	}
	for _, u := range files {
		if u.Name == "forge-autoagent-my-site-codebuilder-1.service" {
			level, err := systemdengine.Exposure(ctx, u)
			if err != nil {
				return preflight.Finding{Name: "exposure", State: preflight.Warn, Text: err.Error()}, true
			}
			return preflight.Finding{Name: "exposure", State: preflight.OK, Text: "systemd-analyze security says " + level + " of a tick's unit; what an agent does is in a cell inside of it"}, true
		}
	}
	return f, false
}
