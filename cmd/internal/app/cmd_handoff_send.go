package app

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"example.com/AutoAgentProject/core/files"
	"example.com/AutoAgentProject/core/handoff"
	"example.com/AutoAgentProject/core/usererr"
)

func (c *cli) handoffSend(f *handoffFlags) *cobra.Command {
	notes := false
	cmd := &cobra.Command{
		Use:   "send <draft>",
		Short: "Send what a draft says",
		Long: "Send what a draft says, if the gate has nothing against it; else everything that is wrong is said at once. The draft is\n" +
			"removed when the handoff is durable. The same draft again, after a death in the middle, sends nothing twice.",
		Example: "  AutoAgentProject handoff send tmp/draft --layout swarmforge",
		RunE: func(cmd *cobra.Command, args []string) error {
			now := time.Now()
			p, m, draft, unlock, err := c.gate(cmd.Context(), f, args[0], notes)
			if err != nil {
				return environment(err)
			}
			defer unlock()
			if m.Type == handoff.GitHandoff {
				if err := p.tree.publish(cmd.Context(), m.Commit, m.Task); err != nil {
					return environment(err)
				}
			}
			path, err := p.queue.Submit(cmd.Context(), p.role, draft, func(seq int) (string, handoff.Envelope) { return m.Envelope(seq, now) })
			if err != nil {
				return environment(err)
			}
			if c.json {
				err = c.printJSON(map[string]string{"queued": path})
			} else {
				_, err = fmt.Fprintf(c.env.Stdout, "HANDOFF QUEUED: %s\n", path)
			}
			p.reconcile(now)
			return err
		},
	}
	cmd.Flags().BoolVar(&notes, "allow-notes", false, "this agent may write notes")
	cmd.Flags().BoolVar(&f.strict, "strict", false, "with --layout swarmforge: check the tree too, as in a mission")
	return protocol(cmd, count(1))
}

func (c *cli) handoffCheck(f *handoffFlags) *cobra.Command {
	notes := false
	cmd := &cobra.Command{
		Use:   "check <draft>",
		Short: "Check a draft and send nothing",
		Long: "Check a draft as send does and change nothing. Everything that is wrong is said at once. A file that ends with .md is a\n" +
			"document and judged as such; that needs no mission.",
		Example: "  AutoAgentProject handoff check tmp/draft --layout swarmforge\n  AutoAgentProject handoff check .autoagent/handoff.md",
		RunE: func(cmd *cobra.Command, args []string) error {
			if strings.HasSuffix(args[0], ".md") {
				return c.checkDocument(args[0])
			}
			_, m, _, unlock, err := c.gate(cmd.Context(), f, args[0], notes)
			if err != nil {
				return environment(err)
			}
			unlock()
			if c.json {
				return c.printJSON(map[string]any{"valid": args[0], "type": m.Type, "to": m.To})
			}
			c.say("HANDOFF VALID: %s", args[0])
			return nil
		},
	}
	cmd.Flags().BoolVar(&notes, "allow-notes", false, "this agent may write notes")
	cmd.Flags().BoolVar(&f.strict, "strict", false, "with --layout swarmforge: check the tree too, as in a mission")
	return protocol(cmd, count(1))
}

// gate reads a draft and judges it. unlock is to be called when its tree is not looked at any more.
func (c *cli) gate(ctx context.Context, f *handoffFlags, arg string, notes bool) (p *place, m handoff.Message, draft string, unlock func(), err error) {
	draft, err = filepath.Abs(arg)
	if err == nil {
		var st os.FileInfo
		if st, err = os.Lstat(draft); err == nil && !st.Mode().IsRegular() {
			err = files.ErrNotRegular
		}
	}
	if err != nil {
		return nil, m, "", nil, usererr.New(usererr.Failed, "give the path of a plain file", "Draft file not found: %s", arg)
	}
	if p, err = c.place(ctx, f); err == nil {
		err = p.whole()
	}
	if err != nil {
		return nil, m, "", nil, err
	}
	if notes {
		p.policy.Notes = append(p.policy.Notes, p.role)
	}
	held, err := p.lock()
	if err != nil {
		return nil, m, "", nil, err
	}
	defer func() {
		if err != nil {
			held()
		}
	}()
	if err = noLinks(p.clone, draft); err != nil {
		return nil, m, "", nil, err
	}
	data, err := files.Read(draft, 4*handoff.MaxDraft)
	if err != nil {
		return nil, m, "", nil, err
	}
	d := handoff.ParseDraft(data)
	facts, err := p.facts(ctx, d)
	if err != nil {
		return nil, m, "", nil, err
	}
	m, problems := handoff.Check(d, facts)
	if problems != nil {
		return nil, m, "", nil, c.refuse("HANDOFF INVALID", arg, problems, draftUsage)
	}
	return p, m, draft, held, nil
}

// facts gathers what the gate needs to know.
func (p *place) facts(ctx context.Context, d handoff.Draft) (handoff.Facts, error) {
	f := handoff.Facts{Sender: p.role, Roles: p.roles, Policy: p.policy}
	if digits := d.CommitOf(); digits != "" || p.policy.Tree && d.Get("type") == handoff.GitHandoff {
		t, err := p.tree.look(ctx, digits)
		if err != nil {
			return f, err
		}
		f.Tree = t
	}
	held, err := p.queue.Current(p.role)
	if err != nil && !os.IsNotExist(err) {
		return f, err
	}
	f.Held = handoff.HeldOf(held)
	return f, nil
}
