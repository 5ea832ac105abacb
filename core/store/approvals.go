package store

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"example.com/AutoAgentProject/core/files"
	"example.com/AutoAgentProject/core/mission"
	"example.com/AutoAgentProject/core/usererr"
)

// Asked is an approval with its answer, nil while it is open.
type Asked struct {
	mission.Approval
	Decision *mission.Decision `json:"decision"`
}

// Open says whether an answer still counts at now.
func (a Asked) Open(now time.Time) bool { return a.Decision == nil && now.Before(a.Expires) }

func approvalName(n int) string { return filepath.Join("approvals", fmt.Sprintf("%04d.json", n)) }
func decisionName(n int) string {
	return filepath.Join("approvals", fmt.Sprintf("%04d.decision.json", n))
}

// Ask opens an approval and returns it. Whoever asks for the same content again while nobody has answered gets the
// approval that is there; answered ones are opened anew. An open one of the same name about another content is replaced.
func (s *Store) Ask(ctx context.Context, a mission.Approval, now time.Time) (asked Asked, fresh bool, err error) {
	unlock, err := s.lock(ctx)
	if err != nil {
		return asked, false, err
	}
	defer unlock()
	all, err := s.Approvals()
	if err != nil {
		return asked, false, err
	}
	a.N = 1
	for _, old := range all {
		a.N = max(a.N, old.N+1)
		switch {
		case old.Kind != a.Kind || old.Name != a.Name || !old.Open(now):
		case old.Subject == a.Subject:
			return old, false, nil
		case a.Name != "":
			if _, _, err := s.Decide(old.N, mission.Decision{Verdict: mission.Replaced, Key: "replaced"}, now); err != nil {
				return asked, false, err
			}
		}
	}
	a.Version, a.At, a.Nonce = mission.Version, now.UTC(), rand.Text()
	if a.Expires.IsZero() {
		a.Expires = a.At.Add(mission.ApprovalWait)
	}
	b, err := encode(a)
	if err != nil {
		return asked, false, err
	}
	if err := files.MakeDir(s.file("approvals"), 0o700); err != nil {
		return asked, false, err
	}
	return Asked{Approval: a}, true, files.Publish(s.file(approvalName(a.N)), b, 0o600)
}

// Approvals returns all approvals of the mission in the order in which they were asked for.
func (s *Store) Approvals() ([]Asked, error) {
	entries, err := os.ReadDir(s.file("approvals"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var all []Asked
	for _, e := range entries {
		name, ok := strings.CutSuffix(e.Name(), ".json")
		n, err := strconv.Atoi(name)
		if !ok || err != nil || n < 1 || filepath.Base(approvalName(n)) != e.Name() {
			continue
		}
		a, err := s.Approval(n)
		if err != nil {
			return nil, err
		}
		all = append(all, a)
	}
	slices.SortFunc(all, func(x, y Asked) int { return x.N - y.N })
	return all, nil
}

// Approval reads one approval and its answer.
func (s *Store) Approval(n int) (Asked, error) {
	var a Asked
	err := s.load(approvalName(n), &a.Approval)
	if errors.Is(err, fs.ErrNotExist) {
		return a, usererr.New(usererr.NotFound, "AutoAgentProject approvals "+s.id+" shows them", "mission %s has no approval %d", s.id, n)
	}
	if err == nil && a.N != n {
		return a, unreadable(s.file(approvalName(n)), fmt.Errorf("it is number %d", a.N))
	}
	if err != nil {
		return a, err
	}
	var d mission.Decision
	err = s.load(decisionName(n), &d)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return a, nil
	case err != nil:
		return a, err
	case d.N != n || d.Subject != a.Subject || !slices.Contains([]mission.Verdict{mission.Approved, mission.Rejected, mission.Skipped, mission.Expired, mission.Replaced}, d.Verdict) || d.Verdict == mission.Skipped && !a.MaySkip:
		return a, unreadable(s.file(decisionName(n)), errors.New("it answers something else"))
	}
	a.Decision = &d
	return a, nil
}

// Decide answers an approval. The first answer wins, whoever gives it: mine is false if it was answered before, and the
// answer in force is returned. The same answer given again (by its key) is mine once more. An answer that comes too
// late is taken as none.
func (s *Store) Decide(n int, d mission.Decision, now time.Time) (asked Asked, mine bool, err error) {
	if asked, err = s.Approval(n); err != nil {
		return asked, false, err
	}
	key := d.Key
	if d.Verdict == mission.Skipped && !asked.MaySkip {
		return asked, false, usererr.New(usererr.Conflict, "approve it or reject it", "approval %d of %s cannot be skipped", n, s.id)
	}
	if asked.Decision == nil {
		if !now.Before(asked.Expires) && d.Verdict != mission.Expired {
			d = mission.Decision{Verdict: mission.Expired, Key: "expired"}
		}
		d.Version, d.N, d.Subject, d.At = mission.Version, n, asked.Subject, now.UTC()
		b, err := encode(d)
		if err != nil {
			return asked, false, err
		}
		err = files.Publish(s.file(decisionName(n)), b, 0o600)
		if err != nil && !errors.Is(err, files.ErrExists) {
			return asked, false, err
		}
		if asked, err = s.Approval(n); err != nil {
			return asked, false, err
		}
		return asked, asked.Decision != nil && asked.Decision.Key == key, nil
	}
	return asked, d.Key != "" && asked.Decision.Key == d.Key, nil
}

// Expire answers what nobody answered in time.
func (s *Store) Expire(now time.Time) error {
	all, err := s.Approvals()
	for _, a := range all {
		if a.Decision == nil && !a.Open(now) {
			if _, _, derr := s.Decide(a.N, mission.Decision{Verdict: mission.Expired, Key: "expired"}, now); derr != nil {
				err = errors.Join(err, derr)
			}
		}
	}
	return err
}

// Note is one thing that a person told the manager.
type Note struct {
	Version int       `json:"version"`
	Key     string    `json:"key"`
	At      time.Time `json:"at"`
	By      string    `json:"by"`
	Text    string    `json:"text"`
}

// MaxNote is the longest note, in bytes.
const MaxNote = 8000

// AddNote keeps a note for the manager. The same one (by its key) is kept once.
func (s *Store) AddNote(n Note) (fresh bool, err error) {
	n.Version, n.At = mission.Version, n.At.UTC()
	n.Text = strings.TrimSpace(strings.ToValidUTF8(n.Text, "\uFFFD"))
	if n.Text == "" {
		return false, usererr.New(usererr.Usage, "say something", "the note is empty")
	}
	if len(n.Text) > MaxNote {
		return false, usererr.New(usererr.Usage, "put what is longer into a file of the work", "the note has %d bytes, at most %d are possible", len(n.Text), MaxNote)
	}
	b, err := encode(n)
	if err != nil {
		return false, err
	}
	if err := files.MakeDir(s.file("notes"), 0o700); err != nil {
		return false, err
	}
	name := n.Key
	if name == "" || strings.ContainsAny(name, "/\x00") || name[0] == '.' {
		return false, fmt.Errorf("%q cannot be a note's key", name)
	}
	err = files.Publish(filepath.Join(s.file("notes"), name+".json"), b, 0o600)
	if errors.Is(err, files.ErrExists) {
		return false, nil
	}
	return err == nil, err
}

// Notes returns what people told the manager, oldest first.
func (s *Store) Notes() ([]Note, error) {
	entries, err := os.ReadDir(s.file("notes"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var all []Note
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".json") || e.Name()[0] == '.' {
			continue
		}
		var n Note
		if err := s.load(filepath.Join("notes", e.Name()), &n); err != nil {
			return nil, err
		}
		all = append(all, n)
	}
	slices.SortStableFunc(all, func(x, y Note) int { return x.At.Compare(y.At) })
	return all, err
}
