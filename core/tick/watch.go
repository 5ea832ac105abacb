package tick

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"example.com/AutoAgentProject/core/cell"
	"example.com/AutoAgentProject/core/files"
	"example.com/AutoAgentProject/core/journal"
	"example.com/AutoAgentProject/core/monitor"
	"example.com/AutoAgentProject/core/plan"
	"example.com/AutoAgentProject/core/proc"
	"example.com/AutoAgentProject/core/recovery"
	"example.com/AutoAgentProject/core/runner"
)

// Limits of watching.
const (
	loopLimit  = 8 // same tool, same input, and nothing changed
	stuckTimes = 2 // of the silence limit: as long may a run talk without progress
	startTime  = 30 * time.Second
	maxAsks    = 2      // how often a run is told which tool it must call
	maxWalked  = 200000 // entries of a folder that are looked at; of a bigger one nothing is known
	lookEvery  = 5 * time.Second
	lookShare  = 20 // looking takes at most one in so many parts of the time
)

// watched is a run under the eyes of the monitor.
type watched struct {
	t     *Tick
	run   string
	step  string
	dir   string
	began time.Time

	mu sync.Mutex // guards what follows
	m  *monitor.Monitor
}

// watch begins to look at a run. The context that it returns ends, with a *runner.Halt, when the monitor says so. done ends
// the watching.
func (t *Tick) watch(ctx context.Context, run string, a Ask, j *runner.Job) (_ context.Context, w *watched, done func()) {
	l := monitor.Limits{Silence: j.Silence, Stuck: stuckTimes * j.Silence, Wall: j.Wall, Start: startTime, Loop: loopLimit, Required: a.Profession.Required, Reads: !a.Profession.Writes}
	w = &watched{t: t, run: run, step: a.Step, dir: a.Dir, began: time.Now(), m: monitor.New(l)}
	j.Silence = j.Wall // the monitor knows more about silence than the program's output tells
	ctx, cancel := context.WithCancelCause(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		every := min(max(j.Silence/20, 100*time.Millisecond), l.Silence/10, lookEvery)
		wait := time.NewTimer(0)
		defer wait.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-wait.C:
			}
			began := time.Now()
			facts := w.look()
			w.mu.Lock()
			w.m.Look(time.Since(w.began), facts)
			v := w.m.Judge(time.Since(w.began))
			w.mu.Unlock()
			if v.Class != "" {
				cancel(&runner.Halt{Class: v.Class, Reason: v.Reason})
				return
			}
			wait.Reset(max(every, lookShare*time.Since(began)))
		}
	}()
	return ctx, w, func() { cancel(context.Canceled); <-ended }
}

func (w *watched) event(e runner.Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.m.Event(time.Since(w.began), e)
}

func (w *watched) missing() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.m.Missing()
}

// follow asks for tools that must be called, before it asks next.
func (w *watched) follow(next func(runner.Turn) string) func(runner.Turn) string {
	if next == nil && len(w.missing()) == 0 {
		return nil
	}
	asked := 0
	return func(turn runner.Turn) string {
		if missing := w.missing(); len(missing) > 0 && !recovery.Excused(turn.Text) {
			if asked >= maxAsks {
				return ""
			}
			asked++
			w.t.Event(journal.Event{Kind: journal.Intervened, Step: w.step, Run: w.run,
				Text: fmt.Sprintf("%s answered without having called %s, and was told to", w.t.Agent.Name, strings.Join(missing, ", "))})
			return monitor.Ask(missing, Changed(w.dir, w.began))
		}
		if next == nil {
			return ""
		}
		turn.N -= asked
		return next(turn)
	}
}

// judge makes a failure of an answer that came without a tool that must be called.
func (w *watched) judge(res runner.Result) runner.Result {
	if missing := w.missing(); res.Verdict == runner.Done && len(missing) > 0 && !recovery.Excused(res.Text) {
		res.Verdict, res.Class, res.Reason = runner.Failed, recovery.ToolMissing, "it did not call "+strings.Join(missing, ", ")+", although it was told to"
	}
	return res
}

// look gathers what is found beside the stream. What cannot be looked at is unknown.
func (w *watched) look() monitor.Facts {
	var f monitor.Facts
	var err error
	if f.Files, f.Messages, f.Commits, err = survey(w.dir); err != nil {
		return monitor.Facts{Unknown: true}
	}
	if f.CPU, err = w.work(); err != nil {
		return monitor.Facts{Unknown: true}
	}
	if p, err := w.t.Store.Plan(); err == nil {
		f.Plan = planState(p, w.step)
	}
	return f
}

func planState(p *plan.Plan, step string) string {
	if s := p.Step(step); s != nil {
		return fmt.Sprintf("%s %d", s.State, len(s.Handoffs))
	}
	return fmt.Sprint(p.Round)
}

// work is the processor time of what the program started. Before there is a cell it is none.
func (w *watched) work() (time.Duration, error) {
	b, err := files.Read(filepath.Join(w.t.Store.Run(w.t.Agent.Name, w.run), "cell.json"), 1<<16)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	var id cell.Identity
	if err := json.Unmarshal(b, &id); err != nil {
		return 0, err
	}
	return proc.Work(id.PID)
}

// survey digests what an agent left in its folder: its files, its messages, where its branches are. Names, sizes and times of
// change count, no content; links are not followed.
func survey(dir string) (work, messages, commits string, err error) {
	w, m, c := fnv.New64a(), fnv.New64a(), fnv.New64a()
	err = walk(dir, func(path string, info fs.FileInfo) error {
		into := io.Writer(w)
		switch {
		case path == ".autoagent" || strings.HasPrefix(path, ".autoagent/"):
			into = m
		case strings.HasPrefix(path, ".git/"):
			into = c
		}
		if !info.IsDir() { // a folder changes with what is in it
			fmt.Fprintf(into, "%q %d %d\n", path, info.Size(), info.ModTime().UnixNano())
		}
		return nil
	})
	return fmt.Sprint(w.Sum64()), fmt.Sprint(m.Sum64()), fmt.Sprint(c.Sum64()), err
}

// walk goes through a folder that somebody else writes. Of .git only what says where the branches are is shown.
func walk(dir string, each func(path string, info fs.FileInfo) error) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	n := 0
	return fs.WalkDir(root.FS(), ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return nil // gone meanwhile, or shut: it does not change before it is opened again
		}
		if n++; n > maxWalked {
			return errors.New("it holds too much to be looked at")
		}
		if inGit, ok := strings.CutPrefix(path, ".git/"); ok {
			top, _, _ := strings.Cut(inGit, "/")
			if top != "HEAD" && top != "refs" && top != "packed-refs" {
				if d.IsDir() {
					return fs.SkipDir
				}
				return nil
			}
		}
		info, err := d.Info()
		if err != nil {
			return nil
		}
		return each(path, info)
	})
}

// mostChanged is how many changed files are named.
const mostChanged = 30

// Changed says in words which files in a folder were changed since a time.
func Changed(dir string, since time.Time) string {
	var names []string
	more := 0
	err := walk(dir, func(path string, info fs.FileInfo) error {
		switch {
		case info.IsDir() || strings.HasPrefix(path, ".git/") || strings.HasPrefix(path, ".autoagent/") || info.ModTime().Before(since):
		case len(names) == mostChanged:
			more++
		default:
			names = append(names, fmt.Sprintf("%q", path))
		}
		return nil
	})
	switch {
	case err != nil && len(names) == 0:
		return "what is in the folder counts."
	case len(names) == 0:
		return "no file was changed so far."
	case more > 0:
		names = append(names, fmt.Sprintf("and %d more", more))
	}
	return "files changed so far: " + strings.Join(names, ", ") + "."
}
