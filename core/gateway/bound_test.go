package gateway

import (
	"math/rand/v2"
	"net/url"
	"strings"
	"testing"
	"time"

	"example.com/AutoAgentProject/core/money"
)

// TestWorst: no way to count a prompt of so many tokens, and an output of so many, costs more.
func TestWorst(t *testing.T) {
	at := time.Date(2026, 11, 30, 0, 0, 0, 0, time.UTC)
	for _, model := range []string{"claude-opus-5-5", "claude-haiku-5-5", "claude-nobody-knows"} {
		for _, c := range []struct{ fast, regional, cached, hour bool }{{}, {cached: true}, {cached: true, hour: true}, {fast: true, cached: true}, {regional: true, hour: true, cached: true}} {
			a := &ask{model: model, fast: c.fast, cached: c.cached, hour: c.hour, regional: c.regional}
			for _, unit := range []money.Unit{money.NanoUSD, money.Tokens} {
				tariff := tariff{unit, money.Default().Cost}
				r := rand.New(rand.NewPCG(1, 2))
				for range 300 {
					prompt, output := r.Int64N(300_000), r.Int64N(20_000)
					worst, reached := tariff.worst(a, prompt, output, false, at), false
					for _, class := range []func(u *money.Usage) *int64{
						func(u *money.Usage) *int64 { return &u.Input }, func(u *money.Usage) *int64 { return &u.CacheRead },
						func(u *money.Usage) *int64 { return &u.CacheWrite5m }, func(u *money.Usage) *int64 { return &u.CacheWrite1h }} {
						u := money.Usage{Output: output}
						n := class(&u)
						if n == &u.CacheWrite5m && !c.cached || n == &u.CacheWrite1h && !c.hour {
							continue
						}
						*n = prompt
						most, _ := tariff.cost(model, Count{Usage: u, Fast: c.fast, Regional: c.regional}, at)
						*n = r.Int64N(prompt + 1)
						u.Input += prompt - *n
						u.Output -= r.Int64N(output + 1)
						mixed, _ := tariff.cost(model, Count{Usage: u, Fast: c.fast, Regional: c.regional}, at)
						if most > worst || mixed > worst {
							t.Fatalf("%s, %+v: %d and %d, worst %d", model, c, most, mixed, worst)
						}
						reached = reached || most == worst
					}
					if !reached {
						t.Fatalf("%s, %+v: %d is never reached", model, c, worst)
					}
				}
			}
		}
	}
}

func TestFit(t *testing.T) {
	double := func(n int64) int64 { return 100 + 2*n }
	for _, c := range []struct {
		left, want, floor int64
		output            int64
		ok                bool
	}{
		{300, 100, 10, 100, true},
		{299, 100, 10, 99, true},
		{298, 100, 10, 99, true},
		{121, 100, 10, 10, true},
		{120, 100, 10, 10, true},
		{119, 100, 10, 0, false},
		{0, 100, 1, 0, false},
		{-5, 100, 1, 0, false},
		{102, 1, 1, 1, true},
		{101, 1, 1, 0, false},
		{1 << 60, 100, 10, 100, true},
	} {
		output, amount, ok := fit(c.left, c.want, c.floor, double)
		if output != c.output || ok != c.ok || ok && amount != double(output) {
			t.Errorf("%+v: %d, %d, %v", c, output, amount, ok)
		}
	}
}

// TestOnlyOnThisMachine: over http the credential leaves for a loopback address alone, whatever a name resolves to.
func TestOnlyOnThisMachine(t *testing.T) {
	u, err := url.Parse("http://localhost")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := transport(u).DialContext(t.Context(), "tcp", "192.0.2.1:80"); err == nil || !strings.Contains(err.Error(), "not on this machine") {
		t.Errorf("%v", err)
	}
}
