// Package gateway stands between a run and the model: a proxy on the loopback address that lives as long as the run. It
// holds the credential, so that the run need not; it reads what every response cost while it passes; and it forwards a
// request only if the most that it can cost fits what is left.
package gateway

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"log"
	"maps"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"slices"
	"sync"
	"time"

	"example.com/AutoAgentProject/core/money"
	"example.com/AutoAgentProject/core/usage"
)

// The kinds of credentials.
const (
	APIKey    = "api-key"    // sent as x-api-key
	PlanToken = "plan-token" // sent as a bearer
)

// Upstream is where the model is if nothing else is said.
const Upstream = "https://api.anthropic.com"

// Config is what a gateway needs for its run.
type Config struct {
	Kind       string // of the credential
	Credential Secret // the real one

	Upstream string      // address of the model; empty: Upstream. https, or http on this machine
	Models   []string    // the only ones that are asked, by the ids that the program sends
	Price    usage.Price // not needed if the unit is tokens

	Cap    money.Amount          // the most that this run may use
	Budget func() (int64, error) // the most that it may use by the state of the whole budget, asked before each request; an error refuses it. nil: Cap alone

	Stopped  func() bool                // true: nothing is forwarded any more; nil: never
	OnUsage  func(Mark) error           // called before a request is forwarded and after it ended; an error before refuses it. Calls do not overlap. May be nil
	OnRecord func(Record)               // called once for each request that was forwarded, when it has ended; may be nil
	Meter    func(longCache bool) Meter // counts one response; nil: the built-in one

	MinOutput int64         // max_tokens is not lowered below it; 0: 512
	Patience  time.Duration // how long a request that does not fit waits for others in flight before it is lowered; 0: 30 s
	Idle      time.Duration // a response that sends nothing for so long is cut; 0: 3 min
	MaxBody   int64         // bytes of a request; 0: 32 MiB, what the service takes
}

// Record is one request that was forwarded.
type Record struct {
	Time      time.Time   `json:"time"`
	Model     string      `json:"model"`              // as it was asked for
	Status    int         `json:"status"`             // of the response; 0: none came
	Usage     money.Usage `json:"usage"`              // as far as the response told it
	Amount    int64       `json:"amount"`             // what it is charged, in the unit of the cap
	Worst     int64       `json:"worst"`              // what was set aside for it
	Asked     int64       `json:"asked_max_tokens"`   //
	MaxTokens int64       `json:"max_tokens"`         // as it was forwarded; less than asked: lowered
	Cut       bool        `json:"cut,omitempty"`      // the response ended before everything was told; what was not is charged at its most
	Unpriced  bool        `json:"unpriced,omitempty"` // charged at the dearest price there is
	Beyond    bool        `json:"beyond,omitempty"`   // it cost more than its worst case: the bound does not hold for this service
}

// Total is what the requests to one model came to.
type Total struct {
	Requests int         `json:"requests"`
	Usage    money.Usage `json:"usage"`
	Amount   int64       `json:"amount"`
}

// Report is what a gateway has done by now.
type Report struct {
	Mark
	Unit      money.Unit       `json:"unit"`
	ByModel   map[string]Total `json:"by_model"`  // by the names that were asked for
	Unpriced  []string         `json:"unpriced"`  // models charged at the dearest price
	Lowered   int              `json:"lowered"`   // requests forwarded with a smaller max_tokens
	Cut       int              `json:"cut"`       // responses that did not end
	Beyond    int              `json:"beyond"`    // responses that cost more than their worst case
	Spent     int              `json:"spent"`     // requests refused for money
	Refused   int              `json:"refused"`   // requests refused for anything else
	Strangers int              `json:"strangers"` // requests without the token, or not from this machine
}

// Gateway serves one run. It is an http.Handler.
type Gateway struct {
	cfg      Config
	upstream *url.URL
	tariff   tariff
	token    Secret
	want     [sha256.Size]byte // digest of the token
	account  account
	known    known
	proxy    *httputil.ReverseProxy
	out      *http.Transport
	server   http.Server
	readers  chan struct{} // bounds how many bodies are read and parsed at once
	ctx      context.Context
	cancel   context.CancelCauseFunc

	mu       sync.Mutex // guards what follows
	report   Report
	regional bool // a response told that its model was bound to a region
	closed   bool
	calls    sync.WaitGroup
}

var errClosed = errors.New("the run was stopped")

// New makes a gateway with a token of its own. It reaches for nothing yet.
func New(c Config) (*Gateway, error) {
	if c.Upstream == "" {
		c.Upstream = Upstream
	}
	if c.MinOutput == 0 {
		c.MinOutput = 512
	}
	if c.Patience == 0 {
		c.Patience = 30 * time.Second
	}
	if c.Idle == 0 {
		c.Idle = 3 * time.Minute
	}
	if c.MaxBody == 0 {
		c.MaxBody = 32 << 20
	}
	if c.Meter == nil {
		c.Meter = newCounter
	}
	upstream, err := parseUpstream(c.Upstream)
	switch {
	case err != nil:
		return nil, err
	case c.Kind != APIKey && c.Kind != PlanToken:
		return nil, fmt.Errorf("gateway: credential of the unknown kind %q", c.Kind)
	case !plain(c.Credential.reveal()):
		return nil, errors.New("gateway: the credential is empty or cannot be sent in a header")
	case len(c.Models) == 0 || slices.Contains(c.Models, ""):
		return nil, errors.New("gateway: no models, or one without a name")
	case !c.Cap.Valid():
		return nil, errors.New("gateway: the cap is no amount of more than 0")
	case c.Price == nil && c.Cap.Unit != money.Tokens:
		return nil, errors.New("gateway: no prices")
	case c.MinOutput < 1 || c.Patience < 0 || c.Idle < 0 || c.MaxBody < 0:
		return nil, errors.New("gateway: a limit is negative")
	}
	g := &Gateway{cfg: c, upstream: upstream, tariff: tariff{c.Cap.Unit, c.Price}, readers: make(chan struct{}, 4),
		account: account{cap: c.Cap, budget: c.Budget, told: c.OnUsage}, report: Report{ByModel: map[string]Total{}}}
	token := make([]byte, 32)
	if _, err := rand.Read(token); err != nil {
		return nil, fmt.Errorf("gateway: %w", err)
	}
	g.token = Hide("autoagent-run-" + base64.RawURLEncoding.EncodeToString(token))
	g.want = sha256.Sum256([]byte(g.token.reveal()))
	g.ctx, g.cancel = context.WithCancelCause(context.Background())
	g.out = transport(upstream)
	silent := log.New(discard{}, "", 0) // what it would print are addresses of clients and texts of the service
	g.proxy = &httputil.ReverseProxy{Rewrite: g.rewrite, ModifyResponse: g.answered, ErrorHandler: g.unanswered, Transport: g.out, FlushInterval: -1, ErrorLog: silent}
	g.server = http.Server{Handler: g, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 64 << 10, ErrorLog: silent}
	return g, nil
}

type discard struct{}

func (discard) Write(p []byte) (int, error) { return len(p), nil }

// plain says whether a text can stand in a header as it is.
func plain(s string) bool {
	for i := range len(s) {
		if s[i] <= ' ' || s[i] >= 0x7f {
			return false
		}
	}
	return s != ""
}

// Listen opens a port of the loopback address that nobody else has.
func Listen() (net.Listener, error) { return net.Listen("tcp", "127.0.0.1:0") }

// Token is what the run has in the place of a credential. It is worth nothing to anybody but this gateway.
func (g *Gateway) Token() string { return g.token.reveal() }

// Serve answers on l until Close. l is a unix socket or listens on a loopback address.
func (g *Gateway) Serve(l net.Listener) error {
	if a, ok := l.Addr().(*net.TCPAddr); ok && !a.IP.IsLoopback() {
		return fmt.Errorf("gateway: %s is not a loopback address", a)
	}
	if err := g.server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("gateway: %w", err)
	}
	return nil
}

// Close refuses what comes, cuts what is running, and returns when all of it is accounted for.
func (g *Gateway) Close() error {
	g.mu.Lock()
	g.closed = true
	g.mu.Unlock()
	g.cancel(errClosed)
	err := g.server.Close()
	g.calls.Wait()
	g.out.CloseIdleConnections()
	return err
}

// Report is the state by now.
func (g *Gateway) Report() Report {
	g.mu.Lock()
	defer g.mu.Unlock()
	r := g.report
	r.Mark, r.Unit = g.account.now(), g.cfg.Cap.Unit
	r.ByModel, r.Unpriced = maps.Clone(r.ByModel), slices.Clone(r.Unpriced)
	return r
}

// count notes something in the report.
func (g *Gateway) count(change func(*Report)) {
	g.mu.Lock()
	defer g.mu.Unlock()
	change(&g.report)
}

// enter says whether a request may begin; it then ends with g.calls.Done.
func (g *Gateway) enter() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return false
	}
	g.calls.Add(1)
	return true
}
