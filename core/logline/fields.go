package logline

import (
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/coreos/go-systemd/v22/journal"
)

func priority(l slog.Level) journal.Priority {
	switch {
	case l >= slog.LevelError:
		return journal.PriErr
	case l >= slog.LevelWarn:
		return journal.PriWarning
	case l >= slog.LevelInfo:
		return journal.PriInfo
	}
	return journal.PriDebug
}

// flatten appends attributes to list, resolved, groups turned into beginnings of names, empty ones left out.
func flatten(list []slog.Attr, prefix string, attrs []slog.Attr) []slog.Attr {
	for _, a := range attrs {
		v := a.Value.Resolve()
		switch {
		case v.Kind() == slog.KindGroup && a.Key == "": // its members stand for it
			list = flatten(list, prefix, v.Group())
		case v.Kind() == slog.KindGroup:
			list = flatten(list, prefix+a.Key+"_", v.Group())
		case a.Key != "" && text(v) != "":
			list = append(list, slog.Attr{Key: prefix + a.Key, Value: v})
		}
	}
	return list
}

func text(v slog.Value) string {
	switch v.Kind() {
	case slog.KindTime:
		return v.Time().UTC().Format(time.RFC3339Nano)
	case slog.KindAny:
		if v.Any() == nil {
			return ""
		}
		return fmt.Sprint(v.Any())
	}
	return v.String()
}

// fieldsOf are the journal's fields of flat attributes; of two with one name the later one counts.
func fieldsOf(attrs []slog.Attr) map[string]string {
	fields := make(map[string]string, len(attrs)+1)
	for _, a := range attrs {
		if n := fieldName(a.Key); n != "" {
			fields[n] = text(a.Value)
		}
	}
	return fields
}

// maxName is the longest name that the journal takes, in bytes.
const maxName = 64

// fieldName makes a field's name of an attribute's: A to Z, 0 to 9 and _, the first a letter. Names with a meaning of
// their own (systemd.journal-fields(7)) get a prefix, so that no attribute can pass for one of them. "" is no name.
func fieldName(key string) string {
	n := strings.Map(func(r rune) rune {
		switch {
		case 'a' <= r && r <= 'z':
			return r - 'a' + 'A'
		case 'A' <= r && r <= 'Z', '0' <= r && r <= '9':
			return r
		}
		return '_'
	}, key)
	n = strings.TrimLeft(n, "_")
	if n == "" {
		return ""
	}
	if '0' <= n[0] && n[0] <= '9' || taken(n) {
		n = "AUTOAGENT_" + n
	}
	return n[:min(len(n), maxName)]
}

func taken(n string) bool {
	for _, begin := range []string{"CODE_", "SYSLOG_", "OBJECT_", "COREDUMP_", "MESSAGE_"} {
		if strings.HasPrefix(n, begin) {
			return true
		}
	}
	return slices.Contains([]string{"MESSAGE", "PRIORITY", "ERRNO", "INVOCATION_ID", "USER_INVOCATION_ID", "DOCUMENTATION", "TID", "UNIT", "USER_UNIT"}, n)
}

// silent are attributes that a reader of the sentence has no use for: they are there to search by.
var silent = []string{Mission, Agent, Run, Tick, "step", "event"}

// sentence is what a person reads: the message, what went wrong, and the rest in brackets.
func sentence(message string, own []slog.Attr) string {
	var rest []string
	why := ""
	for _, a := range own {
		switch {
		case slices.Contains(silent, a.Key):
		case a.Key == "err":
			why = ": " + text(a.Value)
		default:
			rest = append(rest, strings.ReplaceAll(a.Key, "_", " ")+": "+text(a.Value))
		}
	}
	s := message + why
	if len(rest) > 0 {
		s += " (" + strings.Join(rest, ", ") + ")"
	}
	return readable(s)
}

// readable takes out what journalctl would hide the whole line for: it shows "blob data" instead of text with control
// characters.
func readable(s string) string {
	s = strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\r\n", "\n")
	s = strings.Map(func(r rune) rune {
		if r < ' ' && r != '\n' && r != '\t' || r >= 0x7f && r < 0xa0 {
			return '\uFFFD'
		}
		return r
	}, s)
	return strings.TrimRight(s, "\n")
}
