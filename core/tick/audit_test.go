package tick

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"example.com/AutoAgentProject/core/journal"
	"example.com/AutoAgentProject/core/mission"
	"example.com/AutoAgentProject/core/money"
	"example.com/AutoAgentProject/core/runner"
	"example.com/AutoAgentProject/core/store"
)

// TestAudit: one change in each part of the set halts the mission with a blocker; what ticks, other missions and people do
// meanwhile does not.
func TestAudit(t *testing.T) {
	for _, c := range []struct {
		name  string // {run} is the run's folder
		halts bool
	}{
		{"root/data/autoagent/my-site/mission.json", true},
		{"root/data/autoagent/my-site/goal.md", true},
		{"{run}/system.md", true},
		{"{run}/prompt.md", true},
		{"{run}/run.json", true},
		{"root/data/autoagent/my-site/from-repo.json", true},
		{"root/data/autoagent/my-site/from-repo/.claude/hooks/hook.sh", true},
		{"root/autoagent-missions/my-site/repo.git/config", true},
		{"root/autoagent-missions/my-site/repo.git/hooks/post-update", true},
		{"root/autoagent-missions/my-site/repo.git/info/attributes", true},
		{"root/autoagent-missions/my-site/repo.git/objects/info/alternates", true},
		{"root/autoagent-missions/my-site/planted", true},
		{"root/planted", true},
		{"home/.bashrc", true},
		{"home/.ssh/authorized_keys", true},
		{"home/.config/systemd/user/planted.service", true},
		{"home/.config/systemd/user/default.target.wants/planted.service", true},
		{"home/.config/systemd/user/forge-autoagent-my-site-quota.service", true},
		{"home/.config/systemd/user/.tmp-1.service", true},
		{"home/.config/autostart/planted.desktop", true},
		{"home/.config/environment.d/planted.conf", true},
		{"home/.config/git/config", true},
		{"system/planted.service", true},
		{"system/multi-user.target.wants/planted.service", true},

		{"root/autoagent-missions/my-site/codebuilder-1/file", false},
		{"root/autoagent-missions/my-site/codebuilder-2/file", false},
		{"root/autoagent-missions/my-site/.result-0123456789/file", false},
		{"root/autoagent-missions/my-site/.kept-codebuilder-2-1/file", false},
		{"root/autoagent-missions/my-site/repo.git/refs/heads/main", false},
		{"root/autoagent-missions/other/codebuilder-1/file", false},
		{"root/data/autoagent/my-site/state.json", false},
		{"root/data/autoagent/my-site/agents/codebuilder-2/inbox/new/file", false},
		{"root/data/autoagent/other/mission.json", false},
		{"root/.new-other-1/file", false},
		{"{run}/stream.jsonl", false},
		{"system/forge-autoagent-other-quota.service", false},
		{"home/work/file", false},
		{"home/file", false},
		{"home/.bash_history", false},
		{"home/.cache/file", false},
		{"home/.config/editorrc", false},
		{"home/.local/share/file", false},
		{"home/.config/systemd/user/forge-autoagent-other-quota.service", false},
		{"home/.config/systemd/user/default.target.wants/forge-autoagent-other.target", false},
		{"home/.config/systemd/user/.tmp-2064044975", false},
		{"home/.config/systemd/user/.forge-autoagent-other-quota.service123456789", false},
		{"home/.config/systemd/user/default.target.wants/.#forge-autoagent-other.target0123456789abcdef", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, money.NanoUSD)
			root := filepath.Dir(filepath.Dir(w.Store.Work()))
			w.Home, w.UnitDirs = t.TempDir(), []string{t.TempDir()}
			for _, dir := range []string{filepath.Join(w.Store.Repo(), "hooks"), filepath.Join(w.Home, ".config", "systemd", "user")} {
				ok(t, os.MkdirAll(dir, 0o700))
			}
			ok(t, os.WriteFile(w.Store.Goal(), []byte("goal"), 0o600))
			w.begin()
			h, err := w.Hold("handoff-1")
			ok(t, err)
			w.fake.do = func(_ context.Context, j runner.Job) (runner.Result, error) {
				path := strings.NewReplacer("{run}", w.Store.Run("codebuilder-1", j.Run), "root/", root+"/", "home/", w.Home+"/", "system/", w.UnitDirs[0]+"/").Replace(c.name)
				ok(t, os.MkdirAll(filepath.Dir(path), 0o700))
				f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
				ok(t, err)
				_, err = f.WriteString("\n")
				ok(t, err)
				ok(t, f.Close())
				return done(), nil
			}
			_, out, err := w.Run(t.Context(), &h, w.ask())
			ok(t, err)
			stop, err := w.Store.Stopped()
			ok(t, err)
			if !c.halts {
				if stop != nil || out != Moved {
					t.Errorf("outcome %v, stop %+v", out, stop)
				}
				return
			}
			if out != Over || stop == nil || stop.Cause != mission.Walls || stop.Cause.Final() || !strings.Contains(stop.Reason, filepath.Base(c.name)) {
				t.Fatalf("outcome %v, stop %+v", out, stop)
			}
			events, _, _, err := w.Store.Journal().Read(0)
			ok(t, err)
			told := 0
			for _, e := range events {
				if e.Kind == journal.WallFailed && e.Level == journal.Blocker {
					told++
				}
			}
			if told != 1 || h.Runs != 0 {
				t.Errorf("told %d times, %d runs are counted", told, h.Runs)
			}
			if b := w.book(); len(b.OpenRuns) != 0 || b.Used.N != 500 {
				t.Errorf("its spend is not counted: %+v", b)
			}
		})
	}
}

// BenchmarkAudit is what both looks of a run cost, in a home with a few hundred files.
func BenchmarkAudit(b *testing.B) {
	home := b.TempDir()
	for _, d := range []string{".a", ".b", ".c", ".config/systemd/user", ".config/autostart"} {
		ok(b, os.MkdirAll(filepath.Join(home, d), 0o700))
		for i := range 100 {
			ok(b, os.WriteFile(filepath.Join(home, d, strings.Repeat("x", i+1)), nil, 0o600))
		}
	}
	w := &Tick{Store: store.Root(b.TempDir()).Mission("my-site"), Home: home, Log: slog.New(slog.DiscardHandler)}
	for b.Loop() {
		if c := w.lookAround(b.Context(), "run")(); len(c) > 0 {
			b.Fatal(c)
		}
	}
}
