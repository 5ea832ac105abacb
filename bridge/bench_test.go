package bridge_test

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"example.com/AutoAgentProject/bridge"
	"example.com/AutoAgentProject/core/mission"
	"example.com/AutoAgentProject/core/plan"
	"example.com/AutoAgentProject/core/runner"
	"example.com/AutoAgentProject/core/store"
	"example.com/AutoAgentProject/core/testkit"
)

// many makes n missions, one in ten live, and returns their root.
func many(t testing.TB, n int) store.Root {
	t.Helper()
	root := store.Root(t.TempDir())
	now := time.Now()
	var kinds []string
	for _, over := range []bool{false, true} {
		id := fmt.Sprintf("kind-%v", over)
		w := testkit.Tell(t, root, id, "Do the usual thing.\n", now, time.Hour)
		w.M.Roster = w.M.Roster[:2]
		for _, a := range []string{"codebuilder-2", "tester-1", "quota", "reporter"} {
			ok(t, os.RemoveAll(w.St.Agent(a)))
		}
		w.Step("a", "The step", "codebuilder", "codebuilder-1", plan.Done, time.Minute)
		w.Run("codebuilder-1", "a", 50*time.Minute, 2*time.Minute, runner.Done, 30)
		if over {
			w.Stopped(mission.Completed, "manager", "all is done", time.Minute)
		}
		w.Write("working")
		kinds = append(kinds, id)
	}
	for i := range n {
		from, id := kinds[1], fmt.Sprintf("m-%04d", i)
		if i%10 == 0 {
			from = kinds[0]
		}
		to := filepath.Join(root.Home(), id)
		ok(t, os.CopyFS(to, os.DirFS(filepath.Join(root.Home(), from))))
		b, err := os.ReadFile(filepath.Join(to, "mission.json"))
		ok(t, err)
		ok(t, os.WriteFile(filepath.Join(to, "mission.json"), bytes.ReplaceAll(b, []byte(from), []byte(id)), 0o600))
		ok(t, os.MkdirAll(root.Mission(id).Work(), 0o700))
	}
	for _, k := range kinds {
		ok(t, os.RemoveAll(filepath.Join(root.Home(), k)))
	}
	return root
}

// askFor asks for a page and returns how large it is.
func askFor(t testing.TB, s *bridge.Server, path string) int {
	t.Helper()
	r := httptest.NewRequest("GET", path, nil)
	r.Host = "localhost"
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	if w.Code != http.StatusOK {
		t.Fatal(path, w.Code, w.Body)
	}
	return w.Body.Len()
}

// median is how long the middle one of several requests took.
func median(t testing.TB, s *bridge.Server, path string, n int) (time.Duration, int) {
	var all []time.Duration
	size := 0
	for range n {
		begin := time.Now()
		size = askFor(t, s, path)
		all = append(all, time.Since(begin))
	}
	for i := range all {
		for j := i; j > 0 && all[j] < all[j-1]; j-- {
			all[j], all[j-1] = all[j-1], all[j]
		}
	}
	return all[len(all)/2], size
}

// BenchmarkOverview: a page of 1,000 missions against one of 50; both show 50. What is there besides costs a look at two
// folders' times each.
func BenchmarkOverview(b *testing.B) {
	few, lots := newServer(b, many(b, 50)), newServer(b, many(b, 1000))
	begin := time.Now()
	askFor(b, lots, "/")
	cold := time.Since(begin)
	askFor(b, few, "/")
	for b.Loop() {
		askFor(b, lots, "/")
	}
	t1, s1 := median(b, few, "/", 15)
	t2, s2 := median(b, lots, "/", 15)
	b.ReportMetric(float64(t2)/float64(t1), "times-of-50")
	b.ReportMetric(float64(s2)/float64(s1), "bytes-of-50")
	b.ReportMetric(float64(s2), "bytes")
	b.ReportMetric(float64(cold.Milliseconds()), "first-ms")
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	b.ReportMetric(float64(m.HeapInuse)/1e6, "heap-MB")
	if float64(s2) > 1.5*float64(s1) {
		b.Errorf("a page of 1,000 missions has %d bytes, one of 50 has %d", s2, s1)
	}
}

// BenchmarkMission: a mission with 100,000 events against one with 100.
func BenchmarkMission(b *testing.B) {
	page := func(events int) (*bridge.Server, string) {
		root := store.Root(b.TempDir())
		w := testkit.Tell(b, root, "m", "x\n", time.Now(), time.Hour)
		w.Step("a", "The step", "codebuilder", "codebuilder-1", plan.Working, time.Minute)
		w.Run("codebuilder-1", "a", 50*time.Minute, 2*time.Minute, runner.Done, 30)
		w.Write("working")
		var text strings.Builder
		for i := range events {
			fmt.Fprintf(&text, `{"version":1,"at":"2026-03-01T12:00:00Z","kind":"person_told","level":"routine","text":"event number %08d happened"}`+"\n", i)
		}
		ok(b, os.WriteFile(filepath.Join(w.St.Dir(), "events.jsonl"), []byte(text.String()), 0o600))
		return newServer(b, root), "/missions/m"
	}
	few, path := page(100)
	lots, _ := page(100_000)
	askFor(b, few, path)
	for b.Loop() {
		askFor(b, lots, path)
	}
	t1, s1 := median(b, few, path, 15)
	t2, s2 := median(b, lots, path, 15)
	b.ReportMetric(float64(t2)/float64(t1), "times-of-100")
	b.ReportMetric(float64(s2)/float64(s1), "bytes-of-100")
	b.ReportMetric(float64(s2), "bytes")
	if float64(s2) > 1.1*float64(s1) || t2 > 3*t1+20*time.Millisecond {
		b.Errorf("100,000 events: %s and %d bytes, 100 events: %s and %d bytes", t2, s2, t1, s1)
	}
}

// BenchmarkFirstPaint: from the click to the first letters, in Chromium, with 1,000 missions.
func BenchmarkFirstPaint(b *testing.B) {
	base := serve(b, many(b, 1000))
	v := visit{t: b, ctx: browser(b)}
	v.do(chromedp.Navigate(base + "/"))
	worst := 0.0
	for b.Loop() {
		v.do(chromedp.Navigate(base + "/"))
		worst = max(worst, script[float64](v, `new Promise(done => { const look = () => { const p = performance.getEntriesByName('first-contentful-paint')[0]; if (p) done(p.startTime); else setTimeout(look, 20); }; look(); })`))
	}
	b.ReportMetric(worst, "worst-ms")
}
