package tick

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"

	"example.com/AutoAgentProject/core/files"
	"example.com/AutoAgentProject/core/gateway"
	"example.com/AutoAgentProject/core/mission"
	"example.com/AutoAgentProject/core/money"
	"example.com/AutoAgentProject/core/runner"
)

// GatewayRecord is runs/<run>/gateway.json: what the gateway of a run has charged. It is written before the program is
// started and before each request goes out, so that of a run that is found dead it is known what it can have cost.
type GatewayRecord struct {
	Version int        `json:"version"`
	Unit    money.Unit `json:"unit"`
	gateway.Mark
	Requests int64                  `json:"requests"`
	ByModel  map[string]money.Usage `json:"by_model,omitempty"`
	Unpriced []string               `json:"unpriced,omitempty"`
}

func (t *Tick) gatewayFile(run string) string {
	return filepath.Join(t.Store.Run(t.Agent.Name, run), "gateway.json")
}

func (t *Tick) keepGateway(run string, r GatewayRecord) error {
	b, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return files.Replace(t.gatewayFile(run), append(b, '\n'), 0o600)
}

// claim is what the gateway says that a run cost; ok is false if the run had none.
func (t *Tick) gatewayClaim(run string) (c money.Claim, ok bool, err error) {
	b, err := files.Read(t.gatewayFile(run), 1<<20)
	if errors.Is(err, fs.ErrNotExist) {
		return c, false, nil
	}
	var r GatewayRecord
	if err == nil {
		err = json.Unmarshal(b, &r)
	}
	if err != nil {
		return c, false, err
	}
	c = money.Claim{Meter: money.MeterGateway, Requests: r.Requests, ByModel: r.ByModel, Unpriced: r.Unpriced}
	for _, u := range r.ByModel {
		c.Tokens += u.Tokens()
	}
	if r.Unit == money.Tokens {
		c.Tokens = max(c.Tokens, r.Sum())
	} else {
		c.Nano = money.Nano(r.Sum())
	}
	return c, true, nil
}

// way is how a run reaches the model: through a gateway of its own, or directly.
type way struct {
	url        string
	credential runner.Credential
	gateway    *gateway.Gateway // nil: directly
	served     chan error
	done       func() error
}

// cost is what a run is charged in money, as far as gateway and result know.
func (w *way) cost(res runner.Result) money.Nano {
	if w.gateway == nil {
		return res.Spend.Nano
	}
	rep := w.gateway.Report()
	if rep.Unit == money.Tokens {
		return res.Spend.Nano
	}
	return max(res.Spend.Nano, money.Nano(rep.Sum()))
}

// openWay opens the way to the model for one run that may use limit. Without a price table there is no gateway.
func (t *Tick) openWay(run string, limit money.Amount, cred runner.Credential) (*way, error) {
	if t.Price == nil {
		return &way{url: t.Mission.Upstream, credential: cred, done: func() error { return nil }}, nil
	}
	rec := GatewayRecord{Version: mission.Version, Unit: limit.Unit, ByModel: map[string]money.Usage{}}
	if err := t.keepGateway(run, rec); err != nil {
		return nil, err
	}
	g, err := gateway.New(gateway.Config{
		Kind: cred.Kind, Credential: gateway.Hide(cred.Secret), Upstream: t.Mission.Upstream, Models: t.models(), Price: t.Price,
		Cap: limit,
		Budget: func() (int64, error) {
			book, err := t.ledger.Read()
			return book.Budget.N - book.Used.N - (book.Reserved.N - limit.N), err
		},
		Stopped: func() bool { stop, err := t.Store.Stopped(); return err != nil || stop != nil },
		OnUsage: func(m gateway.Mark) error {
			rec.Mark = m
			return t.keepGateway(run, rec)
		},
	})
	if err != nil {
		return nil, fmt.Errorf("gateway: %w", err)
	}
	l, err := gateway.Listen()
	if err != nil {
		return nil, fmt.Errorf("gateway: %w", err)
	}
	w := &way{url: "http://" + l.Addr().String(), credential: runner.Credential{Kind: cred.Kind, Secret: g.Token()}, gateway: g, served: make(chan error, 1)}
	go func() { w.served <- g.Serve(l) }()
	w.done = func() error {
		err := errors.Join(g.Close(), <-w.served)
		rep := g.Report()
		rec.Mark, rec.Unpriced = rep.Mark, rep.Unpriced
		for model, total := range rep.ByModel {
			rec.ByModel[model] = total.Usage
			rec.Requests += int64(total.Requests)
		}
		return errors.Join(err, t.keepGateway(run, rec))
	}
	return w, nil
}

// models are those that a run may ask.
func (t *Tick) models() []string {
	out := []string{t.Mission.Model}
	also := func(m string) {
		if m != "" && !slices.Contains(out, m) {
			out = append(out, m)
		}
	}
	also(t.Mission.CheapModel)
	if t.Flow != nil {
		for _, m := range t.Mission.Tiers {
			also(m)
		}
		if p, ok := t.Professions.Get(t.Agent.Profession); ok {
			also(t.ModelOf(p.Model))
		}
		for _, s := range t.Flow.Steps {
			also(t.ModelOf(s.Model))
		}
	}
	return out
}

// tooLittle is what follows when not even the first request of a run fitted: everything that is free is tried once, then
// others are waited for, and if nobody is left to wait for, the budget is used up.
func (t *Tick) tooLittle(ctx context.Context, h *Hold) (Outcome, error) {
	alone := h.Alone
	h.Alone = true
	if err := t.uncount(h); err != nil {
		return Idle, err
	}
	book, err := t.ledger.Read()
	switch {
	case err != nil:
		return Idle, err
	case !alone:
		t.Wake(t.Agent.Name)
		return Later, nil
	case book.Reserved.N > 0:
		t.Line(ctx, "waiting", "", "", "waits until others have finished: what is free does not cover its next request")
		return Later, nil
	}
	left := money.Amount{Unit: book.Budget.Unit, N: money.Remaining(book.Budget.N, book.Used.N)}
	return Over, t.Stop(mission.Budget, fmt.Sprintf("%s of %s is left, which does not cover the next request", left, book.Budget))
}
