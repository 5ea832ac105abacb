package handoff

import "time"

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// note is an envelope to everybody in to.
func note(from, to, id string) (name string, e Envelope) {
	e.Headers = []Header{{"id", id}, {"from", from}, {"to", to}, {"priority", "50"}, {"type", Note}, {"message", "about " + id}, {"created_at", Instant(noon)}}
	e.Body = "about " + id + "\n"
	return "50_" + id + Suffix, e
}
