package claude

import (
	"net"
	"os"
	"testing"
	"time"

	"example.com/AutoAgentProject/core/cell"
	"example.com/AutoAgentProject/core/runner"
	"example.com/AutoAgentProject/core/scriptmodel"
	"example.com/AutoAgentProject/core/testkit"
)

// BenchmarkRun is what the walls cost a run of the real program that writes a file and runs a command: without and within, in
// turns. It does a fixed number of runs, because one takes a second.
func BenchmarkRun(b *testing.B) {
	program, err := Find(os.Getenv)
	testkit.Need(b, err == nil, "the claude program, version "+PinnedVersion)
	testkit.Need(b, testkit.OnPath("bwrap"), "bwrap")
	model, err := scriptmodel.New(scriptmodel.Script{Rules: []scriptmodel.Rule{{Name: "work", Steps: []scriptmodel.Step{
		{Content: []map[string]any{{"type": "tool_use", "name": "Write", "input": map[string]any{"file_path": "{{cwd}}/file", "content": "x"}}}},
		{Content: []map[string]any{{"type": "tool_use", "name": "Bash", "input": map[string]any{"command": "for i in 1 2 3 4 5; do cp file file$i; done; ls"}}}},
		{Content: []map[string]any{{"type": "text", "text": "done"}}},
	}}}}, scriptmodel.Options{})
	if err != nil {
		b.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	go func() { _ = model.Serve(l) }() // its end is ours
	defer model.Close()
	run := func(launcher runner.Launcher) time.Duration {
		j := fakeJob(b, "")
		j.Tools, j.BaseURL, j.Wall = []string{"Write", "Bash"}, "http://"+l.Addr().String(), time.Minute
		began := time.Now()
		r, err := New(Config{Program: program, Launcher: launcher, Price: price}).Run(b.Context(), j)
		if err != nil || r.Verdict != runner.Done {
			b.Fatalf("%v: %s %s", err, r.Verdict, r.Reason)
		}
		return time.Since(began)
	}
	const runs = 5
	var without, within time.Duration
	for range runs {
		without += run(plain{})
		within += run(cell.Launcher{Closed: []uint16{1}})
	}
	b.ReportMetric(float64(within)/float64(without), "within/without")
	b.ReportMetric(float64(within-without)/runs/1e6, "ms-added/run")
	b.ReportMetric(0, "ns/op")
}
