package tick

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"example.com/AutoAgentProject/core/cell"
	"example.com/AutoAgentProject/core/files"
	"example.com/AutoAgentProject/core/git"
	"example.com/AutoAgentProject/core/mission"
	"example.com/AutoAgentProject/core/proc"
	"example.com/AutoAgentProject/core/queue"
	"example.com/AutoAgentProject/core/runner"
)

// maxOutput is how much of a command's output is kept, in bytes: head and tail.
const maxOutput = 16 << 10

// environment is the whole environment of a command that is no agent program. No secret is in it.
func (t *Tick) environment(more ...string) []string {
	return append([]string{
		"PATH=" + t.Mission.Path, "HOME=" + cell.InsideHome, "TMPDIR=/tmp", "LANG=C.UTF-8", "CI=true", "NO_COLOR=1", "TERM=dumb",
	}, more...)
}

// Check runs a verify command in a cell with dir as the only lasting place it can write. ok is by its exit status.
func (t *Tick) Check(ctx context.Context, dir, command string) (ok bool, output string, err error) {
	scratch, err := t.scratch("verify")
	if err != nil {
		return false, "", err
	}
	defer Sweep(scratch)
	ctx, done := context.WithTimeout(ctx, t.Limits.Verify)
	defer done()
	if err := t.seed(filepath.Join(scratch, "home"), dir); err != nil {
		return false, "", err
	}
	closed, err := t.closed("")
	if err != nil {
		return false, "", err
	}
	out, err := cell.Run(ctx, cell.Spec{
		Argv: []string{"/bin/sh", "-c", command}, Env: t.environment(t.caches()...), Dir: dir, Writable: []string{dir}, ReadOnly: t.readable(), NoNetwork: t.walledOff(), Closed: closed,
		Home: filepath.Join(scratch, "home"), Tmp: filepath.Join(scratch, "tmp"), Limits: t.Limits.Cell,
		OnStart: noteCell(t.Store.Agent(t.Agent.Name)),
	}, maxOutput)
	if ctx.Err() == context.DeadlineExceeded {
		return false, fmt.Sprintf("%s\n(ended after %s)", out.Text, t.Limits.Verify), nil
	}
	if ctx.Err() != nil {
		return false, "", context.Cause(ctx)
	}
	if err != nil {
		return false, "", err
	}
	if out.Status.Exit != 0 {
		return false, fmt.Sprintf("%s\n(exit status %d)", strings.TrimSpace(string(out.Text)), out.Status.Exit), nil
	}
	return true, string(out.Text), nil
}

// scratch makes a folder with home and tmp for one command.
func (t *Tick) scratch(what string) (string, error) {
	if err := os.MkdirAll(t.Store.Cells(t.Agent.Name), 0o700); err != nil {
		return "", err
	}
	dir, err := os.MkdirTemp(t.Store.Cells(t.Agent.Name), what+"-")
	if err != nil {
		return "", err
	}
	for _, d := range []string{"home", "tmp"} {
		if err := os.Mkdir(filepath.Join(dir, d), 0o700); err != nil {
			return "", err
		}
	}
	return dir, nil
}

// Clone is this agent's clone; git inside it runs in cells only, because its configuration is the agent's.
func (t *Tick) Clone() (git.Clone, error) {
	dir := t.Store.Clone(t.Agent.Name)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return git.Clone{}, err
	}
	return git.Clone{Dir: dir, Who: t.Who(), Exec: func(ctx context.Context, c git.Command) (git.Output, error) {
		outer := ctx
		ctx, done := context.WithTimeout(ctx, t.Limits.Git)
		defer done()
		spec := cell.Spec{Argv: c.Argv, Env: t.environment(c.Env...), Dir: c.Dir, Writable: []string{dir}, ReadOnly: c.ReadOnly, NoNetwork: true, Limits: t.Limits.Cell,
			OnStart: noteCell(t.Store.Agent(t.Agent.Name))}
		if len(c.Stdin) > 0 {
			spec.Stdin = strings.NewReader(string(c.Stdin))
		}
		if c.Stdout != nil {
			spec.Stdout = c.Stdout
		}
		out, err := cell.Run(ctx, spec, maxOutput)
		switch {
		case outer.Err() != nil:
			err = errors.Join(fmt.Errorf("git in the clone of %s: %w", t.Agent.Name, context.Cause(outer)), err)
		case ctx.Err() != nil: // what lies there is to blame, not the machine
			err = fmt.Errorf("git in the clone of %s took longer than %s", t.Agent.Name, t.Limits.Git)
		}
		return git.Output{Exit: out.Status.Exit, Text: string(out.Text)}, err
	}}, nil
}

// Who is this agent as author of commits.
func (t *Tick) Who() git.Who {
	title := ""
	if p, ok := t.Professions.Get(t.Agent.Profession); ok {
		title = p.Display
	}
	return git.Who{Name: t.Agent.Display(title), Email: t.Agent.Name + "@autoagent.example"}
}

// Checkout puts the files of a commit of our repository into a fresh folder that a verify command may write.
func (t *Tick) Checkout(ctx context.Context, commit string) (dir string, remove func(), err error) {
	scratch, err := t.scratch("tree")
	if err != nil {
		return "", nil, err
	}
	dir = filepath.Join(scratch, "tree")
	if err := os.Mkdir(dir, 0o700); err != nil {
		return "", nil, err
	}
	if err := t.Repo().Checkout(ctx, commit, dir); err != nil {
		Sweep(scratch)
		return "", nil, err
	}
	return dir, func() { Sweep(scratch) }, nil
}

// closed are the ports of this machine's services, which cells do not reach unless the mission says so. but is the address of
// the model that a run is led to.
func (t *Tick) closed(but string) ([]uint16, error) {
	if t.Mission.Network != "" {
		return nil, nil
	}
	open := []uint16{22, 53, 80, 443} // what the internet is reached by
	if port, here := mission.PortHere(but); here {
		open = append(open, port)
	}
	ports, err := cell.Listening()
	return slices.DeleteFunc(ports, func(p uint16) bool { return slices.Contains(open, p) }), err
}

func (t *Tick) walledOff() bool { return t.Mission.Network == mission.NetworkNone }

// forward is the way of a run to its model where the cells have no network: the same address leads to the same place.
func (t *Tick) forward() (*cell.Forward, error) {
	if !t.walledOff() {
		return nil, nil
	}
	address, port, err := mission.LoopbackPort(t.model)
	if err != nil {
		return nil, fmt.Errorf("a run without a network: %w", err)
	}
	return cell.ForwardTo(port, address), nil
}

// Launch starts the agent program in a cell and notes in the run's folder which one, so that a later tick can prove
// that it is gone. It implements runner.Launcher.
func (t *Tick) Launch(ctx context.Context, c runner.Command) (runner.Process, error) {
	forward, err := t.forward()
	if err != nil {
		return nil, err
	}
	closed, err := t.closed(t.model)
	if err != nil {
		return nil, err
	}
	l := cell.Launcher{Binds: t.gateBinds(), Limits: t.Limits.Cell, NoNetwork: forward != nil, Forward: forward, Closed: closed, OnStart: func(id cell.Identity) error {
		h := Hold{}
		if err := t.Store.Load(t.holdName(), &h); err != nil {
			return err
		}
		if err := t.Store.Queue().Bind(t.Agent.Name, h.Key, queue.Holder{Owner: t.Owner, Run: h.Run}); err != nil {
			t.Log.Warn("the claim could not be bound to its run", "run", h.Run, "err", err)
		}
		return noteCell(t.Store.Run(t.Agent.Name, h.Run))(id)
	}}
	if err := t.seed(c.Home, c.Dir); err != nil {
		return nil, err
	}
	c.Env = append(slices.Clip(c.Env), t.caches()...)
	return l.Launch(ctx, c)
}

// noteCell notes a cell in cell.json of a folder: a run's own, or the agent's for commands, of which one runs at a time.
func noteCell(dir string) func(cell.Identity) error {
	return func(id cell.Identity) error {
		b, err := json.Marshal(id)
		if err != nil {
			return err
		}
		return files.Replace(filepath.Join(dir, "cell.json"), b, 0o600)
	}
}

// endCell ends whatever still lives of a run's cell, and returns when it is proven gone.
func (t *Tick) endCell(run string) error { return EndCell(t.Store.Run(t.Agent.Name, run)) }

// EndCell ends what lives of the cell that is noted in a folder. An error means that it is not proven gone.
func EndCell(dir string) error { return EndCellOf(dir, anybody) }

const anybody = -1

// EndCellOf is EndCell for who may end more than the mission's owner, who can write any process into the note: one that
// is not that user's own, by all its ids, is no cell of the mission and is left alone.
func EndCellOf(dir string, uid int) error {
	b, err := files.Read(filepath.Join(dir, "cell.json"), 1<<16)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	var id cell.Identity
	if err := json.Unmarshal(b, &id); err != nil {
		return fmt.Errorf("%s: %w", dir, err)
	}
	deadline := time.Now().Add(5 * time.Second)
	for {
		alive, err := id.Alive()
		if err != nil || !alive {
			return err
		}
		if uid != anybody {
			if own, err := proc.BelongsTo(id.PID, uid); err != nil || !own {
				return err
			}
		}
		if err := id.Kill(); err != nil {
			return err
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("the cell of %s does not die", dir)
		}
		time.Sleep(10 * time.Millisecond)
	}
}
