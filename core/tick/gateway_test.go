package tick

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"example.com/AutoAgentProject/core/caps"
	"example.com/AutoAgentProject/core/ledger"
	"example.com/AutoAgentProject/core/mission"
	"example.com/AutoAgentProject/core/money"
	"example.com/AutoAgentProject/core/runner"
)

// served is a model that answers with so many tokens for each request, and notes whose credential it saw.
func served(t *testing.T, tokens int64) (url string, keys *[]string) {
	keys = &[]string{}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		*keys = append(*keys, r.Header.Get("X-Api-Key"))
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"id":"msg_%d","type":"message","role":"assistant","model":"model-x","content":[],"stop_reason":"end_turn","usage":{"input_tokens":%d,"output_tokens":1}}`, len(*keys), tokens)
	}))
	t.Cleanup(s.Close)
	return s.URL, keys
}

// request asks the model as the program of a job would.
func request(t *testing.T, j runner.Job, model string) int {
	t.Helper()
	body := fmt.Sprintf(`{"model":%q,"max_tokens":1000,"messages":[{"role":"user","content":"hello"}]}`, model)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, j.BaseURL+"/v1/messages", strings.NewReader(body))
	ok(t, err)
	r.Header.Set("X-Api-Key", j.Credential.Secret)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Anthropic-Version", "2023-06-01")
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0
	}
	defer res.Body.Close()
	_, err = io.Copy(io.Discard, res.Body)
	ok(t, err)
	return res.StatusCode
}

// tokenPrice is one micro-dollar a token.
func tokenPrice(_ string, u money.Usage, _ time.Time, _ bool) (money.Nano, bool) {
	return money.Nano(u.Tokens() * 1000), true
}

func behindGateway(t *testing.T, tokens int64) (*world, *[]string) {
	w := newWorld(t, money.NanoUSD)
	url, keys := served(t, tokens)
	w.Mission.Upstream, w.Mission.StepLimit, w.Price = url, 0, tokenPrice
	return w.begin(), keys
}

// TestGatewayOfARun: a run gets a token in place of the login and the address of its gateway, only declared models answer,
// what passed is what it is charged although the program says less, and nobody answers after it.
func TestGatewayOfARun(t *testing.T) {
	w, keys := behindGateway(t, 5000)
	h, err := w.Hold("handoff-1")
	ok(t, err)
	var job runner.Job
	w.fake.do = func(_ context.Context, j runner.Job) (runner.Result, error) {
		job = j
		if j.Credential.Secret == "example" || j.Credential.Secret == "" || j.BaseURL == w.Mission.Upstream {
			t.Errorf("the run got %+v at %s", j.Credential, j.BaseURL)
		}
		if got := request(t, j, "model-x"); got != 200 {
			t.Errorf("status %d", got)
		}
		if got := request(t, j, "model-y"); got == 200 {
			t.Error("another model answered")
		}
		var rec GatewayRecord
		if err := w.Store.Load("agents/codebuilder-1/runs/"+j.Run+"/gateway.json", &rec); err != nil || rec.Charged != 5001_000 {
			t.Errorf("while it runs its record says %+v, %v", rec, err)
		}
		return runner.Result{Verdict: runner.Done, Text: "did it", Spend: runner.Spend{Nano: 7, Tokens: 1, Source: "result"}}, nil
	}
	_, out, err := w.Run(t.Context(), &h, w.ask())
	if out != Moved || err != nil {
		t.Fatal(out, err)
	}
	if b := w.book(); b.Nano != 5001_000 || b.Tokens != 5001 || b.Reserved.N != 0 {
		t.Errorf("charged %+v", b)
	}
	if len(*keys) != 1 || (*keys)[0] != "example" {
		t.Errorf("the model saw %q", *keys)
	}
	if request(t, job, "model-x") != 0 {
		t.Error("the gateway answers after its run")
	}
}

// TestTombstoneClosesTheGateway: with a tombstone no request passes any more.
func TestTombstoneClosesTheGateway(t *testing.T) {
	w, keys := behindGateway(t, 10)
	h, err := w.Hold("handoff-1")
	ok(t, err)
	w.fake.do = func(_ context.Context, j runner.Job) (runner.Result, error) {
		_, err := w.Store.Stop(mission.Stop{Cause: mission.Aborted, By: "person", At: noon})
		ok(t, err)
		if got := request(t, j, "model-x"); got != http.StatusPaymentRequired {
			t.Errorf("status %d", got)
		}
		return runner.Result{Verdict: runner.Killed}, nil
	}
	if _, out, err := w.Run(t.Context(), &h, w.ask()); out != Over || err != nil {
		t.Error(out, err)
	}
	if len(*keys) != 0 {
		t.Error("the model was asked")
	}
}

// TestDeadRunIsChargedItsMark: a run whose tick died is charged what its gateway had let through, and what was under way
// at its most, not all that was reserved.
func TestDeadRunIsChargedItsMark(t *testing.T) {
	for _, mark := range []string{`{"version":1,"unit":"nano_usd","charged":300,"reserved":50}`, `{"version":1,"unit":"nano_usd","charged":0,"reserved":0}`, `{"ver`} {
		w, _ := behindGateway(t, 10)
		h, err := w.Hold("handoff-1")
		ok(t, err)
		w.fake.do = func(_ context.Context, j runner.Job) (runner.Result, error) { return runner.Result{}, nil }
		_, _, err = w.Run(t.Context(), &h, w.ask())
		ok(t, err)
		run := w.fake.jobs[0].Run
		dead := newWorld(t, money.NanoUSD)
		dead.Price = tokenPrice
		dead.begin()
		_, d, err := dead.ledger.Reserve(t.Context(), reserveRequest(run))
		if err != nil || d != money.Admit {
			t.Fatal(d, err)
		}
		ok(t, dead.ledger.Launch(t.Context(), run, noon))
		ok(t, makeRun(dead, run, mark))
		ok(t, dead.settle(t.Context(), run, runner.Result{}))
		want := int64(2 * dollar)
		var rec GatewayRecord
		if json.Unmarshal([]byte(mark), &rec) == nil {
			want = rec.Sum()
		}
		if b := dead.book(); int64(b.Nano) != want || b.Reserved.N != 0 {
			t.Errorf("%s: charged %d, want %d", mark, b.Nano, want)
		}
	}
}

// TestTooLittleForARequest: a share that does not cover the first request is no attempt; all that is free is tried, and then
// the mission halts.
func TestTooLittleForARequest(t *testing.T) {
	w, keys := behindGateway(t, 10)
	w.Price = func(string, money.Usage, time.Time, bool) (money.Nano, bool) { return money.Nano(11 * dollar), true }
	h, err := w.Hold("handoff-1")
	ok(t, err)
	w.fake.do = func(_ context.Context, j runner.Job) (runner.Result, error) {
		if got := request(t, j, "model-x"); got != http.StatusPaymentRequired {
			t.Errorf("status %d", got)
		}
		return runner.Result{Verdict: runner.Failed, Class: "budget"}, nil
	}
	for i, want := range []Outcome{Later, Over} {
		if _, out, err := w.Run(t.Context(), &h, w.ask()); out != want || err != nil || h.Runs != 0 {
			t.Errorf("run %d: %v, %v, %+v", i, out, err, h)
		}
	}
	if s, err := w.Store.Stopped(); err != nil || s == nil || s.Cause != mission.Budget {
		t.Errorf("%+v, %v", s, err)
	}
	if len(*keys) != 0 || w.book().Nano != 0 {
		t.Error("something was spent")
	}
}

// TestStepAtItsLimit: a step that used up its own limit gets no further run, whoever else still may.
func TestStepAtItsLimit(t *testing.T) {
	w, _ := behindGateway(t, 10)
	w.Mission.StepLimit = dollar / 2
	h, err := w.Hold("handoff-1")
	ok(t, err)
	w.fake.do = func(context.Context, runner.Job) (runner.Result, error) {
		return runner.Result{Verdict: runner.Failed, Class: "budget", Spend: runner.Spend{Nano: money.Nano(dollar / 2), Tokens: 1}}, nil
	}
	_, _, err = w.Run(t.Context(), &h, w.ask())
	ok(t, err)
	res, out, err := w.Run(t.Context(), &h, w.ask())
	if res.Class != StepLimit || out != Moved || err != nil || len(w.fake.jobs) != 1 {
		t.Errorf("%+v, %v, %v, %d runs", res, out, err, len(w.fake.jobs))
	}
	if stop, _ := w.Store.Stopped(); stop != nil {
		t.Errorf("the mission stopped: %+v", stop)
	}
}

// TestShort: runs are told when money is short, and get the cheaper model and no more when it is tight.
func TestShort(t *testing.T) {
	for _, c := range []struct {
		spent  int64
		told   bool
		model  string
		tokens int64
	}{{6, false, "model-x", 0}, {7, true, "model-x", 0}, {8, true, "model-x", 0}, {9, true, "model-s", 0}} {
		w := newWorld(t, money.NanoUSD)
		w.Mission.CheapModel = "model-s"
		w.begin()
		ok(t, w.ledger.Spend(t.Context(), "before", spentOf(c.spent*dollar), noon))
		h, err := w.Hold("handoff-1")
		ok(t, err)
		w.fake.do = func(_ context.Context, j runner.Job) (runner.Result, error) {
			if strings.Contains(j.Prompt, "Money is short") != c.told || j.Model != c.model {
				t.Errorf("$%d used: model %s, prompt %q", c.spent, j.Model, j.Prompt)
			}
			return done(), nil
		}
		_, _, err = w.Run(t.Context(), &h, w.ask())
		ok(t, err)
	}
}

func reserveRequest(run string) ledger.ReserveRequest {
	return ledger.ReserveRequest{Run: run, Agent: "codebuilder-1", Step: "a", Model: "model-x", StepLimit: 2 * dollar, AgentsDue: 1, Now: noon}
}

func spentOf(nano int64) ledger.Spent { return ledger.Spent{Nano: money.Nano(nano), Tokens: 1} }

// makeRun lays out the folder of a run of which only the gateway's record is left.
func makeRun(w *world, run, mark string) error {
	dir := w.Store.Run("codebuilder-1", run)
	return errors.Join(os.MkdirAll(dir, 0o700), os.WriteFile(filepath.Join(dir, "gateway.json"), []byte(mark), 0o600))
}

// TestCapsOfAllMissions: what all missions may spend bounds a run, one that is used up pauses and spends nothing, and what
// was spent is counted there also when the tick that settles is another one.
func TestCapsOfAllMissions(t *testing.T) {
	w, keys := behindGateway(t, 100_000)
	w.Caps = func() (caps.Limits, error) { return caps.Limits{Day: money.Nano(dollar / 5)}, nil }
	h, err := w.Hold("handoff-1")
	ok(t, err)
	w.fake.do = func(_ context.Context, j runner.Job) (runner.Result, error) {
		if j.Cap != money.Nano(dollar/5) {
			t.Errorf("cap %d", j.Cap)
		}
		request(t, j, "model-x")
		return done(), nil
	}
	_, out, err := w.Run(t.Context(), &h, w.ask())
	if out != Moved || err != nil {
		t.Fatal(out, err)
	}
	h.Run = ""
	w.fake.do = func(_ context.Context, j runner.Job) (runner.Result, error) {
		if got := request(t, j, "model-x"); got != 200 {
			t.Errorf("status %d", got)
		}
		return done(), nil
	}
	if _, out, err = w.Run(t.Context(), &h, w.ask()); out != Later || err != nil { // $0.10 are used, and a run has at least that
		if out != Moved {
			t.Fatal(out, err)
		}
	}
	_, out, err = w.Run(t.Context(), &h, w.ask())
	pauses, perr := w.Store.Pauses(w.Now())
	if out != Later || err != nil || perr != nil || len(pauses) != 1 || !strings.Contains(pauses[0].Reason, "all missions") {
		t.Errorf("%v, %v, %+v, %v", out, err, pauses, perr)
	}
	s, err := w.host().Standings(caps.Limits{Day: money.Nano(dollar / 5)}, w.Now())
	if err != nil || len(s) != 1 || s[0].Used > s[0].Cap || s[0].Reserved != 0 || s[0].Used != money.Nano(len(*keys))*100_001_000 {
		t.Errorf("%+v, %v, %d requests", s, err, len(*keys))
	}
	if b := w.book(); b.Reserved.N != 0 || b.Nano != s[0].Used {
		t.Errorf("the mission's ledger says %+v", b)
	}
}
