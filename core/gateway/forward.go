package gateway

import (
	"bytes"
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
