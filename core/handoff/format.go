// Package handoff is the words of the handoff protocol, SwarmForge's file format: drafts that agents write, the gate that
// judges them, the files that travel, their names, what is printed of them, and a task's way. It does no I/O and knows no
// clock: facts and times come in, files and problems go out.
package handoff

import (
	"strings"
	"time"
	"unicode"
)

// Suffix is how the name of every envelope ends; other files in the folders are ignored.
const Suffix = ".handoff"

// BatchPrefix is how the name of a folder in in_process begins that holds a batch.
const BatchPrefix = "batch_"

// The two types of envelopes.
const (
	GitHandoff = "git_handoff"
	Note       = "note"
)

// MaxText is the longest task name and message, in UTF-16 units as the format counts.
const MaxText = 80

// DefaultPriority counts where a file has no header priority.
const DefaultPriority = "50"

// MaxName is the longest name of an envelope that is made here, in bytes: with .receipts or .claim, and as a temporary
// file, it must stay below the 255 of a file system.
const MaxName = 200

// Stamp is the time in names and ids, to the second.
func Stamp(t time.Time) string { return t.UTC().Format("20060102T150405Z") }

// Instant is an ISO 8601 instant in UTC with no fraction or one of three, six or nine digits.
func Instant(t time.Time) string {
	t = t.UTC()
	switch ns := t.Nanosecond(); {
	case ns == 0:
		return t.Format("2006-01-02T15:04:05Z")
	case ns%1e6 == 0:
		return t.Format("2006-01-02T15:04:05.000Z")
	case ns%1e3 == 0:
		return t.Format("2006-01-02T15:04:05.000000Z")
	}
	return t.Format("2006-01-02T15:04:05.000000000Z")
}

// blank says whether a line holds nothing but white space as the format knows it: no-break spaces are text.
func blank(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool {
		switch {
		case r >= '\t' && r <= '\r', r >= 0x1c && r <= ' ':
			return false
		case r == 0xa0 || r == 0x2007 || r == 0x202f:
			return true
		}
		return !unicode.Is(unicode.Z, r)
	})
}

// units counts characters as the format does: UTF-16 units.
func units(s string) int {
	n := 0
	for _, r := range s {
		n++
		if r > 0xffff {
			n++
		}
	}
	return n
}

// lines splits text into lines, which end with LF or CR LF. Empty lines at the end are none; text without any line end is
// one line.
func lines(text string) []string {
	all := strings.Split(text, "\n")
	if len(all) == 1 {
		return all
	}
	for i := range all[:len(all)-1] {
		all[i] = strings.TrimSuffix(all[i], "\r")
	}
	for len(all) > 0 && all[len(all)-1] == "" {
		all = all[:len(all)-1]
	}
	return all
}
