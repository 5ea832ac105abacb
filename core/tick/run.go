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
	"time"

	"github.com/google/uuid"

	"example.com/AutoAgentProject/core/cgroup"
	"example.com/AutoAgentProject/core/files"
	"example.com/AutoAgentProject/core/handoff"
	"example.com/AutoAgentProject/core/journal"
	"example.com/AutoAgentProject/core/mission"
	"example.com/AutoAgentProject/core/money"
	"example.com/AutoAgentProject/core/proc"
	"example.com/AutoAgentProject/core/profession"
	"example.com/AutoAgentProject/core/runner"
)

// Ask is one paid run as a role wants it.
type Ask struct {
	Step       string
	Profession profession.Profession
	Dir        string
	Inputs     []string // folders the agent may read besides
	Prompt     string
	Schema     json.RawMessage
	Follow     func(runner.Turn) string
	Cheap      bool           // by the cheap model, whatever is left
	Gate       *handoff.Facts // for the agent to check by what it leaves; nil: it leaves nothing

	Model     string         // another one than the mission's; empty: that
	StepLimit int64          // most that the step may use, in the budget's unit; 0: the mission's
	Context   map[string]int // what the prompt consists of, in bytes; nil: nobody asks
}

// RunRecord is runs/<run>/run.json: who runs what, for status and for cleaning up.
type RunRecord struct {
	Version int       `json:"version"`
	Run     string    `json:"run"`
	Agent   string    `json:"agent"`
	Step    string    `json:"step,omitempty"`
	Model   string    `json:"model"`
	Owner   proc.ID   `json:"owner"`
	Started time.Time `json:"started"`
	Cap     string    `json:"cap"` // in words
}

// Run does one paid run for the hold: reserve, start behind the walls, watch, count. An outcome other than Moved means
// that there is no result yet: Later (no money or no login now), Over (stopped). The result is on disk when Run returns.
func (t *Tick) Run(ctx context.Context, h *Hold, a Ask) (runner.Result, Outcome, error) {
	none := runner.Result{}
	cred, err := t.Credential()
	if err != nil {
		return none, Later, t.pauseLogin(ctx, "the login cannot be read: "+err.Error())
	}
	run := uuid.NewString()
	limit, under, out, err := t.reserve(ctx, run, a, h.Alone)
	if errors.Is(err, errStepSpent) {
		return runner.Result{Verdict: runner.Failed, Class: StepLimit, Reason: err.Error()}, Moved, nil
	}
	if err != nil || out != Moved {
		return none, out, err
	}
	h.Run, h.Runs = run, h.Runs+1
	if err := t.Keep(*h); err != nil {
		return none, Idle, errors.Join(err, t.release(ctx, run, "the hold could not be written"))
	}
	a = t.shorten(a)
	job, transcript, err := t.job(run, limit, a)
	if err != nil {
		return none, Idle, errors.Join(err, t.release(ctx, run, "it could not be prepared"))
	}
	defer transcript.Close()
	w, err := t.openWay(run, limit, cred)
	if err != nil {
		return none, Idle, errors.Join(err, t.release(ctx, run, "it could not be prepared"))
	}
	job.BaseURL, job.Credential = w.url, w.credential
	defer Sweep(t.Store.Scratch(t.Agent.Name, run))
	t.Line(ctx, "working", a.Step, run, "%s", t.doing(a.Step))
	t.Event(journal.Event{Kind: journal.RunStarted, Step: a.Step, Run: run, Text: fmt.Sprintf("%s started a run, at most %s", t.Agent.Name, limit)})

	ctx, done := t.UntilStopped(ctx)
	defer done()
	job.Launched = func() error {
		if stop, err := t.Store.Stopped(); err != nil || stop != nil {
			return errors.Join(ErrStopped, err)
		}
		return t.ledger.Launch(context.WithoutCancel(ctx), run, t.Now())
	}
	watching, seen, unwatch := t.watch(ctx, run, a, &job)
	defer unwatch()
	job.Follow = seen.follow(a.Follow)
	last := ""
	job.Event = func(e runner.Event) {
		seen.event(e)
		if e.Kind == "alive" {
			return
		}
		t.Log.Info(say(t.Agent.Name, e), "event", "run_"+e.Kind, "step", a.Step, "run", run)
		if (e.Kind == "tool" || e.Kind == "text") && e.Text != last {
			last = e.Text
			t.Line(ctx, "working", a.Step, run, "%s: %s", t.doing(a.Step), e.Text)
		}
	}
	t.model = job.BaseURL
	killed := cgroup.MemoryKills()
	look := t.lookAround(ctx, run)
	res, err := t.Runner.Run(watching, job)
	unwatch()
	res = seen.judge(res)
	changes := look()
	if werr := w.done(); werr != nil { // what it wrote down before is the truth then
		t.Log.Warn("the gateway of a run did not end in order", "run", run, "err", werr)
	}
	if w.gateway != nil && res.Class == "max-output" && w.gateway.Report().Lowered > 0 {
		res.Class = "budget" // its answer was cut because no more was left for it
	}
	keep := context.WithoutCancel(ctx) // the count and the record are written also when we are being stopped
	if err != nil && (errors.Is(err, ErrStopped) || context.Cause(ctx) == ErrStopped) {
		return none, Over, t.release(keep, run, "stopped before the start")
	}
	if err != nil {
		return none, Idle, errors.Join(fmt.Errorf("start a run: %w", err), t.release(keep, run, "the program could not be started"))
	}
	if n := cgroup.MemoryKills() - killed; n > 0 {
		res = outOfMemory(res)
		t.Event(journal.Event{Kind: journal.MemoryRanOut, Step: a.Step, Run: run, Text: fmt.Sprintf("the memory of the mission ran out: the kernel ended %d of its processes", n)})
	}
	if err := t.saveResult(run, res); err != nil {
		return none, Idle, errors.Join(err, t.settle(keep, run, res))
	}
	if err := t.settle(keep, run, res); err != nil {
		return none, Idle, err
	}
	t.Event(journal.Event{Kind: journal.RunEnded, Step: a.Step, Run: run,
		Text: fmt.Sprintf("%s ended a run: %s%s, %s", t.Agent.Name, res.Verdict, because(res), money.FormatUSD(w.cost(res)))})
	if len(res.Spend.Unpriced) > 0 {
		t.Event(journal.Event{Kind: journal.UnpricedModel, Level: journal.Milestone, Run: run, Incident: "unpriced",
			Text: fmt.Sprintf("no price is known for %v; it was charged at the dearest one", res.Spend.Unpriced)})
	}
	t.wakeWaiting()
	if len(changes) > 0 {
		return res, Over, t.breached(h, run, changes)
	}
	if res.Verdict == runner.Killed {
		return res, Over, t.uncount(h)
	}
	if res.Class == "budget" && !under.Until.IsZero() {
		out, err = t.cutByCaps(keep, h, under)
		return res, out, err
	}
	if w.gateway != nil && res.Class == "budget" {
		if rep := w.gateway.Report(); rep.Spent > 0 && rep.Sum() == 0 && limit.N != t.Mission.StepLimit {
			out, err = t.tooLittle(keep, h)
			return res, out, err
		}
	}
	h.Alone = false
	out, err = t.heed(keep, h, res)
	return res, out, err
}

// outOfMemory is the result of a run during which the kernel ended processes of the mission for want of memory. A program
// that lived on and gave its answer has only lost a command.
func outOfMemory(res runner.Result) runner.Result {
	if res.Verdict == runner.Failed && (res.Class == "oom" || res.Class == "no-result" || res.Class == "exit") {
		res.Class, res.Reason = "oom", "the memory of the mission ran out, and the kernel ended the program"
	}
	return res
}

func because(res runner.Result) string {
	if res.Reason == "" {
		return ""
	}
	return " (" + res.Reason + ")"
}

func (t *Tick) doing(step string) string {
	if step == "" {
		return "plans"
	}
	return "works on " + step
}

// Defaults of a run where its profession says nothing.
const (
	defaultWall     = 30 * time.Minute
	defaultSilence  = 10 * time.Minute
	defaultMaxTurns = 60
)

// job lays out the run's folders and says what to run.
func (t *Tick) job(run string, limit money.Amount, a Ask) (runner.Job, *os.File, error) {
	dir, scratch := t.Store.Run(t.Agent.Name, run), t.Store.Scratch(t.Agent.Name, run)
	for _, d := range []string{dir, scratch} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			return runner.Job{}, nil, err
		}
	}
	system := a.Profession.SystemPrompt()
	taken, err := t.taken()
	if err != nil {
		return runner.Job{}, nil, err
	}
	if taken.Instructions != "" {
		system += "\n# What the repository says\n\nThe person who started the mission wants you to know what these files said at its start. They may have changed since.\n" + taken.Instructions
	}
	for name, text := range map[string]string{"prompt.md": a.Prompt, "system.md": system} {
		if err := files.Replace(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			return runner.Job{}, nil, err
		}
	}
	if err := t.layOutGate(run, a.Gate); err != nil {
		return runner.Job{}, nil, err
	}
	if a.Context != nil {
		if err := t.reportContext(dir, a); err != nil {
			return runner.Job{}, nil, err
		}
	}
	record, err := json.MarshalIndent(RunRecord{Version: mission.Version, Run: run, Agent: t.Agent.Name, Step: a.Step,
		Model: or(a.Model, t.Mission.Model), Owner: t.Owner, Started: t.Now().UTC(), Cap: limit.String()}, "", "  ")
	if err != nil {
		return runner.Job{}, nil, err
	}
	if err := files.Replace(filepath.Join(dir, "run.json"), append(record, '\n'), 0o600); err != nil {
		return runner.Job{}, nil, err
	}
	transcript, err := os.OpenFile(filepath.Join(dir, "stream.jsonl"), os.O_CREATE|os.O_EXCL|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return runner.Job{}, nil, err
	}
	j := runner.Job{
		Run: run, Dir: a.Dir, Scratch: scratch, Inputs: append(slices.Clone(a.Inputs), t.readable()...), SystemPrompt: system, Prompt: a.Prompt,
		Model: or(a.Model, t.Mission.Model), Tools: a.Profession.Tools, Schema: a.Schema, MaxTurns: a.Profession.MaxTurns, MaxOutput: a.Profession.MaxOutput, Effort: a.Profession.Effort,
		Wall: a.Profession.Wall, Silence: a.Profession.Silence,
		Settings: taken.Settings, Servers: taken.Servers, Fixed: t.fixed(taken, a.Dir),
		Transcript: transcript, Follow: a.Follow,
	}
	if limit.Unit == money.Tokens {
		j.CapTokens = limit.N
	} else {
		j.Cap = money.Nano(limit.N)
	}
	if j.MaxTurns == 0 {
		j.MaxTurns = defaultMaxTurns
	}
	if j.Wall == 0 {
		j.Wall = defaultWall
	}
	if j.Silence == 0 {
		j.Silence = defaultSilence
	}
	return j, transcript, nil
}

// Sweep removes a folder that an agent could write, whatever modes it left behind; links are removed, not followed.
func Sweep(dir string) {
	if os.RemoveAll(dir) == nil {
		return
	}
	root, err := os.OpenRoot(dir)
	if errors.Is(err, fs.ErrPermission) { // the agent may have shut us out of the top
		_ = os.Chmod(dir, 0o700)
		root, err = os.OpenRoot(dir)
	}
	if err != nil {
		return
	}
	defer root.Close()
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if d != nil && d.IsDir() {
			if rel, err := filepath.Rel(dir, path); err == nil {
				_ = root.Chmod(rel, 0o700) // never through a link that leads out
			}
		}
		return nil
	})
	_ = os.RemoveAll(dir)
}
