package telegram

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	tgbotapi "github.com/go-telegram-bot-api/telegram-bot-api/v5"

	"example.com/AutoAgentProject/core/notify"
	"example.com/AutoAgentProject/core/store"
)

// Who is whom the bot listens to: one person, in one chat.
type Who struct {
	User int64
	Chat int64
}

// The verbs of an action.
const (
	Status  = "status"
	Costs   = "costs"
	Pause   = "pause"
	Resume  = "resume"
	Abort   = "abort"    // asks
	DoAbort = "do-abort" // the answer to that question: yes
	Keep    = "keep"     // and no
	Approve = "approve"
	Reject  = "reject"
	Skip    = "skip"
	Mute    = "mute"
	Unmute  = "unmute"
	Ack     = "ack"
	Tell    = "tell"
	Help    = "help"
	Wrong   = "wrong" // it was no command that makes sense; Note says why
)

// Action is something that the person asked for. It is kept until it is done, so that it is done once whatever dies.
type Action struct {
	Update  int        `json:"update"`
	At      time.Time  `json:"at"`
	Verb    string     `json:"verb"`
	Mission string     `json:"mission,omitempty"` // "": the only live one
	Tag     string     `json:"tag,omitempty"`     // names its root, where several have a mission of that id
	Root    store.Root `json:"-"`                 // found when it is done
	N       int        `json:"n,omitempty"`       // of the approval
	Note    string     `json:"note,omitempty"`
	Token   string     `json:"token,omitempty"` // of the button
	Query   string     `json:"query,omitempty"` // the press, to be answered
	Tries   int        `json:"tries,omitempty"`
}

// Key names the action for whoever keeps what it did.
func (a Action) Key(bot string) string { return fmt.Sprintf("telegram-%s-%d", bot, a.Update) }

// maxNote is the longest text of a person, in bytes.
const maxNote = store.MaxNote

// Read turns an update into an action of the person. ok is false for everything that anybody else sent, or that was
// forwarded, or comes from another chat: it is ignored. from is who sent it. Pure.
func Read(u tgbotapi.Update, who Who, known func(id string) bool, now time.Time) (a Action, from int64, ok bool) {
	a = Action{Update: u.UpdateID, At: now.UTC()}
	switch {
	case u.CallbackQuery != nil:
		q := u.CallbackQuery
		if q.From != nil {
			from = q.From.ID
		}
		if from == 0 || from != who.User || q.Message == nil || q.Message.Chat == nil || q.Message.Chat.ID != who.Chat || q.ID == "" {
			return a, from, false
		}
		a.Query = q.ID
		return press(a, q.Data), from, true
	case u.Message != nil:
		m := u.Message
		if m.From != nil {
			from = m.From.ID
		}
		if from == 0 || from != who.User || m.From.IsBot || m.Chat == nil || m.Chat.ID != who.Chat || m.SenderChat != nil ||
			m.ForwardDate != 0 || m.ForwardFrom != nil || m.ForwardFromChat != nil || m.ForwardSenderName != "" || m.IsAutomaticForward || m.ViaBot != nil || m.EditDate != 0 {
			return a, from, false
		}
		if strings.TrimSpace(m.Text) == "" {
			return a, from, false // a picture, somebody joined
		}
		return command(a, m.Text, known), from, true
	}
	return a, 0, false
}

// press reads the data of a button.
func press(a Action, data string) Action {
	p, ok := notify.ParsePress(data)
	if !ok {
		a.Verb, a.Note = Wrong, "this button is not known any more"
		return a
	}
	a.Mission, a.N, a.Token = p.Mission, p.N, p.Token
	switch {
	case p.What == "ab" && p.Answer == "y":
		a.Verb = DoAbort
	case p.What == "ab":
		a.Verb = Keep
	case p.Answer == "y":
		a.Verb = Approve
	case p.Answer == "s":
		a.Verb = Skip
	default:
		a.Verb = Reject
	}
	return a
}

// command reads a text. A line that begins with / is a command: /abort my-site, /approve my-site 3 a note. Anything else
// is a note; "my-site: text" names the mission, if there is one of that name.
func command(a Action, text string, known func(string) bool) Action {
	text = strings.TrimSpace(strings.ToValidUTF8(strings.ReplaceAll(text, "\x00", ""), "\uFFFD"))
	if len(text) > maxNote {
		text = strings.ToValidUTF8(text[:maxNote-len("…")], "") + "…"
	}
	if !strings.HasPrefix(text, "/") {
		a.Verb, a.Note = Tell, text
		name, rest, ok := strings.Cut(text, ":")
		if id, tag, is := splitTag(name); ok && is && known(id) && strings.TrimSpace(rest) != "" {
			a.Mission, a.Tag, a.Note = id, tag, strings.TrimSpace(rest)
		}
		return a
	}
	verb, rest := word(text[1:])
	verb, _, _ = strings.Cut(strings.ToLower(verb), "@") // /status@name_bot in groups
	wrong := func(format string, args ...any) Action {
		a.Verb, a.Note = Wrong, fmt.Sprintf(format, args...)
		return a
	}
	named := func() {
		name, more := word(rest)
		if id, tag, ok := splitTag(name); ok {
			a.Mission, a.Tag, rest = id, tag, more
		}
	}
	switch verb {
	case Status, Costs, Pause, Resume, Abort, Mute, Unmute, Ack:
		a.Verb = verb
		named()
		if rest != "" {
			return wrong("/%s takes a mission's id and nothing else", verb)
		}
	case Approve, Reject, Skip:
		a.Verb = verb
		named()
		number, note := word(rest)
		n, err := strconv.Atoi(number)
		if err != nil || n < 1 {
			return wrong("write /%s, the mission's id, the number of the approval, and a note if you like: /%s my-site 3 because …", verb, verb)
		}
		a.N, a.Note = n, note
	case Tell:
		a.Verb = Tell
		name, more := word(rest)
		if id, tag, ok := splitTag(name); ok && known(id) {
			a.Mission, a.Tag, rest = id, tag, more
		}
		if a.Note = rest; rest == "" {
			return wrong("write /tell, the mission's id, and the note")
		}
	case Help, "start":
		a.Verb = Help
	default:
		return wrong("there is no command /%s; /help lists them", Cut(verb, 40))
	}
	return a
}

// word takes the first word off a text.
func word(s string) (first, rest string) {
	s = strings.TrimSpace(s)
	if i := strings.IndexFunc(s, func(r rune) bool { return r == ' ' || r == '\n' || r == '\t' || r == '\u00a0' }); i >= 0 {
		return s[:i], strings.TrimSpace(s[i:])
	}
	return s, ""
}

// HelpText lists the commands.
const HelpText = `/status [mission]
/costs [mission]
/pause [mission], /resume [mission]
/approve [mission] <number> [note], /reject [mission] <number> [note]
/skip [mission] <number> [note]: go on without, where that is offered
/mute [mission], /unmute [mission]
/ack [mission]: do not repeat the blockers told so far
/abort [mission]: asks before it stops for good
Any other text is a note to the manager; begin it with "mission:" where several are live.
The mission can be left out while exactly one is live.`
