package bridge

import (
	"fmt"
	"net/http"
	"time"
)

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
	last := s.cfg.View.Fingerprint(id, run)
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
			now := s.cfg.View.Fingerprint(id, run)
			if now != last && !say("event: changed\ndata: %s\n\n", now) {
				return
			}
			last = now
		}
	}
}
