package bridge

import (
	"fmt"
	"net/http"
	"time"
)

// print is a fingerprint and when it was taken.
type print struct {
	at   time.Time
	text string
}

// fingerprint is the view's, taken once for all who look at the same in the same moment.
func (s *Server) fingerprint(id, run string) string {
	key := id + " " + run
	s.mu.Lock()
	defer s.mu.Unlock()
	if p, ok := s.prints[key]; ok && time.Since(p.at) < s.every*9/10 {
		return p.text
	}
	if len(s.prints) >= 2*maxLives {
		clear(s.prints)
	}
	p := print{time.Now(), s.cfg.View.Fingerprint(id, run)}
	s.prints[key] = p
	return p.text
}

// live tells by server-sent events when what a page shows has changed: "changed" with the new fingerprint. Who reads too slowly
// loses the connection; nothing is kept for him. The page asks anew after a while, and reloads by itself where this fails.
func (s *Server) live(w http.ResponseWriter, r *http.Request) {
	if s.lives.Add(1) > maxLives {
		s.lives.Add(-1)
		refuse(w, http.StatusServiceUnavailable, "too many look at the same time")
		return
	}
	defer s.lives.Add(-1)
	c := http.NewResponseController(w)
	say := func(format string, args ...any) bool {
		if c.SetWriteDeadline(time.Now().Add(10*time.Second)) != nil {
			return false
		}
		if _, err := fmt.Fprintf(w, format, args...); err != nil {
			return false
		}
		return c.Flush() == nil
	}
	id, run := r.URL.Query().Get("mission"), r.URL.Query().Get("run")
	every := s.every
	if id == "" {
		every *= 2
	}
	w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	last := s.fingerprint(id, run)
	if r.Method == http.MethodHead || !say("retry: 3000\nevent: now\ndata: %s\n\n", last) {
		return
	}
	look, beat := time.NewTicker(every), time.NewTicker(s.beat)
	defer look.Stop()
	defer beat.Stop()
	end := time.NewTimer(liveLimit)
	defer end.Stop()
	for {
		select {
		case <-r.Context().Done():
			return
		case <-end.C:
			return
		case <-beat.C:
			if !say(": here\n\n") {
				return
			}
		case <-look.C:
			now := s.fingerprint(id, run)
			if now != last && !say("event: changed\ndata: %s\n\n", now) {
				return
			}
			last = now
		}
	}
}
