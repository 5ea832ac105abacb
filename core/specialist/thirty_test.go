package specialist

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"example.com/AutoAgentProject/core/claude"
	"example.com/AutoAgentProject/core/money"
	"example.com/AutoAgentProject/core/plan"
	"example.com/AutoAgentProject/core/profession"
	"example.com/AutoAgentProject/core/tick"
)

// hello is how the program greets, for a script of the shell: it finds its own arguments.
const hello = `#!/bin/bash
while [ $# -gt 0 ]; do case $1 in --session-id) s=$2;; --model) m=$2;; --tools) t=$2;; esac; shift; done
init() { printf '{"type":"system","subtype":"init","cwd":"%s","session_id":"%s","model":"%s","tools":["%s"],"mcp_servers":[],"permissionMode":"dontAsk","apiKeySource":"ANTHROPIC_API_KEY"}\n' "$PWD" "$s" "$m" "${t//,/\",\"}"; }
say() { printf '%s\n' "$1"; }
start() { say '{"type":"stream_event","event":{"type":"message_start","message":{"id":"'$1'","model":"claude-sonnet-5-5","usage":{"input_tokens":100,"output_tokens":1}}}}'; }
result() { say '{"type":"result","subtype":"success","is_error":false,"result":"'"$1"'","terminal_reason":"completed","stop_reason":"end_turn"}'; }
read -r prompt
`

// TestThirtyWays: an agent program that misbehaves is met with a named reason in bounded time, whatever it does; nothing of it
// lives on, and the ledger has no open run.
func TestThirtyWays(t *testing.T) {
	quiet := "sleep 300"
	ways := []struct {
		name, script string
		want         string // part of the reason in the events or of the step's end; "done": the step is done
	}{
		{"it says nothing", quiet, "no sign of life"},
		{"it greets and says nothing", "init; " + quiet, "no sign of life"},
		{"it begins an answer and says nothing", "init; start m1; " + quiet, "no sign of life"},
		{"it ends at once", "exit 0", "without a result"},
		{"it fails at once", "echo no >&2; exit 1", "exit status 1"},
		{"it fails with words only on stderr", "echo 'disk is full' >&2; exit 9", "disk is full"},
		{"it is killed", "init; kill -9 $$", "killed or aborted"},
		{"it aborts", "init; kill -ABRT $$; sleep 1", "killed or aborted"},
		{"it answers before it greets", "result fine", "without saying how it was set up"},
		{"it has another model", "m=other; init; start m1; result fine; " + quiet, "set up wrong"},
		{"it has more tools", "t=$t,Agent; init; start m1; result fine; " + quiet, "set up wrong"},
		{"it stands in another folder", "cd /tmp; init; start m1; result fine; " + quiet, "set up wrong"},
		{"it speaks no JSON", "init; for i in 1 2 3; do echo hello; done", "without a result"},
		{"it speaks half a JSON", `init; printf '{"type":"result","subty'`, "without a result"},
		{"it speaks NULs", `init; printf '\0\0\0\0\n\0'`, "without a result"},
		{"it speaks bytes that are no text", `init; printf '\377\376\n{"type":"\355\240\275"}\n'`, "without a result"},
		{"success that is an error", `init; say '{"type":"result","subtype":"success","is_error":true,"result":"API Error: 400","terminal_reason":"completed"}'`, "API Error"},
		{"a good answer and a bad end", "init; result fine; exit 3", "verify command failed"},
		{"an empty answer", "init; result ''", "the answer is empty"},
		{"an answer of blanks", "init; result '   '", "the answer is empty"},
		{"an answer of another kind", `init; say '{"type":"result","subtype":"success","is_error":"no","result":7}'`, "step a"},
		{"it reached its turns", `init; say '{"type":"result","subtype":"error_max_turns","is_error":true,"errors":["Reached maximum number of turns (3)"]}'; exit 1`, "too long"},
		{"it was refused", `init; say '{"type":"result","subtype":"success","is_error":false,"result":"no","terminal_reason":"completed","stop_reason":"refusal"}'`, "refused"},
		{"it talks for ever", `init; while :; do say '{"type":"assistant","message":{"id":"m","model":"claude-sonnet-5-5","content":[{"type":"text","text":"All is well."}]}}'; sleep 0.2; done`, "no file, commit or message changed"},
		{"it calls one tool for ever", `init; while :; do say '{"type":"assistant","message":{"id":"m","model":"claude-sonnet-5-5","content":[{"type":"tool_use","id":"t","name":"Read","input":{"file_path":"x"}}]}}'; sleep 0.1; done`, "with the same input"},
		{"it ignores SIGTERM", "trap '' TERM INT HUP; init; while :; do sleep 1; done", "no sign of life"},
		{"it closes its output and stays", "init; exec >&- 2>&-; sleep 300", "without a result"},
		{"it answers and stays", "init; echo x > a.txt; start m1; result fine; trap '' TERM; sleep 300", "done"},
		{"it leaves children that hold its output", "init; echo x > a.txt; start m1; result fine; (setsid sleep 300 &) ; exit 0", "done"},
		{"it does not read", "exec 0<&-; init; echo x > a.txt; start m1; result fine", "done"},
		{"it writes a line without an end", `init; head -c 3000000 /dev/zero | tr '\0' x`, "without a result"},
		{"it writes megabytes of lines", `init; echo x > a.txt; start m1; for i in 1 2 3 4 5; do head -c 1000000 /dev/zero | tr '\0' x; echo; done; result fine`, "done"},
		{"it fills its folder with links", `init; start m1; ln -s / a; ln -s a.txt a.txt; ln -s ../../.. up; result fine`, "verify command failed"},
		{"it breaks the repository", `init; start m1; rm -rf .git; echo x > a.txt; result fine`, "step a"},
		{"it removes its folder", `init; start m1; rm -rf ./* .git .autoagent; result fine`, "step a"},
	}
	if len(ways) < 30 {
		t.Fatal(len(ways))
	}
	for i, c := range ways {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if os.Getenv("AUTOAGENT_FULL") == "" && i%6 != 3 {
				t.Skip("only with AUTOAGENT_FULL=1")
			}
			w := newWorld(t, step("a"))
			program := filepath.Join(t.TempDir(), "agent")
			ok(t, os.WriteFile(program, []byte(hello+c.script+"\n"), 0o755))
			var err error
			w.Professions, err = profession.Set{}.With(profession.Profession{Name: "codebuilder", Display: "CodeBuilder", Soul: "# Soul", Writes: true,
				Tools: []string{"Read", "Write"}, Silence: 3 * time.Second, Wall: 40 * time.Second})
			ok(t, err)
			w.Mission.Model = "claude-sonnet-5-5"
			w.Runner = claude.New(claude.Config{Program: program, Launcher: w.Tick, Price: money.Default().Cost})
			began := time.Now()
			for range 6 { // until there is a reason
				out, err := w.Once(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				if s := w.step("a"); out != tick.Moved || s.State != plan.Working || s.Tries > 0 {
					break
				}
			}
			var said []string
			events, _, _, err := w.Store.Journal().Read(0)
			ok(t, err)
			for _, e := range events {
				said = append(said, e.Text)
			}
			s := w.step("a")
			all := fmt.Sprintf("%s\nstep a is %s, %d tries, %v", strings.Join(said, "\n"), s.State, s.Tries, s.Reasons)
			if c.want == "done" {
				c.want = "step a is done"
			}
			if !strings.Contains(all, c.want) {
				t.Errorf("after %v nothing says %q:\n%s", time.Since(began).Round(time.Second), c.want, all)
			}
			if s.State != plan.Done && s.Tries == 0 && len(s.Reasons) == 0 && !strings.Contains(all, "does not do as asked") {
				t.Errorf("no reason:\n%s", all)
			}
			book, err := w.Store.Ledger().Read()
			if ok(t, err); len(book.OpenRuns) != 0 || book.Reserved.N != 0 {
				t.Errorf("ledger: %+v", book)
			}
			if left := w.living(program); len(left) > 0 {
				t.Errorf("it lives on: %v", left)
			}
		})
	}
}

// living are the processes whose command line names a file.
func (w *world) living(file string) (out []string) {
	lines, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, f := range lines {
		if b, err := os.ReadFile(f); err == nil && strings.Contains(string(b), file) {
			out = append(out, strings.ReplaceAll(string(b), "\x00", " "))
		}
	}
	return out
}
