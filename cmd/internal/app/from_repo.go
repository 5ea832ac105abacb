package app

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"example.com/AutoAgentProject/core/claude"
	"example.com/AutoAgentProject/core/files"
	"example.com/AutoAgentProject/core/git"
	"example.com/AutoAgentProject/core/mission"
	"example.com/AutoAgentProject/core/runner"
	"example.com/AutoAgentProject/core/store"
	"example.com/AutoAgentProject/core/usererr"
)

// fixFromRepo reads --allow-from-repo. What the configuration allows goes for missions that start from something.
func fixFromRepo(m *mission.Mission, typed, configured []string) (err error) {
	switch {
	case len(typed) > 0:
		m.FromRepo, err = mission.ParseFromRepo(typed)
	case m.From != nil:
		m.FromRepo, err = mission.ParseFromRepo(configured)
	}
	if err == nil && len(m.FromRepo) > 0 && m.From == nil {
		return usererr.New(usererr.Usage, "give --from too, or leave it out", "--allow-from-repo is about a repository, and there is none")
	}
	return err
}

func (c config) fromRepoWrong() string {
	if _, err := mission.ParseFromRepo(c.FromRepo); err != nil {
		return "allow_from_repo: " + err.Error()
	}
	return ""
}

func fromRepoText(allowed []string) string {
	if len(allowed) == 0 {
		return "nothing of the repository's own settings, hooks, servers and CLAUDE.md"
	}
	return strings.Join(allowed, ", ") + " of the repository, as they were at the start"
}

// mostFixed bounds what is copied of a repository: files, and bytes of all together.
const (
	mostFixed     = 2000
	mostFixedSize = 16 << 20
)

// takeFromRepo takes what is allowed out of the mission's first commit and keeps it among the mission's data, where no agent
// can change it.
func takeFromRepo(ctx context.Context, st *store.Store, m mission.Mission) (runner.Taken, error) {
	if len(m.FromRepo) == 0 {
		return runner.Taken{}, nil
	}
	repo := git.Repo{Dir: st.Repo()}
	modes, err := repo.Modes(ctx, m.Base)
	if err != nil {
		return runner.Taken{}, err
	}
	tree := claude.Tree{Modes: modes, Read: func(path string) ([]byte, error) {
		b, err := repo.Document(ctx, m.Base, path)
		if err != nil {
			return nil, usererr.Wrap(err, usererr.Usage, "leave --allow-from-repo out, or correct the file", "%s of the repository cannot be taken", path)
		}
		return b, nil
	}}
	taken, err := claude.TakeFrom(tree, m.FromRepo)
	if err != nil {
		return taken, err
	}
	taken.Commit = m.Base
	n, size := 0, 0
	for name := range modes {
		if !slices.ContainsFunc(taken.Fixed, func(f string) bool { return name == f || strings.HasPrefix(name, f+"/") }) {
			continue
		}
		text, mode, err := tree.File(name)
		if err != nil {
			return taken, err
		}
		if n, size = n+1, size+len(text); n > mostFixed || size > mostFixedSize {
			return taken, usererr.New(usererr.Usage, "leave hooks and mcp out, or make it smaller", ".claude of the repository has more than %d files or %d MiB", mostFixed, mostFixedSize>>20)
		}
		at := filepath.Join(st.FromRepo(), filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(at), 0o700); err != nil {
			return taken, err
		}
		if err := files.Publish(at, text, mode); err != nil {
			return taken, err
		}
	}
	return taken, st.Save(store.FromRepoDocument, taken)
}
