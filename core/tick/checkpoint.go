package tick

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"example.com/AutoAgentProject/core/git"
	"example.com/AutoAgentProject/core/mission"
	"example.com/AutoAgentProject/core/plan"
	"example.com/AutoAgentProject/core/store"
)

// Checkpoint is checkpoints/<n>.json: the mission as it was when a handoff had been accepted. Commit and Docs are kept by refs, so
// that nothing of it is ever swept.
type Checkpoint struct {
	Version  int               `json:"version"`
	N        int               `json:"n"`
	At       time.Time         `json:"at"`
	Step     string            `json:"step"`
	Title    string            `json:"title"`
	Agent    string            `json:"agent"`
	Commit   string            `json:"commit"`          // of the integrated work
	Tree     string            `json:"tree"`            // hash over all its files
	Docs     string            `json:"docs,omitempty"`  // of documents and specifications; empty: there were none
	Document string            `json:"document"`        // path of the step's document in Docs
	Specs    map[string]string `json:"specs,omitempty"` // name to SHA-256
	Nano     int64             `json:"nano_usd"`        // spent by all runs so far
	Tokens   int64             `json:"tokens"`
	Plan     plan.Plan         `json:"plan"`
}

// CheckpointName is where a checkpoint lies in the mission's store.
func CheckpointName(n int) string { return filepath.Join("checkpoints", fmt.Sprintf("%d.json", n)) }

// CheckpointRef keeps a checkpoint's commit, with kind "docs" that of its documents.
func CheckpointRef(id, kind string, n int) string {
	if kind == "docs" {
		return git.CheckpointDocsRef(id, strconv.Itoa(n))
	}
	return fmt.Sprintf("refs/autoagent/%s/checkpoints/%s/%d", id, kind, n)
}

// KeepCheckpoint writes the checkpoint of a step that is done now in a plan that is about to be written, and counts it there. A tick
// that dies in between leaves one that the plan does not count; it is written again.
func (t *Tick) KeepCheckpoint(ctx context.Context, p *plan.Plan, step, document string) error {
	s := p.Step(step)
	if s == nil || s.State != plan.Done || s.Checkpoint > 0 {
		return nil
	}
	n := p.Checkpoints + 1
	c := Checkpoint{Version: mission.Version, N: n, At: t.Now().UTC(), Step: s.ID, Title: s.Title, Agent: s.Agent, Commit: s.Merge, Document: document, Specs: map[string]string{}}
	repo := t.Repo()
	var err error
	if c.Tree, err = repo.Tree(ctx, c.Commit); err != nil {
		return fmt.Errorf("checkpoint %d: %w", n, err)
	}
	c.Docs, err = repo.Resolve(ctx, git.DocsRef(t.Mission.ID))
	if err != nil && !errors.Is(err, git.ErrNoCommit) {
		return fmt.Errorf("checkpoint %d: %w", n, err)
	}
	for name, kept := range p.Specs {
		data, err := repo.Document(ctx, c.Docs, kept)
		if err != nil {
			return fmt.Errorf("checkpoint %d: the specification %s: %w", n, name, err)
		}
		sum := sha256.Sum256(data)
		c.Specs[name] = hex.EncodeToString(sum[:])
	}
	if book, err := t.ledger.Read(); err == nil {
		c.Nano, c.Tokens = int64(book.Nano), book.Tokens
	}
	for kind, commit := range map[string]string{"work": c.Commit, "docs": c.Docs} {
		if commit == "" {
			continue
		}
		if err := Point(ctx, repo, CheckpointRef(t.Mission.ID, kind, n), commit); err != nil {
			return fmt.Errorf("checkpoint %d: %w", n, err)
		}
	}
	if err := os.MkdirAll(filepath.Join(t.Store.Dir(), "checkpoints"), 0o700); err != nil {
		return err
	}
	p.Checkpoints, s.Checkpoint = n, n
	c.Plan = *p
	return t.Store.Save(CheckpointName(n), c)
}

// Point lets a ref of ours hold a commit, whatever it held.
func Point(ctx context.Context, repo git.Repo, ref, commit string) error {
	old, err := repo.Resolve(ctx, ref)
	if err != nil && !errors.Is(err, git.ErrNoCommit) {
		return err
	}
	return repo.CompareAndSwap(ctx, ref, commit, old)
}

// Checkpoints are those that the plan counts, oldest first.
func Checkpoints(st *store.Store) ([]Checkpoint, error) {
	p, err := st.Plan()
	if err != nil {
		return nil, err
	}
	var out []Checkpoint
	for n := 1; n <= p.Checkpoints; n++ {
		var c Checkpoint
		err := st.Load(CheckpointName(n), &c)
		if errors.Is(err, fs.ErrNotExist) {
			continue // of before there were any, or taken away by a person
		}
		if err != nil {
			return nil, err
		}
		out = append(out, c)
	}
	return out, nil
}
