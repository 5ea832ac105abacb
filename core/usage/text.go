package usage

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
)

// window is how much of a text is in memory at once.
const window = 256 << 10

// text is a file or a line, read through a window that moves: however long a line is, it takes no more memory.
type text struct {
	r    io.ReaderAt
	size int64
	buf  []byte // holds the bytes from at on
	at   int64
	own  []byte
	pos  int64
	err  error // reading failed; nothing was wrong with the text
}

// newText reads what a file held when it had that size.
func newText(r io.ReaderAt, from, size int64) *text {
	return &text{r: r, size: size, pos: from, at: from, own: make([]byte, max(1, min(window, size-from)))}
}

// rest is what of the text is in memory from the position on; it is empty only at the end.
func (t *text) rest() []byte {
	if off := t.pos - t.at; off >= 0 && off < int64(len(t.buf)) {
		return t.buf[off:]
	}
	if t.pos >= t.size || t.err != nil {
		return nil
	}
	n, err := t.r.ReadAt(t.own[:min(int64(len(t.own)), t.size-t.pos)], t.pos)
	if n == 0 {
		if err != nil && err != io.EOF {
			t.err = err
		}
		t.size = t.pos // it became shorter
		return nil
	}
	t.buf, t.at = t.own[:n], t.pos
	return t.buf
}

// peek is the byte at the position.
func (t *text) peek() (byte, bool) {
	if off := t.pos - t.at; off >= 0 && off < int64(len(t.buf)) {
		return t.buf[off], true
	}
	b := t.rest()
	if len(b) == 0 {
		return 0, false
	}
	return b[0], true
}

// What can be wrong with a value.
var (
	errCut    = errors.New("the text ends in the middle of it")
	errSyntax = errors.New("not JSON")
)

// Bounds of what is read of a record; beyond them it is no record.
const (
	maxDepth  = 10_000
	maxString = 64 << 10 // of those that are looked at
	maxUsage  = 1 << 20
)

// keep collects the bytes of a value. nil keeps none.
type keep struct {
	b   []byte
	max int
}

func (k *keep) add(b ...byte) error {
	if k == nil {
		return nil
	}
	if len(k.b)+len(b) > k.max {
		return errSyntax
	}
	k.b = append(k.b, b...)
	return nil
}

// space passes over white space within a line.
func (t *text) space() {
	for {
		b, ok := t.peek()
		if !ok || b != ' ' && b != '\t' && b != '\r' {
			return
		}
		t.pos++
	}
}

// take passes over one byte, which must be that one.
func (t *text) take(want byte, k *keep) error {
	b, ok := t.peek()
	if !ok {
		return errCut
	}
	if b != want {
		return errSyntax
	}
	t.pos++
	return k.add(b)
}

// str passes over a string.
func (t *text) str(k *keep) error {
	if err := t.take('"', k); err != nil {
		return err
	}
	for {
		b := t.rest()
		if len(b) == 0 {
			return errCut
		}
		n := 0
		for n < len(b) && b[n] != '"' && b[n] != '\\' && b[n] >= ' ' {
			n++
		}
		if k != nil {
			if err := k.add(b[:n]...); err != nil {
				return err
			}
		}
		t.pos += int64(n)
		if n == len(b) {
			continue
		}
		switch b[n] {
		case '"':
			t.pos++
			return k.add('"')
		case '\\':
			t.pos++
			if err := k.add('\\'); err != nil {
				return err
			}
			e, ok := t.peek()
			if !ok {
				return errCut
			}
			if strings.IndexByte(`"\/bfnrtu`, e) < 0 {
				return errSyntax
			}
			t.pos++
			if err := k.add(e); err != nil {
				return err
			}
		default: // a line break or another control character
			return errSyntax
		}
	}
}

// plain passes over a number, true, false or null.
func (t *text) plain(k *keep) error {
	var word [64]byte
	n := 0
	for {
		b, ok := t.peek()
		if !ok {
			if n > 0 && json.Valid(word[:n]) {
				return k.add(word[:n]...)
			}
			return errCut
		}
		if b != '+' && b != '-' && b != '.' && (b < '0' || b > '9') && (b < 'a' || b > 'z') && b != 'E' {
			break
		}
		if n == len(word) {
			return errSyntax
		}
		word[n] = b
		n++
		t.pos++
	}
	if n == 0 || !json.Valid(word[:n]) {
		return errSyntax
	}
	return k.add(word[:n]...)
}

// value passes over any value.
func (t *text) value(depth int, k *keep) error {
	if depth > maxDepth {
		return errSyntax
	}
	t.space()
	b, ok := t.peek()
	switch {
	case !ok:
		return errCut
	case b == '"':
		return t.str(k)
	case b == '{':
		return t.object(depth, k, nil)
	case b == '[':
		return t.array(depth, k)
	}
	return t.plain(k)
}

func (t *text) array(depth int, k *keep) error {
	if err := t.take('[', k); err != nil {
		return err
	}
	t.space()
	if b, ok := t.peek(); ok && b == ']' {
		return t.take(']', k)
	}
	for {
		if err := t.value(depth+1, k); err != nil {
			return err
		}
		t.space()
		b, ok := t.peek()
		switch {
		case !ok:
			return errCut
		case b == ']':
			return t.take(']', k)
		}
		if err := t.take(',', k); err != nil {
			return err
		}
	}
}

// object passes over an object. each is called at each value, with its key, and must pass over it; nil: all are passed over.
func (t *text) object(depth int, k *keep, each func(name string) error) error {
	if err := t.take('{', k); err != nil {
		return err
	}
	t.space()
	if b, ok := t.peek(); ok && b == '}' {
		return t.take('}', k)
	}
	for {
		t.space()
		var name string
		var err error
		if each == nil {
			err = t.str(k)
		} else {
			name, err = t.word()
		}
		if err != nil {
			return err
		}
		t.space()
		if err := t.take(':', k); err != nil {
			return err
		}
		t.space()
		if each == nil {
			err = t.value(depth+1, k)
		} else {
			err = each(name)
		}
		if err != nil {
			return err
		}
		t.space()
		b, ok := t.peek()
		switch {
		case !ok:
			return errCut
		case b == '}':
			return t.take('}', k)
		}
		if err := t.take(',', k); err != nil {
			return err
		}
	}
}

// word is a string that is looked at.
func (t *text) word() (string, error) {
	k := keep{max: maxString}
	if err := t.str(&k); err != nil {
		return "", err
	}
	if bytes.IndexByte(k.b, '\\') < 0 {
		return string(k.b[1 : len(k.b)-1]), nil
	}
	var s string
	if json.Unmarshal(k.b, &s) != nil {
		return "", errSyntax
	}
	return s, nil
}
