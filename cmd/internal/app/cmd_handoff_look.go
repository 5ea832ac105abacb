package app

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"example.com/AutoAgentProject/core/handoff"
	"example.com/AutoAgentProject/core/queue"
	"example.com/AutoAgentProject/core/usererr"
)

var errNotThere = fs.ErrNotExist

// entries lists the mailboxes of everybody, or of the one that was named.
func (c *cli) entries(ctx context.Context, f *handoffFlags) (*place, []queue.Entry, error) {
	p, err := c.place(ctx, f)
	if err != nil {
		return nil, nil, err
	}
	whose := p.roles
	if f.agent != "" {
		if !slices.Contains(p.roles, f.agent) {
			return nil, nil, usererr.New(usererr.NotFound, "agents with a mailbox are: "+strings.Join(p.roles, ", "), "there is no agent %q with a mailbox", f.agent)
		}
		whose = []string{f.agent}
	}
	var all []queue.Entry
	seen := map[string]bool{} // roles may share a work tree, and then a mailbox
	for _, agent := range whose {
		list, err := p.queue.Entries(agent)
		if err != nil {
			return nil, nil, err
		}
		for _, e := range list {
			if !seen[e.Path] {
				seen[e.Path] = true
				all = append(all, e)
			}
		}
	}
	return p, all, nil
}

// handoffView is an entry for scripts.
type handoffView struct {
	Agent    string            `json:"agent"`
	Box      string            `json:"box"`
	Batch    string            `json:"batch,omitempty"`
	Name     string            `json:"name"`
	Path     string            `json:"path"`
	Headers  map[string]string `json:"headers"`
	Body     string            `json:"body,omitempty"`
	Claim    *queue.Claim      `json:"claim,omitempty"`
	Receipts []queue.Receipt   `json:"receipts,omitempty"`
	Error    string            `json:"error,omitempty"`
	Document *documentView     `json:"document,omitempty"`
}

func viewOf(e queue.Entry, body bool) handoffView {
	v := handoffView{Agent: e.Agent, Box: e.Box, Batch: e.Batch, Name: e.Name(), Path: e.Path, Headers: map[string]string{},
		Claim: e.Claim, Receipts: e.Receipts, Error: e.Error}
	for _, h := range e.Text.Headers() {
		v.Headers[h.Name] = h.Value
	}
	if body {
		v.Body = e.Text.Body()
	}
	return v
}

func (c *cli) handoffList(f *handoffFlags) *cobra.Command {
	all := false
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List the handoffs in the mailboxes",
		Long:    "List the handoffs that are under way, are held or failed; with --all also those that were finished and sent.",
		Example: "  AutoAgentProject handoff list --mission my-site --json",
		Args:    exactly(0, "no arguments"),
		RunE: func(cmd *cobra.Command, args []string) error {
			_, list, err := c.entries(cmd.Context(), f)
			if err != nil {
				return err
			}
			if !all {
				list = slices.DeleteFunc(list, func(e queue.Entry) bool { return e.Box == "completed" || e.Box == "sent" })
			}
			if c.json {
				views := []handoffView{}
				for _, e := range list {
					views = append(views, viewOf(e, false))
				}
				return c.printJSON(views)
			}
			if len(list) == 0 {
				c.say("no handoff is under way")
				return nil
			}
			t := table{{"AGENT", "BOX", "PRIO", "FROM", "TO", "TASK OR MESSAGE", "CREATED", "NAME"}}
			for _, e := range list {
				created, _ := time.Parse(time.RFC3339Nano, e.Text.Or("created_at", ""))
				t = append(t, []string{e.Agent, e.Box, e.Text.Priority(), dash(e.Text.Or("from", "")), dash(e.Text.Or("to", "")),
					dash(e.Text.Or("task", e.Text.Or("message", e.Error))), ago(created, time.Now()), filepath.Join(e.Batch, e.Name())})
			}
			c.printTable(t)
			return nil
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "also those that were finished and sent")
	return cmd
}

func (c *cli) handoffShow(f *handoffFlags) *cobra.Command {
	return &cobra.Command{
		Use:   "show <id, name or task>",
		Short: "Show a handoff wherever it lies",
		Long: "Show a handoff, named by its id or its file name, in all mailboxes that hold it, and the document that its agent left of\n" +
			"the work. Of a task, or a step of a mission, it is the latest one.",
		Example: "  AutoAgentProject handoff show cart-tax --mission my-site",
		Args:    exactly(1, "the id or name of a handoff, or a task"),
		RunE: func(cmd *cobra.Command, args []string) error {
			p, list, err := c.entries(cmd.Context(), f)
			if err != nil {
				return err
			}
			if list = named(list, args[0]); len(list) == 0 {
				return usererr.New(usererr.NotFound, "handoff list --all shows what there is", "there is no handoff %q", args[0])
			}
			var doc *documentView
			if p.document != nil {
				if doc, err = p.document(cmd.Context(), list[0]); err != nil {
					return err
				}
			}
			if c.json {
				var views []handoffView
				for _, e := range list {
					v := viewOf(e, true)
					v.Document = doc
					views = append(views, v)
				}
				return c.printJSON(views)
			}
			for i, e := range list {
				if i > 0 {
					c.say("")
				}
				c.say("%s of %s: %s", e.Box, e.Agent, e.Path)
				if e.Error != "" {
					c.say("error: %s", e.Error)
				}
				if e.Claim != nil {
					c.say("held by process %d, attempt %d", e.Claim.Owner.PID, e.Claim.Attempt)
				}
				for _, r := range e.Receipts {
					c.say("received by %s at %s", r.Recipient, r.At.Format(time.RFC3339))
				}
				c.say("")
				c.say("%s", strings.TrimRight(string(e.Text), "\n"))
			}
			if doc != nil {
				c.say("")
				c.say("document %s of %s:", doc.Path, doc.Ref)
				c.say("")
				c.say("%s", strings.TrimRight(doc.text, "\n"))
			}
			return nil
		},
	}
}

// named are the entries of the handoff of that id or file name, else of the latest one of a task.
func named(list []queue.Entry, what string) (found []queue.Entry) {
	latest, at := "", ""
	for _, e := range list {
		id := e.Text.Or("id", "")
		if e.Name() == what || id == what {
			found = append(found, e)
		}
		if made := e.Text.Or("created_at", ""); e.Text.Or("task", "") == what && made >= at {
			latest, at = id, made
		}
	}
	if found == nil && latest != "" {
		return named(list, latest)
	}
	return found
}

func (c *cli) handoffTrace(f *handoffFlags) *cobra.Command {
	mermaid := false
	cmd := &cobra.Command{
		Use:   "trace <task>",
		Short: "Show the way of a task from agent to agent",
		Long: "Show who handed a task to whom, with which commit, and how long it waited and was worked on there. --mermaid draws it\n" +
			"as a sequence diagram.",
		Example: "  AutoAgentProject handoff trace cart-tax --mission my-site",
		Args:    exactly(1, "the name of a task"),
		RunE: func(cmd *cobra.Command, args []string) error {
			whole := *f
			whole.agent = ""
			p, list, err := c.entries(cmd.Context(), &whole)
			if err != nil {
				return err
			}
			var records []handoff.Record
			docs := map[string]string{}
			for _, e := range list {
				records = append(records, e.Record())
				if p.document == nil || e.Text.Or("task", "") != args[0] {
					continue
				}
				if d, err := p.document(cmd.Context(), e); err != nil {
					c.warn(err)
				} else if d != nil {
					docs[e.Text.Or("id", "")] = d.Path
				}
			}
			way := handoff.Trace(args[0], records, time.Now())
			for i, l := range way.Legs {
				way.Legs[i].Document = docs[l.ID]
			}
			switch {
			case len(way.Legs) == 0:
				return usererr.New(usererr.NotFound, "handoff list --all shows what there is", "no handoff has the task %q", args[0])
			case mermaid:
				_, err := fmt.Fprint(c.env.Stdout, way.Mermaid())
				return err
			case c.json:
				return c.printJSON(way)
			}
			t := table{{"FROM", "TO", "PRIO", "COMMIT", "STATE", "WAITED", "WORKED", "CREATED", "DOCUMENT"}}
			for _, l := range way.Legs {
				t = append(t, []string{l.From, l.To, l.Priority, dash(l.Commit), l.State, short(time.Duration(l.Waited)), short(time.Duration(l.Worked)), l.Created.Format(time.RFC3339), dash(l.Document)})
			}
			c.printTable(t)
			c.say("%s: waited %s, worked %s", way.Task, short(time.Duration(way.Waited)), short(time.Duration(way.Worked)))
			if len(docs) > 0 {
				c.say("handoff show prints a document; all of them are on %s", p.docsRef)
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&mermaid, "mermaid", false, "as a sequence diagram")
	return cmd
}

// short is a duration to the second, or finer where it is shorter.
func short(d time.Duration) string {
	if d < time.Second {
		return d.Round(time.Millisecond).String()
	}
	return d.Round(time.Second).String()
}

func (c *cli) handoffRequeue(f *handoffFlags) *cobra.Command {
	return &cobra.Command{
		Use:   "requeue <name>",
		Short: "Bring a failed handoff back into its mailbox",
		Long: "Bring a handoff, or a batch, that lies in failed/ back: what an agent could not do into its inbox, what could not be\n" +
			"delivered into the outbox of its sender. It begins anew. What is still malformed is refused and stays.",
		Example: "  AutoAgentProject handoff requeue 50_20260710T120001Z_000001_from_manager_to_coder.handoff --mission my-site --agent coder",
		Args:    exactly(1, "the file name of a failed handoff"),
		RunE: func(cmd *cobra.Command, args []string) error {
			p, err := c.open(cmd.Context(), f)
			if err != nil {
				return err
			}
			back, err := p.queue.Requeue(p.role, args[0])
			if errors.Is(err, queue.ErrNotFailed) {
				return usererr.New(usererr.NotFound, "handoff list shows what failed", "%s has no failed handoff %q", p.role, args[0])
			}
			if err != nil {
				return usererr.Wrap(err, usererr.Failed, "", "it cannot be taken up again")
			}
			for _, path := range back {
				if !c.json {
					c.say("REQUEUED: %s", path)
				}
			}
			if c.json {
				err = c.printJSON(map[string]any{"requeued": back})
			}
			p.reconcile(time.Now())
			p.wake(p.role)
			return err
		},
	}
}
