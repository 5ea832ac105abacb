package app

import (
	"context"
	"fmt"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"example.com/AutoAgentProject/core/login"
	"example.com/AutoAgentProject/core/preflight"
	"example.com/AutoAgentProject/core/systemdengine"
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
	for i, f := range list {
		list[i].Text = clean(f.Text)
	}
	return list
}
