package systemdengine

import (
	"context"
	"fmt"
	"slices"
	"time"

	"example.com/AutoAgentProject/core/mission"
	"example.com/AutoAgentProject/core/store"
)

// actTime is for what is done about one mission.
const actTime = 3 * time.Minute

// Outcome is what came of one repair.
type Outcome string

// The outcomes.
const (
	Done    Outcome = "done"
	Unknown Outcome = "unknown" // nothing was touched, since not all that counts could be seen
	Failed  Outcome = "failed"
	Left    Outcome = "left" // nothing was touched: that is for a person to decide
)

// Report is what Reconcile found and did. It is empty where nothing was wrong.
type Report struct {
	Items []Item `json:"repairs"`
}

// Item is one repair.
type Item struct {
	Mission string  `json:"mission,omitempty"` // empty: of the host
	Root    string  `json:"root,omitempty"`
	What    string  `json:"what"` // look, refuse, hold, leave, end, stop, give up, silence, repair, host
	Outcome Outcome `json:"outcome"`
	Text    string  `json:"text"` // a sentence without capital initial and full stop
}

// Has says whether a repair came out like this.
func (r Report) Has(o Outcome) bool {
	return slices.ContainsFunc(r.Items, func(i Item) bool { return i.Outcome == o })
}

func (r *Report) add(k key, do verb, o Outcome, text string) {
	r.Items = append(r.Items, Item{k.id, string(k.root), string(do), o, text})
}

// round is one reconcile.
type round struct {
	e      *Engine
	b      *bus
	roots  map[store.Root]*Engine
	report Report
}

// Reconcile mends what no tick can, of all missions that this manager ticks, in every root: it looks at all of them,
// decides (see decide), looks again at each mission that something is to be done about, and does it. An error means that
// it was cut off; everything else stands in the report.
func (e *Engine) Reconcile(ctx context.Context) (Report, error) {
	r := &round{e: e, b: &bus{e: e, patience: glance}, roots: map[store.Root]*Engine{e.Root: e}}
	defer r.b.close()
	t, err := e.table(ctx, r.b)
	if err != nil {
		r.report.add(key{}, look, Unknown, fmt.Sprintf("what units there are cannot be seen, so nothing was touched: %v", err))
		return r.report, ctx.Err()
	}
	var all []fact
	for _, k := range r.missions(ctx, t) {
		if at, err := r.at(k.root); err != nil {
			r.report.add(k, look, Unknown, err.Error())
		} else {
			all = append(all, at.fact(ctx, r.b, t, k.id))
		}
	}
	acts := decide(all, time.Now(), e.held())
	e.remember(acts)
	for _, a := range acts {
		if ctx.Err() != nil {
			return r.report, ctx.Err()
		}
		r.do(ctx, a)
	}
	r.host(ctx)
	return r.report, nil
}

// at is the engine of a root.
func (r *round) at(root store.Root) (*Engine, error) {
	if at, ok := r.roots[root]; ok {
		return at, nil
	}
	if r.e.Open == nil {
		return nil, fmt.Errorf("nothing is known of its root %s", root)
	}
	at, err := r.e.Open(root)
	if err != nil {
		return nil, fmt.Errorf("its root %s cannot be served: %w", root, err)
	}
	r.roots[root] = at
	return at, nil
}

func (r *round) tell(k key, do verb, text string, err error) {
	if err != nil {
		r.report.add(k, do, Failed, fmt.Sprintf("%s: this did not succeed: %v", text, err))
		return
	}
	r.report.add(k, do, Done, text)
}

// do carries out one decision, if it is still right.
func (r *round) do(ctx context.Context, a act) {
	switch a.do {
	case look, hold:
		r.report.add(a.key, a.do, Unknown, a.text)
		return
	case leave:
		r.report.add(a.key, a.do, Left, a.text)
		return
	case refuse:
		r.report.add(a.key, a.do, Failed, a.text)
		return
	}
	ctx, cancel := context.WithTimeout(ctx, actTime)
	defer cancel()
	e := r.roots[a.root]
	var err error
	still := true
	switch a.do {
	case endGone, carryOn, silence:
		var f fact
		if f, a, still, err = r.again(ctx, e, a); err == nil && still {
			err = e.finishOff(ctx, r.b, f, a)
		}
	case giveUpd:
		if still, err = r.locked(ctx, e, &a, func(fact) error { return e.mark(ctx, a.id) }); err == nil && still {
			_, err = e.carry(ctx, r.b, a.id)
		}
	case repair:
		still, err = r.locked(ctx, e, &a, func(f fact) error { return e.mend(ctx, r.b, f, a) })
	}
	if still || err != nil {
		r.tell(a.key, a.do, a.text, err)
	}
}

// again looks at a mission once more and decides once more; still is false where what was to be done is not any more.
func (r *round) again(ctx context.Context, e *Engine, a act) (f fact, now act, still bool, err error) {
	t, err := e.table(ctx, r.b)
	if err != nil {
		return f, a, false, err
	}
	f = e.fact(ctx, r.b, t, a.id)
	for _, b := range f.decide(time.Now()) {
		if b.do == a.do && b.agent == a.agent {
			return f, b, true, nil
		}
	}
	return f, a, false, nil
}

// locked is again and what follows from it while nobody starts a mission.
func (r *round) locked(ctx context.Context, e *Engine, a *act, then func(fact) error) (still bool, err error) {
	unlock, err := e.lockUnits(ctx)
	if err != nil {
		return false, err
	}
	defer unlock()
	f, b, still, err := r.again(ctx, e, *a)
	if err != nil || !still {
		return still, err
	}
	*a = b
	return true, then(f)
}

func (e *Engine) finishOff(ctx context.Context, b *bus, f fact, a act) error {
	switch a.do {
	case endGone:
		return e.instead(ctx, b, f.set, func() error {
			_, err := e.carryOut(ctx, b, f.set, nil, mission.Stop{Reason: "its folder is gone"})
			return err
		})
	case carryOn:
		return e.instead(ctx, b, f.set, func() error { _, err := e.carry(ctx, b, f.id); return err })
	}
	base := f.set.base() + "-" + a.agent
	return b.must(ctx, f.set, base+".timer", base+".socket")
}

func (e *Engine) mark(ctx context.Context, id string) error {
	stop := mission.Stop{Cause: mission.FailedEnd, Reason: "its start was cut off", By: "reconcile", At: time.Now()}
	if e.Mark != nil {
		return e.Mark(ctx, id, stop)
	}
	_, err := e.Root.Mission(id).Stop(stop)
	return err
}
