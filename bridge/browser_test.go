package bridge_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/page"
	cdpruntime "github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"example.com/AutoAgentProject/bridge"
	"example.com/AutoAgentProject/core/store"
	"example.com/AutoAgentProject/core/testkit"
	"example.com/AutoAgentProject/core/view"
)

// browser starts Chromium, as a person has it: with its sandbox, where it is not root.
func browser(t testing.TB) context.Context {
	t.Helper()
	path := ""
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if p, err := exec.LookPath(name); err == nil && path == "" {
			path = p
		}
	}
	testkit.Need(t, path != "", "chromium (apt-get install chromium)")
	opts := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.WSURLReadTimeout(time.Minute), chromedp.UserDataDir(t.TempDir()),
		chromedp.Flag("disable-dev-shm-usage", true), chromedp.Flag("hide-scrollbars", true), chromedp.Env("TZ=Asia/Tokyo", "HOME="+t.TempDir()))
	if os.Geteuid() == 0 {
		opts = append(opts, chromedp.NoSandbox)
	}
	ctx, stop := chromedp.NewExecAllocator(t.Context(), opts...)
	t.Cleanup(stop)
	ctx, stop = chromedp.NewContext(ctx)
	t.Cleanup(stop)
	if err := chromedp.Do(ctx); err != nil {
		t.Fatal(err)
	}
	return ctx
}

// axe is the judge of whether everybody can use a page, or empty.
func axe(t testing.TB) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("..", ".ci", "axe", "package.json"))
	if err != nil {
		t.Fatal(err)
	}
	version := regexp.MustCompile(`"axe-core": "([0-9.]+)"`).FindSubmatch(b)
	cache, _ := os.UserCacheDir()
	script, err := os.ReadFile(filepath.Join(cache, "autoagent", "peers", "axe-core-"+string(version[1]), "node_modules", "axe-core", "axe.min.js"))
	testkit.Need(t, err == nil, "axe-core (make tools)")
	return string(script)
}

// look is a way to look at a page.
type look struct {
	name   string
	width  int64
	height int64
	dark   bool
}

// visit opens pages and says what is wrong with them.
type visit struct {
	t    testing.TB
	ctx  context.Context
	axe  string
	base string
	mu   *sync.Mutex
	said *[]string // what the console said
}

func newVisit(t testing.TB, base string) visit {
	v := visit{t: t, ctx: browser(t), axe: axe(t), base: base, said: &[]string{}, mu: &sync.Mutex{}}
	err := chromedp.Listen(v.ctx, func(e any) {
		v.mu.Lock()
		defer v.mu.Unlock()
		switch e := e.(type) {
		case *cdpruntime.EventExceptionThrown:
			*v.said = append(*v.said, e.ExceptionDetails.Text)
		case *log.EventEntryAdded:
			if !strings.HasSuffix(e.Entry.URL, "/nobody") { // which is not there
				*v.said = append(*v.said, e.Entry.Text+" "+e.Entry.URL)
			}
		case *page.EventJavascriptDialogOpening:
			*v.said = append(*v.said, "a dialog: "+e.Message)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	return v
}

type action = chromedp.Action[chromedp.Void]

func (v visit) do(actions ...action) {
	v.t.Helper()
	ctx, done := context.WithTimeout(v.ctx, time.Minute)
	defer done()
	if err := chromedp.Do(ctx, actions...); err != nil {
		v.t.Fatal(err)
	}
}

// ask is what an action finds out.
func ask[T any](v visit, a chromedp.Action[T]) T {
	v.t.Helper()
	ctx, done := context.WithTimeout(v.ctx, time.Minute)
	defer done()
	out, err := chromedp.Run(ctx, a)
	if err != nil {
		v.t.Fatal(err)
	}
	return out
}

func script[T any](v visit, text string) T {
	v.t.Helper()
	return ask(v, chromedp.Evaluate[T](text, chromedp.EvalAwaitPromise))
}

func call[P any](v visit, c cdp.Command[P, cdp.Empty], p P) {
	v.t.Helper()
	if _, err := chromedp.Call(v.ctx, c, p); err != nil {
		v.t.Fatal(err)
	}
}

func (v visit) as(l look) {
	v.t.Helper()
	scheme := "light"
	if l.dark {
		scheme = "dark"
	}
	call(v, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{Width: l.width, Height: l.height, DeviceScaleFactor: 1, Mobile: l.width < 600})
	call(v, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}, {Name: "prefers-reduced-motion", Value: "reduce"}}})
}

// page opens a page, judges it, and keeps a picture of it where AUTOAGENT_SCREENSHOTS names a folder.
func (v visit) page(path string, l look, judge bool) {
	v.t.Helper()
	v.do(chromedp.Navigate(v.base+path), chromedp.WaitReady(chromedp.CSS("main")))
	if script[bool](v, `document.documentElement.scrollWidth > document.documentElement.clientWidth`) {
		what := script[string](v, `[...document.querySelectorAll('body *')].filter(e => e.getBoundingClientRect().right > innerWidth + 1 && !e.closest('.scroll, pre, .onpage')).slice(0, 5).map(e => e.outerHTML.slice(0, 120)).join('\n')`)
		v.t.Errorf("%s %s: wider than the window:\n%s", l.name, path, what)
	}
	if title := ask(v, chromedp.Title()); script[bool](v, `!!window.hacked || !!document.querySelector('[onload], [onerror], main script')`) || !strings.Contains(title, "AutoAgent") {
		v.t.Errorf("%s %s: content became code, or the title is %q", l.name, path, title)
	}
	if dir := os.Getenv("AUTOAGENT_SCREENSHOTS"); dir != "" {
		png := ask(v, chromedp.FullScreenshot(100))
		name := strings.Trim(regexp.MustCompile(`[^a-z0-9]+`).ReplaceAllString(path, "-"), "-")
		if err := os.MkdirAll(dir, 0o755); err != nil {
			v.t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("%s-%s.png", l.name, name)), png, 0o644); err != nil {
			v.t.Fatal(err)
		}
	}
	if judge {
		script[int](v, `document.querySelectorAll('details').forEach(d => d.open = true); 0`)
		script[int](v, v.axe+";0")
		if problems := script[string](v, `axe.run({resultTypes: ['violations']}).then(r => r.violations.filter(v => v.impact === 'serious' || v.impact === 'critical').map(v => v.id + ': ' + v.nodes.slice(0, 3).map(n => n.html.slice(0, 160) + ' ' + (n.any[0] ? n.any[0].message : '')).join(' | ')).join('\n'))`); problems != "" {
			v.t.Errorf("%s %s:\n%s", l.name, path, problems)
		}
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if len(*v.said) > 0 {
		v.t.Errorf("%s %s: the console: %q", l.name, path, *v.said)
		*v.said = nil
	}
}

// serve lets a server answer on loopback.
func serve(t testing.TB, root store.Root) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := newServer(t, root)
	ctx, end := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx, l) }()
	t.Cleanup(func() {
		end()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return "http://" + l.Addr().String()
}

var (
	light = look{"light", 1280, 900, false}
	dark  = look{"dark", 1280, 900, true}
	phone = look{"phone", 375, 812, false}
	night = look{"night", 375, 812, true}
)

// paths are the pages of all missions: every mission, its latest run, and its first task.
func paths(t *testing.T, base string) []string {
	t.Helper()
	var o view.Overview
	get(t, base+"/api/v1/missions", &o)
	out := []string{"/", "/?group=halted", "/missions/nobody"}
	for _, m := range o.Missions {
		out = append(out, "/missions/"+m.ID)
		var d view.Detail
		get(t, base+"/api/v1/missions/"+m.ID, &d)
		if len(d.Runs.Runs) > 0 {
			out = append(out, "/missions/"+m.ID+"/runs/"+d.Runs.Runs[0].Run)
		}
		if len(d.Steps) > 0 {
			out = append(out, "/missions/"+m.ID+"/tasks/"+d.Steps[min(1, len(d.Steps)-1)].ID)
		}
	}
	return append(out, "/missions/my-site/files/bread.html", "/missions/hostile/files/plain.txt")
}

func get(t *testing.T, url string, v any) {
	t.Helper()
	r, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	if err := json.NewDecoder(r.Body).Decode(v); err != nil || r.StatusCode != 200 {
		t.Fatal(url, r.Status, err)
	}
}

// TestBrowser goes through the pages in a real browser, by day and by night, on a desk and on a phone. AUTOAGENT_FULL judges each
// page in each of them.
func TestBrowser(t *testing.T) {
	root := store.Root(t.TempDir())
	scenes := testkit.Scenes(t, root, time.Now())
	base := serve(t, root)
	v := newVisit(t, base)
	full := os.Getenv("AUTOAGENT_FULL") != ""
	all := paths(t, base)
	if full {
		for _, l := range []look{light, dark, phone, night} {
			v.as(l)
			for _, p := range all {
				v.page(p, l, true)
			}
		}
	} else {
		v.as(light)
		v.page("/", light, true)
		v.as(night)
		v.page("/missions/my-site", night, true)
		v.as(phone)
		v.page("/missions/hostile", phone, true)
	}

	// A report is a file: it needs no server.
	d, err := newReader(t, root).Detail(t.Context(), "docs-cleanup", -1, 0)
	ok(t, err)
	text, err := bridge.HTML(d, "0.1.0", time.Now())
	ok(t, err)
	file := filepath.Join(t.TempDir(), "report.html")
	ok(t, os.WriteFile(file, text, 0o644))
	alone := v
	alone.base = "file://"
	alone.as(dark)
	alone.page(file, look{name: "dark-report"}, true)

	// However many pages were left behind, none of them holds a connection that the next one needs.
	begin := time.Now()
	for range 5 {
		v.do(chromedp.Navigate(base+"/"), chromedp.WaitVisible(chromedp.CSS(".state.on")), chromedp.Navigate(base+"/missions/my-site"), chromedp.WaitVisible(chromedp.CSS(".state.on")))
	}
	if d := time.Since(begin); d > 30*time.Second {
		t.Errorf("10 pages took %s", d)
	}
	// A person clicks: from the list to a mission, to a step on the picture of its plan, to a run, and back.
	v.as(light)
	v.do(chromedp.Navigate(base+"/"), chromedp.Click(chromedp.CSS(`a[href="/missions/my-site"]`)), chromedp.WaitVisible(chromedp.CSS(`.wide .baton`)),
		chromedp.Click(chromedp.CSS(`.wide a[href$="/tasks/bread"] .box`)), chromedp.WaitVisible(chromedp.CSS(`#way`)),
		chromedp.Click(chromedp.CSS(`td a[href*="/runs/"]`)), chromedp.WaitVisible(chromedp.CSS(`#talk`)),
		chromedp.Click(chromedp.CSS(`.crumbs a[href="/missions/my-site"]`)), chromedp.WaitVisible(chromedp.CSS(`#plan`)))
	if where := ask(v, chromedp.Location()); where != base+"/missions/my-site" {
		t.Error(where)
	}
	// Times are the reader's own: in Tokyo it is nine hours later.
	at := scenes["my-site"].M.CreatedAt.In(time.FixedZone("JST", 9*3600)).Format("15:04")
	if text := ask(v, chromedp.Text(chromedp.CSS(`.events li:last-child time`))); !strings.HasSuffix(text, at) {
		t.Errorf("%q is not %s", text, at)
	}
	// What happens comes without a reload, and takes away neither what is open nor the focus.
	v.do(chromedp.WaitVisible(chromedp.CSS(`.state.on`)), chromedp.Click(chromedp.CSS(`#d-goal summary`)), chromedp.Focus(chromedp.CSS(`#d-goal ~ * .agents a, .wide a`)))
	scenes["my-site"].Event(0, "step_done", "milestone", "codebuilder-2", "hours", "", "step hours is done <b>just now</b>")
	scenes["my-site"].Write("working")
	ask(v, chromedp.Poll[bool](`document.querySelector('.events li .what').textContent.includes('<b>just now</b>')`, chromedp.WithPollingTimeout(30*time.Second)))
	if !script[bool](v, `document.getElementById('d-goal').open && document.activeElement.matches('.wide a')`) {
		t.Error("what was open is closed, or the focus is lost: " + script[string](v, `document.activeElement.outerHTML.slice(0, 200)`))
	}
	// With the keyboard alone: the first stop leads to the content.
	v.do(chromedp.Navigate(base+"/"), chromedp.KeyEvent("\t"))
	if class := script[string](v, `document.activeElement.className`); class != "skip" {
		t.Errorf("%q has the focus", class)
	}
	// Without script everything is there, and the page reloads itself.
	call(v, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true})
	v.do(chromedp.Navigate(base + "/missions/my-site"))
	if text := ask(v, chromedp.Text(chromedp.CSS("main"))); !strings.Contains(text, "holidays as a table") || !strings.Contains(text, "UTC") {
		t.Errorf("without script: %q", text)
	}
}
