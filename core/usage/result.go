package usage

import (
	"io"
	"math"
	"strconv"

	"example.com/AutoAgentProject/core/money"
)

// Result is what the output of one process of the agent program says that it cost.
type Result struct {
	Session string
	Version string // of the program
	Total   money.Nano
	Known   bool // a result told its total
}

// ReadResult reads a stream of events. Several results of one process are running totals: the last counts. One without
// a total that is a number is not known, which is not the same as nothing.
func ReadResult(r io.ReaderAt, size int64) (Result, error) {
	var out Result
	t := newText(r, 0, size)
	t.records(func(l *line) {
		switch l.kind {
		case "system":
			if l.version != "" {
				out.Version = l.version
			}
		case "result":
			out.Total, out.Known = 0, false
			if d, ok := dollars(l.total); ok {
				out.Total, out.Known = d, true
			}
		default:
			return
		}
		if l.session != "" {
			out.Session = l.session
		}
	})
	return out, t.err
}

// dollars reads an amount; whatever is not a number from 0 to a million is none.
func dollars(raw []byte) (money.Nano, bool) {
	f, err := strconv.ParseFloat(string(raw), 64)
	if err != nil || !(f >= 0 && f <= 1e6) {
		return 0, false
	}
	return money.Nano(math.Round(f * float64(money.USD))), true
}
