package bridge

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"example.com/AutoAgentProject/core/mission"
	"example.com/AutoAgentProject/core/plan"
	"example.com/AutoAgentProject/core/view"
)

// TestPicture: whatever the plan, every step is drawn once, none on another one, all of it in the frame, what builds on something
// behind it, and the baton is somewhere.
func TestPicture(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	states := []plan.State{plan.Waiting, plan.Assigned, plan.Working, plan.Done, plan.Failed}
	for n := range 200 {
		d := view.Detail{Mission: view.Mission{ID: "m", Phase: "working"}}
		for i := range n % 23 {
			s := view.Step{ID: fmt.Sprint("s", i), Title: strings.Repeat("word ", random.IntN(9)), State: states[random.IntN(len(states))], Agent: "codebuilder-1"}
			for j := range i {
				if random.IntN(4) == 0 {
					s.DependsOn = append(s.DependsOn, fmt.Sprint("s", j))
				}
			}
			if random.IntN(20) == 0 { // what no accepted plan has
				s.DependsOn = append(s.DependsOn, "nowhere", s.ID, fmt.Sprint("s", i+1))
			}
			d.Steps = append(d.Steps, s)
		}
		for _, tall := range []bool{false, true} {
			p := draw(d, tall)
			if len(p.Nodes) != len(d.Steps)+2 {
				t.Fatalf("%d nodes for %d steps", len(p.Nodes), len(d.Steps))
			}
			batons := 0
			for i, a := range p.Nodes {
				if a.Baton {
					batons++
				}
				if a.X < 0 || a.Y < 0 || a.X+a.W > p.W || a.Y+a.H > p.H {
					t.Fatalf("outside of %d x %d: %+v", p.W, p.H, a)
				}
				for _, b := range p.Nodes[:i] {
					if a.X < b.X+b.W && b.X < a.X+a.W && a.Y < b.Y+b.H && b.Y < a.Y+a.H {
						t.Fatalf("%+v lies on %+v", a, b)
					}
				}
			}
			if batons == 0 || len(p.Edges) < len(d.Steps)+1 {
				t.Errorf("%d batons, %d edges, %d steps", batons, len(p.Edges), len(d.Steps))
			}
		}
	}
	d := view.Detail{Mission: view.Mission{ID: "m", Phase: "completed", Stop: &mission.Stop{Cause: mission.Completed}, Steps: []view.Step{{ID: "a", State: plan.Done}}}}
	if p := draw(d, false); !p.Nodes[2].Baton || p.Nodes[0].Baton || p.Nodes[1].Baton {
		t.Errorf("%+v", p.Nodes)
	}
	d.Stop.Cause, d.Phase, d.Steps[0].State = mission.Budget, "halted: budget", plan.Working
	if p := draw(d, false); !p.Nodes[1].Baton { // where it stopped
		t.Errorf("%+v", p.Nodes)
	}
}

// TestFlowPicture: the stations of a flow in their order, the baton where it is, and each leads to its latest visit.
func TestFlowPicture(t *testing.T) {
	d := view.Detail{Mission: view.Mission{ID: "m", Phase: "working", Steps: []view.Step{{ID: "v1", State: plan.Done}}}, Flow: []view.Station{
		{ID: "spec", Title: "Spec", Profession: "ideator", State: plan.Done, Visit: "v1", Visits: 1, Next: []string{"build"}},
		{ID: "build", Title: "Build", Profession: "codebuilder", State: plan.Working, Visit: "v3", Visits: 2, Holds: true, Next: []string{"judge"}},
		{ID: "judge", Title: "Judge", Profession: "reviewer", State: plan.Waiting, Next: []string{}, Back: "build"}}}
	p := draw(d, false)
	if len(p.Nodes) != 5 || p.Nodes[1].Href != "/missions/m/tasks/v1" || p.Nodes[2].Href != "/missions/m/tasks/v3" || p.Nodes[3].Href != "" || p.Nodes[0].Baton || !p.Nodes[2].Baton || p.Nodes[1].Baton ||
		!(p.Nodes[1].X < p.Nodes[2].X && p.Nodes[2].X < p.Nodes[3].X) || !strings.Contains(p.Nodes[3].Tip, "back to build") || p.Said != "The flow: 1 of 3 stations are done. The baton is at: Build." {
		t.Errorf("%+v", p)
	}
}

func TestTimes(t *testing.T) {
	for d, want := range map[time.Duration]string{0: "0s", -time.Second: "0s", 59 * time.Second: "59s", time.Minute: "1m", 90 * time.Second: "1m 30s", time.Hour: "1h", 100 * time.Minute: "1h 40m", 49 * time.Hour: "2d 1h", 48 * time.Hour: "2d"} {
		if got := took(d); got != want {
			t.Errorf("%s: %q", d, got)
		}
	}
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for d, want := range map[time.Duration]string{0: "now", -30 * time.Second: "in 30 s", 5 * time.Minute: "5 min ago", 50 * time.Hour: "2 days ago"} {
		if got := since(now.Add(-d), now); got != want {
			t.Errorf("%s: %q", d, got)
		}
	}
	for n, want := range map[int64]string{-1: "–", 5: "5 B", 1500: "1.5 kB", 2_000_000: "2.0 MB", 1 << 30: "1.1 GB"} {
		if got := size(n); got != want {
			t.Errorf("%d: %q", n, got)
		}
	}
	// An even axis, whatever the span.
	for span := time.Second; span < 2000*time.Hour; span = span * 3 / 2 {
		marks := ticks(now, now.Add(span), func(time.Time) int { return 0 })
		if len(marks) > 9 || span > 8*time.Second && len(marks) < 1 {
			t.Errorf("%s: %d", span, len(marks))
		}
	}
}

// TestReportIsText: in a report nothing of an agent's is markup, in either form.
func TestReportIsText(t *testing.T) {
	evil := "<script>x</script> [a](javascript:x) | `b` **c** \n# d"
	d := view.Detail{Mission: view.Mission{ID: "m", Phase: "working", Goal: evil, Payer: evil, Warnings: []string{evil}, CreatedAt: time.Now().Add(-time.Hour),
		Steps: []view.Step{{ID: "a", Title: evil, Summary: evil, Reason: evil, State: plan.Failed}}, Needs: []view.Need{{Title: evil, Commands: []string{"x"}}}},
		GoalText: view.Text{Text: "```\n" + evil + "\n````\n<b>"}}
	d.Work.Commit, d.Work.Commits = strings.Repeat("a", 40), []view.Commit{{ID: strings.Repeat("a", 40), Subject: evil, Author: evil}}
	text := string(Markdown(d, "1", time.Now()))
	outside := text[:strings.Index(text, "`````text")] + text[strings.LastIndex(text, "`````"):]
	for _, bad := range []string{"<script", "[a](", " **c", "\n# d", " `b`"} {
		if strings.Contains(outside, bad) {
			t.Errorf("Markdown has %q:\n%s", bad, outside)
		}
	}
	page, err := HTML(d, "1", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	for _, bad := range []string{"<script", "javascript:x)\"", "href=\"/", "src=", "@import", "url("} {
		if strings.Contains(string(page), bad) {
			t.Errorf("the page has %q", bad)
		}
	}
}
