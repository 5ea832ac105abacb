package gateway

import (
	"fmt"
	"io"
	"log/slog"
	"strings"
)

// hidden is what is shown in the place of a secret.
const hidden = "[credential]"

// Secret is a text that no print, log or encoding shows. It is kept behind a pointer: a print of a struct does not call
// the methods of its unexported fields, but it does not follow their pointers either.
type Secret struct{ text *string }

// Hide makes a Secret.
func Hide(text string) Secret { return Secret{&text} }

func (s Secret) reveal() string {
	if s.text == nil {
		return ""
	}
	return *s.text
}

// strike replaces the secret wherever it stands in a text.
func (s Secret) strike(text string) string {
	if s.reveal() == "" {
		return text
	}
	return strings.ReplaceAll(text, s.reveal(), hidden)
}

// String is the same for every secret.
func (Secret) String() string { return hidden }

// Format prints the same with every verb.
func (Secret) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, hidden) }

// LogValue is what slog shows.
func (Secret) LogValue() slog.Value { return slog.StringValue(hidden) }

// MarshalText is what JSON shows.
func (Secret) MarshalText() ([]byte, error) { return []byte(hidden), nil }
