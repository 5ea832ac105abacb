package usage

import (
	"encoding/json"
	"math"
	"strconv"

	"example.com/AutoAgentProject/core/money"
)

// rateLimit is a rate_limit_event of a stream.
type rateLimit struct {
	Type Text `json:"type"`
	Info struct {
		Status   Text                   `json:"status"`
		Reset    Number                 `json:"resetsAt"`
		Window   Text                   `json:"rateLimitType"`
		Used     share                  `json:"utilization"`
		Using    flagged                `json:"isUsingOverage"`
		InUse    flagged                `json:"overageInUse"`
		ByWindow map[string]limitWindow `json:"unifiedWindows"`
	} `json:"rate_limit_info"`
}

type limitWindow struct {
	Status Text   `json:"status"`
	Used   share  `json:"utilization"`
	Reset  Number `json:"resetsAt"`
}

// share is a part from 0 to 1, or somewhat above, as an integer or not. Told is false for whatever is none.
type share struct {
	BP   int64 // hundredths of a percent
	Told bool
}

// UnmarshalJSON never fails.
func (s *share) UnmarshalJSON(b []byte) error {
	*s = share{}
	f, err := strconv.ParseFloat(string(b), 64)
	if err == nil && f >= 0 && f <= 10 {
		*s = share{int64(math.Round(f * 10_000)), true}
	}
	return nil
}

// bp is the share, or -1 if it was not told.
func (s share) bp() int64 {
	if s.Told {
		return s.BP
	}
	return -1
}

type flagged bool

// UnmarshalJSON never fails.
func (f *flagged) UnmarshalJSON(b []byte) error {
	*f = string(b) == "true"
	return nil
}

const rejected = "rejected"

// ParseLimit reads a line of a stream that tells of the account's usage limits; ok is false for any other. Of several
// windows that refuse, the last to open again ends the refusal.
func ParseLimit(line []byte) (e money.LimitEvent, ok bool) {
	var r rateLimit
	if err := json.Unmarshal(line, &r); err != nil && r.Info.Status == "" || r.Type != "rate_limit_event" || r.Info.Status == "" {
		return e, false
	}
	i := r.Info
	e = money.LimitEvent{Status: string(i.Status), Overage: bool(i.Using || i.InUse), Reset: int64(i.Reset), Windows: map[string]money.Window{}}
	if i.Window != "" {
		e.Windows[string(i.Window)] = money.Window{Used: i.Used.bp(), Reset: int64(i.Reset)}
	}
	for name, w := range i.ByWindow {
		e.Windows[name] = money.Window{Used: w.Used.bp(), Reset: int64(w.Reset)}
		if w.Status == rejected {
			e.Reset = max(e.Reset, int64(w.Reset))
		}
	}
	return e, true
}
