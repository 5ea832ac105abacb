package app

import (
	"errors"
	"os"
	"os/user"
	"syscall"

	"example.com/AutoAgentProject/core/usererr"
)

// runAs drops root's rights before anything is done: a mission never runs as root unless that is said.
func (c *cli) runAs(o startOptions) error {
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
		return usererr.New(usererr.Environment, runAsHint, "a mission does not run as root just like that")
	}
	u, err := lookup(o.runAs)
	if err != nil {
		return err
	}
	cred, err := credentialOf(u)
	if err != nil {
		return err
	}
	gids := make([]int, len(cred.Groups))
	for i, g := range cred.Groups {
		gids[i] = int(g)
	}
	if err := errors.Join(syscall.Setgroups(gids), syscall.Setgid(int(cred.Gid)), syscall.Setuid(int(cred.Uid))); err != nil {
		return usererr.Wrap(err, usererr.Environment, runAsHint, "the rights of %s cannot be taken", o.runAs)
	}
	c.movedHome = true
	c.env.Getenv = environmentOf(u, c.env.Getenv)
	return nil
}

const runAsHint = "add --run-as USER, or --run-as root to let it run as root (inside the walls it is a plain user all the same)"

func lookup(name string) (*user.User, error) {
	u, err := user.Lookup(name)
	if err != nil {
		return nil, usererr.New(usererr.Usage, runAsHint, "there is no user %q", name)
	}
	return u, nil
}

// environmentOf is an environment as that user would have it.
func environmentOf(u *user.User, old func(string) string) func(string) string {
	return func(k string) string {
		switch k {
		case "HOME":
			return u.HomeDir
		case "USER", "LOGNAME":
			return u.Username
		case "XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME", "XDG_RUNTIME_DIR":
			return "" // of whoever it was before
		}
		return old(k)
	}
}
