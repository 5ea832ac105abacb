package cell

import (
	"context"
	"io"
	"os"
	"slices"

	"example.com/AutoAgentProject/core/runner"
)

// Launcher starts the commands of a runner in cells.
type Launcher struct {
	Limits    Limits
	Binds     []Bind               // seen by every command
	NoNetwork bool                 //
	Forward   *Forward             // with NoNetwork
	Closed    []uint16             // see Spec.Closed
	OnStart   func(Identity) error // see Spec.OnStart
}

var _ runner.Launcher = Launcher{}

// Launch starts c in a cell of its own.
func (l Launcher) Launch(ctx context.Context, c runner.Command) (runner.Process, error) {
	binds := slices.Clone(l.Binds)
	for _, f := range c.Fixed {
		binds = append(binds, Bind{Host: f.Lies, Inside: f.Seen})
	}
	s := Spec{
		Argv: c.Argv, Env: c.Env, Dir: c.Dir,
		Writable: c.Writable, ReadOnly: c.ReadOnly, Binds: binds,
		Home: c.Home, Tmp: c.Tmp,
		Limits: l.Limits, NoNetwork: l.NoNetwork, Forward: l.Forward, Closed: l.Closed, OnStart: l.OnStart,
		Stdin: c.Stdin, Stdout: writer(c.Stdout), Stderr: writer(c.Stderr),
	}
	cell, err := Start(ctx, s)
	if err != nil {
		return nil, err
	}
	return process{cell}, nil
}

// writer keeps a missing file from becoming a writer that is there.
func writer(f *os.File) io.Writer {
	if f == nil {
		return nil
	}
	return f
}

type process struct{ *Cell }

func (p process) Wait() (int, error) {
	status, err := p.Cell.Wait()
	return status.Exit, err
}
