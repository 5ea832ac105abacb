package app

import (
	"bytes"
	"io"
	"math/big"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"example.com/AutoAgentProject/core/files"
	"example.com/AutoAgentProject/core/usererr"
)

// maxGoal is the longest goal, in bytes. The agent program takes 10 MB.
const maxGoal = 8 << 20

// goal reads the goal from the argument, a file or standard input, byte for byte.
func (c *cli) goal(arg string, given bool, file string) ([]byte, error) {
	const hint = `write the goal in quotes, or give --goal-file FILE (- is standard input)`
	var b []byte
	switch {
	case file == "-":
		var err error
		if b, err = io.ReadAll(io.LimitReader(c.env.Stdin, maxGoal+1)); err != nil {
			return nil, usererr.Wrap(err, usererr.Usage, hint, "the goal cannot be read from standard input")
		}
	case file != "":
		f, err := os.Open(file)
		if err != nil {
			return nil, usererr.Wrap(err, usererr.Usage, hint, "the goal cannot be read")
		}
		defer f.Close()
		if st, err := f.Stat(); err != nil || !st.Mode().IsRegular() {
			return nil, usererr.New(usererr.Usage, hint, "%s is no file", file)
		}
		if b, err = io.ReadAll(io.LimitReader(f, maxGoal+1)); err != nil {
			return nil, usererr.Wrap(err, usererr.Usage, hint, "the goal cannot be read")
		}
	case given && arg == "-":
		return nil, usererr.New(usererr.Usage, "--goal-file - reads standard input", "the goal is a lone -")
	case given:
		b = []byte(arg)
	default:
		return nil, usererr.New(usererr.Usage, hint, "the mission needs a goal")
	}
	switch {
	case len(b) > maxGoal:
		return nil, usererr.New(usererr.Usage, "put what is long into files of --from", "the goal has more than %d MB", maxGoal>>20)
	case bytes.IndexByte(b, 0) >= 0:
		return nil, usererr.New(usererr.Usage, hint, "the goal holds a NUL byte")
	case !utf8.Valid(b):
		return nil, usererr.New(usererr.Usage, "save it as UTF-8", "the goal is no UTF-8 text")
	case strings.IndexFunc(string(b), func(r rune) bool {
		return unicode.IsLetter(r) || unicode.IsNumber(r) || unicode.IsSymbol(r) || unicode.IsPunct(r)
	}) < 0:
		return nil, usererr.New(usererr.Usage, hint, "the goal is blank")
	}
	return b, nil
}

var decimal = regexp.MustCompile(`^[0-9]{1,6}(\.[0-9]{1,6})?$`)

// maxHours is the longest time limit.
const maxHours = 24 * 31

// hours reads "4", "0.5" or "90m".
func hours(s string) (time.Duration, error) {
	const hint = "write --max-hours 4, 0.5 or 90m; from 1s to 744 hours (31 days)"
	var d time.Duration
	if decimal.MatchString(s) {
		r, _ := new(big.Rat).SetString(s)
		r.Mul(r, big.NewRat(int64(time.Hour), 1))
		d = time.Duration(new(big.Int).Quo(r.Num(), r.Denom()).Int64())
	} else {
		var err error
		if d, err = time.ParseDuration(s); err != nil || !strings.ContainsAny(s, "hms") {
			return 0, usererr.New(usererr.Usage, hint, "%q is no time limit", s)
		}
	}
	switch {
	case d < time.Second:
		return 0, usererr.New(usererr.Usage, hint, "the time limit %q is too short", s)
	case d > maxHours*time.Hour:
		return 0, usererr.New(usererr.Usage, hint, "the time limit %q is too long", s)
	}
	return d, nil
}

// untilTime reads RFC 3339 or a clock time, which means its next occurrence.
func untilTime(s string, now time.Time) (time.Time, error) {
	const hint = "write --until 2026-12-01T08:00:00Z, or 08:00 for the next time the clock shows it"
	t, err := time.Parse(time.RFC3339, s)
	if err != nil {
		c, cerr := time.ParseInLocation("15:04", s, now.Location())
		if cerr != nil {
			return t, usererr.New(usererr.Usage, hint, "%q is no time", s)
		}
		t = time.Date(now.Year(), now.Month(), now.Day(), c.Hour(), c.Minute(), 0, 0, now.Location())
		if !t.After(now) {
			t = time.Date(now.Year(), now.Month(), now.Day()+1, c.Hour(), c.Minute(), 0, 0, now.Location())
		}
	}
	switch {
	case !t.After(now):
		return t, usererr.New(usererr.Usage, hint, "%q is past", s)
	case t.Sub(now) > maxHours*time.Hour:
		return t, usererr.New(usererr.Usage, hint, "%q is more than 31 days away", s)
	}
	return t.UTC(), nil
}

var modelID = regexp.MustCompile(`^[a-z0-9][a-z0-9._:@/-]{2,99}$`)

// checkModel wants an exact id: names without a number, as "sonnet", mean another model from one day to the next.
func checkModel(s string) error {
	if !modelID.MatchString(s) || !strings.ContainsAny(s, "0123456789") {
		return usererr.New(usererr.Usage, "write the exact id, for example "+defaultModel, "%q is no model id", s)
	}
	return nil
}

// checkCommand is for --verify.
func checkCommand(s string) error {
	switch {
	case s == "":
		return nil
	case strings.TrimSpace(s) == "":
		return usererr.New(usererr.Usage, "leave --verify out, or write a command", "--verify is blank")
	case strings.ContainsRune(s, 0) || !utf8.ValidString(s):
		return usererr.New(usererr.Usage, "", "--verify holds a byte that is no text")
	case len(s) > 20_000:
		return usererr.New(usererr.Usage, "put it into a script of the repository", "--verify is too long")
	}
	return nil
}

// existing is the nearest folder at or above path that is there.
func existing(path string) string {
	for path != "/" {
		if _, err := os.Stat(path); err == nil {
			return path
		}
		path = filepath.Dir(path)
	}
	return path
}

// writable says whether the root can be written, by doing it: in the root, or, where that is not made yet, in the
// folder that it would be made in. Nothing stays behind.
func writable(root string) error {
	const hint = "give another --root, or make it writable"
	f, err := os.CreateTemp(existing(root), ".writable-*")
	if err != nil {
		return usererr.Wrap(err, usererr.Environment, hint, "the root cannot be written")
	}
	f.Close()
	// Everything hangs on renames that overwrite nothing; not every network file system has them.
	moved := f.Name() + ".moved"
	err = files.Move(f.Name(), moved)
	_ = os.Remove(f.Name())
	_ = os.Remove(moved)
	if err != nil {
		return usererr.Wrap(err, usererr.Environment, "give a --root on a local file system", "the file system of the root cannot rename safely")
	}
	return nil
}
