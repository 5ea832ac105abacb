package app

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"example.com/AutoAgentProject/core/git"
	"example.com/AutoAgentProject/core/store"
	"example.com/AutoAgentProject/core/tick"
	"example.com/AutoAgentProject/core/usererr"
	"example.com/AutoAgentProject/core/view"
)

// leftOver is how old something must be that no live process can still be at.
const leftOver = 24 * time.Hour

// garbage is one thing that can be freed.
type garbage struct {
	Mission string `json:"mission,omitempty"`
	Path    string `json:"path"`
	Why     string `json:"why"`
	Bytes   int64  `json:"bytes"` // that it takes; of a repository: of its objects, of which a part is freed

	pack bool
}

func (c *cli) gcCommand() *cobra.Command {
	yes, transcripts := false, false
	cmd := &cobra.Command{
		Use:   "gc [<id>]",
		Short: "Say what can be freed, and free it",
		Long: "Say what takes room and is of no use any more, of one mission or of all: what starts, runs and writes left behind that\n" +
			"were cut off, clones that were set aside in missions that have ended, loose objects of repositories; with --transcripts\n" +
			"also what the agents of ended missions said. With --yes it is freed. Records, work and money are never touched.",
		Example: "  AutoAgentProject gc\n  AutoAgentProject gc my-site --transcripts --yes",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 {
				return usererr.New(usererr.Usage, "see AutoAgentProject gc --help", "gc takes one id at most")
			}
			return nil
		},
		ValidArgsFunction: c.completeID,
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			root, err := c.store()
			if err != nil {
				return err
			}
			var ids []string
			if len(args) == 1 {
				_, st, _, err := c.mission(args[0])
				if err != nil {
					return err
				}
				ids = []string{st.ID()}
			} else if ids, err = root.IDs(); err != nil {
				return usererr.Wrap(err, usererr.Environment, unlistable, "the missions cannot be listed")
			}
			var found []garbage
			if len(args) == 0 {
				found = leftStarts(ctx, root, time.Now())
			}
			for _, id := range ids {
				v, err := c.view(ctx, root, root.Mission(id))
				if err != nil {
					continue // one that cannot be read is left as it is
				}
				found = append(found, garbageOf(ctx, root.Mission(id), isOver(v), transcripts, time.Now())...)
			}
			return c.collect(ctx, root, found, yes)
		},
	}
	cmd.Flags().BoolVar(&yes, "yes", false, "free it")
	cmd.Flags().BoolVar(&transcripts, "transcripts", false, "also what the agents of ended missions said")
	return cmd
}

// leftStarts are the folders of starts and removes that were cut off.
func leftStarts(ctx context.Context, root store.Root, now time.Time) (out []garbage) {
	dirs, _ := filepath.Glob(filepath.Join(string(root), ".new-*"))
	for _, dir := range dirs {
		if old(dir, now) {
			out = append(out, garbage{Path: dir, Why: "a start or a remove that was cut off", Bytes: view.Size(ctx, dir)})
		}
	}
	return out
}

// garbageOf is what of a mission can be freed. over says that it has ended and nothing of it lives.
func garbageOf(ctx context.Context, st *store.Store, over, transcripts bool, now time.Time) (out []garbage) {
	add := func(why string, paths ...string) {
		for _, p := range paths {
			out = append(out, garbage{Mission: st.ID(), Path: p, Why: why, Bytes: view.Size(ctx, p)})
		}
	}
	_ = filepath.WalkDir(st.Dir(), func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() && temporary(d.Name()) && old(path, now) {
			add("a write that was cut off", path)
		}
		return nil
	})
	if over {
		cells, _ := filepath.Glob(filepath.Join(st.Work(), ".cells", "*"))
		add("what runs left behind", cells...)
		kept, _ := filepath.Glob(filepath.Join(st.Work(), ".kept-*"))
		add("a clone that was set aside because it could not be used", kept...)
		shown, _ := os.Readlink(st.Result())
		results, _ := filepath.Glob(filepath.Join(st.Work(), ".result-*"))
		add("a result that was replaced", slices.DeleteFunc(results, func(p string) bool { return filepath.Base(p) == filepath.Base(shown) })...)
		if transcripts {
			streams, _ := filepath.Glob(filepath.Join(st.Dir(), "agents", "*", "runs", "*", "stream.jsonl"))
			add("what an agent said in a run", streams...)
		}
	}
	objects := filepath.Join(st.Repo(), "objects")
	if loose := looseObjects(objects); loose >= minLoose {
		out = append(out, garbage{Mission: st.ID(), Path: st.Repo(), Why: fmt.Sprintf("%d loose objects can be packed", loose), Bytes: view.Size(ctx, objects), pack: true})
	}
	return out
}

// minLoose is from how many loose objects on packing is worth the while.
const minLoose = 200

func looseObjects(dir string) (n int) {
	files, _ := filepath.Glob(filepath.Join(dir, "[0-9a-f][0-9a-f]", "*"))
	return len(files)
}

// temporary says whether a name is one under which a file is written before it gets its own: .tmp-<digits>, .<name><digits>.
func temporary(name string) bool {
	rest, ok := strings.CutPrefix(name, ".")
	return ok && len(rest) > 6 && strings.Trim(rest[len(rest)-6:], "0123456789") == ""
}

func old(path string, now time.Time) bool {
	fi, err := os.Lstat(path)
	return err == nil && now.Sub(fi.ModTime()) > leftOver
}

// collect tells what there is and frees it, if that is wanted.
func (c *cli) collect(ctx context.Context, root store.Root, found []garbage, yes bool) error {
	var sum, freed int64
	var errs []error
	for _, g := range found {
		if !g.pack {
			sum += g.Bytes
		}
		if !c.json {
			c.say("%8s  %s (%s)", shortBytes(g.Bytes), g.Path, g.Why)
		}
		if !yes {
			continue
		}
		if err := owned(filepath.Dir(g.Path)); err != nil {
			errs = append(errs, err)
			continue
		}
		switch {
		case g.pack:
			if err := (git.Repo{Dir: g.Path}).Pack(ctx); err != nil {
				errs = append(errs, err)
			}
			freed += max(g.Bytes-view.Size(ctx, filepath.Join(g.Path, "objects")), 0)
		default:
			tick.Sweep(g.Path)
			if _, err := os.Lstat(g.Path); err == nil || !errors.Is(err, fs.ErrNotExist) {
				errs = append(errs, usererr.New(usererr.Failed, "remove it by hand", "%s could not be removed", g.Path))
				continue
			}
			freed += g.Bytes
		}
	}
	switch {
	case c.json:
		if found == nil {
			found = []garbage{}
		}
		return errors.Join(append(errs, c.printJSON(map[string]any{"found": found, "bytes": sum, "freed": freed, "done": yes}))...)
	case len(found) == 0:
		c.say("nothing below %s is to be freed", root)
	case yes:
		c.say("%s were freed", shortBytes(freed))
	default:
		c.say("%s can be freed, and what packing saves: AutoAgentProject gc --yes does it", shortBytes(sum))
	}
	return errors.Join(errs...)
}

// shortBytes is a size for people.
func shortBytes(n int64) string {
	switch {
	case n >= 10<<30:
		return fmt.Sprintf("%d GB", n>>30)
	case n >= 10<<20:
		return fmt.Sprintf("%d MB", n>>20)
	case n >= 10<<10:
		return fmt.Sprintf("%d kB", n>>10)
	}
	return fmt.Sprintf("%d B", n)
}
