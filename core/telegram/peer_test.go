package telegram

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"example.com/AutoAgentProject/core/journal"
	"example.com/AutoAgentProject/core/mission"
	"example.com/AutoAgentProject/core/notify"
	"example.com/AutoAgentProject/core/testkit"
)

// TestPeer speaks to a Bot API that is not ours: what is sent has the form that others expect, and what they send is
// understood. It takes updates without offset and limits nothing, so that all else is tested against our own.
func TestPeer(t *testing.T) {
	t.Parallel()
	lock, err := os.ReadFile("../../.ci/bot/package.json")
	ok(t, err)
	version := regexp.MustCompile(`"telegram-test-api": "([0-9.]+)"`).FindSubmatch(lock)[1]
	cache := os.Getenv("XDG_CACHE_HOME")
	if cache == "" {
		cache = filepath.Join(os.Getenv("HOME"), ".cache")
	}
	module := filepath.Join(cache, "autoagent", "peers", "telegram-test-api-"+string(version), "node_modules", "telegram-test-api")
	_, err = os.Stat(module)
	testkit.Need(t, err == nil && testkit.OnPath("node"), "node and telegram-test-api (make tools)")

	port := strings.TrimPrefix(closedPort(t), "http://127.0.0.1:")
	script := fmt.Sprintf(`const T = require(%q); const s = new T({port: %s, host: '127.0.0.1', storeTimeout: 600}); s.start().then(() => console.log('ready'))`, module, port)
	c := exec.CommandContext(t.Context(), "node", "-e", script)
	out, err := c.StdoutPipe()
	ok(t, err)
	ok(t, c.Start())
	t.Cleanup(func() { _ = c.Process.Kill(); _ = c.Wait() })
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != "ready\n" {
		t.Fatalf("%q, %v", line, err)
	}
	base := "http://127.0.0.1:" + port
	call := func(path string, body map[string]any) map[string]any {
		t.Helper()
		b, _ := json.Marshal(body)
		resp, err := http.Post(base+path, "application/json", bytes.NewReader(b))
		ok(t, err)
		defer resp.Body.Close()
		var v map[string]any
		ok(t, json.NewDecoder(resp.Body).Decode(&v))
		return v
	}
	w := newWorld(t, "my-site")
	w.clock.now = time.Now()
	w.Client.endpoint = base
	w.PollTime = time.Second
	if name, err := w.Client.Me(t.Context()); err != nil || name == "" {
		t.Fatal(name, err)
	}
	a, yes, _ := w.ask("s")
	ok(t, w.box("my-site").Put(notify.Row{ID: notify.ApprovalRow(1), Label: "my-site a-1", Mission: "my-site", At: w.clock.Now(), Level: journal.Blocker, Title: "Approval 1: <x> & 😀", Text: "a_b *c*",
		Approval: 1, Buttons: notify.ApprovalButtons("my-site", a.Approval)}))
	stop := w.runs()
	history := func() string {
		b, _ := json.Marshal(call("/getUpdatesHistory", map[string]any{"token": testToken}))
		return string(b)
	}
	until(t, "the question", func() bool { return strings.Contains(history(), `a_b *c*`) })
	if h := history(); !strings.Contains(h, yes) || !strings.Contains(h, "bold") || strings.Contains(h, "parse_mode") {
		t.Errorf("%s", h)
	}
	from := map[string]any{"id": testUser, "first_name": "P", "is_bot": false}
	chat := map[string]any{"id": testChat, "type": "private", "first_name": "P"}
	call("/sendMessage", map[string]any{"botToken": testToken, "from": from, "chat": chat, "date": 1, "text": "use the old colours"})
	until(t, "the note", func() bool { notes, _ := w.root.Mission("my-site").Notes(); return len(notes) == 1 })
	call("/sendCallback", map[string]any{"botToken": testToken, "from": from, "data": yes, "message": map[string]any{"message_id": 1, "date": 1, "chat": chat, "from": from}})
	until(t, "the decision", func() bool { d := w.decision(1); return d != nil && d.Verdict == mission.Approved })
	until(t, "the buttons are closed", func() bool {
		rows, _ := w.box("my-site").Done(notify.Sent, "approval-")
		return len(rows) == 1 && rows[0].Closed
	})
	stop()
}
