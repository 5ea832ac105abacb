package telegram

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"example.com/AutoAgentProject/core/files"
	"example.com/AutoAgentProject/core/mission"
	"example.com/AutoAgentProject/core/notify"
	"example.com/AutoAgentProject/core/store"
	"example.com/AutoAgentProject/core/usererr"
)

// Roots are the roots of one user whose missions a channel serves: one poller has the bot, so it serves all of them. Each is
// a file roots/<hash>.json in the channel's folder, put there by whoever starts a mission or a poller.
type Roots struct{ Dir string }

type rootFile struct {
	Version int    `json:"version"`
	Root    string `json:"root"`
}

// Add lets a root be served.
func (r Roots) Add(root store.Root) error {
	dir := filepath.Join(r.Dir, "roots")
	if real, err := filepath.EvalSymlinks(string(root)); err == nil { // under one name only
		root = store.Root(real)
	}
	if err := files.MakeDir(dir, 0o700); err != nil {
		return err
	}
	b, err := json.Marshal(rootFile{stateVersion, string(root)})
	if err != nil {
		return err
	}
	err = files.Publish(filepath.Join(dir, Hash(string(root))+".json"), append(b, '\n'), 0o600)
	if errors.Is(err, files.ErrExists) {
		return nil
	}
	return err
}

// All returns the roots that are served, sorted. What cannot be read, or is gone, is left out.
func (r Roots) All() ([]store.Root, error) {
	entries, err := os.ReadDir(filepath.Join(r.Dir, "roots"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var all []store.Root
	for _, e := range entries {
		var f rootFile
		b, rerr := files.Read(filepath.Join(r.Dir, "roots", e.Name()), 1<<16)
		if rerr != nil || json.Unmarshal(b, &f) != nil || f.Version != stateVersion || !filepath.IsAbs(f.Root) ||
			e.Name() != Hash(f.Root)+".json" || !dirExists(f.Root) {
			continue
		}
		all = append(all, store.Root(f.Root))
	}
	slices.Sort(all)
	return all, err
}

// tags names roots in a word each: the last part of the path, with a piece of a hash where two are alike.
func tags(roots []store.Root) map[store.Root]string {
	count := map[string]int{}
	word := func(r store.Root) string {
		return strings.Map(func(c rune) rune {
			if c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '-' {
				return c
			}
			return '-'
		}, strings.ToLower(filepath.Base(string(r))))
	}
	for _, r := range roots {
		count[word(r)]++
	}
	out := map[store.Root]string{}
	for _, r := range roots {
		if out[r] = word(r); count[out[r]] > 1 {
			out[r] += "-" + Hash(string(r))[:4]
		}
	}
	return out
}

// Outboxes are those of all missions of these roots, and the poller's own. Where two missions have the same id, their
// messages are told apart by their roots.
func Outboxes(roots []store.Root, own ...notify.Outbox) ([]notify.Outbox, error) {
	var errs []error
	tag, count, read := tags(roots), map[string]int{}, 0
	ids := map[store.Root][]string{}
	for _, r := range roots {
		list, err := r.IDs()
		if err != nil { // one root's trouble holds up no other
			errs = append(errs, err)
			continue
		}
		read++
		for _, id := range list {
			count[id]++
		}
		ids[r] = list
	}
	if read == 0 && len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	for _, r := range roots {
		for _, id := range ids[r] {
			o := notify.Outbox{Dir: r.Mission(id).Notify()}
			if count[id] > 1 {
				o.Tag = tag[r]
			}
			own = append(own, o)
		}
	}
	return own, nil
}

// splitTag takes "my-site@work" apart.
func splitTag(s string) (id, tag string, ok bool) {
	id, tag, _ = strings.Cut(s, "@")
	return id, tag, mission.CheckID(id) == nil
}

// where finds the root of the mission that an action names. A button belongs to the mission that asked; of several with the
// same id a text means the one that is live, or the one whose root it names.
func (p *Poller) where(a *Action) error {
	roots, err := p.Roots()
	if err != nil {
		return err
	}
	tag := tags(roots)
	var found, live []store.Root
	for _, r := range roots {
		st := r.Mission(a.Mission)
		if !st.Exists() || a.Tag != "" && a.Tag != tag[r] {
			continue
		}
		if a.Query != "" && answers(a.Verb) {
			if asked, err := st.Approval(a.N); err != nil || asked.Token() != a.Token {
				continue
			}
		}
		found = append(found, r)
		if stop, err := st.Stopped(); err == nil && stop == nil {
			live = append(live, r)
		}
	}
	switch {
	case len(found) == 0 && a.Query != "" && answers(a.Verb):
		return usererr.New(usererr.NotFound, "", "this button belongs to something else than what is asked now; nothing was decided")
	case len(found) == 0:
		return usererr.New(usererr.NotFound, "", "there is no mission %s", a.Name())
	case len(found) == 1:
		a.Root = found[0]
	case len(live) == 1:
		a.Root = live[0]
	default:
		var names []string
		for _, r := range found {
			names = append(names, a.Mission+"@"+tag[r])
		}
		return usererr.New(usererr.Usage, "", "%d missions have this id, name one of them: %s", len(found), strings.Join(names, ", "))
	}
	return nil
}

// Name is the mission as the person wrote it.
func (a Action) Name() string {
	if a.Tag != "" {
		return fmt.Sprintf("%s@%s", a.Mission, a.Tag)
	}
	return a.Mission
}

func dirExists(path string) bool {
	st, err := os.Stat(path)
	return err == nil && st.IsDir()
}
