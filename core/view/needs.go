package view

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"example.com/AutoAgentProject/core/mission"
	"example.com/AutoAgentProject/core/store"
)

// Need is one thing that only the person can do, with the commands that do it.
type Need struct {
	Kind     string    `json:"kind"` // approval, login, paused, halted, unticked, blocked, unreadable
	Title    string    `json:"title"`
	Text     string    `json:"text,omitempty"`
	Since    time.Time `json:"since,omitzero"`
	Until    time.Time `json:"until,omitzero"` // of an approval: from then on it counts as refused
	Commands []string  `json:"commands"`       // each does it, or is a step to it
}

// Approval is an approval as people see it: without the secret of its buttons.
type Approval struct {
	store.Asked
	Open bool `json:"open"`
}

// Approvals returns a mission's approvals in the order in which they were asked for. The error is of those that cannot be
// read; they hide none of the others.
func Approvals(st *store.Store, now time.Time) ([]Approval, error) {
	out := []Approval{}
	stop, err := st.Stopped()
	entries, derr := os.ReadDir(filepath.Join(st.Dir(), "approvals"))
	if errors.Is(derr, fs.ErrNotExist) {
		derr = nil
	}
	errs := []error{derr}
	for _, e := range entries {
		n, nerr := strconv.Atoi(strings.TrimSuffix(e.Name(), ".json"))
		if nerr != nil || n < 1 || !strings.HasSuffix(e.Name(), ".json") {
			continue
		}
		a, err := st.Approval(n)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		a.Nonce = ""
		out = append(out, Approval{a, a.Open(now) && stop == nil && err == nil})
	}
	slices.SortFunc(out, func(x, y Approval) int { return x.N - y.N })
	return out, errors.Join(append(errs, err)...)
}

// needs says what waits for the person in a mission as it is shown.
func needs(v Mission, m mission.Mission, asked []Approval, unknown bool) []Need {
	out := []Need{}
	call := func(args string) string { return "AutoAgentProject " + args }
	for _, a := range asked {
		if !a.Open {
			continue
		}
		n := Need{Kind: "approval", Title: fmt.Sprintf("Approval %d: %s", a.N, a.Title), Text: a.Text, Since: a.At, Until: a.Expires,
			Commands: []string{call(fmt.Sprintf("approve %s %d", v.ID, a.N)), call(fmt.Sprintf(`reject %s %d --note "why"`, v.ID, a.N))}}
		if a.MaySkip {
			n.Commands = slices.Insert(n.Commands, 1, n.Commands[0]+" --skip")
		}
		out = append(out, n)
	}
	if s := v.Stop; s != nil {
		if strings.HasPrefix(v.Phase, "stopping") || s.Cause.Final() {
			return out
		}
		n := Need{Kind: "halted", Title: "It halted and can go on", Text: s.Reason, Since: s.At, Commands: []string{call("resume " + v.ID)}}
		switch s.Cause {
		case mission.Budget:
			more := "2usd"
			if v.Budget.Unit != "nano_usd" {
				more = "1Mtok"
			}
			n.Commands = []string{call("budget add " + v.ID + " " + more), call("resume " + v.ID)}
		case mission.Time:
			n.Commands = []string{call("hours add " + v.ID + " 2"), call("resume " + v.ID)}
		case mission.Damage:
			n.Title = "It halted: put a good copy of the damaged file in its place"
		}
		return append(out, n)
	}
	for _, p := range v.Pauses {
		n := Need{Since: p.Since, Until: p.Until, Text: p.Reason}
		switch p.Cause {
		case "login":
			n.Kind, n.Title, n.Commands = "login", "The login is lost", []string{call("login")}
		case "human":
			n.Kind, n.Title, n.Commands = "paused", "You paused it", []string{call("resume " + v.ID)}
		default:
			continue // it ends by itself, or by an approval
		}
		out = append(out, n)
	}
	for _, a := range v.Agents {
		if a.Doing == "blocked" && len(out) == 0 { // else it is said already
			out = append(out, Need{Kind: "blocked", Title: a.Display + " is blocked", Text: a.Line, Since: a.Since, Commands: []string{call("status " + v.ID), call(`tell ` + v.ID + ` "what to do"`)}})
		}
	}
	if !v.Live.Ticking && !unknown {
		n := Need{Kind: "unticked", Title: "Nobody ticks it", Commands: []string{call("run " + v.ID), call("abort " + v.ID)}}
		if m.Manager != "" {
			n.Commands[0] = call("reconcile")
		}
		out = append(out, n)
	}
	return out
}
