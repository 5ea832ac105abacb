package app

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"example.com/AutoAgentProject/core/guard"
	"example.com/AutoAgentProject/core/logline"
	"example.com/AutoAgentProject/core/manager"
	"example.com/AutoAgentProject/core/mission"
	"example.com/AutoAgentProject/core/reporter"
	"example.com/AutoAgentProject/core/specialist"
	"example.com/AutoAgentProject/core/store"
	"example.com/AutoAgentProject/core/tick"
	"example.com/AutoAgentProject/core/units"
	"example.com/AutoAgentProject/core/usererr"
)

const termSignal = syscall.SIGTERM

// once is one tick of a role.
type once interface {
	Once(context.Context) (tick.Outcome, error)
}

// roles says which code ticks a role.
var roles = map[mission.Role]func(*tick.Tick) once{
	mission.Manager:    func(t *tick.Tick) once { return manager.Manager{Tick: t} },
	mission.Specialist: func(t *tick.Tick) once { return specialist.Specialist{Tick: t} },
	mission.Reporter:   func(t *tick.Tick) once { return reporter.Reporter{Tick: t} },
	mission.Quota:      func(t *tick.Tick) once { return guard.Guard{Tick: t} },
}

// TickMain is the main of a role's binary: one tick of one agent. Exit status by the table of usererr.
func TickMain(role mission.Role, env Env) (status int) {
	defer catch(env, "autoagent-"+string(role), &status)
	if len(env.Args) > 0 && env.Args[0] == "check" { // an agent, in its cell
		return sayError(env.Stderr, tick.CheckProgram, checkInCell(env, env.Args[1:]))
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	return sayError(env.Stderr, "autoagent-"+string(role), tickOnce(ctx, role, env))
}

// maxSteps is how much one tick does in a row before it ends, at most, and units.TickTime how long it goes on with
// another step; the rest is the next tick's, which it wakes.
const maxSteps = 20

func tickOnce(ctx context.Context, role mission.Role, env Env) error {
	f := flag.NewFlagSet("autoagent-"+string(role), flag.ContinueOnError)
	f.SetOutput(io.Discard)
	root := f.String("root", "", "folder of all missions")
	id := f.String("mission", "", "the mission's id")
	name := f.String("agent", string(role), "the agent's name")
	version := f.Bool("version", false, "print the version")
	if err := f.Parse(env.Args); err != nil {
		return usererr.Wrap(err, usererr.Usage, "it is started by the engine or by AutoAgentProject tick", "the arguments are wrong")
	}
	if *version {
		fmt.Fprintf(env.Stdout, "autoagent-%s %s\n", role, Version())
		return nil
	}
	if !filepath.IsAbs(*root) || f.NArg() > 0 {
		return usererr.New(usererr.Usage, "it is started by the engine or by AutoAgentProject tick", "--root, --mission and --agent are needed")
	}
	if err := errors.Join(mission.CheckID(*id), mission.CheckAgent(*name)); err != nil {
		return err
	}
	drainWake(env.Getenv)
	st := store.Root(*root).Mission(*id)
	who := []slog.Attr{slog.String(logline.Mission, *id), slog.String(logline.Agent, *name), slog.String(logline.Tick, tick.NewID(time.Now()))}
	stderr := logline.Stderr(env.Stderr, "autoagent-"+string(role)).WithAttrs(who)
	err := tickAgent(ctx, role, st, *name, env, who, stderr)
	if usererr.CodeOf(err) == usererr.Unreadable { // what decides about money and work is damaged: nothing goes on
		_, serr := st.Stop(mission.Stop{Cause: mission.Damage, Reason: err.Error(), By: *name, At: time.Now()})
		err = errors.Join(err, serr)
	}
	if h, ok := stderr.(*logline.Handler); ok && err != nil {
		failInJournal(h, err)
		return quiet(usererr.CodeOf(err))
	}
	return err
}

func tickAgent(ctx context.Context, role mission.Role, st *store.Store, name string, env Env, who []slog.Attr, stderr slog.Handler) error {
	m, err := st.Mission()
	if errors.Is(err, store.ErrNoMission) {
		err = usererr.New(usererr.DoNotRetry, "", "there is no mission %s: its units go away", st.ID())
		return errors.Join(err, askForRemoval(st.ID()))
	}
	if err != nil {
		return err
	}
	a, ok := m.Agent(name)
	if !ok || a.Role != role {
		return usererr.New(usererr.DoNotRetry, "", "mission %s has no %s %q", st.ID(), role, name)
	}
	if err := owned(st.Dir()); err != nil {
		return err
	}
	file := logFile(st.AgentLog(a.Name))
	defer file.Close()
	toFile := slog.NewTextHandler(file, nil).WithAttrs(who)
	log := slog.New(slog.NewMultiHandler(toFile, stderr))
	t, err := newTick(st, m, a, log)
	if err != nil {
		return err
	}
	if role == mission.Quota {
		defer func() {
			if stop, err := st.Stopped(); err == nil && stop != nil {
				if err := askForStop(m); err != nil {
					log.Warn("the stop could not be asked for", "err", err)
				}
			}
		}()
	}
	out, end, err := t.Begin(ctx)
	if err != nil {
		return err
	}
	defer end()
	more := out != tick.Busy && out != tick.Over && out != tick.Later
	began, through := more, false
	defer func() {
		if began && through { // else it died, and its next tick counts that
			t.Ended(ctx, err)
		}
	}()
	for n, begin := 0, time.Now(); more && n < maxSteps && time.Since(begin) < units.TickTime && ctx.Err() == nil; n++ {
		out, err = roles[role](t).Once(ctx)
		more = err == nil && out == tick.Moved
	}
	through = true
	if more && ctx.Err() == nil {
		t.Wake(a.Name)
	}
	if err != nil {
		slog.New(toFile).Error("the tick ended badly", "err", err) // stderr is told by whoever ends the process
		return err
	}
	if out == tick.Moved && ctx.Err() == nil { // there may be more, and what came before this tick wakes nobody again
		t.Wake(a.Name)
	}
	if out == tick.Later {
		return quiet(usererr.Later)
	}
	return nil
}

// sayError prints an error of a program as a sentence and a hint and returns its exit status.
func sayError(w io.Writer, program string, err error) int {
	if err != nil && !errors.Is(err, errQuiet) {
		fmt.Fprintf(w, "%s: error: %s\n", program, clean(err.Error()))
		var u *usererr.Error
		if errors.As(err, &u) && u.Hint != "" {
			fmt.Fprintf(w, "%s: hint: %s\n", program, clean(u.Hint))
		}
	}
	return int(usererr.CodeOf(err))
}
