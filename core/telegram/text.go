package telegram

import (
	"strings"

	tgbotapi "github.com/go-telegram-bot-api/telegram-bot-api/v5"

	"example.com/AutoAgentProject/core/notify"
)

// Limits of Telegram, in UTF-16 units: of a text, and of a file's caption.
const (
	MaxText    = 4096
	MaxCaption = 1024
	maxBold    = 100 // ranges in one message
)

// Cut shortens a text to max UTF-16 units.
func Cut(s string, max int) string {
	if notify.Units(s) <= max {
		return s
	}
	return Head(s, max-1) + "…"
}

// Head is the longest beginning of a text with at most max UTF-16 units that cuts no character in two.
func Head(s string, max int) string {
	n := 0
	for i, r := range s {
		if n++; r > 0xFFFF {
			n++
		}
		if n > max {
			return s[:i]
		}
	}
	return s
}

// Piece is the beginning of a text that fits into max units, cut at the last line break in its second half, else at the
// last space there, else before the character that does not fit.
func Piece(s string, max int) string {
	head := Head(s, max)
	if len(head) == len(s) {
		return s
	}
	for _, at := range []string{"\n", " "} {
		if i := strings.LastIndex(head, at); i >= len(head)/2 {
			return head[:i+1]
		}
	}
	return head
}

// After is what follows the first n units of a text.
func After(s string, n int) string {
	return s[len(Head(s, n)):]
}

// Clip returns the parts of the bold ranges that lie in a piece that begins at unit from and has n units.
func Clip(bold []notify.Span, from, n int) []tgbotapi.MessageEntity {
	var out []tgbotapi.MessageEntity
	for _, b := range bold {
		begin, end := max(b.Offset-from, 0), min(b.Offset+b.Length-from, n)
		if begin < end && len(out) < maxBold {
			out = append(out, tgbotapi.MessageEntity{Type: "bold", Offset: begin, Length: end - begin})
		}
	}
	return out
}
