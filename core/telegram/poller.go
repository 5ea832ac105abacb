package telegram

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	tgbotapi "github.com/go-telegram-bot-api/telegram-bot-api/v5"

	"example.com/AutoAgentProject/core/journal"
	"example.com/AutoAgentProject/core/notify"
	"example.com/AutoAgentProject/core/store"
	"example.com/AutoAgentProject/core/usererr"
)

// Hands do what the person asks for, in the same way as the command line. Each may be called again for an action that was
// done already, and then does no harm.
type Hands interface {
	// Live are the missions of a root that did not end.
	Live(ctx context.Context, root store.Root) ([]string, error)
	// Do returns what to answer. The action names its root; without a mission it is about all of that root.
	Do(ctx context.Context, a Action, key string) (string, error)
}

// Poller is the one process that has a bot: it sends what lies in the outboxes of all missions of all roots of its user, and
// takes in what the person says.
type Poller struct {
	Client *Client
	Who    Who
	Roots  func() ([]store.Root, error)
	Dir    string // the bot's folder
	Bot    string // Hash of the token
	Hands  Hands
	Now    func() time.Time
	Log    *slog.Logger
	// PollTime and Pause may be shorter in tests; 0 is the default.
	PollTime time.Duration
	Pause    time.Duration // between looks into the outboxes
	Every    time.Duration // between two messages

	state     State
	editsFrom time.Time // buttons are closed no sooner
}

const (
	defaultPause = time.Second
	maxTries     = 20              // of an action whose hands fail for a reason that may pass
	abortAsk     = 5 * time.Minute // how long the question whether to abort stands
)

// Outbox is where answers of the poller itself lie.
func (p *Poller) Outbox() notify.Outbox { return notify.Outbox{Dir: p.Dir} }

// outboxes are those of all missions and the poller's own.
func (p *Poller) outboxes() ([]notify.Outbox, error) {
	roots, err := p.Roots()
	if err != nil {
		return nil, err
	}
	return Outboxes(roots, p.Outbox())
}

// knows says whether any root has a mission of that id.
func (p *Poller) knows(id string) bool {
	roots, _ := p.Roots()
	return slices.ContainsFunc(roots, func(r store.Root) bool { return r.Mission(id).Exists() })
}

// Open reads what an earlier poller left. It must be called before anything else.
func (p *Poller) Open() error {
	var err error
	if p.state, err = ReadState(p.Dir); err != nil {
		return err
	}
	if p.state.From == p.Who.Chat && p.state.Chat != 0 {
		p.Who.Chat = p.state.Chat
	}
	if err := p.Outbox().Make(); err != nil {
		return err
	}
	return p.Outbox().Prune(p.Now().Add(-notify.TooOld))
}

// Chat is where messages go.
func (p *Poller) Chat() int64 { return p.Who.Chat }

// moved keeps the new id of a group that was upgraded.
func (p *Poller) moved(id int64) error {
	if p.state.Chat == 0 || p.state.Chat != p.Who.Chat {
		p.state.From = p.Who.Chat
	}
	p.state.Chat, p.Who.Chat = id, id
	p.Log.Warn("the group was upgraded, messages go to its new id", "chat", id)
	return p.state.Write(p.Dir)
}

// Run polls and sends until ctx ends, or, with leave set, until nothing is live and nothing is left to send.
func (p *Poller) Run(ctx context.Context, leave func() bool) error {
	if err := p.Open(); err != nil {
		return err
	}
	pause := p.Pause
	if pause == 0 {
		pause = defaultPause
	}
	courier := &notify.Courier{
		Channel:  Sender{Client: p.Client, Chat: p.Chat, Moved: p.moved, Every: p.Every},
		Outboxes: p.outboxes,
		Dir:      p.Dir, Now: p.Now, Log: p.Log,
	}
	// One goroutine waits at Telegram; all that has a state happens in this one.
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	got, taken := make(chan []tgbotapi.Update), make(chan int)
	gone := make(chan struct{})
	go func() { defer close(gone); p.listen(ctx, p.state.Offset, got, taken) }()
	defer func() { cancel(); <-gone }()
	every := time.NewTimer(0)
	defer every.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case list := <-got:
			if err := p.Take(list); err != nil {
				p.Log.Error("what came in cannot be kept and stays with Telegram", "err", err)
			}
			taken <- p.state.Offset
			every.Reset(0)
			continue
		case <-every.C:
		}
		p.Work(ctx)
		moved, until, left, err := courier.Step(ctx)
		if err != nil && ctx.Err() == nil {
			p.Log.Error("messages cannot be sent", "err", err)
		}
		p.closeButtons(ctx)
		if leave != nil && left == 0 && len(p.state.Actions) == 0 && leave() {
			return nil
		}
		next := pause
		if d := until.Sub(p.Now()); moved && err == nil {
			next = min(max(d, 0), pause)
		}
		every.Reset(next)
	}
}

// listen asks for updates, one poll after the other, and waits until each is kept before it confirms it with the next.
func (p *Poller) listen(ctx context.Context, offset int, got chan<- []tgbotapi.Update, taken <-chan int) {
	wait := p.PollTime
	if wait == 0 {
		wait = PollTime
	}
	failures := 0
	for ctx.Err() == nil {
		begun := time.Now()
		list, err := p.Client.Updates(ctx, offset, wait)
		rest := min(time.Second, wait) - time.Since(begun) // a peer that answers at once is not asked in a busy loop
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			failures++
			rest = min(time.Second<<min(failures-1, 6), time.Minute)
			if e, ok := errors.AsType[*Error](err); ok {
				rest = max(rest, e.After)
			}
			if failures == 1 || failures%30 == 0 {
				p.Log.Warn("the bot cannot be polled", "err", err, "failures", failures)
			}
		default:
			failures = 0
			if len(list) > 0 {
				select {
				case got <- list:
				case <-ctx.Done():
					return
				}
				before := offset
				select {
				case offset = <-taken:
				case <-ctx.Done():
					return
				}
				if rest = min(rest, 200*time.Millisecond); offset == before { // it could not be kept
					rest = 5 * time.Second
				}
			}
		}
		select {
		case <-ctx.Done():
		case <-time.After(rest):
		}
	}
}

// Take keeps what came in: offset and actions in one write. What was taken before is left out.
func (p *Poller) Take(list []tgbotapi.Update) error {
	next := p.state
	next.Actions = slices.Clone(p.state.Actions)
	for _, u := range list {
		if u.UpdateID < next.Offset {
			continue
		}
		next.Offset = u.UpdateID + 1
		if m := u.Message; m != nil && m.Chat != nil && m.Chat.ID == p.Who.Chat && m.MigrateToChatID != 0 { // Telegram itself says so
			if next.Chat == 0 || next.Chat != p.Who.Chat {
				next.From = p.Who.Chat
			}
			next.Chat = m.MigrateToChatID
			continue
		}
		a, from, ok := Read(u, p.Who, p.knows, p.Now())
		if ok {
			next.Actions = append(next.Actions, a)
			continue
		}
		if from == p.Who.User && from != 0 && (u.Message == nil || u.Message.Chat != nil && u.Message.Chat.ID == p.Who.Chat) {
			continue // the person's own picture
		}
		next.Ignored++
		if from != 0 {
			next.Last = Stranger{User: from, At: p.Now().UTC()}
			if u.Message != nil && u.Message.Chat != nil {
				next.Last.Chat = u.Message.Chat.ID
			}
		}
	}
	if next.Offset == p.state.Offset {
		return nil
	}
	if err := next.Write(p.Dir); err != nil {
		return err
	}
	if p.state = next; next.Chat != 0 && next.From != 0 && next.Chat != p.Who.Chat {
		p.Who.Chat = next.Chat
		p.Log.Warn("the group was upgraded, messages go to its new id", "chat", next.Chat)
	}
	return nil
}

// Work does what is kept and not done, in order. What was done leaves its answer in the outbox before it is forgotten.
func (p *Poller) Work(ctx context.Context) {
	for len(p.state.Actions) > 0 && ctx.Err() == nil {
		a := p.state.Actions[0]
		text, buttons, err := p.do(ctx, &a)
		if err != nil {
			code := usererr.CodeOf(err)
			final := code != usererr.Failed && code != usererr.Environment && code != usererr.Later
			if a.Tries++; !final && a.Tries < maxTries {
				p.Log.Warn("what the person asked for is not done yet", "verb", a.Verb, "mission", a.Mission, "err", err)
				next := p.state
				next.Actions = append([]Action{a}, p.state.Actions[1:]...)
				if werr := next.Write(p.Dir); werr == nil {
					p.state = next
				}
				return // again after a pause
			}
			text = "not done: " + err.Error()
			if u, ok := errors.AsType[*usererr.Error](err); ok && u.Hint != "" {
				text += " (" + u.Hint + ")"
			}
		}
		if a.Query != "" {
			told := p.answer(ctx, a.Query, text) == nil
			if told && err == nil && len(buttons) == 0 && answers(a.Verb) {
				text = "" // what became of it stands below the question
			}
		}
		row := notify.Row{ID: fmt.Sprintf("u%012d", a.Update), At: a.At, Level: journal.Blocker, Text: p.Client.redact(text), Buttons: buttons}
		if text != "" {
			if err := p.Outbox().Put(row); err != nil {
				p.Log.Error("an answer cannot be kept", "err", err)
				return
			}
		}
		next := p.state
		next.Actions = slices.Clone(p.state.Actions[1:])
		if err := next.Write(p.Dir); err != nil {
			p.Log.Error("the state cannot be written", "err", err)
			return
		}
		p.state = next
	}
}

// answers says whether a verb answers an approval.
func answers(verb string) bool { return verb == Approve || verb == Reject || verb == Skip }

// answer ends the waiting of a press; it does not hold anything up for long.
func (p *Poller) answer(ctx context.Context, query, text string) error {
	ctx, done := context.WithTimeout(ctx, 5*time.Second)
	defer done()
	err := p.Client.Answer(ctx, query, text)
	if err == nil && notify.Units(text) > maxToast {
		err = errors.New("only its beginning was shown")
	}
	return err
}

// maxToast is how much of an answer to a press is shown, in UTF-16 units.
const maxToast = 200

// do does one action; a gets the mission that was meant.
func (p *Poller) do(ctx context.Context, a *Action) (text string, buttons []notify.Button, err error) {
	switch a.Verb {
	case Wrong:
		return a.Note, nil, nil
	case Help:
		return HelpText, nil, nil
	}
	if a.Mission == "" {
		if text, err := p.onlyOne(ctx, a); err != nil || text != "" {
			return text, nil, err
		}
	} else if a.Verb == DoAbort || a.Verb == Keep {
		i := slices.IndexFunc(p.state.Aborts, func(q Abortq) bool { return q.Mission == a.Mission && q.Token == a.Token && a.At.Before(q.Until) })
		if i < 0 {
			return "this question is closed; /abort " + a.Mission + " asks again", nil, nil
		}
		a.Root = p.state.Aborts[i].Root
	} else if err := p.where(a); err != nil {
		if usererr.CodeOf(err) == usererr.NotFound || usererr.CodeOf(err) == usererr.Usage {
			return err.Error(), nil, nil
		}
		return "", nil, err
	}
	switch a.Verb {
	case Abort:
		token, err := p.askAbort(a.Mission, a.Root)
		return fmt.Sprintf("Abort %s for good? Nothing happens until you say so.", a.Mission),
			notify.AbortButtons(a.Mission, token), err
	case Keep:
		return a.Mission + " goes on", nil, p.endAsk(a.Mission, a.Root)
	}
	text, err = p.Hands.Do(ctx, *a, a.Key(p.Bot))
	return text, nil, err
}

// onlyOne finds the mission that is meant where none is named: the only one that is live. A text is the answer already.
func (p *Poller) onlyOne(ctx context.Context, a *Action) (text string, err error) {
	roots, err := p.Roots()
	if err != nil {
		return "", err
	}
	var live, said []string
	tag, n := tags(roots), map[string]int{}
	for _, r := range roots {
		ids, err := p.Hands.Live(ctx, r)
		if err != nil {
			return "", err
		}
		for _, id := range ids {
			n[id]++
		}
		if a.Verb == Status && len(ids) > 0 { // all of them
			b := *a
			b.Root = r
			one, err := p.Hands.Do(ctx, b, a.Key(p.Bot))
			if err != nil {
				return "", err
			}
			said = append(said, one)
		}
		for _, id := range ids {
			if a.Mission, a.Root = id, r; len(roots) > 1 {
				id += "@" + tag[r]
			}
			live = append(live, id)
		}
	}
	switch {
	case a.Verb == Status && len(live) == 0:
		return "no mission is live", nil
	case a.Verb == Status:
		return strings.Join(said, "\n\n"), nil
	case len(live) == 1:
		return "", nil
	case len(live) == 0:
		return "no mission is live; name the mission", nil
	}
	for i, l := range live { // the root only where it is needed
		if id, _, _ := strings.Cut(l, "@"); n[id] == 1 {
			live[i] = id
		}
	}
	return fmt.Sprintf("%d missions are live, name one of them: %s", len(live), strings.Join(live, ", ")), nil
}

// askAbort opens the question whether to abort a mission; one that stands is kept.
func (p *Poller) askAbort(id string, root store.Root) (string, error) {
	for _, q := range p.state.Aborts {
		if q.Mission == id && q.Root == root && p.Now().Before(q.Until) {
			return q.Token, nil
		}
	}
	q := Abortq{Mission: id, Root: root, Token: rand.Text()[:10], Until: p.Now().Add(abortAsk).UTC()}
	next := p.state
	next.Aborts = append(slices.DeleteFunc(slices.Clone(p.state.Aborts), func(o Abortq) bool { return o.Mission == id && o.Root == root }), q)
	if err := next.Write(p.Dir); err != nil {
		return "", err
	}
	p.state = next
	return q.Token, nil
}

func (p *Poller) endAsk(id string, root store.Root) error {
	next := p.state
	next.Aborts = slices.DeleteFunc(slices.Clone(p.state.Aborts), func(q Abortq) bool { return q.Mission == id && q.Root == root })
	if err := next.Write(p.Dir); err != nil {
		return err
	}
	p.state = next
	return nil
}

// closeButtons takes the buttons off the messages of approvals that were answered, wherever that was, and says how.
func (p *Poller) closeButtons(ctx context.Context) {
	if p.Now().Before(p.editsFrom) {
		return
	}
	boxes, err := p.outboxes()
	if err != nil {
		return
	}
	for _, box := range boxes {
		root, id, ok := store.OfNotify(box.Dir)
		st := root.Mission(id)
		if !ok || !dirExists(st.Dir()+"/approvals") {
			continue
		}
		asked, err := st.Approvals()
		if err != nil || !slices.ContainsFunc(asked, func(a store.Asked) bool { return a.Decision != nil }) {
			continue
		}
		sent, _ := box.Done(notify.Sent, "approval-")
		for _, r := range sent {
			i := slices.IndexFunc(asked, func(a store.Asked) bool { return a.N == r.Approval && a.Decision != nil })
			if r.Closed || r.MessageID == 0 || len(r.Buttons) == 0 || i < 0 {
				continue
			}
			shown := box.Named(r)
			shown.Hint = ""
			m := notify.Compose([]notify.Row{shown}, false)
			text, bold := m.Text()
			tail := "\n\n→ " + asked[i].Decision.Said()
			if r.Repeated { // it stays marked
				tail = notify.AgainMark + tail
			}
			text = Cut(text, MaxText-notify.Units(tail))
			err := p.Client.CloseButtons(ctx, p.Who.Chat, r.MessageID, text+tail, Clip(bold, 0, notify.Units(text)))
			if e, ok := errors.AsType[*Error](err); ok && e.Class != Bad { // later; else it can never be done
				pause := map[Class]time.Duration{Slow: e.After, NotOurs: troubled, Unreachable: troubled}[e.Class]
				p.editsFrom = p.Now().Add(max(pause, cmp.Or(p.Pause, defaultPause)))
				return
			}
			r.Closed = true
			if err := box.Save(r); err != nil {
				p.Log.Warn("an outbox cannot be written", "err", err)
			}
			return // one at a time: sending goes before
		}
	}
}
