// Package bridge is the read-only dashboard: pages for people, the same view structs as JSON, and metrics. It answers GET and
// HEAD, to the hosts that it knows, and shows what core/view reads; it cannot change anything.
package bridge

import (
	"context"
	"crypto/subtle"
	"embed"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"example.com/AutoAgentProject/core/usererr"
	"example.com/AutoAgentProject/core/view"
)

//go:embed templates static
var assets embed.FS

// DefaultListen is where the dashboard listens if nothing else is said.
const DefaultListen = "127.0.0.1:7777"

// Config is what a server needs.
type Config struct {
	View    *view.Reader
	Hosts   []string // names besides localhost and the address itself under which it may be asked for
	Token   string   // who asks must bring it; empty: nobody must. An address that others reach needs one
	Idle    time.Duration
	Version string
	Log     *slog.Logger
}

// Server is the dashboard.
type Server struct {
	cfg     Config
	mux     *http.ServeMux
	busy    chan struct{} // readings at the same time
	lives   atomic.Int64  // open live streams
	every   time.Duration // between two looks of a live stream
	beat    time.Duration // between two signs of life of a live stream
	asked   atomic.Int64  // when somebody asked last, in nanoseconds
	under   atomic.Int64  // requests under way
	reg     *prometheus.Registry
	answers *prometheus.CounterVec
	took    *prometheus.HistogramVec
	metrics http.Handler
	pages   pages
	now     func() time.Time

	mu     sync.Mutex
	prints map[string]print
}

// How much is done at the same time, and how long at most.
const (
	readings   = 8
	maxLives   = 64
	maxTokens  = 4096 // bytes of a token
	writeLimit = 30 * time.Second
	liveLimit  = 15 * time.Minute
)

// New makes a server.
func New(cfg Config) (*Server, error) {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	s := &Server{cfg: cfg, mux: http.NewServeMux(), busy: make(chan struct{}, readings), every: time.Second, beat: 20 * time.Second, now: time.Now, prints: map[string]print{}}
	s.asked.Store(time.Now().UnixNano())
	var err error
	if s.pages, err = loadPages(); err != nil {
		return nil, err
	}
	s.measure()
	s.routes()
	return s, nil
}

func (s *Server) routes() {
	for path, h := range map[string]handler{
		"/{$}":                               s.overviewPage,
		"/missions/{id}":                     s.missionPage,
		"/missions/{id}/runs/{run}":          s.runPage,
		"/missions/{id}/tasks/{step}":        s.taskPage,
		"/missions/{id}/files/{path...}":     s.filePage,
		"/api/v1/missions":                   s.apiMissions,
		"/api/v1/missions/{id}":              s.apiMission,
		"/api/v1/missions/{id}/runs/{run}":   s.apiRun,
		"/api/v1/missions/{id}/tasks/{step}": s.apiTask,
		"/api/v1/":                           func(http.ResponseWriter, *http.Request) error { return view.ErrNotFound },
		"/":                                  func(http.ResponseWriter, *http.Request) error { return view.ErrNotFound },
	} {
		s.mux.Handle(path, s.reading(path, h))
	}
	s.mux.HandleFunc("/static/{name}", s.static)
	s.mux.HandleFunc("/favicon.ico", s.static)
	s.mux.HandleFunc("/live", s.live)
	s.mux.HandleFunc("/healthz", s.health)
	s.mux.Handle("/metrics", s.metrics)
}

// ServeHTTP judges a request before anything looks at it.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.asked.Store(s.now().UnixNano())
	s.under.Add(1)
	defer func() {
		s.asked.Store(s.now().UnixNano())
		s.under.Add(-1)
	}()
	h := w.Header()
	h.Set("Content-Security-Policy", "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Permissions-Policy", "camera=(), geolocation=(), microphone=()")
	h.Set("Cache-Control", "no-store")
	switch {
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		h.Set("Allow", "GET, HEAD")
		refuse(w, http.StatusMethodNotAllowed, "it is read-only: GET and HEAD")
	case !s.knows(r):
		refuse(w, http.StatusMisdirectedRequest, "nobody of this name is here")
	case !s.lets(r):
		h.Set("WWW-Authenticate", `Basic realm="AutoAgent: any name, the token as password", charset="UTF-8"`)
		time.Sleep(200 * time.Millisecond) // who guesses
		refuse(w, http.StatusUnauthorized, "the token is missing or wrong")
	case strange(r.URL.Path):
		refuse(w, http.StatusNotFound, "there is nothing there")
	default:
		s.mux.ServeHTTP(w, r)
	}
}

func refuse(w http.ResponseWriter, code int, text string) { http.Error(w, text, code) }

// strange says whether a path is none that a page of ours links to: the mux would tidy it up and send its asker elsewhere.
func strange(path string) bool {
	for part := range strings.SplitSeq(strings.TrimPrefix(path, "/"), "/") {
		if part == "." || part == ".." {
			return true
		}
	}
	return strings.Contains(path, "//") || strings.ContainsAny(path, "\\\x00")
}

// knows says whether a request names a host that is ours. Else a page of somebody else, whose name points here, could read
// along in a person's browser (DNS rebinding). A number is no name that could point elsewhere, but it must be where we are.
func (s *Server) knows(r *http.Request) bool {
	host := r.Host
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	host = strings.ToLower(strings.TrimSuffix(strings.Trim(host, "[]"), "."))
	if host == "localhost" || slices.Contains(s.cfg.Hosts, host) {
		return true
	}
	ip := net.ParseIP(host)
	if ip == nil {
		return false
	}
	if ip.IsLoopback() {
		return true
	}
	local, ok := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr)
	return ok && local.IP.Equal(ip)
}

// lets says whether a request brings the token, as a bearer or as the password of a login.
func (s *Server) lets(r *http.Request) bool {
	if s.cfg.Token == "" {
		return true
	}
	got, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !ok {
		_, got, _ = r.BasicAuth()
	}
	return subtle.ConstantTimeCompare([]byte(got), []byte(s.cfg.Token)) == 1
}

// Open says whether others than this machine's users can reach a listener.
func Open(l net.Listener) bool {
	a, ok := l.Addr().(*net.TCPAddr)
	return ok && !a.IP.IsLoopback()
}

// Check says what speaks against serving on a listener.
func Check(l net.Listener, token string) error {
	if Open(l) && token == "" {
		return usererr.New(usererr.Usage, "give --token-file FILE, a file of mode 0600 with 16 characters or more, or listen on "+DefaultListen,
			"others can reach %s, and there is no token", l.Addr())
	}
	return nil
}

// Serve answers on a listener until ctx ends, or, with Idle set, until nobody has asked for that long.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	if err := Check(l, s.cfg.Token); err != nil {
		return errors.Join(err, l.Close())
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	h := &http.Server{
		Handler: s, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second, WriteTimeout: writeLimit, IdleTimeout: time.Minute, MaxHeaderBytes: 16 << 10, DisableGeneralOptionsHandler: true,
		BaseContext: func(net.Listener) context.Context { return ctx }, // live streams end with it
		ErrorLog:    slog.NewLogLogger(s.cfg.Log.Handler(), slog.LevelDebug),
	}
	served := make(chan error, 1)
	go func() { served <- h.Serve(&few{Listener: l, slots: make(chan struct{}, maxConns)}) }()
	idle := time.NewTicker(max(s.cfg.Idle/4, 50*time.Millisecond))
	defer idle.Stop()
	for {
		select {
		case err := <-served:
			return err
		case <-ctx.Done():
			return s.end(h, cancel)
		case <-idle.C:
			if s.cfg.Idle > 0 && s.under.Load() == 0 && s.now().Sub(time.Unix(0, s.asked.Load())) >= s.cfg.Idle {
				return s.end(h, cancel)
			}
		}
	}
}

func (s *Server) end(h *http.Server, cancel func()) error {
	cancel()
	ctx, done := context.WithTimeout(context.Background(), 3*time.Second)
	defer done()
	if err := h.Shutdown(ctx); err != nil {
		_ = h.Close()
	}
	return nil
}

// maxConns is how many connections are open at the same time; more wait to be accepted.
const maxConns = 256

// few is a listener that accepts only so many connections at the same time.
type few struct {
	net.Listener
	slots chan struct{}
}

func (f *few) Accept() (net.Conn, error) {
	f.slots <- struct{}{}
	c, err := f.Listener.Accept()
	if err != nil {
		<-f.slots
		return nil, err
	}
	return &counted{Conn: c, slots: f.slots}, nil
}

type counted struct {
	net.Conn
	slots  chan struct{}
	closed atomic.Bool
}

func (c *counted) Close() error {
	if !c.closed.Swap(true) {
		<-c.slots
	}
	return c.Conn.Close()
}
