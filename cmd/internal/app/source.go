package app

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"example.com/AutoAgentProject/core/git"
	"example.com/AutoAgentProject/core/mission"
	"example.com/AutoAgentProject/core/store"
	"example.com/AutoAgentProject/core/usererr"
)

// source looks at --from. What HEAD of a repository does not hold is listed and refused unless --from-head says so.
func source(ctx context.Context, root store.Root, m *mission.Mission, o startOptions) error {
	if o.from == "" {
		if o.fromHead {
			return usererr.New(usererr.Usage, "give --from as well", "--from-head is nothing without --from")
		}
		return nil
	}
	path, err := filepath.Abs(o.from)
	if err != nil {
		return err
	}
	st, err := os.Stat(path)
	if err != nil || !st.IsDir() {
		return usererr.New(usererr.Usage, "give a git repository or a folder", "--from %s is no folder", o.from)
	}
	s, err := git.Look(ctx, path)
	if err != nil {
		return err
	}
	if s.Inside != "" {
		return usererr.New(usererr.Usage, "give the repository, or a copy of the folder elsewhere", "--from %s is only a part of the git repository %s", o.from, s.Inside)
	}
	if !s.IsRepo {
		if o.fromHead {
			return usererr.New(usererr.Usage, "leave --from-head out", "--from %s is no git repository", o.from)
		}
		// All of a folder comes along, so it must hold nothing that no agent may see.
		for _, x := range []struct{ path, what string }{{string(root), "the root of the missions"}, {m.Credentials, "the login"}} {
			if within(x.path, path) {
				return usererr.New(usererr.Usage, "give the project's own folder", "--from %s holds %s, %s", o.from, x.what, x.path)
			}
		}
		if within(path, root.Home()) {
			return usererr.New(usererr.Usage, "give the result of a mission, or its repo.git", "--from %s holds the data of missions", o.from)
		}
		m.From = &mission.Source{Kind: "folder", Path: path}
		return nil
	}
	if s.Head == "" {
		return usererr.New(usererr.Usage, "commit something first", "--from %s has no commit yet", o.from)
	}
	if s.Shallow {
		return usererr.New(usererr.Usage, "run git fetch --unshallow in it", "--from %s is a shallow clone", o.from)
	}
	m.From = &mission.Source{Kind: "git", Path: path, Commit: s.Head, Branch: s.Branch}
	if left := leftBehind(s); left != "" && !o.fromHead {
		return usererr.New(usererr.Usage, "commit it, or add --from-head to leave it behind", "HEAD of %s does not hold everything: %s", o.from, left)
	}
	return nil
}

// within says whether path is dir or lies below it, symbolic links resolved as far as it exists.
func within(path, dir string) bool {
	rel, err := filepath.Rel(resolved(dir), resolved(path))
	return err == nil && rel != ".." && !strings.HasPrefix(rel, "../")
}

func resolved(path string) string {
	up := existing(path)
	if real, err := filepath.EvalSymlinks(up); err == nil {
		return filepath.Join(real, strings.TrimPrefix(path, up))
	}
	return path
}

// leftBehind lists what a mission would not see.
func leftBehind(s git.Survey) string {
	var out []string
	for _, x := range []struct {
		what string
		list git.List
	}{{"changed", s.Modified}, {"unknown to git", s.Untracked}, {"ignored", s.Ignored}, {"submodules", s.Submodules}, {"in LFS", s.LFS}} {
		if x.list.Count == 0 {
			continue
		}
		names := x.list.Names
		more := ""
		if len(names) > 5 {
			names = names[:5]
		}
		if n := x.list.Count - len(names); n > 0 {
			more = fmt.Sprintf(" and %d more", n)
		}
		out = append(out, fmt.Sprintf("%s: %s%s", x.what, strings.Join(names, ", "), more))
	}
	return strings.Join(out, "; ")
}
