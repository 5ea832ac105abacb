package scriptmodel

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"
)

const maxBody = 64 << 20

// Options are what a server does besides answering.
type Options struct {
	Log  io.Writer     // one JSON line for each answered request, never a secret; nil: none
	Seen func(Request) // called for each request before it is answered, one at a time; nil: none
}

// Served is one answer as far as it was sent.
type Served struct {
	Rule         string `json:"rule"` // empty: no rule fitted
	Step         int    `json:"step"` // counted from 1
	Conversation string `json:"conversation"`
	Model        string `json:"model"`
	Status       int    `json:"status"`
	Usage        Usage  `json:"usage"` // what the reader was told; a stream cut short tells one output token
}

// Stats is what a server has served so far.
type Stats struct {
	Requests int              // requests for an answer, failed ones too
	Refused  int              // those without a rule, without a step or not understood
	ByRule   map[string]int   // requests by name of the rule
	ByModel  map[string]Usage // sums
	Served   []Served         // in the order in which the answers ended
}

// Tokens is the sum of all usages.
func (s Stats) Tokens() int64 {
	var n int64
	for _, u := range s.ByModel {
		n += u.Tokens()
	}
	return n
}

// Server plays a script. It is an http.Handler.
type Server struct {
	script Script
	opts   Options
	prefix string // makes the ids of this server unique
	http   http.Server

	mu    sync.Mutex // guards what follows
	seq   int
	lanes map[string]*lane // by conversation
	stats Stats
}

// lane is where a conversation stands.
type lane struct {
	rule int // -1: none
	next int
}

// New checks the script and makes a server for it.
func New(s Script, o Options) (*Server, error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	b := make([]byte, 6)
	if _, err := rand.Read(b); err != nil {
		return nil, err
	}
	srv := &Server{script: s, opts: o, prefix: hex.EncodeToString(b), lanes: map[string]*lane{},
		stats: Stats{ByRule: map[string]int{}, ByModel: map[string]Usage{}}}
	srv.http = http.Server{Handler: srv, ReadHeaderTimeout: 30 * time.Second}
	return srv, nil
}

// Serve answers on l until Close. l must be a loopback listener: whoever reaches it is answered.
func (s *Server) Serve(l net.Listener) error {
	if a, ok := l.Addr().(*net.TCPAddr); ok && !a.IP.IsLoopback() {
		return fmt.Errorf("serve on %s: not a loopback address", a)
	}
	if err := s.http.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// Close ends Serve and every connection, also those that hang.
func (s *Server) Close() error { return s.http.Close() }

// Stats returns a copy of what was served so far.
func (s *Server) Stats() Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.stats
	c.ByRule, c.ByModel, c.Served = maps.Clone(c.ByRule), maps.Clone(c.ByModel), slices.Clone(c.Served)
	return c
}

func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.Method == http.MethodPost && r.URL.Path == "/v1/messages":
		s.messages(w, r)
	case r.Method == http.MethodPost && r.URL.Path == "/v1/messages/count_tokens":
		n, _ := io.Copy(io.Discard, http.MaxBytesReader(w, r.Body, maxBody))
		writeJSON(w, http.StatusOK, map[string]any{"input_tokens": n / 4})
	case r.Method == http.MethodHead:
		w.WriteHeader(http.StatusOK)
	default:
		writeJSON(w, http.StatusNotFound, apiError("not_found_error", "no such endpoint: "+r.URL.Path))
	}
}

func (s *Server) messages(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		return
	}
	req, err := read(r.Header, body)
	if err != nil {
		s.refuse(w, req, Served{Status: http.StatusBadRequest}, err.Error())
		return
	}
	st, served, id, err := s.pick(&req)
	if err != nil {
		s.refuse(w, req, served, err.Error())
		return
	}
	var m message
	if m, err = compose(st, req, id); err == nil {
		st.Raw, st.RawToolInput, st.ErrMsg, err = fillAll(req, st.Raw, st.RawToolInput, st.ErrMsg)
	}
	if err != nil {
		s.refuse(w, req, served, err.Error())
		return
	}
	served.Usage, served.Status = s.play(w, r, st, req, m)
	s.done(req, served)
}

func fillAll(r Request, a, b, c string) (x, y, z string, err error) {
	x, errA := r.fillText(a)
	y, errB := r.fillText(b)
	z, errC := r.fillText(c)
	return x, y, z, errors.Join(errA, errB, errC)
}

// pick finds the conversation's lane and takes its next step.
func (s *Server) pick(req *Request) (st Step, served Served, id string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seq++
	req.Seq = s.seq
	if s.opts.Seen != nil {
		s.opts.Seen(*req)
	}
	l := s.lanes[req.Conversation]
	if l == nil {
		l = &lane{rule: slices.IndexFunc(s.script.Rules, func(r Rule) bool { return r.fits(req.Text) })}
		s.lanes[req.Conversation] = l
	}
	// 418 is one of the few statuses that the claude program does not try again.
	served = Served{Conversation: req.Conversation, Model: req.Model, Status: http.StatusTeapot}
	if l.rule < 0 {
		return Step{}, served, "", errors.New("script: no rule fits this conversation")
	}
	rule := s.script.Rules[l.rule]
	served.Rule, served.Step = rule.name(l.rule), l.next+1
	st, ok := rule.step(l.next)
	l.next++
	if !ok {
		return Step{}, served, "", fmt.Errorf("script: %s has no step for request %d", served.Rule, served.Step)
	}
	if st.Model != "" {
		served.Model = st.Model
	}
	return st, served, fmt.Sprintf("%s%06d", s.prefix, req.Seq), nil
}

// play answers and returns what the reader was told.
func (s *Server) play(w http.ResponseWriter, r *http.Request, st Step, req Request, m message) (Usage, int) {
	if !pause(r, st.DelayMS) {
		return Usage{}, 0
	}
	if st.HangHeaders {
		hang(w, r, 0)
		return Usage{}, 0
	}
	if st.DropConn {
		drop(w)
		return Usage{}, 0
	}
	w.Header().Set("Request-Id", "req_"+m.id)
	for k, v := range st.Headers {
		w.Header().Set(k, v)
	}
	switch {
	case st.Raw != "":
		status := max(st.Status, http.StatusOK)
		w.WriteHeader(status)
		_, _ = io.WriteString(w, st.Raw)
		return Usage{}, status
	case st.Status >= 400:
		writeJSON(w, st.Status, apiError(st.ErrType, st.ErrMsg))
		return Usage{}, st.Status
	case req.Stream:
		return stream(w, r, st, m), http.StatusOK
	}
	writeJSON(w, http.StatusOK, m.whole())
	return counted(m.usage), http.StatusOK
}

func (s *Server) refuse(w http.ResponseWriter, req Request, served Served, why string) {
	writeJSON(w, served.Status, apiError("invalid_request_error", why))
	s.mu.Lock()
	s.stats.Refused++
	s.mu.Unlock()
	s.done(req, served)
}

// done counts and logs an answer.
func (s *Server) done(req Request, served Served) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stats.Requests++
	if served.Rule != "" {
		s.stats.ByRule[served.Rule]++
	}
	if served.Usage != (Usage{}) {
		s.stats.ByModel[served.Model] = s.stats.ByModel[served.Model].add(served.Usage)
	}
	s.stats.Served = append(s.stats.Served, served)
	if s.opts.Log == nil {
		return
	}
	b, _ := json.Marshal(struct {
		Seq  int       `json:"seq"`
		Time time.Time `json:"time"`
		Served
		Auth      string   `json:"auth"`
		Tools     []string `json:"tools"`
		Messages  int      `json:"messages"`
		Bytes     int      `json:"bytes"`
		MaxTokens int64    `json:"max_tokens"`
	}{req.Seq, time.Now().UTC(), served, req.Auth, req.Tools, req.Messages, req.Bytes, req.MaxTokens})
	_, _ = s.opts.Log.Write(append(b, '\n'))
}

func apiError(kind, text string) map[string]any {
	if kind == "" {
		kind = "api_error"
	}
	return map[string]any{"type": "error", "error": map[string]any{"type": kind, "message": text}}
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v)
}
