package view

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"strings"
	"time"

	"example.com/AutoAgentProject/core/git"
	"example.com/AutoAgentProject/core/mission"
	"example.com/AutoAgentProject/core/store"
)

// Work is the integrated work of a mission, out of its repository: no clone is ever opened.
type Work struct {
	Commit      string     `json:"commit,omitempty"`
	Commits     []Commit   `json:"commits"`
	MoreCommits bool       `json:"more_commits,omitempty"`
	Changed     []FileStat `json:"changed"` // against what it started from
	Files       []File     `json:"files"`
	MoreFiles   bool       `json:"more_files,omitempty"`
	Patch       Text       `json:"patch"`
}

// Commit is one commit of main.
type Commit struct {
	ID      string    `json:"id"`
	Author  string    `json:"author"`
	At      time.Time `json:"at"`
	Subject string    `json:"subject"`
}

// FileStat counts lines; -1 for a file that is not text.
type FileStat struct {
	Path    string `json:"path"`
	Added   int    `json:"added"`
	Deleted int    `json:"deleted"`
}

// File is one file of the result.
type File struct {
	Path string `json:"path"`
	Size int64  `json:"size"`
	Link bool   `json:"link,omitempty"`
}

// How much of the work is shown.
const (
	shownCommits = 100
	shownFiles   = 500
	shownPatch   = 200 << 10
	keptWorks    = 32
)

// work reads what main holds. It is read once for each commit.
func (r *Reader) work(ctx context.Context, st *store.Store, base string) (Work, error) {
	w := Work{Commits: []Commit{}, Changed: []FileStat{}, Files: []File{}}
	if i, err := os.Lstat(st.Repo()); err != nil || !i.IsDir() {
		return w, nil
	}
	repo := git.Repo{Dir: st.Repo()}
	commit, err := repo.Resolve(ctx, git.Main)
	if errors.Is(err, git.ErrNoCommit) {
		return w, nil
	}
	if err != nil {
		return w, err
	}
	key := st.ID() + " " + commit
	r.mu.Lock()
	kept, ok := r.works[key]
	r.mu.Unlock()
	if ok {
		return kept, nil
	}
	w.Commit = commit
	commits, more, err := repo.Recent(ctx, base, commit, shownCommits)
	if err != nil {
		return w, err
	}
	w.MoreCommits = more
	for _, c := range commits {
		w.Commits = append(w.Commits, Commit{c.ID, c.Author.Name, c.At, c.Subject})
	}
	files, more, err := repo.Files(ctx, commit, shownFiles)
	if err != nil {
		return w, err
	}
	w.MoreFiles = more
	for _, f := range files {
		w.Files = append(w.Files, File{f.Path, f.Size, f.Mode == "120000"})
	}
	stats, err := repo.DiffStat(ctx, base, commit)
	if err != nil {
		return w, err
	}
	for _, s := range stats[:min(len(stats), shownFiles)] {
		w.Changed = append(w.Changed, FileStat(s))
	}
	text, cut, err := repo.Patch(ctx, base, commit, shownPatch)
	if err != nil {
		return w, err
	}
	w.Patch = Text{Text: text, Size: int64(len(text)), Cut: cut}
	clean(&w)
	r.mu.Lock()
	if len(r.works) >= keptWorks {
		clear(r.works)
	}
	if r.works == nil {
		r.works = map[string]Work{}
	}
	r.works[key] = w
	r.mu.Unlock()
	return w, nil
}

// FileOf reads a file of the result, out of the repository: what is a link there is shown as its text and not followed.
func (r *Reader) FileOf(ctx context.Context, id, path string) (Text, error) {
	if mission.CheckID(id) != nil || !fs.ValidPath(path) || strings.ContainsAny(path, "*?[\\\x00\n:") {
		return Text{}, ErrNotFound
	}
	st := r.Root.Mission(id)
	if i, err := os.Lstat(st.Repo()); err != nil || !i.IsDir() {
		return Text{}, ErrNotFound
	}
	b, err := git.Repo{Dir: st.Repo()}.Document(ctx, git.Main, path)
	if errors.Is(err, fs.ErrNotExist) {
		return Text{}, ErrNotFound
	}
	if err != nil {
		return Text{}, err
	}
	t := Text{Size: int64(len(b)), Cut: len(b) > shownPatch}
	t.Text = Shown(string(b[:min(len(b), shownPatch)]))
	return t, nil
}
