package claude

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"example.com/AutoAgentProject/core/runner"
)

// run is one run from its start to its result. Only its loop touches it.
type run struct {
	*process
	job   runner.Job
	grace grace
	meter *meter

	stopped  *outcome // why we stopped it; the first reason counts
	judged   *outcome // by the last result
	closing  bool     // the last word is said: the program has only to end
	rung     int      // of the ladder: 0 asked to end, 1 SIGTERM sent, 2 killed
	ladder   *time.Timer
	silence  *time.Timer
	followed chan string // a Follow is being asked; nil: none
	status   *exited     // the program's end; nil: it runs

	greeted    bool
	limit      *limit
	failure    *apiFailure
	text       string
	structured json.RawMessage
	turns      int
	denials    []string
	garbage    int       // lines that were no events
	left       int64     // bytes that it may still print
	told       time.Time // when the last event was told
	kept       int64     // bytes of the transcript
	full       bool      // it is: only what counts is written
}

// Run runs a job to its end.
func (c *Claude) Run(ctx context.Context, j runner.Job) (runner.Result, error) {
	if err := c.complete(); err != nil {
		return runner.Result{}, err
	}
	if err := check(j); err != nil {
		return runner.Result{}, err
	}
	if err := context.Cause(ctx); err != nil {
		return runner.Result{}, fmt.Errorf("start run %s: %w", j.Run, err)
	}
	cmd, err := c.command(j)
	if err != nil {
		return runner.Result{}, err
	}
	began := time.Now()
	p, err := c.start(ctx, cmd, j.Launched)
	if err != nil {
		return runner.Result{}, fmt.Errorf("start run %s: %w", j.Run, err)
	}
	most := j.MaxOutput
	if most == 0 {
		most = defaultOutput
	}
	r := &run{process: p, job: j, grace: c.grace, left: c.most, meter: newMeter(c.cfg.Price, int64(most)),
		ladder: time.NewTimer(time.Hour), silence: time.NewTimer(j.Silence)}
	r.ladder.Stop()
	r.stdin.send(userMessage(firstLine + j.Prompt))
	r.loop(ctx)
	r.release()
	return r.result(began, time.Now()), nil
}

// loop goes on until the program is gone, its output read and nobody asked any more.
func (r *run) loop(ctx context.Context) {
	wall := time.NewTimer(r.job.Wall)
	defer wall.Stop()
	defer r.silence.Stop()
	defer r.ladder.Stop()
	ended, drained := ctx.Done(), (<-chan time.Time)(nil)
	spoken := r.spoken
	for r.lines != nil || r.exit != nil || spoken != nil || r.followed != nil {
		select {
		case line, ok := <-r.lines:
			if ok {
				r.line(line)
			} else if r.lines = nil; r.status == nil {
				r.hush()
			}
		case st := <-r.exit:
			r.exit, r.status = nil, &st
			r.ladder.Stop()
			drained = time.After(r.grace.drain)
		case <-spoken:
			spoken = nil
		case <-drained:
			r.endOutput()
		case <-ended:
			ended = nil
			why := outcome{verdict: runner.Killed, reason: oneLine(context.Cause(ctx).Error())}
			if h := (*runner.Halt)(nil); errors.As(context.Cause(ctx), &h) {
				why = outcome{verdict: runner.Failed, class: h.Class, reason: oneLine(h.Reason)}
			}
			r.stop(why)
		case <-wall.C:
			r.stop(failed("wall", "the run took longer than %v", r.job.Wall))
		case <-r.silence.C:
			r.stop(failed("silence", "no sign of life for %v", r.job.Silence))
		case <-r.ladder.C:
			r.climb()
		case text := <-r.followed:
			r.followed = nil
			r.goOn(text)
		}
	}
}

// line takes one line of output. A tool can print the credential: it is kept nowhere.
func (r *run) line(line []byte) {
	if r.left -= int64(len(line)) + 1; r.left < 0 {
		if r.rung < 2 {
			r.kill(failed("bad-output", "the run printed too much"))
		}
		return
	}
	line = redact(line, r.job.Credential.Secret)
	e, ok := decode(line)
	if err := r.keep(line, &e); err != nil {
		// What is not written down cannot be counted by whoever comes after a crash.
		r.stop(failed("transcript", "%s", oneLine(fmt.Sprintf("write the transcript: %v", err))))
	}
	if !ok {
		if len(strings.TrimSpace(string(line))) > 0 {
			r.garbage++
		}
		return
	}
	now := time.Now()
	if r.stopped == nil && !r.closing && r.followed == nil {
		r.silence.Reset(r.job.Silence)
	}
	r.meter.add(&e, now)
	r.take(&e, now)
	r.watch(&e, now)
	if r.followed == nil && r.over() {
		r.stop(failed("budget", "the run passed its limit: %s", r.spent()))
	}
}

// take draws the conclusions from one event.
func (r *run) take(e *event, now time.Time) {
	switch e.Type {
	case "system":
		switch {
		case e.Subtype == "init":
			if r.greeted { // it greets again at each message of ours, from where the last command of the agent went
				e.Cwd = r.job.Dir
			}
			if wrong := mismatch(e, r.job); wrong != "" {
				r.kill(failed("init-mismatch", "the program was set up wrong: %s", wrong))
				return
			}
			r.greeted = true
		case e.Subtype == "permission_denied":
			r.denied(e.ToolName)
		case e.Subtype == "status" && e.Status == "requesting" && r.meter.requests >= r.job.MaxTurns:
			// The program counts anew for each message of ours.
			r.stop(failed("max-turns", "the run reached its %d requests", r.job.MaxTurns))
		}
	case "stream_event", "assistant":
		if e.Type == "assistant" && e.Synthetic {
			r.failure = &e.apiFailure
			if e.Params != nil && e.Params.Limit != nil {
				r.limited(e.Params.Limit)
			}
			return
		}
		if !r.greeted {
			r.kill(failed("init-mismatch", "the program began without saying how it was set up"))
			return
		}
		if r.meter.requests > r.job.MaxTurns {
			r.stop(failed("max-turns", "the run passed its %d requests", r.job.MaxTurns))
		}
	case "rate_limit_event":
		if e.Limit != nil {
			r.limited(e.Limit)
		}
	case "result":
		r.answered(e, now)
	}
}

func (r *run) limited(l *limit) {
	r.limit = l
	if l.Overage || l.OverageNow {
		r.stop(failed("overage", "the account's limit is used up and extra usage is being paid for"))
	}
}

// denied notes a tool that was refused.
func (r *run) denied(tool string) {
	if tool = oneLine(tool); tool != "" && !slices.Contains(r.denials, tool) {
		r.denials = append(r.denials, tool)
	}
}

// answered judges a result as it comes.
func (r *run) answered(e *event, now time.Time) {
	for _, d := range e.Denials {
		r.denied(d.ToolName)
	}
	if r.closing || r.followed != nil {
		return // the program went on by itself; only the totals count
	}
	if good, _ := e.says(); good {
		r.text, r.structured = strings.ToValidUTF8(e.Result, "\uFFFD"), e.Structured
	}
	if r.stopped != nil {
		r.close()
		return
	}
	o := judge(e, facts{greeted: r.greeted, schema: r.job.Schema != nil, limit: r.limit, failure: r.failure}, now)
	r.judged = &o
	if !o.good() {
		r.close()
		return
	}
	r.turns++
	if r.job.Follow == nil {
		r.close()
		return
	}
	r.silence.Stop() // it is our turn
	answer, turn := make(chan string, 1), runner.Turn{N: r.turns, Text: r.text, Structured: r.structured}
	r.followed = answer
	go func() { answer <- r.job.Follow(turn) }()
}

// goOn continues the conversation, or ends it if there is nothing to say.
func (r *run) goOn(text string) {
	switch {
	case r.stopped != nil:
	case strings.TrimSpace(text) == "":
		r.close()
	case r.status != nil:
		r.end(failed("exit", "the program ended in the middle of the conversation, exit status %d", r.status.status))
	case r.meter.requests >= r.job.MaxTurns:
		r.end(failed("max-turns", "the run reached its %d requests", r.job.MaxTurns))
	case r.over():
		r.end(failed("budget", "the run passed its limit: %s", r.spent()))
	default:
		r.judged, r.failure = nil, nil
		r.stdin.send(userMessage(nextLine + text))
		r.silence.Reset(r.job.Silence)
	}
}

func (r *run) end(o outcome) {
	r.judged = &o
	r.close()
}

// over says whether the run spent more than it may.
func (r *run) over() bool {
	nano, tokens := r.meter.running()
	return r.job.Cap > 0 && nano > r.job.Cap || r.job.CapTokens > 0 && tokens > r.job.CapTokens
}

// result puts everything together.
func (r *run) result(began, ended time.Time) runner.Result {
	out := runner.Result{Spend: r.meter.spend(), Text: r.text, Structured: r.structured, Turns: r.turns,
		Denials: r.denials, Session: r.job.Run, Exit: r.status.status, Started: began, Ended: ended}
	o := r.stopped
	if o == nil {
		last := r.stderr.last(r.job.Credential.Secret)
		if r.status.err != nil {
			last = oneLine(last + " " + r.status.err.Error())
		}
		if r.garbage > 0 && r.judged == nil {
			last = strings.TrimSpace(fmt.Sprintf("%s (%d lines were no events)", last, r.garbage))
		}
		c := conclude(ending{last: r.judged, ended: r.rung > 0, exit: r.status.status, limit: r.limit, stderr: last}, ended)
		o = &c
	}
	out.Verdict, out.Class, out.ResetAt = o.verdict, o.class, o.resetAt
	out.Reason = o.reason
	return out
}
