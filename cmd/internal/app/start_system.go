package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"

	"example.com/AutoAgentProject/core/mission"
	"example.com/AutoAgentProject/core/store"
	"example.com/AutoAgentProject/core/supervisor"
	"example.com/AutoAgentProject/core/systemdengine"
	"example.com/AutoAgentProject/core/units"
	"example.com/AutoAgentProject/core/usererr"
)

// A start in the system's manager is done by two processes. The owner of the root, a child without root's rights, checks
// everything, makes the mission and says what was fixed, exactly as it would for itself. When the mission stands, it
// asks root, over a socket that only the two have, to put the units in place, which is all that root does.

// systemRoot is the root of missions of the system's manager unless another one is named.
const systemRoot = "/var/lib/autoagent"

// handRequest is what the owner asks for, handAnswer what root says.
type (
	handRequest struct {
		ID     string `json:"id"`
		Poller string `json:"poller,omitempty"` // names the channel that carries messages
	}
	handAnswer struct {
		Error string       `json:"error,omitempty"`
		Hint  string       `json:"hint,omitempty"`
		Exit  usererr.Code `json:"exit,omitempty"`
	}
)

// startForOwner starts a mission as root for --run-as, if the system's manager is to tick it. mine is false where it is
// not; then o says which engine is left.
func (c *cli) startForOwner(ctx context.Context, o *startOptions) (mine bool, err error) {
	if os.Geteuid() != 0 || o.runAs == "" || o.engine != "" && o.engine != systemdengine.Name {
		return false, nil
	}
	asked := o.engine == systemdengine.Name || o.system || o.user
	if o.runAs == "root" || o.user {
		if asked {
			return false, usererr.New(usererr.Usage, "name an ordinary user in --run-as without --user, or use --engine embedded", "root's start uses the system's manager, and that ticks no mission as root")
		}
		return false, nil
	}
	u, err := lookup(o.runAs)
	if err != nil {
		return true, err
	}
	if _, err := credentialOf(u); err != nil {
		return true, err
	}
	if err := new(systemdengine.Engine).Answers(ctx, units.System); err != nil {
		if asked {
			return true, err
		}
		o.engine, o.fallback = supervisor.Name, err.Error()
		return false, nil
	}
	if err := onlyRootsPrograms(); err != nil {
		if asked {
			return true, err
		}
		o.engine, o.fallback = supervisor.Name, err.Error()
		return false, nil
	}
	return true, c.startWithChild(ctx, u, o.dryRun)
}

// onlyRootsPrograms refuses programs that somebody else than root could change: root runs one of them, and the others handle
// the logins and missions of other people.
func onlyRootsPrograms() error {
	self, err := os.Executable()
	if err == nil {
		self, err = filepath.EvalSymlinks(self)
	}
	if err != nil {
		return err
	}
	all, err := filepath.Glob(filepath.Join(filepath.Dir(self), "autoagent-*"))
	for _, path := range append(all, self) {
		if err == nil {
			err = onlyRoots(path)
		}
	}
	if err != nil {
		return usererr.Wrap(err, usererr.Environment, "make install puts the programs below /usr/local", "the system's manager runs what only root can change")
	}
	return nil
}

// onlyRoots says whether nobody but root can change what lies at an absolute path without links.
func onlyRoots(path string) error {
	for up := path; ; up = filepath.Dir(up) {
		st, err := os.Stat(up)
		if err != nil {
			return err
		}
		sticky := st.Mode()&os.ModeSticky != 0 && up != path
		if fileOwner(st) != 0 || st.Mode().Perm()&0o022 != 0 && !sticky {
			return fmt.Errorf("others than root can change %s", up)
		}
		if up == "/" {
			return nil
		}
	}
}

// startWithChild lets the owner make the mission, and hands it to the system's manager.
func (c *cli) startWithChild(ctx context.Context, u *user.User, dryRun bool) (err error) {
	made, err := c.prepareSystemRoot(u, dryRun)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil && made != "" {
			_ = os.Remove(made) // empty, if nothing was started
		}
	}()
	pair, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	ours, theirs := os.NewFile(uintptr(pair[0]), "owner"), os.NewFile(uintptr(pair[1]), "root")
	defer ours.Close()
	defer theirs.Close()
	// Ctrl-C reaches both at a terminal. If only this process is told to end, the other one notices when it asks.
	cmd, err := asUser(context.WithoutCancel(ctx), u, append([]string{"--hand-over"}, c.env.Args...)...)
	if err != nil {
		return err
	}
	for _, k := range append([]string{"LANG", "TZ", "PATH", "AUTOAGENT_ROOT", "AUTOAGENT_CONFIG", "AUTOAGENT_CLAUDE", "AUTOAGENT_UPSTREAM", "AUTOAGENT_CREDENTIALS"}, testOnlyVariables...) {
		if v := c.env.Getenv(k); v != "" {
			cmd.Env = append(cmd.Env, k+"="+v)
		}
	}
	if made := c.rootFlag; made != "" {
		cmd.Env = append(cmd.Env, "AUTOAGENT_ROOT="+made)
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr, cmd.ExtraFiles = c.env.Stdin, c.env.Stdout, c.env.Stderr, []*os.File{theirs}
	if err := cmd.Start(); err != nil {
		return usererr.Wrap(err, usererr.Environment, "make the programs readable for "+u.Username, "%s cannot run %s", u.Username, Program)
	}
	theirs.Close()
	herr := c.answerOwner(ctx, ours, u)
	err = cmd.Wait()
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit) && exit.ExitCode() >= 0:
		return quiet(usererr.Code(exit.ExitCode()))
	case err != nil:
		return errors.Join(err, herr)
	}
	return nil
}

// prepareSystemRoot makes the root for its owner where only root can, and returns what it made.
func (c *cli) prepareSystemRoot(u *user.User, dryRun bool) (made string, err error) {
	old := c.env.Getenv
	defer func() { c.env.Getenv = old }()
	c.env.Getenv = environmentOf(u, old)
	cfg, err := c.config()
	if err != nil {
		return "", err
	}
	if c.rootFlag == "" && c.env.Getenv("AUTOAGENT_ROOT") == "" {
		if cfg.Root != "" {
			return "", nil // the owner names it, so the owner makes it: root makes no folder that somebody else chose
		}
		c.rootFlag = systemRoot
	}
	root, err := c.store()
	if err != nil {
		return "", err
	}
	dir := string(root)
	st, err := os.Stat(dir)
	switch {
	case err == nil && strconv.Itoa(fileOwner(st)) != u.Uid:
		return "", usererr.New(usererr.Conflict, "name another folder in --root", "%s belongs to somebody else than %s", dir, u.Username)
	case err == nil || dryRun || onlyRoots(filepath.Dir(dir)) != nil: // elsewhere the owner makes it, or is refused
		return "", nil
	}
	cred, err := credentialOf(u)
	if err == nil {
		err = os.Mkdir(dir, 0o700)
	}
	if err == nil {
		err = os.Chown(dir, int(cred.Uid), int(cred.Gid))
	}
	if err != nil {
		return "", usererr.Wrap(err, usererr.Environment, "name another folder in --root", "%s cannot be made", dir)
	}
	return dir, nil
}

// answerOwner puts the units of the one mission in place that the owner made, and tells how that went. An owner that ends
// without asking has said why itself.
func (c *cli) answerOwner(ctx context.Context, owner *os.File, u *user.User) error {
	var req handRequest
	late := context.AfterFunc(ctx, func() { owner.Close() })
	err := json.NewDecoder(io.LimitReader(owner, 1<<10)).Decode(&req)
	if !late() || err != nil {
		return nil
	}
	ctx = context.WithoutCancel(ctx) // from here on it is put in place whole, or taken back for a reason
	err = func() error {
		if err := mission.CheckID(req.ID); err != nil {
			return err
		}
		old := c.env.Getenv
		defer func() { c.env.Getenv = old }()
		c.env.Getenv = environmentOf(u, old)
		root, err := c.store()
		if err != nil {
			return err
		}
		e, err := c.newSystemd(root, units.System, discard())
		if err != nil {
			return err
		}
		if e.Settings.User != u.Username {
			return usererr.New(usererr.Conflict, "name another folder in --root", "%s belongs to %s, not to %s", root, e.Settings.User, u.Username)
		}
		if _, err = e.Start(ctx, req.ID); err == nil {
			c.installHost(ctx, e)
			if req.Poller != "" {
				if err := e.EnsurePoller(ctx, req.Poller); err != nil {
					c.progress("warning: messages stay in notify/: %v", err)
				}
			}
		}
		return err
	}()
	answer := handAnswer{}
	if err != nil {
		answer.Error, answer.Exit = err.Error(), usererr.CodeOf(err)
		if said, ok := errors.AsType[*usererr.Error](err); ok {
			answer.Hint = said.Hint
		}
	}
	return errors.Join(err, json.NewEncoder(owner).Encode(answer))
}

var errRootGone = errors.New("whoever puts the units in place is gone")

// askRoot is the owner's side: root puts the units of the mission in place.
func askRoot(id, poller string) error {
	const handedOver = 3 // the first of ExtraFiles
	syscall.CloseOnExec(handedOver)
	root := os.NewFile(handedOver, "root")
	defer root.Close()
	var answer handAnswer
	err := json.NewEncoder(root).Encode(handRequest{ID: id, Poller: poller})
	if err == nil {
		err = json.NewDecoder(root).Decode(&answer)
	}
	if err != nil {
		return usererr.Wrap(errors.Join(errRootGone, err), usererr.Failed, "start it again", "the mission was not started")
	}
	if answer.Error != "" {
		return usererr.New(answer.Exit, answer.Hint, "%s", answer.Error)
	}
	return nil
}

// resolveEngine says who ticks a mission that an ordinary user starts. It is the last of the checks.
func (c *cli) resolveEngine(ctx context.Context, root store.Root, m *mission.Mission, o startOptions) (sentence, warning string, err error) {
	embedded := "embedded: this process ticks until the mission ends; " + new(supervisor.Supervisor).Bound(m.Bounds)
	if o.fallback != "" {
		warning = "this process ticks the mission, and it pauses when that ends: " + o.fallback
	}
	if c.handOver {
		m.Engine, m.Manager = systemdengine.Name, string(units.System)
		return "systemd: the system's manager ticks it as this user, from boot on", "", nil
	}
	asked := o.engine == systemdengine.Name || o.user || o.system
	m.Engine = supervisor.Name
	switch {
	case o.engine == supervisor.Name, os.Geteuid() == 0 && !asked:
		return embedded, warning, nil
	case o.system:
		return "", "", usererr.New(usererr.Environment, "sudo AutoAgentProject start … --run-as "+c.env.Getenv("USER")+"; your user manager needs no root: leave --system out", "only root can put units into the system's manager")
	}
	e := &systemdengine.Engine{Root: root}
	if err := e.Answers(ctx, units.User); err != nil {
		if asked {
			return "", "", err
		}
		return embedded, "this process ticks the mission, and it pauses when that ends: " + err.Error(), nil
	}
	m.Engine, m.Manager = systemdengine.Name, string(units.User)
	switch err := e.Lingers(); {
	case err == nil:
		return "systemd: your user manager ticks it, also when you are logged out and after a reboot", "", nil
	case !o.noLinger:
		return "", "", err
	default:
		return "systemd: your user manager ticks it while you are logged in", err.Error(), nil
	}
}
