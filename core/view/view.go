// Package view gathers what a person wants to see of a mission into one struct each, for the terminal, --json and the
// dashboard alike. It reads files only, takes no lock, and says what it could not read instead of guessing.
package view

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
	"unicode"

	"example.com/AutoAgentProject/core/engine"
	"example.com/AutoAgentProject/core/files"
	"example.com/AutoAgentProject/core/mission"
	"example.com/AutoAgentProject/core/money"
	"example.com/AutoAgentProject/core/notify"
	"example.com/AutoAgentProject/core/plan"
	"example.com/AutoAgentProject/core/profession"
	"example.com/AutoAgentProject/core/queue"
	"example.com/AutoAgentProject/core/store"
)

// Mission is one mission as people see it.
type Mission struct {
	ID        string          `json:"id"`
	Phase     string          `json:"phase"`
	Goal      string          `json:"goal"` // its first line
	CreatedAt time.Time       `json:"created_at"`
	EndedAt   time.Time       `json:"ended_at,omitzero"`
	Engine    string          `json:"engine"`
	Live      engine.Live     `json:"live"`
	Budget    Budget          `json:"budget"`
	Time      Time            `json:"time"`
	Payer     string          `json:"payer"`
	Network   string          `json:"network"`         // of the cells: "open", "host" or "none"
	FromRepo  []string        `json:"allow_from_repo"` // what of the repository is loaded into the agent program
	Pauses    []mission.Pause `json:"pauses"`
	Steps     []Step          `json:"steps"`
	Agents    []Agent         `json:"agents"`
	Stop      *mission.Stop   `json:"stop,omitempty"`
	Result    string          `json:"result,omitempty"` // folder with the integrated work
	Repo      string          `json:"repo"`
	Bytes     int64           `json:"bytes,omitempty"` // on the disk; only in a list
	Warnings  []string        `json:"warnings"`
	Needs     []Need          `json:"needs"` // what waits for the person
	// Unreadable says that a file could not be read, so that what is shown is not the whole truth.
	Unreadable bool `json:"unreadable"`
}

// Budget is spend against budget, in the budget's unit.
type Budget struct {
	Unit      money.Unit `json:"unit"`
	Total     int64      `json:"total"`
	Used      int64      `json:"used"`
	Reserved  int64      `json:"reserved"`
	Remaining int64      `json:"remaining"`
	Percent   int64      `json:"percent"`
	Text      string     `json:"text"`
}

// Time is time used against the limit.
type Time struct {
	Used    mission.Duration `json:"used"`
	Left    mission.Duration `json:"left"`
	Limited bool             `json:"limited"`
	Until   time.Time        `json:"until,omitzero"`
}

// Step is one step of the plan.
type Step struct {
	ID         string     `json:"id"`
	Title      string     `json:"title"`
	Profession string     `json:"profession"`
	Agent      string     `json:"agent,omitempty"`
	State      plan.State `json:"state"`
	DependsOn  []string   `json:"depends_on"`
	Returned   int        `json:"returned"`
	Reason     string     `json:"reason,omitempty"`
	Summary    string     `json:"summary,omitempty"` // its agent's own words
	Since      time.Time  `json:"since"`
}

// Agent is one member of the roster.
type Agent struct {
	Name    string      `json:"name"`
	Display string      `json:"display"`
	Doing   string      `json:"doing"`
	Line    string      `json:"line"`
	Step    string      `json:"step,omitempty"`
	Run     string      `json:"run,omitempty"`
	Since   time.Time   `json:"since,omitzero"`
	Inbox   queue.Depth `json:"inbox"`
	Next    time.Time   `json:"next_tick,omitzero"`
}

// Read gathers one mission. live says who ticks it; professions give the agents' shown names.
func Read(ctx context.Context, st *store.Store, live func(context.Context, string) (engine.Live, error), profs profession.Set, now time.Time) (Mission, error) {
	m, err := st.Mission()
	if err != nil {
		return Mission{}, err
	}
	return read(ctx, st, m, live, profs, now), nil
}

// Look is Read for who wants to see what there is of a mission whose mission.json cannot be read, too: the rest of its files.
// Only a mission that is not there is an error.
func Look(ctx context.Context, st *store.Store, live func(context.Context, string) (engine.Live, error), profs profession.Set, now time.Time) (Mission, error) {
	m, err := st.Mission()
	if errors.Is(err, store.ErrNoMission) {
		return Mission{}, err
	}
	if err == nil {
		return read(ctx, st, m, live, profs, now), nil
	}
	v := read(ctx, st, mission.Mission{ID: st.ID(), Roster: found(st)}, func(context.Context, string) (engine.Live, error) { return engine.Live{}, errNobodyKnows }, profs, now)
	v.Warnings = append([]string{"mission.json: " + err.Error()}, v.Warnings...)
	v.Unreadable = true
	if v.Stop == nil {
		v.Phase = "unreadable"
	}
	return v, nil
}

var errNobodyKnows = errors.New("mission.json says which engine ticks it")

// found are the agents that have a folder.
func found(st *store.Store) []mission.Agent {
	var out []mission.Agent
	entries, _ := os.ReadDir(filepath.Dir(st.Agent("x")))
	for _, e := range entries {
		if e.IsDir() && mission.CheckAgent(e.Name()) == nil {
			out = append(out, mission.Agent{Name: e.Name()})
		}
	}
	return out
}

func read(ctx context.Context, st *store.Store, m mission.Mission, live func(context.Context, string) (engine.Live, error), profs profession.Set, now time.Time) Mission {
	var err error
	v := Mission{ID: m.ID, CreatedAt: m.CreatedAt, Engine: m.Engine, Payer: m.Payer, Network: cmp.Or(m.Network, "open"), Repo: st.Repo(), FromRepo: append([]string{}, m.FromRepo...),
		Pauses: []mission.Pause{}, Steps: []Step{}, Agents: []Agent{}, Warnings: []string{}, Needs: []Need{}}
	bad := func(what string, err error) {
		v.Unreadable = true
		v.Warnings = append(v.Warnings, fmt.Sprintf("%s: %v", what, err))
	}
	if v.Goal, err = firstLine(st.Goal()); err != nil {
		bad("goal", err)
	}
	if v.Stop, err = st.Stopped(); err != nil {
		bad("tombstone", err)
	}
	if v.Stop != nil && v.Stop.Cause == "" { // it stops all the same
		bad("stop.json", errors.New(v.Stop.Reason))
	}
	unknown := false
	if v.Live, err = live(ctx, m.ID); err != nil {
		unknown = true
		v.Warnings = append(v.Warnings, "whether somebody ticks it is unknown: "+err.Error())
	}
	state, err := st.State()
	if err != nil {
		text := err
		if good, gerr := st.LastGoodState(); gerr == nil {
			state = good
			text = fmt.Errorf("state unreadable, last good of %s", good.UpdatedAt.UTC().Format("15:04 MST"))
		}
		bad("state.json", text)
	}
	if v.Phase, err = phase(st, &v, state, unknown); err != nil {
		bad("stopping.json", err)
	}
	if p, err := st.Plan(); err != nil {
		bad("plan.json", err)
	} else {
		for _, s := range p.Steps {
			x := Step{ID: s.ID, Title: s.Title, Profession: s.Profession, Agent: s.Agent, State: s.State, DependsOn: s.DependsOn, Since: s.Since, Returned: max(len(s.Handoffs)-1, 0), Summary: s.Summary}
			if n := len(s.Reasons); n > 0 {
				x.Reason, _, _ = strings.Cut(s.Reasons[n-1], "\n")
			}
			v.Steps = append(v.Steps, x)
		}
	}
	if m.Gateway == mission.GatewayOff && (v.Stop == nil || !v.Stop.Cause.Final()) {
		v.Warnings = append(v.Warnings, mission.WithoutGateway)
	}
	readMoney(st, m, &v, bad)
	readTime(ctx, st, m, &v, now, bad)
	if pauses, err := st.AllPauses(now); err != nil {
		bad("pauses.json", err)
	} else {
		v.Pauses = append(v.Pauses, pauses...)
	}
	var unread queue.UnreadFile
	if err := st.Load(queue.UnreadName, &unread); err != nil && !errors.Is(err, fs.ErrNotExist) {
		bad("unread.json", err)
	}
	for _, a := range m.Roster {
		l := state.Agents[a.Name]
		x := Agent{Name: a.Name, Doing: l.Doing, Line: l.Text, Step: l.Step, Run: l.Run, Since: l.Since, Next: v.Live.Next[a.Name]}
		title := ""
		if p, ok := profs.Get(a.Profession); ok {
			title = p.Display
		}
		x.Display = a.Display(title)
		if x.Inbox, err = st.Queue().Depth(a.Name); err != nil {
			bad("inbox of "+a.Name, err)
		}
		if u := unread.Agents[a.Name]; u.Told && v.Stop == nil && x.Inbox.New > 0 && x.Inbox.InProcess == 0 && u.Oldest.Equal(x.Inbox.Oldest) {
			v.Warnings = append(v.Warnings, fmt.Sprintf("nobody takes what lies unread in the inbox of %s since %s", a.Name, u.Oldest.Format("15:04 MST")))
		}
		if x.Doing == "working" { // running means running
			switch {
			case v.Stop != nil || !v.Live.Ticking && !unknown:
				x.Doing, x.Run = "stopped", ""
			case unknown:
				x.Doing = "unknown"
			}
		}
		v.Agents = append(v.Agents, x)
	}
	if _, err := os.Stat(st.Result()); err == nil {
		v.Result = st.Result()
	}
	if v.Stop == nil {
		v.Warnings = append(v.Warnings, v.Live.Trouble...)
	}
	v.Warnings = append(v.Warnings, notify.Outbox{Dir: st.Notify()}.Trouble(now)...)
	switch {
	case v.Stop != nil || v.Live.Ticking || unknown:
	case m.Manager != "":
		v.Warnings = append(v.Warnings, "nobody ticks it: AutoAgentProject reconcile puts its units back, AutoAgentProject abort "+m.ID+" ends it")
	default:
		v.Warnings = append(v.Warnings, "nobody ticks it: AutoAgentProject run "+m.ID+" goes on, AutoAgentProject abort "+m.ID+" ends it")
	}
	asked, err := Approvals(st, now)
	if err != nil {
		bad("approvals", err)
	}
	v.Needs = needs(v, m, asked, unknown)
	return v
}

// phase is the truth about a mission in a word: the tombstone counts before what the state says. The error is that of
// the record of its stop.
func phase(st *store.Store, v *Mission, state store.State, unknown bool) (string, error) {
	if v.Stop != nil {
		var rec engine.Record
		err := st.Load("stopping.json", &rec)
		if errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
		if err != nil || !rec.Done { // unreadable proves nothing
			if v.Stop.Cause == "" {
				return "stopping", err
			}
			return "stopping: " + string(v.Stop.Cause), err
		}
		if n := len(rec.Steps); n > 0 {
			v.EndedAt = rec.Steps[n-1].At
		}
		return v.Stop.Cause.Phase(), nil
	}
	switch {
	case state.Phase == "":
		return "starting", nil
	case unknown:
		return "unknown: " + state.Phase, nil
	case !v.Live.Ticking:
		return "interrupted: " + state.Phase, nil // running means running
	}
	return state.Phase, nil
}

func readMoney(st *store.Store, m mission.Mission, v *Mission, bad func(string, error)) {
	book, err := st.Ledger().Read()
	if err != nil {
		bad("ledger", err)
		return
	}
	total := book.Budget
	v.Budget = Budget{Unit: total.Unit, Total: total.N, Used: book.Used.N, Reserved: book.Reserved.N,
		Remaining: money.Remaining(total.N, book.Used.N), Percent: money.ShownPercent(total.N, book.Used.N)}
	v.Budget.Text = fmt.Sprintf("%s of %s (%d%%)", book.Used, total, v.Budget.Percent)
	if m.Scripted {
		v.Budget.Text += ", scripted: nobody pays"
	}
	for _, model := range book.Unpriced {
		v.Warnings = append(v.Warnings, "no price is known for "+model+"; it is charged at the dearest one")
	}
}

func readTime(ctx context.Context, st *store.Store, m mission.Mission, v *Mission, now time.Time, bad func(string, error)) {
	c, err := st.Clock(ctx, nil)
	if err != nil {
		bad("clock.json", err)
		return
	}
	left, limited := mission.TimeLeft(m, c, now)
	v.Time = Time{Used: c.Used, Left: mission.Duration(left), Limited: limited, Until: mission.End(m, c)}
}

// maxLine is the longest first line of a goal that is shown, in characters.
const maxLine = 200

// firstLine is the first line of a goal that says anything, without control characters.
func firstLine(path string) (string, error) {
	b, err := files.Read(path, 16<<20) // a goal has 8 MB at most
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(string(b)) {
		line = strings.Join(strings.FieldsFunc(strings.ToValidUTF8(line, ""), unicode.IsControl), " ")
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		if r := []rune(line); len(r) > maxLine {
			line = string(r[:maxLine-1]) + "…"
		}
		return line, nil
	}
	return "", errors.New("it says nothing")
}
