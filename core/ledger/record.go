package ledger

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"example.com/AutoAgentProject/core/money"
)

// Version is the version of the records that this program writes, and the newest that it reads.
const Version = 1

// The kinds of record.
const (
	Budget  = "budget"  // the mission's budget is this from now on: Cap, Unit
	Reserve = "reserve" // a run may cost that much: Run, Agent, Step, Model, Cap, Unit
	Launch  = "launch"  // its program is being started: from here on it may have cost something
	Spend   = "spend"   // what it cost: Nano, Tokens, Requests, ByModel, Source, Unpriced; ends its reservation
	Release = "release" // it cost nothing: ends its reservation
)

// Record is one line of the ledger.
type Record struct {
	Version  int                    `json:"v"`
	Seq      int64                  `json:"seq"` // 1, 2, 3…: a line that is missing is noticed
	At       time.Time              `json:"at"`
	Kind     string                 `json:"kind"`
	Run      string                 `json:"run,omitempty"`
	Agent    string                 `json:"agent,omitempty"`
	Step     string                 `json:"step,omitempty"`
	Model    string                 `json:"model,omitempty"`
	Nano     money.Nano             `json:"nano_usd,omitempty"`
	Tokens   int64                  `json:"tokens,omitempty"`
	Requests int64                  `json:"requests,omitempty"` // to the model; 0: not recorded
	Cap      int64                  `json:"cap,omitempty"`      // in Unit
	Unit     money.Unit             `json:"unit,omitempty"`
	ByModel  map[string]money.Usage `json:"by_model,omitempty"`
	Source   string                 `json:"source,omitempty"`   // which meter told the spend
	Unpriced []string               `json:"unpriced,omitempty"` // models without a known price
	Note     string                 `json:"note,omitempty"`
}

// encode makes the line of a record, without the newline.
func encode(r Record, seq int64, at time.Time) ([]byte, error) {
	r.Version, r.Seq, r.At = Version, seq, at.UTC()
	return json.Marshal(r)
}

// parse reads a line by itself: everything that can be wrong without knowing the lines before it.
func parse(line []byte) (Record, error) {
	var r Record
	if err := json.Unmarshal(line, &r); err != nil {
		return r, err
	}
	if r.Version < 1 {
		return r, errors.New("no record of a ledger")
	}
	if r.Version > Version {
		return r, fmt.Errorf("written by a newer program: version %d, known is %d", r.Version, Version)
	}
	if r.Kind != Budget && r.Run == "" {
		return r, fmt.Errorf("%q without a run", r.Kind)
	}
	switch r.Kind {
	case Budget, Reserve:
		if a := (money.Amount{Unit: r.Unit, N: r.Cap}); !a.Valid() {
			return r, fmt.Errorf("%s of %d %q", r.Kind, r.Cap, r.Unit)
		}
	case Spend:
		if r.Nano < 0 || r.Tokens < 0 || r.Requests < 0 {
			return r, fmt.Errorf("negative spend of run %s", r.Run)
		}
	case Launch, Release:
	default:
		return r, fmt.Errorf("unknown kind %q", r.Kind)
	}
	return r, nil
}
