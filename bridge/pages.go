package bridge

import (
	"bytes"
	"fmt"
	"html/template"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"example.com/AutoAgentProject/core/journal"
	"example.com/AutoAgentProject/core/mission"
	"example.com/AutoAgentProject/core/money"
	"example.com/AutoAgentProject/core/plan"
	"example.com/AutoAgentProject/core/view"
)

// pages are the templates, by page; each is run as "layout".
type pages map[string]*template.Template

// page is what every page is made of.
type page struct {
	Title   string
	Crumbs  []crumb
	Live    string // query of the live stream; empty: the page does not change
	Data    any
	Version string
	Now     time.Time
}

type crumb struct{ Text, Href string }

func loadPages() (pages, error) {
	base, err := template.New("base").Option("missingkey=error").Funcs(functions()).ParseFS(assets, "templates/layout.html", "templates/parts.html")
	if err != nil {
		return nil, fmt.Errorf("templates of pages: %w", err)
	}
	out := pages{}
	for _, name := range []string{"overview", "mission", "run", "task", "file", "error", "report"} {
		t, err := base.Clone()
		if err == nil {
			t, err = t.ParseFS(assets, "templates/"+name+".html")
		}
		if err != nil {
			return nil, fmt.Errorf("template of the page %s: %w", name, err)
		}
		out[name] = t
	}
	return out, nil
}

// show makes a page whole before its first byte is sent.
func (s *Server) show(w http.ResponseWriter, r *http.Request, name string, p page) error {
	p.Version, p.Now = s.cfg.Version, s.now()
	var b bytes.Buffer
	if err := s.pages[name].ExecuteTemplate(&b, "layout", p); err != nil {
		return err
	}
	send(w, r, http.StatusOK, "text/html; charset=utf-8", b.Bytes())
	return nil
}

func (s *Server) overviewPage(w http.ResponseWriter, r *http.Request) error {
	o, err := s.cfg.View.Overview(r.Context(), group(r), number(r, "page", 1))
	if err != nil {
		return err
	}
	return s.show(w, r, "overview", page{Title: "Missions", Live: "/live", Data: o})
}

// missionShown is a mission with its pictures.
type missionShown struct {
	view.Detail
	Wide, Tall picture
	Lanes      lanes
	Chart      chart
	Before     int64 // events are shown before this byte; -1: the latest
	RunsFrom   int
	NoPlan     bool // it cannot be read
}

func (s *Server) missionPage(w http.ResponseWriter, r *http.Request) error {
	before, from := number(r, "before", int64(-1)), number(r, "runs", 0)
	d, err := s.cfg.View.Detail(r.Context(), r.PathValue("id"), before, from)
	if err != nil {
		return err
	}
	shown := missionShown{Detail: d, Wide: draw(d, false), Tall: draw(d, true), Lanes: timeline(d), Chart: burnChart(d), Before: before, RunsFrom: from}
	shown.NoPlan = len(d.Steps) == 0 && slices.ContainsFunc(d.Warnings, func(w string) bool { return strings.HasPrefix(w, "plan.json") })
	return s.show(w, r, "mission", page{Title: d.ID, Live: "/live?mission=" + url.QueryEscape(d.ID), Data: shown, Crumbs: []crumb{{"Missions", "/"}, {d.ID, ""}}})
}

func (s *Server) runPage(w http.ResponseWriter, r *http.Request) error {
	d, err := s.cfg.View.Run(r.Context(), r.PathValue("id"), r.PathValue("run"), number(r, "from", int64(0)))
	if err != nil {
		return err
	}
	return s.show(w, r, "run", page{Title: "Run of " + d.Agent + " · " + d.Mission, Live: "/live?mission=" + url.QueryEscape(d.Mission) + "&run=" + url.QueryEscape(d.Run.Run), Data: d,
		Crumbs: []crumb{{"Missions", "/"}, {d.Mission, "/missions/" + d.Mission}, {"run " + short(d.Run.Run), ""}}})
}

func (s *Server) taskPage(w http.ResponseWriter, r *http.Request) error {
	t, err := s.cfg.View.Task(r.Context(), r.PathValue("id"), r.PathValue("step"))
	if err != nil {
		return err
	}
	return s.show(w, r, "task", page{Title: t.Step.ID + " · " + t.Mission, Live: "/live?mission=" + url.QueryEscape(t.Mission), Data: t,
		Crumbs: []crumb{{"Missions", "/"}, {t.Mission, "/missions/" + t.Mission}, {"task " + t.Step.ID, ""}}})
}

func (s *Server) filePage(w http.ResponseWriter, r *http.Request) error {
	id, path := r.PathValue("id"), r.PathValue("path")
	t, err := s.cfg.View.FileOf(r.Context(), id, path)
	if err != nil {
		return err
	}
	return s.show(w, r, "file", page{Title: path + " · " + id, Data: map[string]any{"Path": path, "Text": t, "Mission": id}, Crumbs: []crumb{{"Missions", "/"}, {id, "/missions/" + id}, {path, ""}}})
}

// functions are what templates can call.
func functions() template.FuncMap {
	f := template.FuncMap{
		"usd":    func(n money.Nano) string { return money.FormatUSD(n) },
		"tokens": money.FormatTokens,
		"amount": func(u money.Unit, n int64) string { return money.Amount{Unit: u, N: n}.String() },
		"size":   size,
		"took":   func(d mission.Duration) string { return took(time.Duration(d)) },
		"stamp":  func(t time.Time) string { return t.UTC().Format(time.RFC3339) },
		"utc":    func(t time.Time) string { return t.UTC().Format("2006-01-02 15:04 UTC") },
		"since":  since,
		"due": func(t, now time.Time) string {
			if !t.After(now) {
				return "due"
			}
			return since(t, now)
		},
		"short":   short,
		"pill":    pill,
		"states":  func(s plan.State) string { return string(s) },
		"verdict": verdict,
		"face":    face,
		"hue":     hue,
		"done":    done,
		"bar":     func(used, total int64) bar { return newBar(used, total) },
		"timebar": timebar,
		"level":   func(l journal.Level) string { return string(l) },
		"patch":   patch,
		"inc":     func(n int) int { return n + 1 },
		"dec":     func(n int) int { return n - 1 },
		"add":     func(a, b int) int { return a + b },
		"sub":     func(a, b int) int { return a - b },
		"first":   func(s string) string { a, _, _ := strings.Cut(s, "\n"); return a },
		"esc":     url.PathEscape,
		"filehref": func(id, path string) string {
			parts := strings.Split(path, "/")
			for i := range parts {
				parts[i] = url.PathEscape(parts[i])
			}
			return "/missions/" + url.PathEscape(id) + "/files/" + strings.Join(parts, "/")
		},
		"reversed": reversed,
		"lines":    func(s string) []string { return strings.Split(strings.TrimRight(s, "\n"), "\n") },
		"dict": func(pairs ...any) map[string]any {
			m := map[string]any{}
			for i := 0; i+1 < len(pairs); i += 2 {
				m[pairs[i].(string)] = pairs[i+1]
			}
			return m
		},
	}
	return maps.Clone(f)
}

func reversed(in []journal.Event) []journal.Event {
	out := make([]journal.Event, len(in))
	for i, e := range in {
		out[len(in)-1-i] = e
	}
	return out
}

func size(n int64) string {
	switch {
	case n < 0:
		return "–"
	case n < 1000:
		return fmt.Sprintf("%d B", n)
	case n < 1000*1000:
		return fmt.Sprintf("%.1f kB", float64(n)/1e3)
	case n < 1000*1000*1000:
		return fmt.Sprintf("%.1f MB", float64(n)/1e6)
	}
	return fmt.Sprintf("%.1f GB", float64(n)/1e9)
}

// took writes a duration for people, in two parts at most.
func took(d time.Duration) string {
	d = max(d, 0)
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < time.Hour:
		return strings.TrimSuffix(fmt.Sprintf("%dm %ds", int(d.Minutes()), int(d.Seconds())%60), " 0s")
	case d < 48*time.Hour:
		return strings.TrimSuffix(fmt.Sprintf("%dh %dm", int(d.Hours()), int(d.Minutes())%60), " 0m")
	}
	return strings.TrimSuffix(fmt.Sprintf("%dd %dh", int(d.Hours())/24, int(d.Hours())%24), " 0h")
}

// since is the age of a moment, or how far ahead it lies, in words.
func since(t, now time.Time) string {
	d := now.Sub(t)
	one := func(d time.Duration) string {
		switch {
		case d < time.Minute:
			return fmt.Sprintf("%d s", int(d.Seconds()))
		case d < time.Hour:
			return fmt.Sprintf("%d min", int(d.Minutes()))
		case d < 48*time.Hour:
			return fmt.Sprintf("%d h", int(d.Hours()))
		}
		return fmt.Sprintf("%d days", int(d.Hours())/24)
	}
	switch {
	case d < 0:
		return "in " + one(-d)
	case d < 2*time.Second:
		return "now"
	}
	return one(d) + " ago"
}

func short(s string) string {
	if len(s) > 8 {
		return s[:8]
	}
	return s
}

// pill is the class of a phase's colour.
func pill(phase string) string {
	switch {
	case phase == "completed":
		return "good"
	case phase == "failed", phase == "aborted", phase == "unreadable", phase == "stopped":
		return "bad"
	case strings.HasPrefix(phase, "halted"), strings.HasPrefix(phase, "interrupted"), strings.HasPrefix(phase, "unknown"):
		return "warn"
	}
	return "busy"
}

// verdict is the class of the colour of how a run ended, or a step or handoff stands.
func verdict(s any) string {
	switch fmt.Sprint(s) {
	case "done", "completed", "approved":
		return "good"
	case "failed", "unreadable", "login-lost", "rejected", "expired":
		return "bad"
	case "killed", "later", "interrupted", "undelivered":
		return "warn"
	case "running", "working":
		return "busy"
	}
	return "calm"
}

// face is two letters for an agent: CB1 for codebuilder-1.
func face(name string) string {
	base, number, _ := strings.Cut(name, "-")
	if base == "" {
		return "?"
	}
	if number != "" && len(number) < 3 {
		return strings.ToUpper(base[:1]) + number
	}
	return strings.ToUpper(base[:min(2, len(base))])
}

// hue is the class of the colour of an agent, the same on every page.
func hue(name string) string {
	switch base, _, _ := strings.Cut(name, "-"); base {
	case "manager":
		return "h0"
	case "reporter", "quota":
		return "h7"
	}
	n := uint(0)
	for _, r := range name {
		n = n*31 + uint(r)
	}
	return fmt.Sprintf("h%d", 1+n%6)
}

func done(steps []view.Step) int {
	n := 0
	for _, s := range steps {
		if s.State == plan.Done {
			n++
		}
	}
	return n
}

// bar is a share in per mille, at most all, with its colour and how it is said.
type bar struct {
	Width int
	Class string
	Text  string
}

func newBar(used, total int64) bar {
	if total <= 0 {
		return bar{Text: "nothing"}
	}
	b := bar{Width: int(min(max(used, 0), total) / max(total/1000, 1)), Class: "good", Text: fmt.Sprintf("%d%%", money.ShownPercent(total, used))}
	b.Width = min(b.Width, 1000)
	switch {
	case used*10 >= total*9:
		b.Class = "bad"
	case used*10 >= total*7:
		b.Class = "warn"
	}
	return b
}

func timebar(t view.Time) bar {
	b := newBar(int64(t.Used), int64(t.Used+t.Left))
	return b
}

// diffLine is a line of a patch and what it is.
type diffLine struct{ Class, Text string }

func patch(text string) []diffLine {
	var out []diffLine
	for line := range strings.SplitSeq(strings.TrimRight(text, "\n"), "\n") {
		d := diffLine{Text: line}
		switch {
		case strings.HasPrefix(line, "diff "), strings.HasPrefix(line, "--- "), strings.HasPrefix(line, "+++ "), strings.HasPrefix(line, "index "), strings.HasPrefix(line, "new file"), strings.HasPrefix(line, "deleted file"):
			d.Class = "head"
		case strings.HasPrefix(line, "@@"):
			d.Class = "hunk"
		case strings.HasPrefix(line, "+"):
			d.Class = "plus"
		case strings.HasPrefix(line, "-"):
			d.Class = "minus"
		}
		out = append(out, d)
	}
	return out
}
