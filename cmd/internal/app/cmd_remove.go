package app

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"example.com/AutoAgentProject/core/files"
	"example.com/AutoAgentProject/core/git"
	"example.com/AutoAgentProject/core/mission"
	"example.com/AutoAgentProject/core/store"
	"example.com/AutoAgentProject/core/supervisor"
	"example.com/AutoAgentProject/core/systemdengine"
	"example.com/AutoAgentProject/core/tick"
	"example.com/AutoAgentProject/core/units"
	"example.com/AutoAgentProject/core/usererr"
)

// removed is what remove tells.
type removed struct {
	ID   string   `json:"id"`
	Kept string   `json:"kept,omitempty"` // folder with the work that is nowhere else; empty: all of it is
	Why  []string `json:"why,omitempty"`  // what is in it, in sentences
}

func (c *cli) removeCommand() *cobra.Command {
	keepWork := false
	cmd := &cobra.Command{
		Use:   "remove <id>",
		Short: "Remove a mission that has ended, and prove that nothing is left",
		Long: "Remove a mission that has ended: its records, logs and clones. Work that is nowhere else (not delivered, not\n" +
			"integrated, not committed) is moved to a folder that is named, never deleted.",
		Example:           "  AutoAgentProject remove my-site\n  AutoAgentProject remove my-site --keep-work",
		Args:              exactly(1, "the mission's id"),
		ValidArgsFunction: c.completeID,
		RunE: func(cmd *cobra.Command, args []string) error {
			r, err := c.remove(cmd.Context(), args[0], keepWork)
			if err != nil {
				return err
			}
			if c.json {
				return c.printJSON(r)
			}
			c.say("Mission %s is removed: no folder, unit or cgroup of it is left.", r.ID)
			if r.Kept != "" {
				c.say("  %-8s %s (%s)", "kept", r.Kept, strings.Join(r.Why, "; "))
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&keepWork, "keep-work", false, "keep the repository and all clones, also what is elsewhere")
	return cmd
}

// remove takes a mission away. Its records go last, so that a remove that was cut off can be done again.
func (c *cli) remove(ctx context.Context, id string, keepWork bool) (removed, error) {
	r := removed{ID: id}
	root, st, m, err := c.mission(id)
	if err != nil {
		return r, err
	}
	if err := owned(st.Dir()); err != nil {
		return r, err
	}
	stop, err := st.Stopped()
	if err != nil {
		return r, err
	}
	if stop == nil {
		return r, usererr.New(usererr.Conflict, "AutoAgentProject abort "+id+" ends it", "mission %s has not ended", id)
	}
	e, err := c.engineOf(root, m)
	if err != nil {
		return r, err
	}
	bounded, done := context.WithTimeout(ctx, abortWait)
	defer done()
	if _, err := e.Stop(bounded, id); err != nil { // returns only when nothing of it lives and no unit is left
		return r, usererr.Wrap(err, usererr.Failed, "AutoAgentProject status "+id+" shows how far it is", "mission %s is not proven stopped", id)
	}
	var owner supervisor.Owner
	if err := st.Load("supervisor.json", &owner); err != nil && !errors.Is(err, fs.ErrNotExist) {
		owner = supervisor.Owner{}
	}
	if err := c.keep(ctx, root, st, m, keepWork, &r); err != nil {
		return r, err
	}
	tick.Sweep(st.Work())
	tick.Sweep(st.Logs())
	// Under a name that no mission has, a remove that is cut off here leaves only what the next start sweeps.
	away, err := os.MkdirTemp(string(root), ".new-"+id+"-")
	if err != nil {
		return r, err
	}
	defer tick.Sweep(away)
	if err := files.Move(st.Dir(), filepath.Join(away, "data")); err != nil {
		return r, err
	}
	tick.Sweep(away)
	if left := c.left(st, m, owner, away); len(left) > 0 {
		return r, usererr.New(usererr.Failed, "remove it by hand", "of mission %s is left: %s", id, strings.Join(left, ", "))
	}
	return r, nil
}

// left lists what is still there of a mission that was removed.
func (c *cli) left(st *store.Store, m mission.Mission, owner supervisor.Owner, more ...string) []string {
	paths := append([]string{st.Dir(), st.Work(), st.Logs()}, more...)
	switch m.Engine {
	case systemdengine.Name:
		folder, at := systemUnits, ""
		if m.Manager == string(units.User) {
			folder = filepath.Join(c.env.Getenv("HOME"), ".config", "systemd", "user")
			at = fmt.Sprintf("user.slice/user-%d.slice/user@%[1]d.service", os.Geteuid())
		}
		for _, name := range mission.UnitNames(m.ID, m.Roster) {
			paths = append(paths, filepath.Join(folder, name))
		}
		trees, _ := filepath.Glob("/sys/fs/cgroup/*") // with cgroup v1 one each
		for _, tree := range append(trees, "/sys/fs/cgroup") {
			paths = append(paths, filepath.Join(tree, at, "forge.slice/forge-autoagent.slice", mission.Slice(m.ID)),
				filepath.Join(tree, at, "forge.slice/forge-autoagentguard.slice", mission.GuardSlice(m.ID)))
		}
	case supervisor.Name:
		if owner.Group != nil {
			for _, p := range owner.Group.Places {
				paths = append(paths, p.Path)
			}
		}
	}
	var left []string
	for _, p := range paths {
		if _, err := os.Lstat(p); err == nil || !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR) {
			left = append(left, p)
		}
	}
	return left
}

// keep moves the work that is nowhere else to a folder of its own.
func (c *cli) keep(ctx context.Context, root store.Root, st *store.Store, m mission.Mission, all bool, r *removed) error {
	parts := map[string]string{} // folder to why
	if _, err := os.Lstat(st.Work()); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	main, why := "", ""
	if _, err := os.Lstat(st.Repo()); err == nil {
		if main, why = unsavedRepo(ctx, git.Repo{Dir: st.Repo()}, m); all && why == "" {
			why = "the repository"
		}
		if why != "" {
			parts[st.Repo()] = why
		}
	}
	for _, a := range m.Roster {
		dir := st.Clone(a.Name)
		if _, err := os.Lstat(dir); errors.Is(err, fs.ErrNotExist) {
			continue
		}
		why := unsavedClone(ctx, st, m, a, main)
		if all && why == "" {
			why = "the clone of " + a.Name
		}
		if why != "" {
			parts[dir] = why
		}
	}
	set, _ := filepath.Glob(filepath.Join(st.Work(), ".kept-*")) // clones that could not be used any more
	for _, dir := range set {
		parts[dir] = "a clone that was set aside"
	}
	if len(parts) == 0 {
		return nil
	}
	kept := filepath.Join(root.Missions(), ".kept", m.ID+"-"+time.Now().UTC().Format("20060102T150405Z"))
	if err := os.MkdirAll(filepath.Dir(kept), 0o700); err != nil {
		return err
	}
	if err := os.Mkdir(kept, 0o700); err != nil {
		return err
	}
	for dir, why := range parts {
		if err := files.Move(dir, filepath.Join(kept, filepath.Base(dir))); err != nil {
			return usererr.Wrap(err, usererr.Failed, "", "the work of %s cannot be moved to %s, nothing was removed", m.ID, kept)
		}
		r.Why = append(r.Why, why)
	}
	r.Kept = kept
	return nil
}

// unsavedRepo says what a repository holds that is nowhere else; empty: nothing. What cannot be found out counts as held.
func unsavedRepo(ctx context.Context, repo git.Repo, m mission.Mission) (main, why string) {
	main, err := repo.Resolve(ctx, "refs/heads/main")
	if err != nil {
		return "", "a repository that cannot be read"
	}
	if unmerged, err := repo.Unmerged(ctx, main); err != nil || unmerged {
		return main, "work that was not integrated"
	}
	if main == m.Base {
		return main, ""
	}
	if m.From != nil && m.From.Kind == "git" {
		if held, err := git.Holds(ctx, m.From.Path, main); err == nil && held {
			return main, ""
		}
	}
	return main, "work that was not delivered"
}

// mostRefs is how many refs of a clone are looked at, one by one.
const mostRefs = 500

// unsavedClone says what an agent's clone holds that main does not; empty: nothing. git runs there behind the walls.
func unsavedClone(ctx context.Context, st *store.Store, m mission.Mission, a mission.Agent, main string) string {
	t, err := newTick(st, m, a, discard())
	if err != nil || main == "" {
		return "the clone of " + a.Name
	}
	clone, err := t.Clone()
	if err != nil {
		return "the clone of " + a.Name + ", which cannot be read"
	}
	if dirty, _, err := clone.Status(ctx); err != nil || dirty {
		return "files of " + a.Name + " that were not committed"
	}
	var refs strings.Builder
	out, err := clone.Exec(ctx, git.Command{Dir: clone.Dir, Stdout: &refs, Env: []string{"GIT_CONFIG_NOSYSTEM=1"},
		Argv: []string{"git", "-c", "core.fsmonitor=false", "for-each-ref", fmt.Sprintf("--count=%d", mostRefs), "--format=%(objectname)"}})
	commits := strings.Fields(refs.String())
	if err != nil || out.Exit != 0 || len(commits) >= mostRefs {
		return "the clone of " + a.Name + ", whose branches cannot be read"
	}
	repo := git.Repo{Dir: st.Repo()}
	for _, commit := range commits {
		if held, err := repo.IsAncestor(ctx, commit, main); err != nil || !held {
			return "commits of " + a.Name + " that were not integrated"
		}
	}
	return ""
}
