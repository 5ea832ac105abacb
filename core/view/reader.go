package view

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"example.com/AutoAgentProject/core/engine"
	"example.com/AutoAgentProject/core/flow"
	"example.com/AutoAgentProject/core/journal"
	"example.com/AutoAgentProject/core/ledger"
	"example.com/AutoAgentProject/core/mission"
	"example.com/AutoAgentProject/core/profession"
	"example.com/AutoAgentProject/core/store"
)

// Reader reads what people see for many requests. It opens files for reading only, takes no lock, and keeps what is dear to
// find out until a file of the mission changes. It may be used by several at once.
type Reader struct {
	Root        store.Root
	Live        func(context.Context, *store.Store) (engine.Live, error) // who ticks a mission
	Professions profession.Set
	Describe    Describe
	Flow        func(*store.Store, mission.Mission) (*flow.Flow, error) // that a mission follows; nil: that is not known
	Hint        string                                                  // put behind each command that is shown, such as " --root /srv/example"
	Now         func() time.Time

	mu     sync.Mutex
	briefs map[string]brief
	works  map[string]Work
}

// Groups of missions, in the order in which they are shown.
const (
	Waiting = "waiting" // for the person
	Running = "running"
	Halted  = "halted" // stopped, and can go on
	Ended   = "ended"
)

// brief is what is known of a mission without reading all of it: where it stands in the list.
type brief struct {
	id    string
	group string
	at    time.Time // its end, else its beginning
	stamp string    // of the files that it was read from
	until time.Time // from then on it may be another one by itself; zero: never
}

// Counts is how many missions there are in each group.
type Counts struct {
	Waiting int `json:"waiting"`
	Running int `json:"running"`
	Halted  int `json:"halted"`
	Ended   int `json:"ended"`
}

// Overview is a page of all missions: those that wait for the person first, then the others, the latest first.
type Overview struct {
	Missions []Listed `json:"missions"`
	Counts   Counts   `json:"counts"`
	Total    int      `json:"total"`
	Page     int      `json:"page"` // from 1 on
	Pages    int      `json:"pages"`
	Group    string   `json:"group,omitempty"` // only these are shown
}

// Listed is a mission with the group it is listed in.
type Listed struct {
	Mission
	Group string `json:"group"`
}

// PerPage is how many missions a page of the overview shows.
const PerPage = 50

// Overview reads a page of missions; group empty: of all.
func (r *Reader) Overview(ctx context.Context, group string, page int) (Overview, error) {
	ids, err := r.Root.IDs()
	if err != nil {
		return Overview{}, err
	}
	o := Overview{Missions: []Listed{}, Group: group}
	var all []brief
	known := make(map[string]bool, len(ids))
	for _, id := range ids {
		b, ok := r.brief(id)
		if !ok {
			continue
		}
		known[id] = true
		switch b.group {
		case Waiting:
			o.Counts.Waiting++
		case Running:
			o.Counts.Running++
		case Halted:
			o.Counts.Halted++
		default:
			o.Counts.Ended++
		}
		if group == "" || group == b.group {
			all = append(all, b)
		}
	}
	r.forget(known)
	order := []string{Waiting, Running, Halted, Ended}
	slices.SortFunc(all, func(x, y brief) int {
		return cmp.Or(cmp.Compare(slices.Index(order, x.group), slices.Index(order, y.group)), y.at.Compare(x.at), cmp.Compare(x.id, y.id))
	})
	o.Total = len(all)
	o.Pages = max((o.Total+PerPage-1)/PerPage, 1)
	o.Page = min(max(page, 1), o.Pages)
	from := (o.Page - 1) * PerPage
	for _, b := range all[from:min(from+PerPage, len(all))] {
		v, err := r.look(ctx, b.id)
		if errors.Is(err, store.ErrNoMission) {
			continue // removed meanwhile
		}
		if err != nil {
			return Overview{}, err
		}
		g := b.group
		if g == Running && len(v.Needs) > 0 { // only who asks its engine knows that nobody ticks it
			g = Waiting
		}
		o.Missions = append(o.Missions, Listed{v, g})
	}
	slices.SortStableFunc(o.Missions, func(x, y Listed) int { return cmp.Compare(slices.Index(order, x.Group), slices.Index(order, y.Group)) })
	clean(&o)
	return o, nil
}

// look reads one mission for the list.
func (r *Reader) look(ctx context.Context, id string) (Mission, error) {
	st := r.Root.Mission(id)
	v, err := Look(ctx, st, r.live(st), r.Professions, r.now())
	for i := range v.Needs {
		for j := range v.Needs[i].Commands {
			v.Needs[i].Commands[j] += r.Hint
		}
	}
	return v, err
}

func (r *Reader) now() time.Time {
	if r.Now != nil {
		return r.Now()
	}
	return time.Now()
}

// live asks who ticks a mission, unless it is over: then nobody does.
func (r *Reader) live(st *store.Store) func(context.Context, string) (engine.Live, error) {
	return func(ctx context.Context, _ string) (engine.Live, error) {
		var rec engine.Record
		if st.Load("stopping.json", &rec) == nil && rec.Done {
			return engine.Live{}, nil
		}
		return r.Live(ctx, st)
	}
}

// stamp names the state of the files whose change can move a mission in the list.
func stamp(st *store.Store) (s string, latest time.Time, ok bool) {
	for _, p := range []string{st.Dir(), filepath.Join(st.Dir(), "approvals")} {
		i, err := os.Lstat(p)
		if err != nil {
			if p == st.Dir() {
				return "", latest, false
			}
			continue
		}
		s += fmt.Sprint(i.ModTime().UnixNano(), " ")
		if i.ModTime().After(latest) {
			latest = i.ModTime()
		}
	}
	return s, latest, true
}

// settled is how long ago a folder must have changed for its time to tell two changes apart.
const settled = 50 * time.Millisecond

func (r *Reader) brief(id string) (brief, bool) {
	st := r.Root.Mission(id)
	s, latest, ok := stamp(st)
	if !ok {
		return brief{}, false
	}
	now := r.now()
	r.mu.Lock()
	b, known := r.briefs[id]
	r.mu.Unlock()
	if known && b.stamp == s && (b.until.IsZero() || now.Before(b.until)) {
		return b, true
	}
	b = sortIn(st, now)
	b.stamp = s
	if time.Since(latest) > settled {
		r.mu.Lock()
		if r.briefs == nil {
			r.briefs = map[string]brief{}
		}
		r.briefs[id] = b
		r.mu.Unlock()
	}
	return b, true
}

// forget drops what is kept of missions that are gone.
func (r *Reader) forget(known map[string]bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.briefs) > len(known) {
		for id := range r.briefs {
			if !known[id] {
				delete(r.briefs, id)
			}
		}
	}
}

// sortIn says where a mission stands in the list.
func sortIn(st *store.Store, now time.Time) brief {
	b := brief{id: st.ID(), group: Running}
	m, err := st.Mission()
	b.at = m.CreatedAt
	if err != nil {
		b.group = Waiting
	}
	if stop, serr := st.Stopped(); stop != nil || serr != nil {
		var rec engine.Record
		if lerr := st.Load("stopping.json", &rec); lerr != nil || !rec.Done {
			return b
		}
		if n := len(rec.Steps); n > 0 {
			b.at = rec.Steps[n-1].At
		}
		switch {
		case err != nil:
		case stop == nil || stop.Cause == "":
			b.group = Waiting
		case stop.Cause.Final():
			b.group = Ended
		default:
			b.group = Halted
		}
		return b
	}
	until := func(t time.Time) {
		if !t.IsZero() && (b.until.IsZero() || t.Before(b.until)) {
			b.until = t
		}
	}
	asked, err := Approvals(st, now)
	if err != nil {
		b.group = Waiting
	}
	for _, a := range asked {
		if a.Open {
			b.group = Waiting
			until(a.Expires)
		}
	}
	pauses, err := st.Pauses(now)
	if err != nil {
		b.group = Waiting
	}
	for _, p := range pauses {
		if p.Cause == "login" || p.Cause == "human" {
			b.group = Waiting
		}
		until(p.Until)
	}
	return b
}

// Detail is one mission with all that its page shows. Its fields are those of status --json, and more.
type Detail struct {
	Mission
	GoalText  Text            `json:"goal_text"`
	Verify    string          `json:"verify,omitempty"` // the mission's own command
	Final     Final           `json:"final,omitzero"`
	Model     string          `json:"model,omitempty"`
	Approvals []Approval      `json:"approvals"`
	Runs      Runs            `json:"runs"`
	Handoffs  []Handoff       `json:"handoffs"`
	Burn      Burn            `json:"burn"`
	Events    []journal.Event `json:"events"` // the latest, oldest first
	Older     int64           `json:"older"`  // events before this byte are not among them; 0: these are all
	Work      Work            `json:"work"`
	Round     int             `json:"round"`          // plans accepted so far
	Flow      []Station       `json:"flow,omitempty"` // where it follows one
	ByAgent   Costs           `json:"by_agent"`
	ByStep    Costs           `json:"by_step"` // of planning: by the empty name
}

// Costs is what several names cost each, in the settled runs.
type Costs map[string]ledger.Sum

// Final is the mission's own verify on the integrated tree.
type Final struct {
	Commit string `json:"commit,omitempty"`
	Passed bool   `json:"passed"`
	Output string `json:"output,omitempty"`
}

// How much of a mission one page shows.
const (
	ShownEvents = 100
	ShownRuns   = 100
)

// Detail reads one mission. before is the byte before which events are shown, -1 for the latest; runs the place of the first
// run. What cannot be read becomes a warning.
func (r *Reader) Detail(ctx context.Context, id string, before int64, runs int) (Detail, error) {
	if mission.CheckID(id) != nil {
		return Detail{}, ErrNotFound
	}
	v, err := r.look(ctx, id)
	if errors.Is(err, store.ErrNoMission) {
		return Detail{}, ErrNotFound
	}
	if err != nil {
		return Detail{}, err
	}
	st, now := r.Root.Mission(id), r.now()
	m, err := st.Mission()
	if err != nil {
		m = mission.Mission{ID: id, Roster: found(st)} // told already
	}
	d := Detail{Mission: v, Verify: m.Verify, Model: m.Model}
	bad := func(what string, err error) {
		if err == nil || errors.Is(err, fs.ErrNotExist) {
			return
		}
		text := what + ": " + err.Error()
		if !slices.ContainsFunc(d.Warnings, func(w string) bool { return strings.HasPrefix(w, what+": ") }) {
			d.Warnings = append(d.Warnings, text)
		}
		d.Unreadable = true
	}
	d.GoalText, err = beginning(st.Goal(), shownMax)
	bad("goal", err)
	d.Approvals, err = Approvals(st, now)
	bad("approvals", err)
	entries, book, err := st.Ledger().Entries()
	bad("ledger", err)
	d.ByAgent, d.ByStep = book.ByAgent, book.ByStep
	d.Burn = burn(v, m, entries, now)
	d.Runs, err = readRuns(st, v, m.Roster, runs, ShownRuns, now, byRun(entries))
	bad("runs", err)
	d.Handoffs, err = handoffs(st, m.Roster, now)
	bad("handoffs", err)
	d.Events, d.Older, err = st.Journal().Before(before, ShownEvents)
	bad("events.jsonl", err)
	if d.Events == nil {
		d.Events = []journal.Event{}
	}
	if p, err := st.Plan(); err == nil {
		d.Final, d.Round = Final(p.Final), p.Round
		if r.Flow != nil && m.Flow != "" {
			f, err := r.Flow(st, m)
			bad("flow", err)
			if f != nil {
				d.Flow = stations(*f, p)
			}
		}
	}
	d.Work, err = r.work(ctx, st, m.Base)
	bad("repo.git", err)
	clean(&d)
	return d, nil
}

// Run reads one run of a mission, its transcript from a byte on.
func (r *Reader) Run(ctx context.Context, id, run string, from int64) (RunDetail, error) {
	v, st, m, err := r.one(ctx, id)
	if err != nil {
		return RunDetail{}, err
	}
	entries, _, lerr := st.Ledger().Entries()
	d, err := readRun(st, v, m.Roster, run, from, r.now(), byRun(entries), r.Describe)
	if err != nil {
		return d, err
	}
	if lerr != nil {
		d.Warnings = append(d.Warnings, "ledger: "+lerr.Error())
	}
	clean(&d)
	return d, nil
}

// one finds a mission, damaged or not.
func (r *Reader) one(ctx context.Context, id string) (Mission, *store.Store, mission.Mission, error) {
	if mission.CheckID(id) != nil {
		return Mission{}, nil, mission.Mission{}, ErrNotFound
	}
	v, err := r.look(ctx, id)
	if errors.Is(err, store.ErrNoMission) {
		err = ErrNotFound
	}
	if err != nil {
		return v, nil, mission.Mission{}, err
	}
	st := r.Root.Mission(id)
	m, err := st.Mission()
	if err != nil {
		m = mission.Mission{ID: id, Roster: found(st)}
	}
	return v, st, m, nil
}

// Fingerprint names the state of the files that a page shows: of one mission, of one run of it, or with an empty id of all
// missions. Another state has another one. It looks at times and sizes only.
func (r *Reader) Fingerprint(id, run string) string {
	h := fnv.New64a()
	look := func(paths ...string) {
		for _, p := range paths {
			if i, err := os.Lstat(p); err == nil {
				fmt.Fprint(h, i.ModTime().UnixNano(), i.Size(), " ")
			}
			fmt.Fprint(h, "|")
		}
	}
	files := func(st *store.Store) {
		look(st.Dir(), filepath.Join(st.Dir(), "approvals"), filepath.Join(st.Dir(), "events.jsonl"), filepath.Join(st.Dir(), "ledger.jsonl"))
	}
	switch {
	case id == "":
		ids, _ := r.Root.IDs()
		for _, id := range ids {
			fmt.Fprint(h, id)
			files(r.Root.Mission(id))
		}
	case mission.CheckID(id) != nil:
	default:
		st := r.Root.Mission(id)
		files(st)
		look(filepath.Join(st.Repo(), "refs", "heads", "main"), st.Notify())
		for _, a := range found(st) {
			for _, box := range []string{"new", "in_process", "completed", "failed"} {
				look(filepath.Join(st.Agent(a.Name), "inbox", box))
			}
			if runName(run) {
				look(filepath.Join(st.Run(a.Name, run), "stream.jsonl"), filepath.Join(st.Run(a.Name, run), "result.json"))
			}
		}
	}
	return fmt.Sprintf("%016x", h.Sum64())
}
