package git

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
)

// maxNames is how many names a List carries at most.
const maxNames = 20

// List is a number of paths and the first of them.
type List struct {
	Count int
	Names []string
}

func (l *List) add(name string) {
	l.Count++
	if len(l.Names) < maxNames {
		l.Names = append(l.Names, name)
	}
}

// Survey is what a person should know before work begins from their repository: only what HEAD holds comes along.
type Survey struct {
	IsRepo     bool   // the folder itself is a git repository
	Inside     string // it is none, but lies in the repository with this top
	Head       string // commit; empty if there is none yet
	Branch     string // current branch; empty if HEAD is detached
	Bare       bool
	Shallow    bool
	Modified   List // tracked files that differ from HEAD
	Untracked  List // files and folders ("name/") that git does not know
	Ignored    List // files and folders that git ignores
	Submodules List // repositories inside: only their place comes along
	LFS        List // files whose content is elsewhere: only pointers come along
}

// Look surveys a folder. It changes nothing there. That the folder is no repository is an answer, not an error.
func Look(ctx context.Context, path string) (Survey, error) {
	p, err := openPerson(ctx, path)
	if err != nil || p == nil {
		return Survey{}, err
	}
	s := Survey{IsRepo: p.Inside == "", Inside: p.Inside, Head: p.Head, Branch: p.Branch, Bare: p.Bare, Shallow: p.Shallow}
	if !s.IsRepo {
		return s, nil
	}
	if !p.Bare {
		out, err := p.git(ctx, "status", "--porcelain=v1", "-z", "--no-renames", "--untracked-files=normal", "--ignored=traditional", "--ignore-submodules=all")
		if err != nil {
			return s, err
		}
		for _, entry := range fields(out) {
			if len(entry) < 4 {
				continue
			}
			switch name := entry[3:]; entry[:2] {
			case "??":
				s.Untracked.add(name)
			case "!!":
				s.Ignored.add(name)
			default:
				s.Modified.add(name)
			}
		}
	}
	if p.Head == "" {
		return s, nil
	}
	return s, p.elsewhere(ctx, &s)
}

// elsewhere lists what HEAD only points to: submodules and files under git LFS. It reads a temporary index, so that the
// answer is about HEAD and the person's own index stays untouched.
func (p *person) elsewhere(ctx context.Context, s *Survey) error {
	scratch, err := newScratch(os.TempDir())
	if err != nil {
		return err
	}
	defer scratch.remove()
	indexed := func(args ...string) call {
		c := p.call(args...)
		c.env = append(c.env, "GIT_INDEX_FILE="+filepath.Join(scratch.dir, "index"))
		c.held = scratch.held
		return c
	}
	if _, err := indexed("read-tree", "HEAD").run(ctx); err != nil {
		return err
	}
	out, err := indexed("ls-files", "--stage", "-z").run(ctx)
	if err != nil {
		return err
	}
	var names bytes.Buffer
	for _, line := range fields(out) {
		facts, name, _ := strings.Cut(line, "\t")
		if strings.HasPrefix(facts, "160000 ") {
			s.Submodules.add(name)
			continue
		}
		names.WriteString(name + "\x00")
	}
	c := indexed("check-attr", "--cached", "--stdin", "-z", "filter")
	c.stdin = &names
	if out, err = c.run(ctx); err != nil {
		return err
	}
	for f := fields(out); len(f) >= 3; f = f[3:] {
		if f[2] == "lfs" {
			s.LFS.add(f[0])
		}
	}
	return nil
}
