package mission

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"time"
)

// ApprovalKind is what a person is asked for.
type ApprovalKind string

const (
	Deviation ApprovalKind = "deviation" // the plan would leave the goal
	Asking    ApprovalKind = "agent"     // an agent cannot go on with its step without a person's word
	Fault     ApprovalKind = "error"     // all tries are used up, and a person says how it goes on
	Gate      ApprovalKind = "gate"      // a gate of a flow
)

// ApprovalWait is how long an approval waits for a person. Silence is never a yes: then it counts as refused.
const ApprovalWait = 24 * time.Hour

// Approval is approvals/<n>.json: what a person is asked. It never changes; the answer is a file of its own.
type Approval struct {
	Version int          `json:"version"`
	N       int          `json:"n"` // 1, 2, 3… in the mission
	Kind    ApprovalKind `json:"kind"`
	Name    string       `json:"name,omitempty"` // what stays the same while its content changes: a gate, a step
	Title   string       `json:"title"`          // one line
	Text    string       `json:"text"`           // what exactly is asked
	Diff    string       `json:"diff,omitempty"` // what would change, as a unified diff
	MaySkip bool         `json:"may_skip,omitempty"`
	Subject string       `json:"subject"` // Hash of what is approved: a yes is for exactly that
	By      string       `json:"by"`      // the agent that asks
	Nonce   string       `json:"nonce"`
	At      time.Time    `json:"at"`
	Expires time.Time    `json:"expires"`
}

// Hash names the exact content that an approval is about.
func Hash(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}

// Token is what a button carries so that it fits this request and this content only: 10 characters.
func (a Approval) Token() string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s %d %s", a.Nonce, a.N, a.Subject))
	return base64.RawURLEncoding.EncodeToString(sum[:])[:10]
}

// Verdict is how an approval was answered.
type Verdict string

const (
	Approved Verdict = "approved"
	Rejected Verdict = "rejected"
	Skipped  Verdict = "skipped"  // it goes on without; only where MaySkip is set
	Expired  Verdict = "expired"  // nobody answered in time
	Replaced Verdict = "replaced" // something else is asked in its place: what it was about has changed
)

// Choice is an answer that a person can give, and the word for it.
type Choice struct {
	Verdict Verdict
	Word    string
}

// Choices are the answers to an approval, in the order in which they are shown.
func (a Approval) Choices() []Choice {
	yes, no := "Approve", "Reject"
	switch a.Kind {
	case Fault:
		yes, no = "Go on", "Abort"
	case Asking:
		yes, no = "Yes", "No"
	}
	out := []Choice{{Approved, yes}, {Rejected, no}}
	if a.MaySkip {
		out = []Choice{{Approved, yes}, {Skipped, "Skip"}, {Rejected, no}}
	}
	return out
}

// Decision is approvals/<n>.decision.json, the answer. The first one counts.
type Decision struct {
	Version int       `json:"version"`
	N       int       `json:"n"`
	Verdict Verdict   `json:"verdict"`
	Note    string    `json:"note,omitempty"`
	Subject string    `json:"subject"` // of the approval that was answered
	By      string    `json:"by"`      // where the answer came from: "person at the terminal", "Telegram"
	Key     string    `json:"key"`     // names the answer, so that a repetition of it is known
	At      time.Time `json:"at"`
}

// Allows says whether the decision is a yes for exactly this content.
func (d *Decision) Allows(subject string) bool {
	return d != nil && d.Verdict == Approved && d.Subject == subject
}

// Said is a decision in words.
func (d Decision) Said() string {
	s := string(d.Verdict)
	switch d.Verdict {
	case Expired:
		return "expired: nobody answered in time, which is no yes"
	case Replaced:
		return "not needed any more: something else is asked in its place"
	}
	if d.By != "" {
		s += " (" + d.By + ")"
	}
	if d.Note != "" {
		s += ": " + d.Note
	}
	return s
}
