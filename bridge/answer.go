package bridge

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"mime"
	"net/http"
	"path"
	"strconv"
	"time"

	"example.com/AutoAgentProject/core/view"
)

// handler answers a request, or says by an error why not; nothing was written then.
type handler func(http.ResponseWriter, *http.Request) error

// reading lets only so many read at the same time, counts, and turns errors into pages.
func (s *Server) reading(path string, h handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case s.busy <- struct{}{}:
			defer func() { <-s.busy }()
		case <-r.Context().Done():
			return
		}
		begin := time.Now()
		err := h(w, r)
		code := http.StatusOK
		switch {
		case err == nil:
		case errors.Is(err, view.ErrNotFound):
			code = http.StatusNotFound
			s.sorry(w, r, code, "There is nothing of that name", "It may have been removed, or never have been there.")
		case r.Context().Err() != nil: // nobody waits for it any more
			code = 499
		default:
			code = http.StatusInternalServerError
			s.cfg.Log.Warn("a page could not be made", "path", r.URL.Path, "err", err)
			s.sorry(w, r, code, "It cannot be shown", view.Line(err.Error(), 500))
		}
		s.answers.WithLabelValues(path, strconv.Itoa(code)).Inc()
		s.took.WithLabelValues(path).Observe(time.Since(begin).Seconds())
	})
}

// sorry answers with an error, in the form that was asked for.
func (s *Server) sorry(w http.ResponseWriter, r *http.Request, code int, title, text string) {
	if len(r.URL.Path) >= 5 && r.URL.Path[:5] == "/api/" {
		b, _ := json.Marshal(map[string]string{"error": title + ": " + text})
		send(w, r, code, "application/json; charset=utf-8", b)
		return
	}
	var b bytes.Buffer
	if err := s.pages["error"].ExecuteTemplate(&b, "layout", page{Title: title, Data: text, Version: s.cfg.Version, Now: s.now()}); err != nil {
		refuse(w, code, title)
		return
	}
	send(w, r, code, "text/html; charset=utf-8", b.Bytes())
}

// send writes a whole answer; 304 if who asks has it already.
func send(w http.ResponseWriter, r *http.Request, code int, kind string, b []byte) {
	h := w.Header()
	h.Set("Content-Type", kind)
	if code == http.StatusOK {
		sum := fnv.New64a()
		_, _ = sum.Write(b)
		tag := fmt.Sprintf(`"%016x"`, sum.Sum64())
		h.Set("ETag", tag)
		h.Set("Cache-Control", "no-cache, private")
		if r.Header.Get("If-None-Match") == tag {
			w.WriteHeader(http.StatusNotModified)
			return
		}
	}
	h.Set("Content-Length", strconv.Itoa(len(b)))
	w.WriteHeader(code)
	if r.Method != http.MethodHead {
		_, _ = w.Write(b)
	}
}

func (s *Server) sendJSON(w http.ResponseWriter, r *http.Request, v any) error {
	var b bytes.Buffer
	e := json.NewEncoder(&b) // escapes < and >: harmless even where somebody shows it as a page
	e.SetIndent("", "  ")
	if err := e.Encode(v); err != nil {
		return err
	}
	send(w, r, http.StatusOK, "application/json; charset=utf-8", b.Bytes())
	return nil
}

// number reads a number of a query; what is none counts as the default.
func number[T int | int64](r *http.Request, name string, def T) T {
	n, err := strconv.ParseInt(r.URL.Query().Get(name), 10, 64)
	if err != nil || n < 0 || n > 1<<50 {
		return def
	}
	return T(n)
}

func group(r *http.Request) string {
	switch g := r.URL.Query().Get("group"); g {
	case view.Waiting, view.Running, view.Halted, view.Ended:
		return g
	}
	return ""
}

func (s *Server) apiMissions(w http.ResponseWriter, r *http.Request) error {
	o, err := s.cfg.View.Overview(r.Context(), group(r), number(r, "page", 1))
	if err != nil {
		return err
	}
	return s.sendJSON(w, r, o)
}

func (s *Server) apiMission(w http.ResponseWriter, r *http.Request) error {
	d, err := s.cfg.View.Detail(r.Context(), r.PathValue("id"), number(r, "before", int64(-1)), number(r, "runs", 0))
	if err != nil {
		return err
	}
	return s.sendJSON(w, r, d)
}

func (s *Server) apiRun(w http.ResponseWriter, r *http.Request) error {
	d, err := s.cfg.View.Run(r.Context(), r.PathValue("id"), r.PathValue("run"), number(r, "from", int64(0)))
	if err != nil {
		return err
	}
	return s.sendJSON(w, r, d)
}

func (s *Server) apiTask(w http.ResponseWriter, r *http.Request) error {
	t, err := s.cfg.View.Task(r.Context(), r.PathValue("id"), r.PathValue("step"))
	if err != nil {
		return err
	}
	return s.sendJSON(w, r, t)
}

// static answers with what the pages are made of.
func (s *Server) static(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("name")
	if r.URL.Path == "/favicon.ico" {
		name = "icon.svg"
	}
	b, err := assets.ReadFile("static/" + path.Base(name))
	if err != nil {
		refuse(w, http.StatusNotFound, "there is nothing there")
		return
	}
	send(w, r, http.StatusOK, mime.TypeByExtension(path.Ext(name)), b)
}

// health answers ok as long as the missions can be listed.
func (s *Server) health(w http.ResponseWriter, r *http.Request) {
	if _, err := s.cfg.View.Root.IDs(); err != nil {
		refuse(w, http.StatusServiceUnavailable, "the missions cannot be listed")
		return
	}
	send(w, r, http.StatusOK, "text/plain; charset=utf-8", []byte("ok\n"))
}
