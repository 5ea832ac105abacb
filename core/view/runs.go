package view

import (
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"example.com/AutoAgentProject/core/files"
	"example.com/AutoAgentProject/core/ledger"
	"example.com/AutoAgentProject/core/mission"
	"example.com/AutoAgentProject/core/money"
	"example.com/AutoAgentProject/core/runner"
	"example.com/AutoAgentProject/core/store"
)

// Run is one run of an agent's program.
type Run struct {
	Run     string           `json:"run"`
	Agent   string           `json:"agent"`
	Step    string           `json:"step,omitempty"`
	Model   string           `json:"model,omitempty"`
	Cap     string           `json:"cap,omitempty"` // what it may cost, in words
	Started time.Time        `json:"started,omitzero"`
	Ended   time.Time        `json:"ended,omitzero"`
	State   string           `json:"state"` // running, a verdict of the runner, interrupted, unreadable
	Reason  string           `json:"reason,omitempty"`
	Class   string           `json:"class,omitempty"`
	Turns   int              `json:"turns,omitempty"`
	Nano    money.Nano       `json:"nano_usd"`
	Tokens  int64            `json:"tokens"`
	Took    mission.Duration `json:"took"`

	result runner.Result
}

// Runs is a page of a mission's runs, the latest first.
type Runs struct {
	Runs  []Run `json:"runs"`
	Total int   `json:"total"`
	From  int   `json:"from"` // place of the first one; 0 is the latest
}

// place is where a run's record lies, with the time of its beginning as the file system knows it.
type place struct {
	agent, run string
	at         time.Time
}

// places finds all runs of a mission, the latest first, without opening any.
func places(st *store.Store, roster []mission.Agent) ([]place, error) {
	var all []place
	var errs []error
	for _, a := range roster {
		entries, err := os.ReadDir(filepath.Join(st.Agent(a.Name), "runs"))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
		for _, e := range entries {
			if !e.IsDir() || !runName(e.Name()) {
				continue
			}
			p := place{agent: a.Name, run: e.Name()}
			if i, err := os.Lstat(filepath.Join(st.Run(a.Name, p.run), "run.json")); err == nil {
				p.at = i.ModTime()
			} else if i, err := e.Info(); err == nil {
				p.at = i.ModTime()
			}
			all = append(all, p)
		}
	}
	slices.SortFunc(all, func(x, y place) int {
		if c := y.at.Compare(x.at); c != 0 {
			return c
		}
		return strings.Compare(x.run, y.run)
	})
	return all, errors.Join(errs...)
}

// runName says whether a name can be that of a run's folder.
func runName(s string) bool {
	return len(s) >= 1 && len(s) <= 64 && strings.Trim(s, "0123456789abcdefghijklmnopqrstuvwxyz-") == "" && s[0] != '-'
}

// readRuns reads a page of runs. spent is what the ledger says of them.
func readRuns(st *store.Store, v Mission, roster []mission.Agent, from, n int, now time.Time, spent map[string]ledger.Entry) (Runs, error) {
	all, err := places(st, roster)
	page := Runs{Runs: []Run{}, Total: len(all), From: max(min(from, len(all)), 0)}
	for _, p := range all[page.From:min(page.From+n, len(all))] {
		page.Runs = append(page.Runs, oneRun(st, v, p, now, spent))
	}
	slices.SortStableFunc(page.Runs, func(x, y Run) int { return y.Started.Compare(x.Started) })
	return page, err
}

// oneRun reads the record of a run. What cannot be read of it is said in its reason.
func oneRun(st *store.Store, v Mission, p place, now time.Time, spent map[string]ledger.Entry) Run {
	r := Run{Run: p.run, Agent: p.agent, Started: p.at, State: "interrupted"}
	dir := st.Run(p.agent, p.run)
	var bad []string
	var rec struct {
		Step, Model, Cap string
		Started          time.Time
	}
	if b, err := files.Read(filepath.Join(dir, "run.json"), 1<<20); err != nil || json.Unmarshal(b, &rec) != nil {
		bad = append(bad, "run.json")
	} else {
		r.Step, r.Model, r.Cap, r.Started = rec.Step, rec.Model, rec.Cap, rec.Started
	}
	b, err := files.Read(filepath.Join(dir, "result.json"), 32<<20)
	switch {
	case err == nil && json.Unmarshal(b, &r.result) == nil:
		res := r.result
		r.State, r.Reason, r.Class, r.Turns, r.Nano, r.Tokens, r.Ended = string(res.Verdict), res.Reason, res.Class, res.Turns, res.Spend.Nano, res.Spend.Tokens, res.Ended
	case err == nil || !errors.Is(err, fs.ErrNotExist):
		bad = append(bad, "result.json")
	}
	if e, ok := spent[p.run]; ok {
		r.Nano, r.Tokens = max(r.Nano, e.Nano), max(r.Tokens, e.Tokens)
		if r.Ended.IsZero() {
			r.Ended = e.Settled
		}
	}
	for _, a := range v.Agents {
		if a.Name == p.agent && a.Doing == "working" && a.Run == p.run && r.Ended.IsZero() {
			r.State = "running"
		}
	}
	end := r.Ended
	if r.State == "running" {
		end = now
	}
	if !end.IsZero() && end.After(r.Started) {
		r.Took = mission.Duration(end.Sub(r.Started))
	}
	if len(bad) > 0 {
		r.State, r.Reason = "unreadable", strings.Join(bad, " and ")+" of this run cannot be read"
	}
	return r
}

// RunDetail is one run with what it was told and what it did.
type RunDetail struct {
	Run
	Mission  string                 `json:"mission"`
	Prompt   Text                   `json:"prompt"`
	System   Text                   `json:"system"`
	Answer   Text                   `json:"answer"` // its last one
	Denials  []string               `json:"denials"`
	ByModel  map[string]money.Usage `json:"by_model"`
	Requests int64                  `json:"requests"`
	Tools    []Tool                 `json:"tools"`
	// ToolsCut says that only the beginning of a very long transcript was counted.
	ToolsCut bool       `json:"tools_cut,omitempty"`
	Talk     Transcript `json:"transcript"`
	Warnings []string   `json:"warnings"`
}

// Tool is how often a tool was called.
type Tool struct {
	Name  string `json:"name"`
	Calls int    `json:"calls"`
}

// Transcript is a window on what happened in a run.
type Transcript struct {
	Entries []runner.Event `json:"entries"`
	From    int64          `json:"from"` // byte of the file
	Next    int64          `json:"next"` // where the next window begins; 0: there is none
	Size    int64          `json:"size"`
}

// How much of a run is read at once, in bytes.
const (
	window   = 512 << 10
	counted  = 4 << 20
	shownMax = 64 << 10
	maxEntry = 16 << 10
)

// Describe tells what happened in a transcript; a runner's.
type Describe func(transcript io.Reader, each func(runner.Event)) error

// readTranscript reads the window that begins at a byte, which is the beginning of a line or somewhere in one.
func readTranscript(path string, from int64, describe Describe) (Transcript, error) {
	t := Transcript{Entries: []runner.Event{}}
	f, size, err := plain(path)
	if errors.Is(err, fs.ErrNotExist) {
		return t, nil
	}
	if err != nil {
		return t, err
	}
	defer f.Close()
	t.Size = size
	t.From = max(min(from, size), 0)
	buf := make([]byte, min(window, size-t.From))
	n, err := f.ReadAt(buf, t.From)
	if err != nil && err != io.EOF {
		return t, err
	}
	buf = buf[:n]
	more := t.From+int64(n) < size
	if more {
		if last := strings.LastIndexByte(string(buf), '\n'); last >= 0 {
			buf = buf[:last+1]
		} else {
			t.Entries = append(t.Entries, runner.Event{Kind: "output", Text: "(a line too long to be shown)"})
			t.Next, buf = t.From+int64(n), nil
		}
	}
	if more && t.Next == 0 {
		t.Next = t.From + int64(len(buf))
	}
	err = describe(strings.NewReader(string(buf)), func(e runner.Event) {
		if len(e.Text) > maxEntry {
			e.Text = strings.ToValidUTF8(e.Text[:maxEntry], "") + "\n… (cut)"
		}
		t.Entries = append(t.Entries, e)
	})
	return t, err
}

// countTools counts the calls in the beginning of a transcript.
func countTools(path string, describe Describe) ([]Tool, bool, error) {
	out := []Tool{}
	f, size, err := plain(path)
	if errors.Is(err, fs.ErrNotExist) {
		return out, false, nil
	}
	if err != nil {
		return out, false, err
	}
	defer f.Close()
	err = describe(io.LimitReader(f, counted), func(e runner.Event) {
		if e.Kind != "tool" {
			return
		}
		name, _, _ := strings.Cut(e.Text, " ")
		i := slices.IndexFunc(out, func(t Tool) bool { return t.Name == name })
		if i < 0 && len(out) < 100 {
			out = append(out, Tool{Name: name})
			i = len(out) - 1
		}
		if i >= 0 {
			out[i].Calls++
		}
	})
	slices.SortStableFunc(out, func(x, y Tool) int { return y.Calls - x.Calls })
	return out, size > counted, err
}

// readRun reads one run whole, its transcript from a byte on.
func readRun(st *store.Store, v Mission, roster []mission.Agent, id string, from int64, now time.Time, spent map[string]ledger.Entry, describe Describe) (RunDetail, error) {
	var p place
	for _, a := range roster {
		if i, err := os.Lstat(st.Run(a.Name, id)); runName(id) && err == nil && i.IsDir() {
			p = place{a.Name, id, i.ModTime()}
		}
	}
	if p.run == "" {
		return RunDetail{}, ErrNotFound
	}
	d := RunDetail{Run: oneRun(st, v, p, now, spent), Mission: v.ID, Denials: []string{}, Warnings: []string{}}
	dir := st.Run(p.agent, p.run)
	bad := func(what string, err error) {
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			d.Warnings = append(d.Warnings, what+": "+err.Error())
		}
	}
	var err error
	d.Prompt, err = beginning(filepath.Join(dir, "prompt.md"), shownMax)
	bad("prompt.md", err)
	d.System, err = beginning(filepath.Join(dir, "system.md"), shownMax)
	bad("system.md", err)
	res := d.result
	d.Answer = Text{Text: res.Text, Size: int64(len(res.Text))}
	if len(res.Text) > shownMax {
		d.Answer.Text, d.Answer.Cut = strings.ToValidUTF8(res.Text[:shownMax], ""), true
	}
	d.Denials, d.ByModel, d.Requests = append(d.Denials, res.Denials...), res.Spend.ByModel, res.Spend.Requests
	stream := filepath.Join(dir, "stream.jsonl")
	d.Tools = []Tool{}
	if from <= 0 { // who turns the pages has seen them
		d.Tools, d.ToolsCut, err = countTools(stream, describe)
		bad("stream.jsonl", err)
	}
	d.Talk, err = readTranscript(stream, from, describe)
	bad("stream.jsonl", err)
	return d, nil
}

// ErrNotFound means that there is no such run, step or file.
var ErrNotFound = errors.New("there is none of that name")
