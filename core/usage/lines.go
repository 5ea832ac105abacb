package usage

import "bytes"

// found is what reading a text came to.
type found struct {
	offset    int64 // behind the last whole record or line: where to go on when the text has grown
	malformed int64 // lines with something broken in them
	tail      bool  // an unfinished line follows the offset
}

// records reads the records of a text from the position to the end and hands each to take. What is broken is left out:
// the rest of its line counts, be it in front, behind or, where a writer was cut off and another record follows in the
// same line, in the middle. An unfinished last line is left for the next time.
func (t *text) records(take func(*line)) found {
	f := found{offset: t.pos}
	broken := false // this line is counted as such
	for {
		b, ok := t.peek()
		if !ok {
			f.offset = t.pos
			return f
		}
		switch {
		case b == '\n':
			broken = false
			t.pos++
			f.offset = t.pos
			continue
		case b == ' ' || b == '\t' || b == '\r' || b == 0: // a crash can leave NULs
			t.pos++
			continue
		case b == 0xEF && bytes.HasPrefix(t.rest(), []byte("\xEF\xBB\xBF")):
			t.pos += 3
			continue
		}
		start := t.pos
		var l *line
		err := errSyntax
		if b == '{' {
			l, err = t.record()
		}
		if err == errSyntax {
			l, err = t.recover(start)
			if err == nil && !broken {
				broken = true
				f.malformed++
			}
		}
		if err == errCut {
			f.offset, f.tail = start, true
			return f
		}
		if l != nil {
			take(l)
		}
		f.offset = t.pos
	}
}

// recover looks behind the beginning of something broken for a record in the same line. The position is behind it
// afterwards, or, when l is nil, at the line's end. errCut says that the line is not finished.
func (t *text) recover(start int64) (l *line, err error) {
	t.pos = start + 1
	work := int64(0) // what was read in vain: bounded, so that no line can make this slow
	for t.candidate() {
		from := t.pos
		if work <= 4*(from-start)+1<<20 {
			l, err := t.record()
			switch {
			case err == nil && l.whole():
				return l, nil
			case err == nil: // a part of a record
				continue
			case err == errCut:
				return nil, errCut
			}
			work += t.pos - from
		}
		t.pos = from + 1
	}
	if _, ok := t.peek(); !ok {
		return nil, errCut
	}
	return nil, nil
}

// candidate goes to the next place in the line where an object begins. It is false at the line's end.
func (t *text) candidate() bool {
	for {
		b := t.rest()
		if len(b) == 0 {
			return false
		}
		n := 0
		for n < len(b) && b[n] != '{' && b[n] != '\n' {
			n++
		}
		t.pos += int64(n)
		if n == len(b) {
			continue
		}
		if b[n] == '\n' {
			return false
		}
		at := t.pos
		t.pos++
		next, _ := t.peek()
		t.pos = at
		if next == '"' {
			return true
		}
		t.pos++
	}
}
