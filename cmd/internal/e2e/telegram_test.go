package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"example.com/AutoAgentProject/core/plan"
	"example.com/AutoAgentProject/core/scriptmodel"
	"example.com/AutoAgentProject/core/units"
)

const botUser = 4000000001

var bots atomic.Int64

// bot is a Telegram on loopback with one chat. Each has a token of its own: one poller of a machine has a token.
type bot struct {
	token  string
	server *httptest.Server
	mu     sync.Mutex
	texts  []string
	data   []string // of the buttons
	queue  []map[string]any
	next   int
	polls  int // at the same time
	clash  bool

	away    bool // it breaks every connection
	refused int  // messages meanwhile
}

func (b *bot) goesAway(away bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.away = away
}

func newBot(t *testing.T) *bot {
	b := &bot{token: fmt.Sprintf("%d:EXAMPLE-TOKEN_of-a-bot", 123456+bots.Add(1)), next: 1}
	b.server = httptest.NewServer(b)
	t.Cleanup(func() { b.server.CloseClientConnections(); b.server.Close() })
	return b
}

func (b *bot) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	method, mine := strings.CutPrefix(r.URL.Path, "/bot"+b.token+"/")
	if !mine {
		w.WriteHeader(http.StatusUnauthorized)
		fmt.Fprint(w, `{"ok":false,"error_code":401,"description":"Unauthorized"}`)
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.away {
		if method == "sendMessage" {
			b.refused++
		}
		w.WriteHeader(http.StatusBadGateway)
		return
	}
	_ = r.ParseForm()
	var result any = true
	switch method {
	case "getMe":
		result = map[string]any{"id": 123456, "is_bot": true, "username": "example_bot"}
	case "getChat":
		result = map[string]any{"id": botUser, "type": "private"}
	case "sendMessage":
		b.texts = append(b.texts, r.Form.Get("text"))
		var k struct {
			Keyboard [][]struct {
				Data string `json:"callback_data"`
			} `json:"inline_keyboard"`
		}
		_ = json.Unmarshal([]byte(r.Form.Get("reply_markup")), &k)
		for _, row := range k.Keyboard {
			for _, button := range row {
				b.data = append(b.data, button.Data)
			}
		}
		result = map[string]any{"message_id": len(b.texts), "date": 1, "chat": map[string]any{"id": botUser, "type": "private"}}
	case "getUpdates":
		if b.polls++; b.polls > 1 {
			b.clash = true
		}
		offset, _ := strconv.Atoi(r.Form.Get("offset"))
		for end := time.Now().Add(2 * time.Second); ; {
			b.queue = slices.DeleteFunc(b.queue, func(u map[string]any) bool { return u["update_id"].(int) < offset })
			if len(b.queue) > 0 || time.Now().After(end) || r.Context().Err() != nil {
				break
			}
			b.mu.Unlock()
			time.Sleep(10 * time.Millisecond)
			b.mu.Lock()
		}
		b.polls--
		if result = b.queue; len(b.queue) == 0 {
			result = []any{}
		}
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"ok": true, "result": result})
}

func (b *bot) update(u map[string]any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	u["update_id"] = b.next
	b.next++
	b.queue = append(b.queue, u)
}

func (b *bot) writes(text string) {
	b.update(map[string]any{"message": map[string]any{"message_id": 1, "date": 1, "text": text, "from": map[string]any{"id": botUser}, "chat": map[string]any{"id": botUser}}})
}

func (b *bot) presses(data string) {
	b.update(map[string]any{"callback_query": map[string]any{"id": "q", "data": data, "from": map[string]any{"id": botUser},
		"message": map[string]any{"message_id": 1, "date": 1, "chat": map[string]any{"id": botUser}}}})
}

// shows says how many messages hold a text.
func (b *bot) shows(text string) (n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, x := range b.texts {
		n += strings.Count(x, text)
	}
	return n
}

// pair configures the bot.
func (w *world) pair(b *bot, more ...string) {
	w.t.Helper()
	dir := filepath.Join(filepath.Dir(w.root), "home", ".config", "autoagent")
	config := fmt.Sprintf("telegram_chat: %d\ntelegram_user: %d\ntelegram_endpoint: %s\ntell_every: 1s\n", botUser, botUser, b.server.URL) + strings.Join(more, "\n")
	for _, err := range []error{os.MkdirAll(dir, 0o700), os.WriteFile(filepath.Join(dir, "config.yaml"), []byte(config), 0o600), os.WriteFile(filepath.Join(dir, "telegram-token"), []byte(b.token+"\n"), 0o600)} {
		if err != nil {
			w.t.Fatal(err)
		}
	}
}

// TestTelegram: a mission is watched and aborted from the phone, its end arrives though all of it is dead, and nothing
// that was written holds the token.
func TestTelegram(t *testing.T) {
	t.Parallel()
	b := newBot(t)
	mark := fmt.Sprintf("mark-telegram-%d", os.Getpid())
	sums := scriptmodel.Rule{Name: "sums", When: []string{"You write for a busy person", "done: Step zero"}, Steps: []scriptmodel.Step{{Structured: []byte(`{"sentence":"The first half stands."}`)}, text("summed")}}
	w := newWorld(t, planned(step("zero", "test -f zero"), step("first", "true", "zero")), works("zero", bash("echo 0 > zero")), stubborn(mark), sums)
	w.pair(b, "summaries: true")
	out := w.must(0, "doctor", "--test-message")
	if b.shows("This is a test message") != 1 || !strings.Contains(out, "nobody polls the bot") {
		t.Errorf("%s", out)
	}
	_, wait := w.background("start", "phone", "Work that never ends", "--engine", "embedded")
	w.until("the children run", func() bool { return len(alive(mark)) >= 4 })
	if held := processesWithToken(); len(held) > 0 {
		t.Errorf("the token stands in %v", held)
	}
	w.until("the milestone", func() bool {
		return b.shows("steps done\nThe first half stands.\n") == 1 && b.shows("done: Step zero") == 1
	})
	w.must(5, "poller") // the mission's process has the bot
	b.writes("/status")
	w.until("the status", func() bool { return b.shows("phone: working") == 1 })
	b.writes("/abort")
	w.until("the question", func() bool { b.mu.Lock(); defer b.mu.Unlock(); return len(b.data) == 2 })
	if v := w.status("phone"); v.Stop != nil {
		t.Error("it was aborted by one word")
	}
	b.presses(b.data[0])
	if code, out := wait(); code != 8 || b.shows("Mission phone aborted\naborted by a person by Telegram") != 1 {
		t.Errorf("exit status %d: %s\n%q", code, out, b.texts)
	}
	if left := alive(mark); len(left) > 0 {
		t.Errorf("still alive: %v", left)
	}
	// Whoever comes next brings what is left, and leaves.
	w.must(0, "poller", "--until-idle")
	if n := b.shows("Mission phone aborted"); n != 1 || b.clash {
		t.Errorf("the end is told %d times, two polls at once: %v", n, b.clash)
	}
	_ = filepath.WalkDir(w.root, func(path string, d os.DirEntry, err error) error {
		if text, err := os.ReadFile(path); err == nil && strings.Contains(string(text), "EXAMPLE-TOKEN_of-a-bot") {
			t.Errorf("%s holds the token", path)
		}
		return nil
	})
}

// processesWithToken are those of the machine whose arguments or environment hold the token.
func processesWithToken() (out []string) {
	for _, what := range []string{"cmdline", "environ"} {
		files, _ := filepath.Glob("/proc/[0-9]*/" + what)
		for _, f := range files {
			if b, err := os.ReadFile(f); err == nil && strings.Contains(string(b), "EXAMPLE-TOKEN_of-a-bot") {
				out = append(out, f)
			}
		}
	}
	return out
}

// TestSystemdPoller: missions that systemd ticks have a poller of the host, in either manager. It brings the end of one
// that was aborted, though no unit of it is left, and then leaves.
func TestSystemdPoller(t *testing.T) {
	both(t, func(t *testing.T, manager units.Manager) {
		systemdPoller(t, map[units.Manager]string{units.User: owner}[manager])
	})
}

// systemdPoller starts a mission as the owner, or as root for the owner.
func systemdPoller(t *testing.T, who string) {
	b := newBot(t)
	p := newPerson(t, planned(step("zero", "test -f zero"), step("first", "true", "zero")), works("zero", bash("echo 0 > zero")), stubborn("mark-of-the-poller"))
	script := fmt.Sprintf("umask 077; mkdir -p ~/.config/autoagent; echo '%s' > ~/.config/autoagent/telegram-token; printf 'telegram_chat: %d\\ntelegram_user: %d\\ntelegram_endpoint: %s\\ntell_every: 1s\\n' > ~/.config/autoagent/config.yaml",
		b.token, botUser, botUser, b.server.URL)
	if out, exit := p.host.Run(t.Context(), "alice", "sh", "-c", script); exit != 0 {
		t.Fatal(out)
	}
	start, do := []string{"start", "my-site", "Work that never ends", "--engine", "systemd", "--budget", "5usd"}, p.do
	if who == "" {
		start, do = append(start, "--run-as", "alice"), p.asRoot
	}
	if code, out := do(start...); code != 0 || strings.Contains(out, "stay in notify") {
		t.Fatalf("start: %d\n%s", code, out)
	}
	wait := func(what string, cond func() bool) {
		t.Helper()
		if !comes(cond) {
			_, events := p.do("logs", "my-site")
			t.Fatalf("never: %s\n%s\n%q\n%v", what, events, b.texts, p.host.Journal(who))
		}
	}
	wait("the milestone", func() bool { return b.shows("done: ") == 1 })
	list := strings.Fields(p.host.Systemctl(who, "list-units", "--no-legend", "--plain", "forge-autoagent-poller@*"))
	if len(list) == 0 {
		t.Fatal("there is no poller")
	}
	if user := strings.TrimSpace(p.host.Systemctl(who, "show", "-P", "User", list[0])); who == "" && user != "alice" {
		t.Errorf("it runs as %q", user)
	}
	// Journal, disk, and all that runs while a run is under way: the token stands in its file alone.
	const token = "/home/alice/.config/autoagent/telegram-token"
	look := "grep -rlsaF -f " + token + " /home /run /tmp /var /etc; grep -lsaF -f " + token + " /proc/[0-9]*/cmdline /proc/[0-9]*/environ"
	if out, _ := p.host.Run(t.Context(), "", "sh", "-c", look); strings.TrimSpace(out) != token {
		t.Errorf("the token stands in %s", out)
	}
	if out, exit := p.host.Run(t.Context(), "", "stat", "-c", "%a", token); exit != 0 || strings.TrimSpace(out) != "600" {
		t.Errorf("its file: %s", out)
	}
	if lines := fmt.Sprint(p.host.Journal("")) + fmt.Sprint(p.host.Journal("alice")); strings.Contains(lines, "EXAMPLE-TOKEN_of-a-bot") || !strings.Contains(lines, "autoagent") {
		t.Errorf("the journal: %s", lines)
	}
	if shown := p.host.Systemctl(who, "show", list[0]) + p.host.Systemctl(who, "cat", list[0]); strings.Contains(shown, "EXAMPLE-TOKEN_of-a-bot") {
		t.Error("the unit shows the token")
	}
	b.goesAway(true)
	if code, out := p.do("abort", "my-site"); code != 0 {
		t.Fatalf("abort: %d\n%s", code, out)
	}
	// Nothing of the mission is left, and nobody can be reached: whoever sends sits in the guards' slice, and tries on.
	if left := strings.TrimSpace(p.host.Systemctl(who, "list-units", "--all", "--no-legend", "--plain", "forge-autoagent-my-site*")); left != "" {
		t.Errorf("units are left: %s", left)
	}
	if in := strings.TrimSpace(p.host.Systemctl(who, "show", "-P", "ControlGroup", list[0])); !strings.Contains(in, "/forge-autoagentguard.slice/") {
		t.Errorf("it sits in %s", in)
	}
	wait("it tries", func() bool { b.mu.Lock(); defer b.mu.Unlock(); return b.refused > 1 })
	p.host.Systemctl(who, "kill", "-s", "KILL", list[0])
	b.goesAway(false)
	wait("the end", func() bool { return b.shows("Mission my-site aborted") == 1 })
	wait("it leaves", func() bool {
		return strings.TrimSpace(p.host.Systemctl(who, "show", "-P", "ActiveState", list[0])) == "inactive"
	})
	if code, out := do("reconcile"); code != 0 || strings.Contains(out, "poller") {
		t.Errorf("reconcile: %d\n%s", code, out)
	}
	if code, out := do("reconcile", "--uninstall"); code != 0 {
		t.Errorf("uninstall: %d\n%s", code, out)
	}
	for _, dir := range []string{"/home/alice/.config/systemd/user/", "/etc/systemd/system/"} {
		if left, _ := filepath.Glob(p.host.Path(dir + "forge-autoagent*")); len(left) > 0 {
			t.Errorf("still installed: %v", left)
		}
	}
	if b.clash {
		t.Error("two polls at once")
	}
}

// TestExecChannel: a program of the person's is called while the mission runs and at its end, also if it leaves something running;
// the stop neither waits for that nor takes it for the mission's.
func TestExecChannel(t *testing.T) {
	t.Parallel()
	mark := fmt.Sprintf("mark-exec-%d", os.Getpid())
	w := newWorld(t, planned(step("zero", "test -f zero"), step("first", "true", "zero")), works("zero", bash("echo 0 > zero")), stubborn(mark))
	dir := filepath.Join(filepath.Dir(w.root), "home", ".config", "autoagent")
	told := filepath.Join(dir, "told")
	program := fmt.Sprintf("#!/bin/sh\n(cat; echo) >> %s\nsetsid sleep 4.25 >/dev/null 2>&1 &\n", told)
	for name, text := range map[string]string{"tell": program, "config.yaml": "notify_exec: " + filepath.Join(dir, "tell") + "\ntell_every: 1s\n"} {
		if err := errors.Join(os.MkdirAll(dir, 0o700), os.WriteFile(filepath.Join(dir, name), []byte(text), 0o700)); err != nil {
			t.Fatal(err)
		}
	}
	said := func(text string) (n int) { // messages: a line each
		b, _ := os.ReadFile(told)
		for line := range strings.SplitSeq(string(b), "\n") {
			if strings.Contains(line, text) {
				n++
			}
		}
		return n
	}
	_, wait := w.background("start", "mailed", "Work that never ends", "--engine", "embedded")
	t.Cleanup(func() {
		if t.Failed() {
			out, _ := exec.Command("sh", "-c", "ps -ef | grep -e until-eof -e mailed; find "+filepath.Dir(w.root)+" -path '*notify*' -o -path '*channels*'; cat "+told+" "+w.root+"/data/autoagent/mailed/notify/new/*; cat "+filepath.Dir(w.root)+"/home/.local/state/autoagent/channels/*/health.json").CombinedOutput()
			t.Logf("%s", out)
		}
	})
	w.until("the milestone, while it runs", func() bool { return said("done: Step zero") == 1 })
	w.until("the children run", func() bool { return len(alive(mark)) >= 4 })
	w.must(0, "abort", "mailed")
	if code, out := wait(); code != 8 || said("Mission mailed aborted") != 1 || said(`"again":true`) != 0 {
		b, _ := os.ReadFile(told)
		t.Errorf("exit status %d: %s\n%s", code, out, b)
	}
	if left := alive(mark); len(left) > 0 {
		t.Errorf("still alive: %v", left)
	}
}

// TestAnswersFromThePhone: an agent asks and goes on with the answer, a note is worked in while it waits, and a mission whose tries
// are used up goes on without what failed. Nobody is at the terminal, and nothing is spent on waiting.
func TestAnswersFromThePhone(t *testing.T) {
	t.Parallel()
	b := newBot(t)
	again := func(name, when, not string, steps ...plan.ProposedStep) scriptmodel.Rule {
		r := planned(steps...)
		r.Name, r.When, r.Not = name, append(r.When, when), nil
		if not != "" {
			r.Not = []string{not}
		}
		if len(steps) == 0 {
			r.Steps[0].Structured = []byte(`{"steps":[]}`)
		}
		return r
	}
	answered := works("zero", bash("echo blue > zero"))
	answered.Name, answered.When = "answered", append(answered.When, "You asked a person")
	asks := scriptmodel.Rule{Name: "asks", When: answered.When[:1], Steps: []scriptmodel.Step{bash("echo half > half"), text("QUESTION: May the page be blue? Yes, and it is blue; no, and it is red.")}}
	fails := scriptmodel.Rule{Name: "fails", When: []string{"# Your step: Step one (one)"}, Steps: []scriptmodel.Step{text("BLOCKED: there is no compiler")}}
	w := newWorld(t, again("note", "told you something", ""), again("again", "A new plan is needed", "told you something", step("one", "true")),
		planned(step("zero", "grep blue zero && test -f half"), step("one", "true", "zero")), answered, asks, fails)
	w.pair(b)
	_, wait := w.background("start", "asked", "Make a page", "--engine", "embedded")
	press := func(word string, n int) {
		t.Helper()
		data := ""
		w.until("the button "+word, func() bool {
			b.mu.Lock()
			defer b.mu.Unlock()
			for _, d := range b.data {
				if strings.HasPrefix(d, fmt.Sprintf("ap:asked:%d:%s:", n, word)) {
					data = d
				}
			}
			return data != ""
		})
		b.presses(data)
	}
	w.until("the question", func() bool { return b.shows("asks about step zero") == 1 && b.shows("May the page be blue?") == 1 })
	w.until("its time stands still", func() bool {
		v := w.status("asked")
		return len(v.Pauses) == 1 && v.Pauses[0].Cause == "approval"
	})
	runs := w.model.Stats().Requests
	w.must(2, "tell", "asked", "")
	if out := w.must(0, "approvals"); !strings.Contains(out, "asked 1  codebuilder-1 asks about step zero: Step zero") {
		t.Errorf("%s", out)
	}
	if n := w.model.Stats().Requests; n != runs {
		t.Errorf("%d requests while a person was waited for", n-runs)
	}
	b.writes("blue is good")
	w.until("the note", func() bool { return b.shows("has your note") == 1 })
	press("y", 1)
	w.until("the answer", func() bool { return b.shows("done: Step zero") == 1 })
	w.until("the tries are used up", func() bool { return b.shows("the mission cannot go on by itself") == 1 })
	b.presses("ap:asked:2:s:wrongtoken")
	press("s", 2)
	code, out := wait()
	if code != 0 || b.shows("Mission asked completed") != 1 || b.shows("Left out by you: Step one") != 1 || b.clash {
		t.Errorf("exit status %d: %s\n%q", code, out, b.texts)
	}
	if n := w.model.Stats().ByRule["note"]; n == 0 || b.shows("your note was read") != 1 {
		t.Errorf("the note led to %d requests: %q", n, b.texts)
	}
}
