// Package claude runs the claude program: one command line, one closed environment, one conversation over its stdin and
// stdout, judged event by event, metered all the while, ended for certain.
package claude

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"example.com/AutoAgentProject/core/runner"
	"example.com/AutoAgentProject/core/usage"
	"example.com/AutoAgentProject/core/usererr"
)

// Config is what a Claude needs for all its runs.
type Config struct {
	Program  string          // the program's file, as Find returns it
	Launcher runner.Launcher // starts it behind the walls
	Price    usage.Price     // list prices
	// Path is the PATH inside; empty: the system's folders.
	Path string
}

// Claude is the runner for the claude program. It is safe for several runs at once.
type Claude struct {
	cfg   Config
	grace grace
	most  int64 // bytes of output of a run
}

// mostOutput is what a run may print: long ones print some hundred megabytes. Commands of the agent can write there too.
const mostOutput = 1 << 30

// grace is how long each way of ending a run may take before the next, harder one.
type grace struct {
	answer time.Duration // after the interrupt, or after stdin was closed: for the program's own end
	term   time.Duration // after SIGTERM
	drain  time.Duration // after the program's end: for what its output pipe still holds
}

// New makes a runner. Nothing is looked at before Check or Run.
func New(c Config) *Claude {
	if c.Path == "" {
		c.Path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
	}
	return &Claude{cfg: c, most: mostOutput, grace: grace{answer: 3 * time.Second, term: 5 * time.Second, drain: 5 * time.Second}}
}

// Name is "claude".
func (c *Claude) Name() string { return "claude" }

func (c *Claude) complete() error {
	if c.cfg.Program == "" || c.cfg.Launcher == nil || c.cfg.Price == nil {
		return errors.New("claude: program, launcher and price are all needed")
	}
	return nil
}

// Check starts the program behind the walls and asks for its version.
func (c *Claude) Check(ctx context.Context) (version string, err error) {
	if err := c.complete(); err != nil {
		return "", err
	}
	dir, err := os.MkdirTemp("", "claude-check-")
	if err != nil {
		return "", fmt.Errorf("check %s: %w", c.cfg.Program, err)
	}
	defer os.RemoveAll(dir)
	cmd := runner.Command{Argv: []string{c.cfg.Program, "--version"}, Dir: filepath.Join(dir, "work"),
		ReadOnly: []string{c.cfg.Program}, Home: filepath.Join(dir, "home"), Tmp: filepath.Join(dir, "tmp"), Env: c.environment(runner.Job{})}
	cmd.Writable = []string{cmd.Dir}
	for _, d := range []string{cmd.Dir, cmd.Home, cmd.Tmp} {
		if err := os.Mkdir(d, 0o700); err != nil {
			return "", fmt.Errorf("check %s: %w", c.cfg.Program, err)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	out, exit, err := c.output(ctx, cmd)
	version, _, isClaude := strings.Cut(strings.TrimSpace(out), " (Claude Code)")
	switch {
	case err != nil:
		return "", usererr.Wrap(err, usererr.Environment, hint(""), "%s cannot be started", c.cfg.Program)
	case exit != 0:
		return "", usererr.New(usererr.Environment, hint(""), "%s --version: exit status %d", c.cfg.Program, exit)
	case !isClaude || strings.ContainsAny(version, " \n"):
		return "", usererr.New(usererr.Environment, hint(""), "%s says %q and not a version of Claude Code", c.cfg.Program, oneLine(out))
	}
	return version, nil
}

// output runs a command that says little, to its end.
func (c *Claude) output(ctx context.Context, cmd runner.Command) (out string, exit int, err error) {
	r, w, err := os.Pipe()
	if err != nil {
		return "", 0, err
	}
	defer r.Close()
	cmd.Stdout = w
	p, err := c.cfg.Launcher.Launch(ctx, cmd)
	w.Close()
	if err != nil {
		return "", 0, err
	}
	stop := context.AfterFunc(ctx, p.Kill)
	defer stop()
	said := make(chan string, 1)
	go func() {
		b, _ := io.ReadAll(io.LimitReader(r, 4096)) // what was said before a failure is enough
		said <- string(b)
	}()
	exit, err = p.Wait()
	p.Kill()
	if cerr := ctx.Err(); cerr != nil {
		return "", exit, cerr
	}
	_ = r.SetReadDeadline(time.Now().Add(c.grace.drain))
	return <-said, exit, err
}
