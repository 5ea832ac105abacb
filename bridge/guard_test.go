package bridge_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"example.com/AutoAgentProject/bridge"
	"example.com/AutoAgentProject/core/store"
	"example.com/AutoAgentProject/core/testkit"
	"example.com/AutoAgentProject/core/view"
)

func ok(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// raw sends a request as it is written and returns the answer's status and text.
func raw(t *testing.T, base, request string) (int, string) {
	t.Helper()
	c, err := net.Dial("tcp", strings.TrimPrefix(base, "http://"))
	ok(t, err)
	defer c.Close()
	ok(t, c.SetDeadline(time.Now().Add(20*time.Second)))
	_, err = io.WriteString(c, request)
	ok(t, err)
	r, err := http.ReadResponse(bufio.NewReader(c), nil)
	ok(t, err)
	b, _ := io.ReadAll(r.Body)
	return r.StatusCode, string(b)
}

// TestOpenDashboard: foreign hosts, other methods, and ways out of the pages are refused; nothing of the machine is shown.
func TestOpenDashboard(t *testing.T) {
	root := store.Root(t.TempDir())
	w := testkit.Tell(t, root, "my-site", "A site.\n", time.Now(), time.Hour)
	w.Repo("x", map[string]string{"a.txt": "a\n"})
	w.Ticked()
	w.Write("working")
	// What an agent can put into its clone leads nowhere.
	clone := w.St.Clone("codebuilder-1")
	ok(t, os.MkdirAll(clone, 0o700))
	ok(t, os.Symlink("/etc/passwd", filepath.Join(clone, "passwd")))
	base := serve(t, root)
	port := base[strings.LastIndex(base, ":"):]
	for _, c := range []struct {
		request string
		code    int
	}{
		{"GET / HTTP/1.1\r\nHost: localhost" + port + "\r\n\r\n", 200},
		{"GET / HTTP/1.1\r\nHost: LOCALHOST.\r\n\r\n", 200},
		{"GET / HTTP/1.1\r\nHost: [::1]" + port + "\r\n\r\n", 200},
		{"HEAD / HTTP/1.1\r\nHost: 127.0.0.1" + port + "\r\n\r\n", 200},
		{"GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n", 421},
		{"GET / HTTP/1.1\r\nHost: localhost.evil.example\r\n\r\n", 421},
		{"GET / HTTP/1.1\r\nHost: 192.0.2.1" + port + "\r\n\r\n", 421},
		{"GET / HTTP/1.1\r\nHost: \r\n\r\n", 421},
		{"GET /api/v1/missions HTTP/1.1\r\nHost: evil.example\r\n\r\n", 421},
		{"GET /metrics HTTP/1.1\r\nHost: evil.example\r\n\r\n", 421},
		{"GET /live HTTP/1.1\r\nHost: evil.example\r\n\r\n", 421},
		{"GET http://evil.example/ HTTP/1.1\r\nHost: localhost\r\n\r\n", 421},
		{"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n", 405},
		{"PUT /missions/my-site HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n", 405},
		{"DELETE /missions/my-site HTTP/1.1\r\nHost: localhost\r\n\r\n", 405},
		{"OPTIONS * HTTP/1.1\r\nHost: localhost\r\n\r\n", 405},
		{"CONNECT x:1 HTTP/1.1\r\nHost: localhost\r\n\r\n", 405},
		{"GET /api/../../etc/passwd HTTP/1.1\r\nHost: localhost\r\n\r\n", 404},
		{"GET /%2e%2e/%2e%2e/etc/passwd HTTP/1.1\r\nHost: localhost\r\n\r\n", 404},
		{"GET /static/%2e%2e%2ftemplates%2flayout.html HTTP/1.1\r\nHost: localhost\r\n\r\n", 404},
		{"GET /static/..%5c..%5cx HTTP/1.1\r\nHost: localhost\r\n\r\n", 404},
		{"GET //etc/passwd HTTP/1.1\r\nHost: localhost\r\n\r\n", 404},
		{"GET /missions/..%2f..%2fetc HTTP/1.1\r\nHost: localhost\r\n\r\n", 404},
		{"GET /missions/my-site%00 HTTP/1.1\r\nHost: localhost\r\n\r\n", 404},
		{"GET /missions/my-site/runs/..%2f..%2fmission.json HTTP/1.1\r\nHost: localhost\r\n\r\n", 404},
		{"GET /missions/my-site/files/a.txt HTTP/1.1\r\nHost: localhost\r\n\r\n", 200},
		{"GET /missions/my-site/files/%2fetc%2fpasswd HTTP/1.1\r\nHost: localhost\r\n\r\n", 404},
		{"GET /missions/my-site/files/..%2f..%2f..%2fetc%2fpasswd HTTP/1.1\r\nHost: localhost\r\n\r\n", 404},
		{"GET /missions/my-site/files/passwd HTTP/1.1\r\nHost: localhost\r\n\r\n", 404},
		{"GET /missions/my-site/files/HEAD HTTP/1.1\r\nHost: localhost\r\n\r\n", 404},
		{"GET /debug/pprof/ HTTP/1.1\r\nHost: localhost\r\n\r\n", 404},
		{"GET /missions/my-site?before=x&runs=-1 HTTP/1.1\r\nHost: localhost\r\n\r\n", 200},
		{"GET /?page=99999999999999999999&group=x HTTP/1.1\r\nHost: localhost\r\n\r\n", 200},
		{"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n", 200},
		{"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + strings.Repeat("x", 40<<10) + "\r\n\r\n", 431},
	} {
		code, text := raw(t, base, strings.Replace(c.request, "\r\n\r\n", "\r\nConnection: close\r\n\r\n", 1))
		first, _, _ := strings.Cut(c.request, "\r\nConn")
		if code != c.code && !(c.code == 431 && code == 400) {
			t.Errorf("%.120q: %d, not %d", first, code, c.code)
		}
		if strings.Contains(text, "root:x:0") {
			t.Errorf("%.120q shows a file of the machine", first)
		}
	}
	r, err := http.Get(base + "/")
	ok(t, err)
	r.Body.Close()
	csp := r.Header.Get("Content-Security-Policy")
	if strings.Contains(csp, "unsafe") || !strings.HasPrefix(csp, "default-src 'none'") || strings.Contains(csp, "http") || r.Header.Get("X-Content-Type-Options") != "nosniff" || r.Header.Get("Access-Control-Allow-Origin") != "" {
		t.Error(r.Header)
	}
}

// TestNothingInline: the pages need nothing that the policy forbids, and nothing from elsewhere.
func TestNothingInline(t *testing.T) {
	inline := regexp.MustCompile(`(?i)\sstyle=|<style|\son[a-z]+=|<script(?: [^>]*)?>[^<]|javascript:|(?:src|href)="(?:https?:)?//`)
	ok(t, fs.WalkDir(os.DirFS("."), ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".html") || path == "templates/report.html" { // a report is one file and is not served
			return err
		}
		b, err := os.ReadFile(path)
		if m := inline.Find(b); m != nil {
			t.Errorf("%s: %s", path, m)
		}
		return err
	}))
}

// TestHostile: wherever text of an agent, a goal or a file stands, it is text; no secret, no path of a login, no argument.
func TestHostile(t *testing.T) {
	root := store.Root(t.TempDir())
	testkit.Scenes(t, root, time.Now())
	base := serve(t, root)
	all := paths(t, base)
	for _, p := range all[:len(all):len(all)] {
		if strings.HasPrefix(p, "/missions/") {
			all = append(all, "/api/v1"+p)
		}
	}
	for _, p := range append(all, "/api/v1/missions", "/metrics") {
		r, err := http.Get(base + p)
		ok(t, err)
		b, err := io.ReadAll(r.Body)
		r.Body.Close()
		ok(t, err)
		text := string(b)
		if r.StatusCode >= 500 {
			t.Errorf("%s: %d", p, r.StatusCode)
		}
		if strings.HasPrefix(r.Header.Get("Content-Type"), "text/html") {
			for _, bad := range []string{"<script>window", "<img", "<svg onload", `onerror="`} {
				if strings.Contains(text, bad) {
					t.Errorf("%s: %s is no text", p, bad)
				}
			}
		}
		for _, secret := range append(testkit.Secrets(), os.Args[0]) {
			if strings.Contains(text, secret) {
				t.Errorf("%s shows %s", p, secret)
			}
		}
	}
}

// TestToken: an address that others reach needs a token, and who has none sees nothing.
func TestToken(t *testing.T) {
	root := store.Root(t.TempDir())
	l, err := net.Listen("tcp", "0.0.0.0:0")
	ok(t, err)
	if err := newServer(t, root).Serve(t.Context(), l); err == nil || !strings.Contains(err.Error(), "token") {
		t.Error(err)
	}
	if _, err := l.Accept(); err == nil {
		t.Error("it listens all the same")
	}
	s := newServerOf(t, bridge.Config{View: newReader(t, root), Token: "0123456789abcdef", Hosts: []string{"box.example"}})
	ask := func(host string, set func(*http.Request)) int {
		r := httptest.NewRequest("GET", "/", nil)
		r.Host = host
		set(r)
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		return w.Code
	}
	for _, c := range []struct {
		host, user, pass, bearer string
		code                     int
	}{
		{"box.example", "", "", "", 401}, {"box.example:80", "me", "wrong", "", 401}, {"box.example", "me", "0123456789abcdef", "", 200},
		{"box.example", "", "", "0123456789abcdef", 200}, {"box.example", "", "", "0123456789abcde", 401}, {"other.example", "me", "0123456789abcdef", "", 421},
	} {
		code := ask(c.host, func(r *http.Request) {
			if c.user != "" {
				r.SetBasicAuth(c.user, c.pass)
			}
			if c.bearer != "" {
				r.Header.Set("Authorization", "Bearer "+c.bearer)
			}
		})
		if code != c.code {
			t.Errorf("%+v: %d", c, code)
		}
	}
}

// TestAPI: the same structs as --json.
func TestAPI(t *testing.T) {
	root := store.Root(t.TempDir())
	testkit.Scenes(t, root, time.Now())
	base := serve(t, root)
	var o view.Overview
	get(t, base+"/api/v1/missions?group=running", &o)
	if len(o.Missions) != 1 || o.Missions[0].ID != "my-site" || o.Missions[0].Budget.Percent != 40 || o.Missions[0].Phase != "working" {
		t.Errorf("%+v", o)
	}
	var d view.Detail
	get(t, base+"/api/v1/missions/my-site", &d)
	var m view.Mission
	get(t, base+"/api/v1/missions/my-site", &m) // as status --json
	if m.ID != "my-site" || len(m.Steps) != 6 || len(d.Events) == 0 || d.Live.By == "" {
		t.Errorf("%+v", d)
	}
	var run view.RunDetail
	get(t, base+"/api/v1/missions/my-site/runs/"+d.Runs.Runs[0].Run, &run)
	var task view.Task
	get(t, base+"/api/v1/missions/my-site/tasks/bread", &task)
	if run.Agent != "tester-1" || len(task.Way.Legs) != 2 {
		t.Errorf("%+v %+v", run, task)
	}
	r, err := http.Get(base + "/api/v1/missions/nobody")
	ok(t, err)
	defer r.Body.Close()
	var e struct{ Error string }
	if err := json.NewDecoder(r.Body).Decode(&e); err != nil || r.StatusCode != 404 || e.Error == "" {
		t.Error(r.Status, e, err)
	}
}

// TestMetrics: what Prometheus reads is well formed and tells the missions that are not over.
func TestMetrics(t *testing.T) {
	root := store.Root(t.TempDir())
	testkit.Scenes(t, root, time.Now())
	base := serve(t, root)
	r, err := http.Get(base + "/metrics")
	ok(t, err)
	defer r.Body.Close()
	b, err := io.ReadAll(r.Body)
	ok(t, err)
	for _, line := range []string{`autoagent_missions{group="running"} 1`, `autoagent_mission_used{mission="my-site",unit="usd"} 1.63`, `autoagent_mission_steps{mission="my-site",state="done"} 3`,
		`autoagent_mission_unreadable{mission="old-import"} 1`, `autoagent_mission_needs{mission="shop-cart"} 1`, "process_resident_memory_bytes"} {
		if !strings.Contains(string(b), line) {
			t.Errorf("no %s in\n%s", line, b)
		}
	}
	problems, err := promlint.New(strings.NewReader(string(b))).Lint()
	ok(t, err)
	for _, p := range problems {
		if strings.HasPrefix(p.Metric, "autoagent_") {
			t.Error(p)
		}
	}
}

// TestLive: a change is told within seconds; who does not read is dropped, and nobody else waits for him.
func TestLive(t *testing.T) {
	root := store.Root(t.TempDir())
	w := testkit.Tell(t, root, "my-site", "A site.\n", time.Now(), time.Hour)
	w.Write("working")
	base := serve(t, root)
	for range 20 { // who reads nothing
		c, err := net.Dial("tcp", strings.TrimPrefix(base, "http://"))
		ok(t, err)
		defer c.Close()
		fmt.Fprintf(c, "GET /live?mission=my-site HTTP/1.1\r\nHost: localhost\r\n\r\n")
	}
	ctx, done := context.WithTimeout(t.Context(), 30*time.Second)
	defer done()
	r, err := http.NewRequestWithContext(ctx, "GET", base+"/live?mission=my-site", nil)
	ok(t, err)
	a, err := http.DefaultClient.Do(r)
	ok(t, err)
	defer a.Body.Close()
	lines := bufio.NewScanner(a.Body)
	wait := func(want string) {
		t.Helper()
		for lines.Scan() {
			if lines.Text() == want {
				return
			}
		}
		t.Fatalf("no %q: %v", want, lines.Err())
	}
	wait("event: now")
	ok(t, w.St.Journal().Add(w.Said("something")))
	wait("event: changed")
	if a.Header.Get("Content-Type") != "text/event-stream; charset=utf-8" {
		t.Error(a.Header)
	}
}

// TestIdle: with nobody to look, it ends; while somebody looks, it does not.
func TestIdle(t *testing.T) {
	root := store.Root(t.TempDir())
	s := newServerOf(t, bridge.Config{View: newReader(t, root), Idle: time.Second})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	ok(t, err)
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(t.Context(), l) }()
	ctx, leave := context.WithCancel(t.Context())
	r, err := http.NewRequestWithContext(ctx, "GET", "http://"+l.Addr().String()+"/live", nil)
	ok(t, err)
	a, err := http.DefaultClient.Do(r)
	ok(t, err)
	defer a.Body.Close()
	select {
	case err := <-ended:
		t.Fatal("it ended while somebody looked", err)
	case <-time.After(2500 * time.Millisecond):
	}
	leave()
	select {
	case err := <-ended:
		ok(t, err)
	case <-time.After(30 * time.Second):
		t.Error("it did not end")
	}
}
