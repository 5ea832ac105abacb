package app

import (
	"errors"
	"os"
	"os/user"
	"strconv"
	"syscall"

	"example.com/AutoAgentProject/core/usererr"
)

// runAs drops root's rights before anything is done: a mission never runs as root unless that is said.
func (c *cli) runAs(o startOptions) error {
	const hint = "add --run-as USER, or --run-as root to let it run as root (inside the walls it is a plain user all the same)"
	if os.Geteuid() != 0 {
		if o.runAs != "" {
			return usererr.New(usererr.Usage, "leave it out", "--run-as is for root")
		}
		return nil
	}
	switch o.runAs {
	case "root":
		return nil
	case "":
		return usererr.New(usererr.Environment, hint, "a mission does not run as root just like that")
	}
	u, err := user.Lookup(o.runAs)
	if err != nil {
		return usererr.New(usererr.Usage, hint, "there is no user %q", o.runAs)
	}
	uid, err1 := strconv.Atoi(u.Uid)
	gid, err2 := strconv.Atoi(u.Gid)
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	groups, err := u.GroupIds()
	if err != nil {
		return err
	}
	var gids []int
	for _, g := range groups {
		if n, err := strconv.Atoi(g); err == nil {
			gids = append(gids, n)
		}
	}
	if err := errors.Join(syscall.Setgroups(gids), syscall.Setgid(gid), syscall.Setuid(uid)); err != nil {
		return usererr.Wrap(err, usererr.Environment, hint, "the rights of %s cannot be taken", o.runAs)
	}
	c.movedHome = true
	old := c.env.Getenv
	c.env.Getenv = func(k string) string {
		switch k {
		case "HOME":
			return u.HomeDir
		case "USER", "LOGNAME":
			return u.Username
		case "XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME", "XDG_RUNTIME_DIR":
			return "" // root's own
		}
		return old(k)
	}
	return nil
}
