// Package testkit holds what tests of several packages share: the suites that every implementation of an interface must
// pass, and the few things that need the whole program.
package testkit

import (
	"bytes"
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/google/uuid"

	"example.com/AutoAgentProject/core/money"
	"example.com/AutoAgentProject/core/runner"
	"example.com/AutoAgentProject/core/scriptmodel"
)

// RunnerModel is the model of all jobs of the suite. Its price must be known to the runner.
const RunnerModel = "claude-sonnet-5-5"

// RunnerSuite is what every runner.Runner must pass. newRunner makes the runner under test; its program finds the
// model, a scripted one, at baseURL, which every job names too. The scripts call the tools Read, Write and Bash.
func RunnerSuite(t *testing.T, newRunner func(t *testing.T, baseURL string) runner.Runner) {
	for _, c := range runnerCases() {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := &runnerStage{t: t, dir: t.TempDir()}
			s.play(c.steps)
			s.runner = newRunner(t, s.url)
			s.job = s.newJob()
			c.check(s)
		})
	}
}

type runnerCase struct {
	name  string
	steps []scriptmodel.Step
	check func(s *runnerStage)
}

// runnerStage is one case: a scripted model, a runner, a job and what came of it.
type runnerStage struct {
	t          *testing.T
	dir        string
	url        string
	model      *scriptmodel.Server
	runner     runner.Runner
	job        runner.Job
	transcript bytes.Buffer
	launched   int

	mu     sync.Mutex // guards what follows
	seen   []scriptmodel.Request
	events []runner.Event
}

func (s *runnerStage) play(steps []scriptmodel.Step) {
	s.t.Helper()
	script := scriptmodel.Script{Rules: []scriptmodel.Rule{{Steps: steps}}}
	model, err := scriptmodel.New(script, scriptmodel.Options{Seen: func(r scriptmodel.Request) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.seen = append(s.seen, r)
	}})
	if err != nil {
		s.t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		s.t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- model.Serve(l) }()
	s.t.Cleanup(func() {
		if err := errors.Join(model.Close(), <-ended); err != nil {
			s.t.Error(err)
		}
	})
	s.model, s.url = model, "http://"+l.Addr().String()
}

func (s *runnerStage) newJob() runner.Job {
	s.t.Helper()
	j := runner.Job{
		Run: uuid.NewString(), Dir: filepath.Join(s.dir, "work"), Scratch: filepath.Join(s.dir, "run"),
		SystemPrompt: "You are a tester.", Prompt: "Do what the script says.", Model: RunnerModel,
		Tools: []string{"Read", "Write", "Edit", "Glob", "Grep"}, MaxTurns: 8, Cap: money.USD, Wall: 2 * time.Minute, Silence: time.Minute,
		Credential: runner.Credential{Kind: "api-key", Secret: "example-key-of-the-runner-suite"},
		BaseURL:    s.url, Transcript: &s.transcript,
		Launched: func() error { s.launched++; return nil },
		Event: func(e runner.Event) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.events = append(s.events, e)
		},
	}
	for _, d := range []string{j.Dir, j.Scratch} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			s.t.Fatal(err)
		}
	}
	return j
}

// run runs the job to its end and checks what holds for every run.
func (s *runnerStage) run(ctx context.Context) runner.Result {
	s.t.Helper()
	r, err := s.runner.Run(ctx, s.job)
	if err != nil {
		s.t.Fatal(err)
	}
	if s.launched != 1 {
		s.t.Errorf("Launched was called %d times", s.launched)
	}
	if (r.Verdict == runner.Done) != (r.Reason == "") {
		s.t.Errorf("verdict %s with the reason %q", r.Verdict, r.Reason)
	}
	if r.Session != s.job.Run || r.Started.IsZero() || r.Ended.Before(r.Started) {
		s.t.Errorf("session %q, from %v to %v", r.Session, r.Started, r.Ended)
	}
	if strings.Contains(r.Reason+r.Text+s.transcript.String(), s.job.Credential.Secret) {
		s.t.Error("the credential was written down")
	}
	if !utf8.ValidString(r.Text) || !utf8.ValidString(r.Reason) {
		s.t.Error("text or reason are not UTF-8")
	}
	for _, e := range s.events {
		if n := utf8.RuneCountInString(e.Text); n > 200 || strings.ContainsFunc(e.Text, unicode.IsControl) {
			s.t.Errorf("event %s of %d characters: %q", e.Kind, n, e.Text)
		}
	}
	return r
}

// want runs the job and checks how it ended.
func (s *runnerStage) want(v runner.Verdict, class string) runner.Result {
	s.t.Helper()
	r := s.run(s.t.Context())
	s.t.Logf("%s %s: %s; %d tokens, %d nano-USD by %s", r.Verdict, r.Class, r.Reason, r.Spend.Tokens, r.Spend.Nano, r.Spend.Source)
	if r.Verdict != v || r.Class != class {
		s.t.Fatalf("verdict %s, class %q, reason %q; want %s, %q", r.Verdict, r.Class, r.Reason, v, class)
	}
	return r
}

func (s *runnerStage) saw(kind string) bool {
	return slices.ContainsFunc(s.events, func(e runner.Event) bool { return e.Kind == kind })
}

// request is the text of the k-th request, counted from 1.
func (s *runnerStage) request(k int) string {
	s.t.Helper()
	if len(s.seen) < k {
		s.t.Fatalf("%d requests came, want %d", len(s.seen), k)
	}
	return s.seen[k-1].Text
}

func says(text string) scriptmodel.Step {
	return scriptmodel.Step{Content: []map[string]any{{"type": "text", "text": text}}}
}

func calls(tool string, input map[string]any) scriptmodel.Step {
	return scriptmodel.Step{Content: []map[string]any{{"type": "tool_use", "name": tool, "input": input}}}
}
