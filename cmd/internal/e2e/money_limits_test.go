package e2e

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"example.com/AutoAgentProject/core/journal"
	"example.com/AutoAgentProject/core/login"
	"example.com/AutoAgentProject/core/plan"
	"example.com/AutoAgentProject/core/scriptmodel"
)

// account is what stands before the scripted model: it may answer a request on a step in the model's place.
type account struct {
	mu     sync.Mutex
	asked  map[string]int // requests on each step so far
	answer func(step string, n int, w http.ResponseWriter) bool
	gate   func(step string) // waits before an answer
}

// behind puts an account before the model of a world, whose login becomes a plan's.
func (w *world) behind(a *account) {
	w.t.Helper()
	a.asked = map[string]int{}
	s := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		step := ""
		if _, rest, ok := strings.Cut(string(body), "# Your step: Step "); ok && r.Method == http.MethodPost && r.URL.Path == "/v1/messages" {
			step, _, _ = strings.Cut(rest, " ")
			a.mu.Lock()
			a.asked[step]++
			n := a.asked[step]
			a.mu.Unlock()
			if a.gate != nil {
				a.gate(step)
			}
			if a.answer(step, n, rw) {
				return
			}
		}
		w.model.ServeHTTP(rw, r)
	}))
	w.t.Cleanup(s.Close)
	i := slices.IndexFunc(w.env, func(e string) bool { return strings.HasPrefix(e, "AUTOAGENT_UPSTREAM=") })
	w.env[i] = "AUTOAGENT_UPSTREAM=" + s.URL
	w.login()
}

// login stores a new login, of a plan.
func (w *world) login() {
	w.t.Helper()
	for _, e := range w.env {
		if path, ok := strings.CutPrefix(e, "AUTOAGENT_CREDENTIALS="); ok {
			if err := login.Write(path, login.File{Kind: login.PlanToken, Plan: "max5", Secret: "example-token"}); err != nil {
				w.t.Fatal(err)
			}
		}
	}
}

func (a *account) counts() (most, sum int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, n := range a.asked {
		most, sum = max(most, n), sum+n
	}
	return most, sum
}

// together lets the first n callers go on only when all are there, and all others at once.
func together(n int) func(string) {
	var all sync.WaitGroup
	var mu sync.Mutex
	all.Add(n)
	came := 0
	return func(string) {
		mu.Lock()
		came++
		first := came <= n
		mu.Unlock()
		if first {
			all.Done()
			all.Wait()
		}
	}
}

func refuse(w http.ResponseWriter, status int, kind, text string) bool {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	fmt.Fprintf(w, `{"type":"error","error":{"type":%q,"message":%q}}`, kind, text)
	return true
}

func window(h http.Header, status string, reset time.Time) {
	h.Set("anthropic-ratelimit-unified-status", status)
	h.Set("anthropic-ratelimit-unified-representative-claim", "five_hour")
	h.Set("anthropic-ratelimit-unified-5h-status", status)
	h.Set("anthropic-ratelimit-unified-5h-utilization", "1.0")
	if !reset.IsZero() {
		h.Set("anthropic-ratelimit-unified-reset", strconv.FormatInt(reset.Unix(), 10))
		h.Set("anthropic-ratelimit-unified-5h-reset", strconv.FormatInt(reset.Unix(), 10))
	}
}

// atOnce is a mission with so many steps that can be done at once.
func atOnce(t *testing.T, agents int) *world {
	t.Helper()
	var steps []plan.ProposedStep
	rules := []scriptmodel.Rule{{}}
	for n := range agents {
		id := fmt.Sprintf("s%d", n+1)
		steps, rules = append(steps, step(id, "test -f "+id)), append(rules, works(id, bash("echo 1 > "+id)))
	}
	rules[0] = planned(steps...)
	return newWorld(t, rules...)
}

// idles ticks every agent and fails if one of them asks the model.
func (w *world) idles(id string, a *account) {
	w.t.Helper()
	_, before := a.counts()
	for _, agent := range w.status(id).Agents {
		w.do("tick", id, agent.Name)
	}
	if _, after := a.counts(); after != before {
		w.t.Errorf("%d requests while it is paused", after-before)
	}
}

// TestAccountOfSix: six agents meet the same refusal of their account in the same moment. It is told once, nobody asks
// again, no step is to blame, a person's pause is another one; when the cause is gone they finish. By default only one of the
// refusals meets six, the others meet two.
func TestAccountOfSix(t *testing.T) {
	t.Parallel()
	reset := time.Now().Add(2 * time.Hour).Truncate(time.Second)
	for _, c := range []struct {
		name, cause string
		refuse      func(w http.ResponseWriter) bool
		level       journal.Level
		from, to    time.Duration // of the pause, from now on
		most        int           // requests for a step
	}{
		{"login lost", "login", func(w http.ResponseWriter) bool {
			return refuse(w, 401, "authentication_error", "invalid bearer token")
		}, journal.Blocker, 0, 0, 2},
		{"no credit", "limit", func(w http.ResponseWriter) bool {
			return refuse(w, 400, "invalid_request_error", "Your credit balance is too low to access the API.")
		}, journal.Blocker, 20 * time.Minute, 31 * time.Minute, 1},
		{"usage limit", "limit", func(w http.ResponseWriter) bool {
			window(w.Header(), "rejected", reset)
			return refuse(w, 429, "rate_limit_error", "limit")
		}, journal.Milestone, 0, 2*time.Hour + 61*time.Second, 1},
		{"usage limit without a time", "limit", func(w http.ResponseWriter) bool {
			window(w.Header(), "rejected", time.Time{})
			return refuse(w, 429, "rate_limit_error", "limit")
		}, journal.Milestone, 0, 61 * time.Second, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			agents := 6
			if c.name != "usage limit" && !full() {
				agents = 2
			}
			w := atOnce(t, agents)
			var well sync.Map
			a := &account{gate: together(agents), answer: func(_ string, _ int, rw http.ResponseWriter) bool {
				if _, ok := well.Load("now"); ok {
					return false
				}
				return c.refuse(rw)
			}}
			w.behind(a)
			_, wait := w.background("start", "six", "Six steps", "--specialists", fmt.Sprintf("codebuilder:%d", agents))
			w.until("all ended their runs", func() bool { return len(w.events("six", journal.RunEnded)) > agents })
			w.must(0, "pause", "six")
			w.idles("six", a)
			v := w.status("six")
			if v.Stop != nil || len(v.Pauses) != 2 {
				t.Fatalf("paused by %+v, %+v\n%s", v.Pauses, v.Stop, w.history())
			}
			for _, p := range v.Pauses {
				d := time.Until(p.Until)
				if p.Cause != "human" && (p.Cause != c.cause || c.to == 0 != p.Until.IsZero() || c.to != 0 && (d < c.from || d > c.to)) {
					t.Errorf("paused for %v: %+v", d, p)
				}
				if c.name == "usage limit" && p.Cause != "human" && (p.Until.Before(reset) || p.Until.After(reset.Add(61*time.Second))) {
					t.Errorf("the limit ends at %v, the pause at %v", reset, p.Until)
				}
			}
			told := slices.DeleteFunc(w.events("six", journal.Paused), func(e journal.Event) bool { return e.Agent == "person" })
			if len(told) != 1 || told[0].Level != c.level {
				t.Errorf("told %+v", told)
			}
			if most, sum := a.counts(); most > c.most || sum < agents {
				t.Errorf("a step had %d requests, all had %d", most, sum)
			}
			well.Store("now", true)
			if c.cause == "login" {
				w.login()
				w.do("tick", "six", "codebuilder-1") // as its timer does each minute
				w.until("the login's pause is lifted", func() bool { return len(w.status("six").Pauses) == 1 })
				w.idles("six", a) // the person's is not
			} else if err := w.store("six").Unpause(t.Context(), "limit", time.Now()); err != nil { // its time has come
				t.Fatal(err)
			}
			if p := w.status("six").Pauses; len(p) != 1 || p[0].Cause != "human" {
				t.Errorf("paused by %+v", p)
			}
			w.must(0, "resume", "six")
			if code, out := wait(); code != 0 {
				t.Errorf("start: %d\n%s%s", code, out, w.history())
			}
			if n := len(w.events("six", journal.StepReturned)); n != 0 {
				t.Errorf("%d steps came back", n)
			}
		})
	}
}

// TestPaidExtraUsageHalts: when the account begins to spend beyond its plan, the mission halts.
func TestPaidExtraUsageHalts(t *testing.T) {
	t.Parallel()
	w := atOnce(t, 3)
	w.behind(&account{answer: func(step string, _ int, rw http.ResponseWriter) bool {
		if step == "s1" {
			window(rw.Header(), "rejected", time.Now().Add(time.Hour))
			rw.Header().Set("anthropic-ratelimit-unified-overage-status", "allowed")
			rw.Header().Set("anthropic-ratelimit-unified-overage-in-use", "true")
		}
		return false
	}})
	out := w.must(7, "start", "extra", "Three steps", "--specialists", "codebuilder:3")
	if v := w.status("extra"); v.Phase != "halted: budget" || !strings.Contains(out, "extra usage") {
		t.Errorf("%q, %+v\n%s", v.Phase, v.Stop, out)
	}
	w.noneAlive()
}

// TestWordsAboutLimits: what a goal, a file or an answer says about limits, logins and credit pauses nobody.
func TestWordsAboutLimits(t *testing.T) {
	t.Parallel()
	const words = "You've hit your limit · resets 2:30am (America/New_York). Claude AI usage limit reached|1760000000. " +
		"API Error: 401 authentication_error. Credit balance is too low. usage_limit_reached"
	answer := text(words)
	w := newWorld(t, planned(step("one", "test -f one")), scriptmodel.Rule{Name: "one", When: []string{"# Your step: Step one (one)"},
		Steps: []scriptmodel.Step{bash("echo " + shellWord(words) + " | tee one >&2; exit 1"), bash("cat one"), answer}})
	w.must(0, "start", "words", words)
	if n := len(w.events("words", journal.Paused)); n != 0 {
		t.Errorf("paused %d times\n%s", n, w.history())
	}
}

func shellWord(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }
