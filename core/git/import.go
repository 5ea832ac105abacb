package git

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"example.com/AutoAgentProject/core/usererr"
)

// imported is the ref under which a folder's import is built; it stays as the record of what the mission began with.
const imported = "refs/autoagent-import"

// ImportFolder makes one commit of all files of a plain folder and lets main begin with it: ignored ones too, without
// anything called .git, contents byte for byte. The folder is only read. Importing the same again changes nothing.
func (r Repo) ImportFolder(ctx context.Context, folder string) (commit string, err error) {
	held, err := hold(ctx, r.Dir)
	if err != nil {
		return "", fmt.Errorf("import %s: %w", folder, err)
	}
	defer held.Close()
	if folder, err = filepath.Abs(folder); err == nil {
		folder, err = filepath.EvalSymlinks(folder)
	}
	if err != nil {
		return "", usererr.Wrap(err, usererr.Usage, "", "the folder to start from cannot be read")
	}
	if own, err := filepath.EvalSymlinks(r.Dir); err != nil || within(own, folder) {
		return "", usererr.Wrap(err, usererr.Usage, "choose a folder without it, or another --root", "%s holds this mission's own data", folder)
	}
	if err := r.openRef(ctx, imported); err != nil {
		return "", err
	}
	// A stream that stops short, because we were killed, must be no commit: hence --done.
	c := r.call("fast-import", "--quiet", "--done", "--force")
	pipe, in := io.Pipe()
	c.stdin, c.held = pipe, held
	wrote := make(chan error, 1)
	go func() {
		w := bufio.NewWriterSize(in, 1<<16)
		err := writeFolder(ctx, w, folder, time.Now())
		if err == nil {
			err = w.Flush()
		}
		in.CloseWithError(err)
		wrote <- err
	}()
	_, err = c.run(ctx)
	pipe.CloseWithError(errors.New("git ended"))
	if werr := <-wrote; werr != nil && (err == nil || usererr.CodeOf(werr) != usererr.Failed) {
		err = werr
	}
	if err != nil {
		return "", fmt.Errorf("import %s: %w", folder, err)
	}
	if commit, err = r.Resolve(ctx, imported); err != nil {
		return "", err
	}
	return r.begin(ctx, held, commit)
}

// begin makes main point at the commit that a mission begins with, unless it holds the same files already.
func (r Repo) begin(ctx context.Context, held *os.File, commit string) (string, error) {
	main, err := r.Resolve(ctx, Main)
	if errors.Is(err, ErrNoCommit) {
		return commit, r.swap(ctx, held, Main, commit, "")
	}
	if err != nil {
		return "", err
	}
	is, err := r.Tree(ctx, main)
	if err != nil {
		return "", err
	}
	wanted, err := r.Tree(ctx, commit)
	if err != nil {
		return "", err
	}
	if is != wanted {
		return "", usererr.New(usererr.Conflict, "start another mission", "the mission's repository holds other work already")
	}
	return main, nil
}

// within says whether path is dir or below it. Both are clean and absolute.
func within(path, dir string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && rel != ".." && !strings.HasPrefix(rel, "../")
}

// writeFolder writes a folder as a stream for git fast-import.
func writeFolder(ctx context.Context, w *bufio.Writer, folder string, at time.Time) error {
	who, message := ourselves(), "Import.\n"
	fmt.Fprintf(w, "commit %s\ncommitter %s <%s> %d +0000\ndata %d\n%s\n", imported, who.Name, who.Email, at.Unix(), len(message), message)
	err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return unreadable(err)
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if path == folder {
			if !d.IsDir() {
				return usererr.New(usererr.Usage, "", "%s is no folder", folder)
			}
			return nil
		}
		rel, err := filepath.Rel(folder, path)
		if err != nil {
			return err
		}
		switch skip, ok := reserved(d.Name()); {
		case !ok:
			return usererr.New(usererr.Usage, "rename it", "git cannot hold a file of the name %q", rel)
		case skip && d.IsDir():
			return fs.SkipDir
		case skip || d.IsDir():
			return nil
		case d.Type() == fs.ModeSymlink:
			to, err := os.Readlink(path)
			if err != nil {
				return unreadable(err)
			}
			_, err = fmt.Fprintf(w, "M 120000 inline %s\ndata %d\n%s\n", quoted(rel), len(to), to)
			return err
		case d.Type().IsRegular():
			return writeFile(w, path, rel)
		}
		return nil // a socket, FIFO or device is nothing a commit could hold
	})
	if err != nil {
		return err
	}
	_, err = io.WriteString(w, "done\n")
	return err
}

func writeFile(w *bufio.Writer, path, rel string) error {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return unreadable(err)
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return unreadable(err)
	}
	mode := "100644"
	if st.Mode()&0o100 != 0 {
		mode = "100755"
	}
	fmt.Fprintf(w, "M %s inline %s\ndata %d\n", mode, quoted(rel), st.Size())
	switch _, err := io.CopyN(w, f, st.Size()); {
	case errors.Is(err, io.EOF):
		return usererr.New(usererr.Failed, "start again when nobody writes there", "%s changed while it was read", path)
	case err != nil:
		return err
	}
	return w.WriteByte('\n')
}

func unreadable(err error) error {
	return usererr.Wrap(err, usererr.Environment, "make it readable or move it away", "the folder to start from cannot be read in full")
}

// reserved tells the names that git keeps for itself: .git is left out, its disguises on other systems cannot be held.
func reserved(name string) (skip, ok bool) {
	if strings.EqualFold(name, ".git") {
		return true, true
	}
	base, _, _ := strings.Cut(name, ":")
	base = strings.TrimRight(base, " .")
	return false, !strings.EqualFold(base, ".git") && !strings.EqualFold(base, "git~1")
}

// quoted is a path as git fast-import reads any path.
func quoted(path string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(path) + `"`
}
