package claude

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"example.com/AutoAgentProject/core/cell"
	"example.com/AutoAgentProject/core/runner"
	"example.com/AutoAgentProject/core/scriptmodel"
	"example.com/AutoAgentProject/core/testkit"
)

// TestRealProgram runs the suite with the real program and no walls: where there can be none, and with AUTOAGENT_FULL=1.
func TestRealProgram(t *testing.T) {
	t.Parallel()
	program := realProgram(t)
	if testkit.OnPath("bwrap") && os.Getenv("AUTOAGENT_FULL") == "" {
		t.Skip("the program passes the suite behind walls")
	}
	testkit.RunnerSuite(t, func(t *testing.T, _ string) runner.Runner {
		return New(Config{Program: program, Launcher: plain{}, Price: price})
	})
}

// TestRealProgramInCells runs the suite with the real program behind the walls it has in production.
func TestRealProgramInCells(t *testing.T) {
	t.Parallel()
	program := realProgram(t)
	testkit.Need(t, testkit.OnPath("bwrap"), "bwrap, for the program behind its walls")
	testkit.RunnerSuite(t, func(t *testing.T, _ string) runner.Runner {
		return New(Config{Program: program, Launcher: cell.Launcher{}, Price: price})
	})
}

// TestSixAtOnce: six runs at the same time, one model, each in a lane of its own.
func TestSixAtOnce(t *testing.T) {
	t.Parallel()
	c := New(Config{Program: realProgram(t), Launcher: plain{}, Price: price})
	var script scriptmodel.Script
	for i := range 6 {
		name := fmt.Sprintf("agent-%d", i)
		script.Rules = append(script.Rules, scriptmodel.Rule{Name: name, When: []string{"You are " + name + "."}, After: "fail", Steps: []scriptmodel.Step{
			{Content: []map[string]any{{"type": "tool_use", "name": "Write", "input": map[string]any{"file_path": "{{cwd}}/who", "content": name}}}},
			{Content: []map[string]any{{"type": "text", "text": "I am " + name + " in {{cwd}}"}}, Usage: map[string]any{"input_tokens": 1000 * (i + 1)}},
		}})
	}
	model, err := scriptmodel.New(script, scriptmodel.Options{})
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = model.Serve(l) }() // its end is ours
	defer model.Close()
	var all sync.WaitGroup
	for i := range 6 {
		j := fakeJob(t, "")
		j.SystemPrompt, j.Prompt = fmt.Sprintf("You are agent-%d.", i), "The same for all."
		j.BaseURL, j.Wall, j.Silence = "http://"+l.Addr().String(), 2*time.Minute, time.Minute
		all.Go(func() {
			r, err := c.Run(t.Context(), j)
			want := fmt.Sprintf("agent-%d", i)
			if err != nil || r.Verdict != runner.Done || !strings.HasPrefix(r.Text, "I am "+want+" in "+j.Dir) || r.Spend.Tokens != int64(120+1000*(i+1)) {
				t.Errorf("%s: %+v, %v", want, r, err)
			}
			if b, err := os.ReadFile(filepath.Join(j.Dir, "who")); err != nil || string(b) != want {
				t.Errorf("%s wrote %q, %v", want, b, err)
			}
		})
	}
	all.Wait()
	if st := model.Stats(); st.Requests != 12 || st.Refused != 0 || len(st.ByRule) != 6 {
		t.Errorf("served %+v", st)
	}
}
