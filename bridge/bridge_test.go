package bridge_test

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"testing"

	"example.com/AutoAgentProject/bridge"
	"example.com/AutoAgentProject/core/claude"
	"example.com/AutoAgentProject/core/engine"
	"example.com/AutoAgentProject/core/profession"
	"example.com/AutoAgentProject/core/runner"
	"example.com/AutoAgentProject/core/store"
	"example.com/AutoAgentProject/core/supervisor"
	"example.com/AutoAgentProject/core/view"
	"example.com/AutoAgentProject/prompts"
)

func newServer(t testing.TB, root store.Root) *bridge.Server {
	t.Helper()
	return newServerOf(t, bridge.Config{View: newReader(t, root), Version: "0.1.0"})
}

func newServerOf(t testing.TB, c bridge.Config) *bridge.Server {
	t.Helper()
	s, err := bridge.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func newReader(t testing.TB, root store.Root) *view.Reader {
	t.Helper()
	profs, err := profession.Load(prompts.Files())
	if err != nil {
		t.Fatal(err)
	}
	sup := &supervisor.Supervisor{Root: root}
	return &view.Reader{Root: root, Professions: profs,
		Describe: func(r io.Reader, each func(runner.Event)) error { return claude.New(claude.Config{}).Describe(r, each) },
		Live: func(ctx context.Context, st *store.Store) (engine.Live, error) {
			if _, err := os.Stat(filepath.Join(st.Dir(), "supervisor.json")); err != nil {
				return engine.Live{}, nil
			}
			return sup.Live(ctx, st.ID())
		}}
}
