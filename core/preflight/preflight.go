// Package preflight says what a machine lacks for missions, each finding with its remedy: all of it for doctor, what a
// start depends on for start, in the same sentences. It pays nothing and leaves nothing changed.
package preflight

import (
	"context"
	"errors"
	"time"

	"example.com/AutoAgentProject/core/cell"
	"example.com/AutoAgentProject/core/cgroup"
	"example.com/AutoAgentProject/core/git"
	"example.com/AutoAgentProject/core/login"
	"example.com/AutoAgentProject/core/units"
	"example.com/AutoAgentProject/core/usererr"
)

// State is how a check came out.
type State string

// The states. With a Fail no mission starts.
const (
	OK   State = "ok"
	Warn State = "warn"
	Fail State = "fail"
)

// Finding is what one check found.
type Finding struct {
	Name   string `json:"name"`
	State  State  `json:"state"`
	Text   string `json:"text"`
	Remedy string `json:"remedy,omitempty"`

	err error
}

// Err is the error of a Fail, with its exit status and remedy; nil for the other states.
func (f Finding) Err() error {
	switch {
	case f.State != Fail:
		return nil
	case f.err != nil:
		return f.err
	}
	return usererr.New(usererr.Environment, f.Remedy, "%s", f.Text)
}

func ok(name, text string) Finding { return Finding{Name: name, State: OK, Text: text} }

// failed is the finding of a check that ended with an error.
func failed(name string, err error) Finding {
	f := Finding{Name: name, State: Fail, Text: err.Error(), err: err}
	if u, is := errors.AsType[*usererr.Error](err); is {
		f.Remedy = u.Hint
	}
	return f
}

// either is failed for an error and ok without one.
func either(name, text string, err error) Finding {
	if err != nil {
		return failed(name, err)
	}
	return ok(name, text)
}

// Machine is what the checks are told and what they ask.
type Machine struct {
	Root string // of all missions; it need not be there yet
	Temp string // folder of temporary files
	UID  int    // who asks
	Now  time.Time
	// Built is when this program was made; no clock can be right that says an earlier time. Zero: unknown.
	Built time.Time

	Roles   func() error           // the programs of the roles are beside this one
	Program func() (string, error) // finds the agent program
	Agent   func(ctx context.Context, program string) (version string, err error)

	// For doctor alone.
	Config   func() (string, error) // what holds, in words
	Login    func() (login.File, error)
	Payer    func(login.File) string
	Place    func() error // says why there is no root
	Writable func(root string) error
	Manager  units.Manager // the one that serves who asks
	Systemd  func(context.Context, units.Manager) (version string, err error)
	Lingers  func() error
}

// Report is what was found.
type Report struct {
	Findings []Finding
	Cell     cell.Report // what holds around everything untrusted
	Program  string      // the agent program
	Agent    string      // its version
}

// Failed returns the first error; nil: no check failed.
func (r Report) Failed() error {
	for _, f := range r.Findings {
		if err := f.Err(); err != nil {
			return err
		}
	}
	return nil
}

// Warnings are sentences for the person who starts a mission all the same. What the walls lack, the sentence about the
// walls says.
func (r Report) Warnings() []string {
	var out []string
	for _, f := range r.Findings {
		if f.State == Warn && f.Name != "landlock" && f.Name != "seccomp" {
			out = append(out, f.Text+"; "+f.Remedy)
		}
	}
	return out
}

func (r *Report) add(f ...Finding) { r.Findings = append(r.Findings, f...) }

// ForStart checks what every mission needs here, up to the first that fails. Root, login and configuration are the
// start's own first questions.
func ForStart(ctx context.Context, m Machine) Report {
	r := &Report{}
	for _, check := range []func(context.Context, Machine){r.git, r.roles, r.clock, r.disks, r.walls, r.agent} {
		if check(ctx, m); r.Failed() != nil {
			break
		}
	}
	return *r
}

// All makes all checks; none stops the others.
func All(ctx context.Context, m Machine) Report {
	r := &Report{}
	for _, check := range []func(context.Context, Machine){r.git, r.walls, r.config, r.agent, r.roles, r.login, r.root, r.disks, r.memory,
		r.clock, r.systemd, r.user} {
		check(ctx, m)
	}
	return *r
}

func (r *Report) git(ctx context.Context, _ Machine) {
	v, err := git.Check(ctx)
	r.add(either("git", v, err))
}

func (r *Report) roles(_ context.Context, m Machine) {
	r.add(either("programs", "those of the roles are beside this one", m.Roles()))
}

// walls starts a cell: nothing else shows whether this machine lets one be made.
func (r *Report) walls(ctx context.Context, _ Machine) {
	rep, err := cell.Check(ctx)
	r.Cell = rep
	r.add(wallFindings(rep, err)...)
}

func (r *Report) config(_ context.Context, m Machine) {
	text, err := m.Config()
	r.add(either("config", text, err))
}

func (r *Report) agent(ctx context.Context, m Machine) {
	path, err := m.Program()
	if err == nil {
		r.Agent, err = m.Agent(ctx, path)
	}
	if r.Program = path; err != nil {
		r.add(failed("claude", err))
		return
	}
	r.add(agentFinding(r.Agent, path))
}

func (r *Report) login(_ context.Context, m Machine) {
	f, err := m.Login()
	if err != nil {
		r.add(failed("login", err))
		return
	}
	r.add(ok("login", m.Payer(f)))
}

func (r *Report) root(_ context.Context, m Machine) {
	if err := m.Place(); err != nil {
		r.add(failed("root", err))
		return
	}
	r.add(rootFinding(m.Root, owner(m.Root), m.UID, m.Writable(m.Root)), startsFinding(staleStarts(m.Root, time.Now())))
}

func (r *Report) disks(_ context.Context, m Machine) {
	if m.Root == "" {
		return
	}
	root, err := spaceOf(m.Root)
	if err != nil {
		r.add(failed("disk", err))
		return
	}
	r.add(spaceFinding("disk", "for the root", root))
	temp, err := spaceOf(m.Temp)
	if err == nil {
		err = usable(m.Temp)
	}
	switch {
	case err != nil:
		r.add(failed("tmp", usererr.Wrap(err, usererr.Environment, "set TMPDIR to a folder that you can write", "there is no folder for temporary files")))
	case temp.Device == root.Device:
		r.add(ok("tmp", m.Temp+" is on the disk of the root"))
	default:
		r.add(spaceFinding("tmp", "in "+m.Temp, temp))
	}
}

func (r *Report) memory(context.Context, Machine) {
	available, known := availableMemory()
	r.add(memoryFinding(available, known))
}

func (r *Report) clock(_ context.Context, m Machine) {
	worst, known := clockError()
	r.add(clockFinding(m.Now, m.Built, worst, known))
}

func (r *Report) systemd(ctx context.Context, m Machine) {
	version, err := m.Systemd(ctx, m.Manager)
	f := systemdFinding(m.Manager, version, err)
	r.add(f)
	if f.State == OK && m.Manager == units.User {
		r.add(lingerFinding(m.Lingers()))
	}
	bounds, lacks := cgroup.Probe(cgroup.Default())
	r.add(cgroupFinding(bounds, lacks, f.State == OK))
}

func (r *Report) user(_ context.Context, m Machine) {
	if m.UID == 0 {
		r.add(Finding{Name: "user", State: Warn, Text: "this is root", Remedy: "start missions with --run-as USER"})
	}
}
