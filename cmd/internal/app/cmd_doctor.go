package app

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"example.com/AutoAgentProject/core/cell"
	"example.com/AutoAgentProject/core/git"
	"example.com/AutoAgentProject/core/login"
	"example.com/AutoAgentProject/core/mission"
	"example.com/AutoAgentProject/core/units"
	"example.com/AutoAgentProject/core/usererr"
)

// finding is one line of doctor.
type finding struct {
	Name   string `json:"name"`
	State  string `json:"state"` // ok, warn, fail
	Text   string `json:"text"`
	Remedy string `json:"remedy,omitempty"`
}

func (c *cli) doctorCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "doctor",
		Short:   "Check what missions need on this machine",
		Long:    "Check programs, walls, login, root and disk. Nothing paid is tried and nothing is changed.",
		Example: "  AutoAgentProject doctor --json",
		Args:    exactly(0, "no arguments"),
		RunE: func(cmd *cobra.Command, args []string) error {
			list := c.examine(cmd.Context())
			failed := 0
			for _, f := range list {
				if f.State == "fail" {
					failed++
				}
			}
			if c.json {
				if err := c.printJSON(list); err != nil {
					return err
				}
			} else {
				for _, f := range list {
					c.say("%s  %-9s %s", c.colour(map[string]string{"ok": "32", "warn": "33", "fail": "31"}[f.State], fmt.Sprintf("%-4s", f.State)), f.Name, f.Text)
					if f.Remedy != "" && f.State != "ok" {
						c.say("      %-9s %s", "", "remedy: "+f.Remedy)
					}
				}
			}
			if failed > 0 {
				return quiet(usererr.Environment)
			}
			return nil
		},
	}
}

func configSentence(path string) string {
	if _, err := os.Stat(path); err != nil {
		return "none, defaults hold"
	}
	return path
}

// examine makes all findings; none stops the others.
func (c *cli) examine(ctx context.Context) []finding {
	var list []finding
	add := func(name, ok string, err error) {
		f := finding{Name: name, State: "ok", Text: ok}
		if err != nil {
			f.State, f.Text = "fail", clean(err.Error())
			var u *usererr.Error
			if errors.As(err, &u) {
				f.Remedy = u.Hint
			}
		}
		list = append(list, f)
	}
	warn := func(name, text, remedy string) {
		list = append(list, finding{name, "warn", text, remedy})
	}
	v, err := git.Check(ctx)
	add("git", v, err)
	rep, err := cell.Check(ctx)
	add("walls", wallsSentence(rep), err)
	if err == nil {
		add("bounds", strings.Join(rep.Bounds, ", "), nil)
	}
	if err == nil && rep.Walls.Landlock == 0 {
		warn("landlock", "this kernel has no Landlock: mounts and the system call filter hold alone", "a kernel of 5.19 or newer")
	}
	cfg, err := c.config()
	add("config", configSentence(c.configPath()), err)
	program, err := c.program(cfg)
	if err == nil {
		v, err = newRunner(program, cellPath(c.env.Getenv("PATH")), cell.Launcher{}).Check(ctx)
		v += " at " + program
	}
	add("claude", v, err)
	for _, r := range []mission.Role{mission.Manager, mission.Specialist, mission.Reporter, mission.Quota} {
		if _, err := roleProgram(r); err != nil {
			add("programs", "", err)
		}
	}
	path, err := c.credentials()
	if err == nil {
		var f login.File
		if f, err = login.Read(path); err == nil {
			v = payer(f, false)
		}
	}
	add("login", v, err)
	root, err := c.store()
	if err == nil {
		err = writable(string(root))
	}
	add("root", string(root), err)
	if err == nil {
		var fs unix.Statfs_t
		if unix.Statfs(existing(string(root)), &fs) == nil {
			free := int64(fs.Bavail) * fs.Bsize
			if free < 2<<30 {
				warn("disk", fmt.Sprintf("%d MB are free", free>>20), "free some space: clones, builds and transcripts need it")
			} else {
				add("disk", fmt.Sprintf("%d GB are free", free>>30), nil)
			}
		}
	}
	if y := time.Now().Year(); y < 2026 {
		warn("clock", fmt.Sprintf("the clock says it is %d", y), "set the clock: limits and prices go by it")
	} else {
		add("clock", time.Now().UTC().Format(time.RFC3339), nil)
	}
	if os.Geteuid() != 0 { // without it missions are ticked in the foreground
		e, err := c.newSystemd(root, units.User, discard())
		if err == nil {
			if err = e.Answers(ctx, units.User); err == nil {
				err = e.Lingers()
			}
		}
		if u, ok := errors.AsType[*usererr.Error](err); ok {
			warn("systemd", clean(u.Sentence), u.Hint)
		} else {
			add("systemd", "your user manager can tick missions (--engine systemd)", err)
		}
	}
	if os.Geteuid() == 0 {
		warn("user", "this is root", "start missions with --run-as USER")
	}
	return list
}
