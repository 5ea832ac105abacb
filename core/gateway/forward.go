package gateway

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/http/httptrace"
	"net/http/httputil"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"example.com/AutoAgentProject/core/money"
)

// maxAnswer is how much of an answer that is no stream is kept to be counted; maxError how much of an error is passed on.
const (
	maxAnswer = 32 << 20
	maxError  = 1 << 20
)

// call is one request on its way. Its handler's goroutine alone touches it, but for sent.
type call struct {
	g       *Gateway
	ask     *ask // nil: it costs nothing
	cancel  context.CancelCauseFunc
	meter   Meter
	output  int64 // most tokens of output
	record  Record
	sent    atomic.Bool // some of it has gone out
	free    bool        // the service said that it did nothing, or it was not asked
	settled bool
}

type callKey struct{}

// send hands the request to the proxy and comes back when the response has passed.
func (c *call) send(w http.ResponseWriter, r *http.Request, body []byte) {
	trace := &httptrace.ClientTrace{WroteHeaders: func() { c.sent.Store(true) }}
	ctx := httptrace.WithClientTrace(context.WithValue(r.Context(), callKey{}, c), trace)
	out := r.WithContext(ctx)
	out.Header = c.g.headers(r.Header)
	// Without GetBody the transport never sends it a second time by itself.
	out.Body, out.ContentLength, out.TransferEncoding, out.GetBody = io.NopCloser(bytes.NewReader(body)), int64(len(body)), nil, nil
	c.g.proxy.ServeHTTP(w, out)
}

func callOf(r *http.Request) *call { return r.Context().Value(callKey{}).(*call) }

func (g *Gateway) rewrite(p *httputil.ProxyRequest) {
	u := *g.upstream
	u.Path, u.RawPath = strings.TrimSuffix(u.Path, "/")+p.In.URL.Path, ""
	u.RawQuery = p.In.URL.RawQuery
	p.Out.URL, p.Out.Host = &u, u.Host
}

// errRedirect: to follow it would carry the credential to somebody else.
var errRedirect = errors.New("the service answered with a redirect, which is not followed")

// answered looks at the head of a response and lets the body pass through the meter.
func (g *Gateway) answered(r *http.Response) error {
	c := callOf(r.Request)
	c.record.Status = r.StatusCode
	g.clean(r.Header)
	if r.StatusCode >= 300 && r.StatusCode < 400 {
		c.free = true
		return errRedirect
	}
	r.Body = &patient{r.Body, g.cfg.Idle, c.cancel}
	switch packed := r.Header.Get("Content-Encoding"); packed {
	case "", "identity":
	case "gzip": // although it was told not to
		r.Body = &unpacked{from: r.Body}
		r.Header.Del("Content-Encoding")
		r.Header.Del("Content-Length")
		r.ContentLength = -1
	default:
		return fmt.Errorf("the service answered in the encoding %.20q, which it was told not to use", packed)
	}
	if r.StatusCode >= 400 {
		return c.failed(r)
	}
	if c.ask == nil {
		return nil
	}
	kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	t := &tap{body: r.Body, call: c}
	if kind == "text/event-stream" {
		t.events = &splitter{event: c.meter.Event, lost: c.meter.Lost}
	}
	r.Body = t
	return nil
}

// clean removes what could bring a credential back.
func (g *Gateway) clean(h http.Header) {
	for _, name := range []string{"Set-Cookie", "Authorization", "X-Api-Key", "Www-Authenticate", "Proxy-Authenticate"} {
		h.Del(name)
	}
	for name, values := range h {
		if slices.ContainsFunc(values, func(v string) bool { return strings.Contains(v, g.cfg.Credential.reveal()) }) {
			h.Del(name)
		}
	}
}

// failed passes an error on. One that the service tells in its own form costs nothing, and neither does one by which a
// request was not let in. Any other may come from something in between that lost an answer which was made.
func (c *call) failed(r *http.Response) error {
	b, err := io.ReadAll(io.LimitReader(r.Body, maxError))
	r.Body.Close()
	if err != nil {
		return fmt.Errorf("an error of the service did not come whole: status %d", r.StatusCode)
	}
	c.free = r.StatusCode < 500 && r.StatusCode != http.StatusRequestTimeout || isError(b)
	b = []byte(c.g.cfg.Credential.strike(string(b)))
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(b)), int64(len(b))
	r.Header.Set("Content-Length", strconv.Itoa(len(b)))
	r.TransferEncoding = nil
	return nil
}

// isError says whether a body is an error in the service's form.
func isError(b []byte) bool {
	var e struct {
		Error json.RawMessage `json:"error"`
	}
	return json.Unmarshal(b, &e) == nil && len(e.Error) > 0 && string(e.Error) != "null"
}

// unanswered tells that there is no response.
func (g *Gateway) unanswered(w http.ResponseWriter, r *http.Request, err error) {
	c := callOf(r)
	if !c.sent.Load() {
		c.free = true
	}
	if cause := context.Cause(r.Context()); cause != nil {
		err = cause
	}
	if errors.Is(err, errClosed) {
		refuse(w, http.StatusPaymentRequired, "billing_error", errClosed.Error())
		return
	}
	refuse(w, http.StatusBadGateway, "api_error", g.cfg.Credential.strike(fmt.Sprintf("the model cannot be reached: %v", err)))
}

// settle charges what the response cost, once: what was told, and for the rest the most that it can be.
func (c *call) settle() {
	if c.settled {
		return
	}
	c.settled = true
	g, r, n := c.g, &c.record, c.meter.Count()
	r.Usage = n.Usage
	r.Cut = !n.Final && !c.free
	switch {
	case c.free || n.Failed && !n.Begun:
		r.Amount, r.Cut, r.Usage = 0, false, money.Usage{}
	case n.Begun:
		if !n.Final {
			// Not all that was written has been seen, and thinking is not shown at all.
			n.Usage.Output = max(n.Usage.Output, c.output)
		}
		amount, known := g.tariff.cost(r.Model, n, r.Time)
		r.Amount, r.Unpriced = amount, !known
	default:
		r.Amount = r.Worst
	}
	r.Beyond = r.Amount > r.Worst
	if n.Begun {
		g.known.learn(c.ask.prompt, n.Usage.Prompt())
	}
	g.account.settle(r.Worst, r.Amount)
	g.note(n, *r)
	if g.cfg.OnRecord != nil {
		g.cfg.OnRecord(*r)
	}
}

func (g *Gateway) note(n Count, r Record) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.regional = g.regional || n.Regional
	t := g.report.ByModel[r.Model]
	g.report.ByModel[r.Model] = Total{t.Requests + 1, t.Usage.Add(r.Usage), money.Sum(t.Amount, r.Amount)}
	for counter, yes := range map[*int]bool{&g.report.Lowered: r.MaxTokens < r.Asked, &g.report.Cut: r.Cut, &g.report.Beyond: r.Beyond} {
		if yes {
			*counter++
		}
	}
	if r.Unpriced && !slices.Contains(g.report.Unpriced, r.Model) {
		g.report.Unpriced = append(g.report.Unpriced, r.Model)
	}
}

// tap lets a body pass and shows it to the meter. What it cost is settled before the reader gets the end, so that the
// reader's next request finds the rest given back.
type tap struct {
	body   io.ReadCloser
	call   *call
	events *splitter // nil: it is no stream
	whole  []byte
	large  bool
}

func (t *tap) Read(p []byte) (int, error) {
	n, err := t.body.Read(p)
	switch {
	case t.call.settled:
	case t.events != nil:
		if t.events.write(p[:n]); t.call.meter.Count().Final {
			t.call.settle()
		}
	case len(t.whole)+n > maxAnswer:
		t.large, t.whole = true, nil
	case !t.large:
		t.whole = append(t.whole, p[:n]...)
	}
	if errors.Is(err, io.EOF) && !t.call.settled {
		if t.events == nil {
			t.call.meter.Body(t.whole)
		}
		t.call.settle()
	}
	return n, err
}

func (t *tap) Close() error { return t.body.Close() }

// patient cuts a response whose next piece does not come. The time in which the reader is slow does not count.
type patient struct {
	io.ReadCloser
	idle   time.Duration
	cancel context.CancelCauseFunc
}

func (p *patient) Read(b []byte) (int, error) {
	t := time.AfterFunc(p.idle, func() { p.cancel(fmt.Errorf("the service sent nothing for %v", p.idle)) })
	defer t.Stop()
	return p.ReadCloser.Read(b)
}

// unpacked is a gzipped body as it was meant. The beginning is not read before somebody asks for it.
type unpacked struct {
	from   io.ReadCloser
	reader *gzip.Reader
}

func (u *unpacked) Read(p []byte) (int, error) {
	if u.reader == nil {
		r, err := gzip.NewReader(u.from)
		if err != nil {
			return 0, fmt.Errorf("unpack the answer: %w", err)
		}
		u.reader = r
	}
	return u.reader.Read(p)
}

func (u *unpacked) Close() error { return u.from.Close() }
