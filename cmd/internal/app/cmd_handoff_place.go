package app

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"example.com/AutoAgentProject/core/git"
	"example.com/AutoAgentProject/core/handoff"
	"example.com/AutoAgentProject/core/proc"
	"example.com/AutoAgentProject/core/queue"
	"example.com/AutoAgentProject/core/usererr"
)

// place is where handoffs are sent, taken and finished: an agent's mailbox, and the tree it works in.
type place struct {
	queue  queue.Queue
	role   string   // whose mailbox; in list, show and trace it may be empty: everybody's
	roles  []string // who has one
	mode   queue.Mode
	policy handoff.Policy
	tree   tree
	lock   func() (unlock func(), err error) // keeps the agent's ticks away while its tree is looked at
	clone  string                            // what the agent can write; a draft in it is reached without links
	warn   func(error)
	wake   func(agents ...string)

	docsRef  string                                                    // where documents are kept, in the mission's repository
	document func(context.Context, queue.Entry) (*documentView, error) // of the work that came with a handoff; nil: there are none
}

// tree is what git does for a place.
type tree interface {
	// look finds the facts about the tree and the commit that a draft names by its first digits.
	look(ctx context.Context, digits string) (handoff.Tree, error)
	// publish makes the commit that is handed on reachable for its recipients.
	publish(ctx context.Context, digits, name string) error
	// changed says whether the tree differs from a commit that came.
	changed(ctx context.Context, digits string) (bool, error)
	// merge brings a commit that came into the tree.
	merge(ctx context.Context, digits, message string) (moved bool, conflicts []string, err error)
}

// place finds the mailbox that the flags mean.
func (c *cli) place(ctx context.Context, f *handoffFlags) (*place, error) {
	switch f.layout {
	case "swarmforge":
		return c.swarmPlace(ctx, f)
	case "mission":
		return c.missionPlace(f)
	}
	return nil, usererr.New(usererr.Failed, "write --layout mission or --layout swarmforge", "there is no layout %q", f.layout)
}

// override takes what the flags say about the policy.
func (p *place) override(f *handoffFlags) error {
	switch w := handoff.Forward(f.forward); w {
	case "":
	case handoff.ForwardAlways, handoff.ForwardWhenChanged, handoff.ForwardOff:
		p.policy.Forward = w
	default:
		return usererr.New(usererr.Failed, "write --forward always, when-changed or off", "there is no policy %q", f.forward)
	}
	return nil
}

// whole refuses a place without an agent.
func (p *place) whole() error {
	if p.role == "" {
		return usererr.New(usererr.Failed, "give --agent, one of "+strings.Join(p.roles, ", "), "whose mailbox is meant")
	}
	return nil
}

// holder is who takes work here: the process that called this program, for as long as it lives, and the run that it names.
func (c *cli) holder(f *handoffFlags) (queue.Holder, error) {
	run := f.run
	if run == "" {
		run = c.env.Getenv("AUTOAGENT_RUN")
	}
	owner, err := proc.Of(os.Getppid())
	if proc.Gone(err) { // our caller ended already: so did the holder
		owner, err = proc.Self()
	}
	return queue.Holder{Owner: owner, Run: run}, err
}

// reconcile delivers what earlier senders left behind. A swarm has its daemon for that.
func (p *place) reconcile(now time.Time) {
	if p.queue.Swarm != nil {
		return
	}
	for _, from := range p.roles {
		woken, err := p.queue.Deliver(from, now)
		p.wake(woken...)
		if err != nil {
			p.warn(fmt.Errorf("deliver the outbox of %s: %w", from, err))
		}
	}
}

// warn tells what went wrong beside the matter itself.
func (c *cli) warn(err error) {
	fmt.Fprintf(c.env.Stderr, "autoagent: warning: %s\n", clean(err.Error()))
}

// seen turns what git saw into facts for the gate.
func seen(s git.Sight, role, branch string) handoff.Tree {
	t := handoff.Tree{Objects: len(s.Objects), Type: s.Type, Canonical: s.Short, Reachable: s.Holds, Byline: handoff.HasByline(s.Message, role),
		Dirty: s.Dirty, Runtime: s.Runtime}
	switch {
	case s.Head == "":
		t.Layout = "there is no commit yet"
	case s.Branch == "":
		t.Layout = "HEAD is on no branch"
	case branch != "" && s.Branch != branch:
		t.Layout = fmt.Sprintf("the branch is %q and not %q", s.Branch, branch)
	case s.Pending:
		t.Layout = "a merge, rebase or pick is unfinished"
	}
	return t
}

// mergeable says why a commit cannot be merged into a tree.
func mergeable(t handoff.Tree, digits string) error {
	switch {
	case t.Layout != "":
		return usererr.New(usererr.Failed, "stop and report it; do not repair it", "the git layout is not the expected one: %s", t.Layout)
	case len(t.Dirty) > 0:
		return usererr.New(usererr.Failed, "commit them or take them back first", "the tree holds changes that are not committed: %s", strings.Join(t.Dirty, ", "))
	case t.Objects != 1 || t.Type != "commit":
		return usererr.New(usererr.Failed, "report it to whoever sent the handoff's sender", "%s names no commit here", digits)
	}
	return nil
}

// receives is how the role takes its work; another word in roles.tsv than task or batch is a refusal.
func (p *place) receives() (queue.Mode, error) {
	switch p.mode {
	case "":
		return queue.Task, nil
	case queue.Task, queue.Batch:
		return p.mode, nil
	}
	return "", &queue.StateError{Token: "INVALID_RECEIVE_MODE", Text: fmt.Sprintf("%s for role %s", p.mode, p.role)}
}
