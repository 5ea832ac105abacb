package bridge

import (
	"bytes"
	"cmp"
	"fmt"
	"html/template"
	"maps"
	"slices"
	"strings"
	"time"

	"example.com/AutoAgentProject/core/money"
	"example.com/AutoAgentProject/core/plan"
	"example.com/AutoAgentProject/core/view"
)

// report is what is told of a mission in one file.
type report struct {
	D       view.Detail
	Phase   string
	Facts   []string
	Steps   []stepTold
	Agents  []string // what each cost
	Open    []string
	Plan    picture
	Lanes   lanes
	Chart   chart
	Style   template.CSS
	Now     time.Time
	Version string
}

type stepTold struct {
	view.Step
	Cost string
}

func tell(d view.Detail, version string, now time.Time) report {
	r := report{D: d, Phase: d.Phase, Version: version, Now: now.UTC(), Plan: draw(d, false), Lanes: timeline(d), Chart: burnChart(d)}
	for i := range r.Plan.Nodes {
		r.Plan.Nodes[i].Href = "" // there is nothing that they could lead to
	}
	for i := range r.Lanes.Bars {
		r.Lanes.Bars[i].Href = ""
	}
	if d.Stop != nil {
		r.Phase = d.Stop.Cause.Phase() // it may be written while the stop is still being carried out
		r.Facts = append(r.Facts, d.Stop.Reason+" (by "+d.Stop.By+")")
	}
	if !d.CreatedAt.IsZero() {
		r.Facts = append(r.Facts, "began "+d.CreatedAt.UTC().Format("2006-01-02 15:04 UTC"))
		if d.Stop != nil && d.Stop.At.After(d.CreatedAt) {
			r.Facts = append(r.Facts, "took "+took(d.Stop.At.Sub(d.CreatedAt)))
		}
	}
	for _, f := range []string{d.Payer, d.Model, d.Result} {
		if f != "" {
			r.Facts = append(r.Facts, f)
		}
	}
	for _, s := range d.Steps {
		c := d.ByStep[s.ID]
		r.Steps = append(r.Steps, stepTold{s, fmt.Sprintf("%s in %s", money.FormatUSD(c.Nano), plural(c.Runs, "run"))})
		if s.State != plan.Done {
			text := fmt.Sprintf("Step %s is %s: %s", s.ID, s.State, s.Title)
			if s.Reason != "" {
				text += " (" + s.Reason + ")"
			}
			r.Open = append(r.Open, text)
		}
	}
	if c, ok := d.ByStep[""]; ok {
		r.Steps = append(r.Steps, stepTold{view.Step{ID: "–", Title: "Planning", Agent: "manager", State: plan.Done}, fmt.Sprintf("%s in %s", money.FormatUSD(c.Nano), plural(c.Runs, "run"))})
	}
	names := slices.SortedFunc(maps.Keys(d.ByAgent), func(a, b string) int {
		return cmp.Or(cmp.Compare(d.ByAgent[b].Nano, d.ByAgent[a].Nano), cmp.Compare(a, b))
	})
	for _, n := range names {
		c := d.ByAgent[n]
		r.Agents = append(r.Agents, fmt.Sprintf("%s %s in %s, %s tokens", n, money.FormatUSD(c.Nano), plural(c.Runs, "run"), money.FormatTokens(c.Tokens)))
	}
	if d.Verify != "" && !d.Final.Passed {
		r.Open = append(r.Open, "The verify of the whole did not pass: "+d.Verify)
	}
	for _, n := range d.Needs {
		r.Open = append(r.Open, n.Title+": "+strings.Join(n.Commands, ", then or "))
	}
	return r
}

func plural(n int, word string) string {
	if n == 1 {
		return "1 " + word
	}
	return fmt.Sprintf("%d %ss", n, word)
}

// HTML is the report of a mission as one page that needs nothing else.
func HTML(d view.Detail, version string, now time.Time) ([]byte, error) {
	p, err := loadPages()
	if err != nil {
		return nil, err
	}
	style, err := assets.ReadFile("static/style.css")
	if err != nil {
		return nil, err
	}
	r := tell(d, version, now)
	r.Style = template.CSS(style) // ours
	var b bytes.Buffer
	err = p["report"].ExecuteTemplate(&b, "report", r)
	return b.Bytes(), err
}

// Markdown is the report of a mission as text, in which whatever an agent or a goal says is text.
func Markdown(d view.Detail, version string, now time.Time) []byte {
	r := tell(d, version, now)
	var b strings.Builder
	say := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	say("# %s: %s", md(d.ID), md(r.Phase))
	say("")
	for _, f := range r.Facts {
		say("* %s", md(f))
	}
	say("* %s used of %s (%d%%), %s of time, %d of %d steps done, %s", md(money.Amount{Unit: d.Budget.Unit, N: d.Budget.Used}.String()), md(money.Amount{Unit: d.Budget.Unit, N: d.Budget.Total}.String()),
		d.Budget.Percent, took(time.Duration(d.Time.Used)), done(d.Steps), len(d.Steps), plural(d.Runs.Total, "run"))
	for _, w := range d.Warnings {
		say("* warning: %s", md(w))
	}
	say("")
	say("## Goal")
	say("")
	say("%s", fenced(d.GoalText.Text))
	say("")
	say("## What was done, by whom, at what cost")
	say("")
	say("| step | what | state | by | cost |")
	say("|---|---|---|---|---|")
	for _, s := range r.Steps {
		what := md(s.Title)
		if s.Summary != "" {
			what += ": " + md(s.Summary)
		}
		say("| %s | %s | %s | %s | %s |", md(s.ID), what, md(string(s.State)), md(s.Agent), md(s.Cost))
	}
	say("")
	for _, a := range r.Agents {
		say("* %s", md(a))
	}
	if len(d.Approvals) > 0 {
		say("")
		say("## Decisions")
		say("")
		for _, a := range d.Approvals {
			said := "not answered"
			if a.Decision != nil {
				said = a.Decision.Said()
			}
			say("* %d. %s: %s", a.N, md(a.Title), md(said))
		}
	}
	if d.Work.Commit != "" {
		say("")
		say("## Checkpoints")
		say("")
		for _, c := range d.Work.Commits {
			say("* `%s` %s (%s, %s)", short(c.ID), md(c.Subject), md(c.Author), c.At.UTC().Format("2006-01-02 15:04 UTC"))
		}
		say("")
		say("## What changed")
		say("")
		for _, f := range d.Work.Changed {
			if f.Added < 0 {
				say("* %s, not text", md(f.Path))
				continue
			}
			say("* %s +%d −%d", md(f.Path), f.Added, f.Deleted)
		}
	}
	say("")
	say("## What is open")
	say("")
	for _, o := range r.Open {
		say("* %s", md(o))
	}
	if len(r.Open) == 0 {
		say("Nothing.")
	}
	say("")
	say("Written %s by AutoAgentProject %s.", r.Now.Format("2006-01-02 15:04 UTC"), md(version))
	return []byte(b.String())
}

// md is a text on one line in which nothing is markup.
func md(s string) string {
	var b strings.Builder
	for _, r := range view.Line(s, 1000) {
		switch r {
		case '<':
			b.WriteString("&lt;")
		case '>':
			b.WriteString("&gt;")
		case '&':
			b.WriteString("&amp;")
		case '\\', '`', '*', '_', '[', ']', '|', '#', '~', '!', '$':
			b.WriteByte('\\')
			b.WriteRune(r)
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// fenced is a text word for word, behind a fence longer than any in it.
func fenced(s string) string {
	fence := "```"
	for strings.Contains(s, fence) {
		fence += "`"
	}
	return fence + "text\n" + strings.TrimRight(s, "\n") + "\n" + fence
}
