package usage

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"example.com/AutoAgentProject/core/testkit"
)

// peer is the program that the counts are compared with: independent, and in wide use.
const peer = "ccusage-20.0.24"

// peerSum is its answer: tokens by class, of all and of each day and model.
type peerSum struct {
	Input  int64 `json:"inputTokens"`
	Output int64 `json:"outputTokens"`
	Write  int64 `json:"cacheCreationTokens"`
	Read   int64 `json:"cacheReadTokens"`
	All    int64 `json:"totalTokens"`
}

type peerAnswer struct {
	Totals peerSum `json:"totals"`
	Daily  []struct {
		peerSum
		Date   string `json:"period"`
		Day    string `json:"date"`
		Models []struct {
			peerSum
			Name string `json:"modelName"`
		} `json:"modelBreakdowns"`
	} `json:"daily"`
}

func askPeer(t *testing.T, dir string) peerAnswer {
	t.Helper()
	if runtime.GOARCH != "amd64" {
		t.Skip("there is no such program for this machine")
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(cache, "autoagent", "peers", peer, "node_modules/@ccusage/ccusage-linux-x64/bin/ccusage")
	_, err = os.Stat(program)
	testkit.Need(t, err == nil, peer+" (make tools brings it)")
	cmd := exec.CommandContext(t.Context(), program, "daily", "--json", "--offline", "--mode", "calculate", "--timezone", "UTC")
	cmd.Env = []string{"CLAUDE_CONFIG_DIR=" + dir, "HOME=" + t.TempDir(), "PATH=/usr/bin:/bin", "NO_COLOR=1"}
	answer, err := cmd.Output()
	var a peerAnswer
	if err != nil || json.Unmarshal(answer, &a) != nil {
		t.Fatalf("%v: %s", err, answer)
	}
	return a
}

func (s Summary) peer() peerSum {
	t := s.Totals
	return peerSum{t.Input, t.Output, t.CacheWrite5m + t.CacheWrite1h, t.CacheRead, t.All}
}

// TestPeerOnExamples: the same sums for all that both count alike. Where it is known to count otherwise it is not asked.
func TestPeerOnExamples(t *testing.T) {
	otherwise := map[string]string{
		"cache_lifetimes": "it leaves out what the split does not cover",
		"made_up":         "it counts messages that no model wrote",
		"no_request":      "it leaves out records with an empty id of the request",
		"odd_numbers":     "it leaves out records with a number that is none",
		"reused_id":       "it counts an id once, whoever gave it",
		"undated":         "it leaves out records without a usable time",
	}
	for _, e := range examples(t) {
		dir := e.write(t)
		got, want := summary(scanned(t, dir, "")).peer(), askPeer(t, dir).Totals
		if why, known := otherwise[e.name]; known == (got == want) {
			t.Errorf("%s: %+v, the peer counts %+v; known: %q", e.name, got, want, why)
		}
	}
}

// TestPeerOnMany: transcripts made at random, with blocks, growing answers, copies in other files and subagents.
func TestPeerOnMany(t *testing.T) {
	for seed := range uint64(4) {
		r := rand.New(rand.NewPCG(seed, 7))
		var files [6]strings.Builder
		models := []string{"claude-opus-5-5", "claude-sonnet-5-5", "claude-haiku-4-5"}
		for i := range 400 {
			u, n := [4]int{r.IntN(5000), 1 + r.IntN(3000), r.IntN(20_000), r.IntN(200_000)}, 1+r.IntN(4)
			home, day, model := r.IntN(6), 1+r.IntN(28), models[r.IntN(3)]
			side := home > 3
			for k := range n {
				out := u[1] * (k + 1) / n
				at := home
				if k == 0 && r.IntN(4) == 0 && !side { // the copy in a conversation that was resumed
					at = r.IntN(4)
				}
				fmt.Fprintf(&files[at], `{"type":"assistant","isSidechain":%v,"cwd":"/srv/example","sessionId":"s%d","uuid":"u-%d-%d","requestId":"req_%d","timestamp":"2026-10-%02dT%02d:00:00.000Z","version":"2.1.300","message":{"id":"msg_%d","type":"message","role":"assistant","model":%q,"content":[{"type":"text","text":"x"}],"usage":{"input_tokens":%d,"output_tokens":%d,"cache_creation_input_tokens":%d,"cache_read_input_tokens":%d,"cache_creation":{"ephemeral_5m_input_tokens":%d,"ephemeral_1h_input_tokens":%d}}}}`+"\n",
					side, at, i, k, i, day, i%24, i, model, u[0], out, u[2], u[3], u[2]-u[2]/3, u[2]/3)
			}
		}
		e := example{files: map[string]string{}}
		for i := range files {
			name := fmt.Sprintf("projects/-srv-example/s%d.jsonl", i)
			if i > 3 {
				name = fmt.Sprintf("projects/-srv-example/s0/subagents/agent-%d.jsonl", i)
			}
			e.files[name] = files[i].String()
		}
		dir := e.write(t)
		ours, theirs := summary(scanned(t, dir, "")), askPeer(t, dir)
		if got := ours.peer(); got != theirs.Totals || got.All == 0 {
			t.Errorf("seed %d: %+v, the peer counts %+v", seed, got, theirs.Totals)
		}
		days, byModel := map[string]int64{}, map[string]int64{}
		for _, d := range theirs.Daily {
			days[d.Date+d.Day] = d.All
			for _, m := range d.Models {
				byModel[m.Name] += m.Input + m.Output + m.Write + m.Read
			}
		}
		for day, c := range ours.ByDay {
			if days[day] != c.Tokens {
				t.Errorf("seed %d: %s has %d tokens, the peer counts %d", seed, day, c.Tokens, days[day])
			}
		}
		for model, c := range ours.ByModel {
			if byModel[model] != c.Tokens {
				t.Errorf("seed %d: %s has %d tokens, the peer counts %d", seed, model, c.Tokens, byModel[model])
			}
		}
	}
}
