package claude

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"example.com/AutoAgentProject/core/cell"
)

// TestMain makes the test binary also a stand-in for the program, for what the real one cannot be made to do. Its
// part is the word after "play" in the prompt, or in the system prompt: then it never reads its input.
func TestMain(m *testing.M) {
	cell.ShimMain()
	if len(os.Args) > 1 && os.Args[1] == "-p" {
		os.Exit(newFake().play())
	}
	os.Exit(m.Run())
}

// fake is one run of the stand-in.
type fake struct {
	in   *bufio.Reader
	args map[string]string
	cwd  string
}

func newFake() *fake {
	f := &fake{in: bufio.NewReader(os.Stdin), args: map[string]string{}}
	for i, a := range os.Args[:len(os.Args)-1] {
		if strings.HasPrefix(a, "--") {
			f.args[a] = os.Args[i+1]
		}
	}
	f.cwd, _ = os.Getwd()
	return f
}

func (f *fake) say(format string, args ...any) { fmt.Printf(format+"\n", args...) }

// init greets as it should, but for the fields given.
func (f *fake) init(otherwise map[string]any) {
	e := map[string]any{"type": "system", "subtype": "init", "cwd": f.cwd, "session_id": f.args["--session-id"], "model": f.args["--model"],
		"tools": strings.Split(f.args["--tools"], ","), "mcp_servers": []any{}, "permissionMode": "dontAsk", "apiKeySource": "ANTHROPIC_API_KEY"}
	for k, v := range otherwise {
		e[k] = v
	}
	b, _ := json.Marshal(e)
	f.say("%s", b)
}

func (f *fake) start(id string, input int) {
	f.say(`{"type":"stream_event","event":{"type":"message_start","message":{"id":"%s","model":"claude-sonnet-5-5","usage":{"input_tokens":%d,"output_tokens":1}}},"parent_tool_use_id":null}`, id, input)
}

func (f *fake) stop(id string, output int) {
	f.say(`{"type":"stream_event","event":{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":%d}},"api_message_id":"%s"}`, output, id)
}

func (f *fake) result(text string) {
	f.say(`{"type":"result","subtype":"success","is_error":false,"result":%q,"terminal_reason":"completed","stop_reason":"end_turn"}`, text)
}

// prompt waits for a line of input and returns the text in it.
func (f *fake) prompt() string {
	line, err := f.in.ReadBytes('\n')
	var e struct {
		Message struct{ Content string }
	}
	if err != nil || json.Unmarshal(line, &e) != nil {
		return ""
	}
	return e.Message.Content
}

func (f *fake) play() int {
	role, _ := os.ReadFile(f.args["--system-prompt-file"])
	_, part, deaf := strings.Cut(string(role), "play ")
	if !deaf {
		_, part, _ = strings.Cut(f.prompt(), "play ")
	}
	part, arg, _ := strings.Cut(strings.TrimSpace(part), " ")
	switch part {
	case "replay": // file, exit status
		return f.replay(arg)
	case "nothing":
		code, _ := strconv.Atoi(arg)
		fmt.Fprintln(os.Stderr, "first words\nlast words of", os.Getenv("ANTHROPIC_API_KEY"))
		return code
	case "silent":
		f.sleep()
	case "deaf": // answers nothing, whatever is asked
		signal.Ignore(syscall.SIGTERM)
		f.init(nil)
		f.start("msg_1", 500)
		f.sleep()
	case "endless": // the answer is there, the end is not
		signal.Ignore(syscall.SIGTERM)
		f.init(nil)
		f.result("fine")
		f.sleep()
	case "mute": // closes its output and stays
		f.init(nil)
		os.Stdout.Close()
		os.Stderr.Close()
		f.sleep()
	case "grandchild": // leaves something behind that holds the pipes
		c := exec.Command("sleep", "1000")
		c.Stdout, c.Stderr = os.Stdout, os.Stderr
		c.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		if err := c.Start(); err != nil {
			return 70
		}
		_ = os.WriteFile("grandchild", []byte(strconv.Itoa(c.Process.Pid)), 0o600)
		f.init(nil)
		f.result("fine")
	case "exit": // a good answer, then this status
		f.init(nil)
		f.result("fine")
		code, _ := strconv.Atoi(arg)
		fmt.Fprintln(os.Stderr, "disk is full")
		return code
	case "murder": // as the kernel does when memory is short
		f.init(nil)
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		f.sleep()
	case "otherwise": // greets with other fields, then goes on
		var o map[string]any
		if json.Unmarshal([]byte(arg), &o) != nil {
			return 70
		}
		f.init(o)
		f.start("msg_1", 1)
		f.result("fine")
		f.sleep()
	case "rude": // no greeting
		f.result("fine")
	case "lines": // a greeting, then these lines
		f.init(nil)
		b, err := os.ReadFile(arg)
		if err != nil {
			return 70
		}
		_, _ = os.Stdout.Write(b)
	case "flood": // spends 20 cents a message and stops for nothing
		signal.Ignore(syscall.SIGTERM)
		f.init(nil)
		for i := 0; ; i++ {
			id := fmt.Sprint("msg_", i)
			f.start(id, 100_000)
			f.stop(id, 1)
			time.Sleep(20 * time.Millisecond)
		}
	case "pour": // so many lines of so many kilobytes between two that count
		var lines, kilobytes int
		if _, err := fmt.Sscan(arg, &lines, &kilobytes); err != nil {
			return 70
		}
		f.init(nil)
		f.start("msg_1", 1000)
		out := bufio.NewWriter(os.Stdout)
		for range lines {
			fmt.Fprintf(out, `{"type":"user","message":{"role":"user","content":[{"type":"tool_result","content":"%s"}]}}`+"\n", strings.Repeat("x", kilobytes<<10))
		}
		out.Flush()
		f.stop("msg_1", 50)
		f.result("fine")
	case "talk": // answers every line with what it says
		for text := part; text != ""; text = f.prompt() {
			f.init(nil)
			f.result(text)
		}
	default:
		return 64
	}
	return 0
}

func (f *fake) sleep() { time.Sleep(time.Minute) }

// replay prints a recorded stream as if it were of this run.
func (f *fake) replay(arg string) int {
	name, code, _ := strings.Cut(arg, " ")
	b, err := os.ReadFile(name)
	if err != nil {
		return 70
	}
	text := string(b)
	if _, rest, ok := strings.Cut(text, `"session_id":"`); ok {
		id, _, _ := strings.Cut(rest, `"`)
		text = strings.ReplaceAll(text, id, f.args["--session-id"])
	}
	text = strings.ReplaceAll(text, "/srv/tick/work", f.cwd)
	if _, err := io.WriteString(os.Stdout, text); err != nil {
		return 70
	}
	status, _ := strconv.Atoi(code)
	_, _ = io.Copy(io.Discard, f.in) // until the input ends, as the program does
	return status
}

// stream is the path of a recorded stream.
func stream(t *testing.T, name string) string {
	t.Helper()
	p, err := filepath.Abs(filepath.Join("testdata", "streams", name+".jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	return p
}
