package app

import (
	"context"
	"errors"
	"io/fs"
	"strings"

	"example.com/AutoAgentProject/core/files"
	"example.com/AutoAgentProject/core/git"
	"example.com/AutoAgentProject/core/handoff"
	"example.com/AutoAgentProject/core/queue"
	"example.com/AutoAgentProject/core/store"
	"example.com/AutoAgentProject/core/usererr"
)

// documentView is a document for scripts: where it is kept, its header line and its sections.
type documentView struct {
	Ref  string `json:"ref"`
	Path string `json:"path"`
	Head string `json:"head"`
	handoff.Document
	text string
}

// documents are what an agent left of the work that came with a handoff of a mission. No document is no error.
func documents(st *store.Store) func(context.Context, queue.Entry) (*documentView, error) {
	return func(ctx context.Context, e queue.Entry) (*documentView, error) {
		p, err := st.Plan()
		if err != nil {
			return nil, err
		}
		s := p.Step(e.Text.Or("task", ""))
		if s == nil {
			return nil, nil
		}
		for n, h := range s.Handoffs {
			if h.ID == e.Text.Or("id", "") {
				return documentOf(ctx, st, s.ID, n+1)
			}
		}
		return nil, nil
	}
}

// documentOf is the document of a step as it was handed over for that time; nil: there is none.
func documentOf(ctx context.Context, st *store.Store, step string, attempt int) (*documentView, error) {
	v := documentView{Ref: git.DocsRef(st.ID()), Path: handoff.DocumentPath(step, attempt)}
	b, err := git.Repo{Dir: st.Repo()}.Document(ctx, v.Ref, v.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	v.text = string(b)
	v.Head, _, _ = strings.Cut(v.text, "\n")
	v.Document, _ = handoff.ReadDocument(v.text)
	return &v, nil
}

// documentOfRun is the document that a run left; nil: it left none.
func documentOfRun(ctx context.Context, st *store.Store, step, run string) (*documentView, error) {
	p, err := st.Plan()
	if err != nil {
		return nil, err
	}
	if s := p.Step(step); s != nil {
		for n := range s.Handoffs {
			if d, err := documentOf(ctx, st, step, n+1); err != nil || d != nil && strings.Contains(d.Head, " | run: "+run+" | ") {
				return d, err
			}
		}
	}
	return nil, nil
}

// checkDocument judges a document and says all that is wrong with it.
func (c *cli) checkDocument(arg string) error {
	data, err := files.Read(arg, handoff.MaxDocument)
	if errors.Is(err, files.ErrTooBig) {
		err = nil
		data = make([]byte, handoff.MaxDocument+1)
	}
	if err != nil {
		return usererr.Wrap(err, usererr.Failed, "give the path of a plain file", "the document %s cannot be read", arg)
	}
	if _, problems := handoff.CheckDocument(data); problems != nil {
		return c.refuse("DOCUMENT INVALID", arg, problems, "")
	}
	if c.json {
		return c.printJSON(map[string]any{"valid": arg, "type": "document"})
	}
	c.say("DOCUMENT VALID: %s", arg)
	return nil
}
