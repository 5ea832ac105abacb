package gateway

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"time"

	"example.com/AutoAgentProject/core/money"
)

const (
	messagesPath = "/v1/messages"
	countPath    = "/v1/messages/count_tokens"
)

// bodyTime is how long a request's body may take. It comes from the same machine.
const bodyTime = time.Minute

// ServeHTTP answers one request of the run, by the service or by a refusal.
func (g *Gateway) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !g.ours(r) {
		g.count(func(n *Report) { n.Strangers++ })
		refuse(w, http.StatusUnauthorized, "authentication_error", "this gateway serves one run, and this is not it")
		return
	}
	if !g.enter() {
		g.refused(w, http.StatusPaymentRequired, "billing_error", errClosed.Error())
		return
	}
	defer g.calls.Done()
	if r.Method != http.MethodPost || r.URL.Path != messagesPath && r.URL.Path != countPath || r.URL.RawQuery != "" && r.URL.RawQuery != "beta=true" {
		g.refused(w, http.StatusNotFound, "not_found_error", "only POST "+messagesPath+" and "+countPath+" are forwarded")
		return
	}
	if g.stopped() {
		g.refused(w, http.StatusPaymentRequired, "billing_error", errClosed.Error())
		return
	}
	// The server ends a request's context with its connection, but not with us.
	ctx, cancel := context.WithCancelCause(r.Context())
	defer cancel(nil)
	defer context.AfterFunc(g.ctx, func() { cancel(errClosed) })()
	if r.URL.Path == countPath {
		g.countTokens(w, r.WithContext(ctx), cancel)
		return
	}
	a, ok := g.read(w, r)
	if !ok {
		return
	}
	if !slices.Contains(g.cfg.Models, a.model) {
		g.refused(w, http.StatusNotFound, "not_found_error", fmt.Sprintf("the model %.80q is not declared for this run", a.model))
		return
	}
	g.forward(w, r.WithContext(ctx), cancel, a)
}

// ours says whether a request comes from this machine and has the token, in either of the headers that the program
// puts a credential in.
func (g *Gateway) ours(r *http.Request) bool {
	if !local(r) {
		return false
	}
	bearer, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	match := 0
	for _, said := range []string{r.Header.Get("X-Api-Key"), bearer} {
		sum := sha256.Sum256([]byte(said))
		match |= subtle.ConstantTimeCompare(sum[:], g.want[:])
	}
	return match == 1
}

// local says whether a request came over a unix socket or from a loopback address.
func local(r *http.Request) bool {
	if a, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr); ok && a.Network() == "unix" {
		return true
	}
	from, err := netip.ParseAddrPort(r.RemoteAddr)
	return err == nil && from.Addr().Unmap().IsLoopback()
}

func (g *Gateway) stopped() bool {
	return g.ctx.Err() != nil || g.cfg.Stopped != nil && g.cfg.Stopped()
}

// read reads and understands a body. If it cannot, it has answered.
func (g *Gateway) read(w http.ResponseWriter, r *http.Request) (*ask, bool) {
	done, ok := g.turn(w, r)
	if !ok {
		return nil, false
	}
	defer done()
	body, ok := g.body(w, r)
	if !ok {
		return nil, false
	}
	a, err := parse(body)
	if err != nil {
		g.refused(w, http.StatusBadRequest, "invalid_request_error", err.Error())
		return nil, false
	}
	return a, true
}

// turn waits until few enough bodies are in memory.
func (g *Gateway) turn(w http.ResponseWriter, r *http.Request) (done func(), ok bool) {
	select {
	case g.readers <- struct{}{}:
		return func() { <-g.readers }, true
	case <-r.Context().Done():
		g.refused(w, http.StatusPaymentRequired, "billing_error", errClosed.Error())
		return nil, false
	}
}

func (g *Gateway) body(w http.ResponseWriter, r *http.Request) ([]byte, bool) {
	control := http.NewResponseController(w)
	_ = control.SetReadDeadline(time.Now().Add(bodyTime)) // without one it only takes longer
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, g.cfg.MaxBody))
	_ = control.SetReadDeadline(time.Time{})
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		g.refused(w, http.StatusRequestEntityTooLarge, "request_too_large", fmt.Sprintf("the body has more than %d bytes", g.cfg.MaxBody))
	case err != nil:
		g.refused(w, http.StatusBadRequest, "invalid_request_error", "the body did not come whole")
	default:
		return body, true
	}
	return nil, false
}

// forward reserves the worst case of a request and sends it on.
func (g *Gateway) forward(w http.ResponseWriter, r *http.Request, cancel context.CancelCauseFunc, a *ask) {
	at := time.Now().UTC()
	g.mu.Lock()
	regional := g.regional
	g.mu.Unlock()
	prompt := g.known.bound(a.prompt)
	output, worst, err := g.account.reserve(r.Context(), want{
		output: a.maxTokens, floor: min(a.maxTokens, money.Sum(a.thinking, g.cfg.MinOutput)),
		worst:    func(output int64) int64 { return g.tariff.worst(a, prompt, output, regional, at) },
		patience: g.cfg.Patience})
	var spent spentError
	switch {
	case errors.As(err, &spent):
		g.count(func(n *Report) { n.Spent++ })
		refuse(w, http.StatusPaymentRequired, "billing_error", spent.Error())
		return
	case errors.Is(err, errUnwritten):
		g.refused(w, http.StatusServiceUnavailable, "api_error", errUnwritten.Error())
		return
	case err != nil:
		g.refused(w, http.StatusPaymentRequired, "billing_error", errClosed.Error()) // or nobody is there to read it
		return
	}
	c := &call{g: g, ask: a, cancel: cancel, meter: g.cfg.Meter(a.hour), output: output,
		record: Record{Time: at, Model: a.model, Worst: worst, Asked: a.maxTokens, MaxTokens: output}}
	defer c.settle()
	if g.stopped() {
		c.free = true
		refuse(w, http.StatusPaymentRequired, "billing_error", errClosed.Error())
		return
	}
	c.send(w, r, a.lowered(output))
}

// countTokens forwards a question that costs nothing: how large a prompt is.
func (g *Gateway) countTokens(w http.ResponseWriter, r *http.Request, cancel context.CancelCauseFunc) {
	done, ok := g.turn(w, r)
	if !ok {
		return
	}
	body, ok := g.body(w, r)
	done()
	if !ok {
		return
	}
	fields, _, err := object(body)
	if err != nil {
		g.refused(w, http.StatusBadRequest, "invalid_request_error", err.Error())
		return
	}
	if model := text(fields["model"]); !slices.Contains(g.cfg.Models, model) {
		g.refused(w, http.StatusNotFound, "not_found_error", fmt.Sprintf("the model %.80q is not declared for this run", model))
		return
	}
	(&call{g: g, cancel: cancel, settled: true}).send(w, r, body)
}

// refused refuses for another reason than money.
func (g *Gateway) refused(w http.ResponseWriter, status int, kind, sentence string) {
	g.count(func(n *Report) { n.Refused++ })
	refuse(w, status, kind, sentence)
}

// refuse answers in the form of the service's own errors. Trying again would change nothing.
func refuse(w http.ResponseWriter, status int, kind, sentence string) {
	w.Header().Set("Content-Type", "application/json")
	if status < 500 {
		w.Header().Set("X-Should-Retry", "false")
	}
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]any{"type": "error", "error": map[string]any{"type": kind, "message": sentence}})
}
