package usage

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"

	"example.com/AutoAgentProject/core/files"
)

// stateVersion is the version of the state that this program writes, and the only one that it reads.
const stateVersion = 1

// stateHead is the first line of a state; Lines follow it.
type stateHead struct {
	Version   int              `json:"v"`
	Under     string           `json:"under,omitempty"`
	Malformed int64            `json:"malformed"`
	Repeats   int64            `json:"repeats"`
	Files     map[string]*file `json:"files"`
	Turns     map[string]*turn `json:"turns"`
	Models    []string         `json:"models"`
	Lines     int              `json:"lines"`
}

// ErrState marks a state that cannot be used.
var ErrState = errors.New("not a state of a scan")

// Save writes what was counted and how far each file was read, whole or not at all. If nothing is new it does nothing.
//
// The form is text: one JSON object, then for each response a line "r" with its identity, model, time and numbers, and
// for each record of a response without an id of its own a line "u". It holds counts, file names and times, and nothing
// that was written in a conversation.
func (s *Scan) Save(path string) error {
	if !s.dirty {
		return nil
	}
	head := stateHead{Version: stateVersion, Under: s.under, Malformed: s.malformed, Repeats: s.repeats, Files: s.files,
		Turns: s.runs, Lines: len(s.responses) + len(s.records)}
	model := map[string]int{}
	for m := range s.models {
		head.Models = append(head.Models, m)
	}
	slices.Sort(head.Models)
	for i, m := range head.Models {
		model[m] = i
	}
	first, err := json.Marshal(head)
	if err != nil {
		return err
	}
	b := make([]byte, 0, len(first)+100*head.Lines)
	b = append(append(b, first...), '\n')
	for k, r := range s.responses {
		m := -1
		if r.Model != "" {
			m = model[r.Model]
		}
		b = append(b, "r "...)
		b = hex.AppendEncode(b, k[:])
		t := r.Tokens
		for _, n := range []int64{int64(m), r.at, flag(r.main), flag(t.Speed == fast), flag(t.Geo == inUS), int64(t.Input), int64(t.Output), int64(t.CacheRead),
			int64(t.Written), int64(t.Split.For5m), int64(t.Split.For1h), int64(t.Server.Searches)} {
			b = strconv.AppendInt(append(b, ' '), n, 10)
		}
		if len(t.Iterations) > 0 {
			more, err := json.Marshal(t.Iterations)
			if err != nil {
				return err
			}
			b = append(append(b, ' '), more...)
		}
		b = append(b, '\n')
	}
	for k, r := range s.records {
		b = append(b, "u "...)
		b = hex.AppendEncode(b, k[:])
		b = append(b, ' ')
		b = append(hex.AppendEncode(b, r[:]), '\n')
	}
	if err := files.Replace(path, b, 0o600); err != nil {
		return err
	}
	s.dirty = false
	return nil
}

// LoadScan reads a state. A file that is not there is an empty one. The error wraps ErrState if it is damaged, of
// another version, or belongs to a scan of other records.
func LoadScan(path, under string) (*Scan, error) {
	s := NewScan(under)
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return s, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if st, err := f.Stat(); err != nil || !st.Mode().IsRegular() {
		return nil, errors.Join(err, fmt.Errorf("%s is not a regular file: %w", path, ErrState))
	}
	in := bufio.NewReaderSize(f, window)
	var head stateHead
	first, err := in.ReadBytes('\n')
	if err != nil || json.Unmarshal(first, &head) != nil || head.Version != stateVersion {
		return nil, fmt.Errorf("%s: %w", path, ErrState)
	}
	if head.Under != under {
		return nil, fmt.Errorf("%s counted what lies under %q: %w", path, head.Under, ErrState)
	}
	s.malformed, s.repeats = head.Malformed, head.Repeats
	for name, f := range head.Files {
		if f == nil {
			return nil, fmt.Errorf("%s: %w", path, ErrState)
		}
		s.files[name] = f
	}
	for name, t := range head.Turns {
		if t == nil {
			return nil, fmt.Errorf("%s: %w", path, ErrState)
		}
		s.runs[name] = t
	}
	for _, m := range head.Models {
		s.name(m)
	}
	lines := 0
	for sc := newLineReader(in); sc.next(); lines++ {
		if !s.restore(sc.line, head.Models) {
			return nil, fmt.Errorf("%s: line %d: %w", path, lines+2, ErrState)
		}
	}
	if lines != head.Lines {
		return nil, fmt.Errorf("%s has %d lines of %d: %w", path, lines, head.Lines, ErrState)
	}
	return s, nil
}

// restore takes in one line of a state.
func (s *Scan) restore(line []byte, models []string) bool {
	kind, rest, _ := bytes.Cut(line, []byte(" "))
	id, rest, _ := bytes.Cut(rest, []byte(" "))
	var k key
	if n, err := hex.Decode(k[:], id[:min(len(id), 2*len(k))]); err != nil || n != len(k) {
		return false
	}
	switch string(kind) {
	case "u":
		var to key
		if n, err := hex.Decode(to[:], rest[:min(len(rest), 2*len(to))]); err != nil || n != len(to) {
			return false
		}
		s.records[k] = to
		return true
	case "r":
		var n [12]int64
		for i := range n {
			var word []byte
			word, rest, _ = bytes.Cut(rest, []byte(" "))
			var err error
			if n[i], err = strconv.ParseInt(string(word), 10, 64); err != nil || n[i] < 0 && i > 0 {
				return false
			}
		}
		r := &Response{at: n[1], main: n[2] == 1}
		if n[0] >= int64(len(models)) {
			return false
		}
		if n[0] >= 0 {
			r.Model = s.name(models[n[0]])
		}
		t := &r.Tokens
		if n[3] == 1 {
			t.Speed = fast
		}
		if n[4] == 1 {
			t.Geo = inUS
		}
		t.Input, t.Output, t.CacheRead, t.Written = Number(n[5]), Number(n[6]), Number(n[7]), Number(n[8])
		t.Split.For5m, t.Split.For1h, t.Server.Searches = Number(n[9]), Number(n[10]), Number(n[11])
		if len(rest) > 0 && json.Unmarshal(rest, (*[]Iteration)(&t.Iterations)) != nil {
			return false
		}
		s.responses[k] = r
		return true
	}
	return false
}

func flag(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// lineReader reads whole lines.
type lineReader struct {
	in   *bufio.Reader
	line []byte
}

func newLineReader(in *bufio.Reader) *lineReader { return &lineReader{in: in} }

func (l *lineReader) next() bool {
	line, err := l.in.ReadSlice('\n')
	if err == bufio.ErrBufferFull {
		line = bytes.Clone(line)
		var rest []byte
		rest, err = l.in.ReadBytes('\n')
		line = append(line, rest...)
	}
	l.line = bytes.TrimSuffix(line, []byte("\n"))
	return err == nil
}
