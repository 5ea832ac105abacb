package ledger

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"example.com/AutoAgentProject/core/money"
)

// errBadLine marks a whole line that is not the record that must stand there.
var errBadLine = errors.New("bad line")

// past is what the records read so far come to.
type past struct {
	file    os.FileInfo // to notice another file under the same name
	offset  int64       // end of what was read
	line    int         // lines before it
	unended bool        // the last record lacks its newline
	torn    []byte      // half a line after it
	seq     int64       // number of the last record
	budget  money.Amount
	runs    map[string]*run
	open    map[string]*run // those that reserved and did not end
	nano    money.Nano      // spent by all runs
	tokens  int64
	base    *sums // what came before runs; nil: nothing did
	summed  int64 // up to where the sums beside the file go
}

// run is one run in the ledger.
type run struct {
	Run
	settled  bool // has a spend record
	nano     money.Nano
	tokens   int64
	requests int64
	byModel  map[string]money.Usage
	unpriced []string
	at       time.Time // of the last spend record
}

// open opens the file, which must be a regular one.
func (l *Ledger) open() (*os.File, os.FileInfo, error) {
	f, err := os.OpenFile(l.path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil, l.unreadable(err)
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = errors.New("not a regular file")
	}
	if err != nil {
		f.Close()
		return nil, nil, l.unreadable(err)
	}
	return f, info, nil
}

// refresh reads what is new in the file. On an error the state stays at the last good record.
func (l *Ledger) refresh() error {
	f, info, err := l.open()
	if err != nil {
		return err
	}
	defer f.Close()
	p := l.past
	if p == nil || !os.SameFile(p.file, info) || info.Size() < p.offset {
		p = l.fromSums(f, info.Size())
	}
	p.file = info
	err = p.read(io.NewSectionReader(f, p.offset, info.Size()-p.offset))
	if errors.Is(err, errWhole) || err != nil && p.base != nil { // also what the sums and the rest do not agree on
		p = &past{file: info, summed: p.summed, runs: map[string]*run{}, open: map[string]*run{}}
		err = p.read(io.NewSectionReader(f, 0, info.Size()))
	}
	return l.take(p, err)
}

// whole reads all of the file, whatever sums there are.
func (l *Ledger) whole() error {
	f, info, err := l.open()
	if err != nil {
		return err
	}
	defer f.Close()
	p := &past{file: info, runs: map[string]*run{}, open: map[string]*run{}}
	if l.past != nil {
		p.summed = l.past.summed
	}
	return l.take(p, p.read(io.NewSectionReader(f, 0, info.Size())))
}

// take makes p the state, unless it cannot be it.
func (l *Ledger) take(p *past, err error) error {
	if err != nil {
		return l.unreadable(err)
	}
	if p.seq == 0 {
		return l.unreadable(errors.New("it has no record"))
	}
	if l.past != nil && p.seq < l.past.seq {
		return l.unreadable(fmt.Errorf("it had %d records and has %d", l.past.seq, p.seq))
	}
	l.past = p
	return nil
}

// read takes in all whole lines, and a last line without its newline if it is a whole record.
func (p *past) read(r *io.SectionReader) error {
	p.torn = nil
	b := bufio.NewReaderSize(r, int(min(r.Size(), 128<<10)))
	for {
		line, err := readLine(b)
		if err != nil && err != io.EOF {
			return err
		}
		text := bytes.TrimSpace(line)
		if err == io.EOF && len(text) > 0 && !json.Valid(text) {
			p.torn = line // the beginning of a JSON object is no JSON: this is half of one
			return nil
		}
		if len(text) > 0 {
			if err := p.take(text); err != nil {
				return fmt.Errorf("line %d: %w: %w", p.line+1, errBadLine, err)
			}
		}
		p.offset += int64(len(line))
		if err == io.EOF {
			p.unended = p.unended || len(text) > 0
			return nil
		}
		p.unended = false
		p.line++
	}
}

// readLine returns the next line with its newline, however long; io.EOF comes with what has none. It is valid until
// the next call.
func readLine(b *bufio.Reader) ([]byte, error) {
	line, err := b.ReadSlice('\n')
	if err != bufio.ErrBufferFull {
		return line, err
	}
	line = bytes.Clone(line)
	rest, err := b.ReadBytes('\n')
	return append(line, rest...), err
}

func (p *past) take(line []byte) error {
	r, err := parse(line)
	if err != nil {
		return err
	}
	if err := p.fits(r); err != nil {
		return err
	}
	p.apply(r)
	return nil
}

// fits says what speaks against r as the next record.
func (p *past) fits(r Record) error {
	switch {
	case r.Seq != p.seq+1:
		return fmt.Errorf("its number is %d, %d must come next", r.Seq, p.seq+1)
	case p.seq == 0 && r.Kind != Budget:
		return fmt.Errorf("the first record is %q, not the budget", r.Kind)
	case p.seq > 0 && r.Unit != "" && r.Unit != p.budget.Unit:
		return fmt.Errorf("it counts %q, the budget %q", r.Unit, p.budget.Unit)
	case r.Kind == Reserve || r.Kind == Spend:
		e, err := p.find(r.Run)
		if err != nil {
			return err
		}
		if e != nil && r.Kind == Reserve {
			return fmt.Errorf("run %s reserved before", r.Run)
		}
	}
	return nil
}

func (p *past) apply(r Record) {
	p.seq = r.Seq
	if r.Kind == Budget {
		p.budget = money.Amount{Unit: r.Unit, N: r.Cap}
		return
	}
	e := p.runs[r.Run]
	if e == nil {
		e = &run{Run: Run{ID: r.Run, Agent: r.Agent, Step: r.Step, Model: r.Model, At: r.At}}
		p.runs[r.Run] = e
	}
	switch r.Kind {
	case Reserve:
		e.Cap = r.Cap
		p.open[r.Run] = e
	case Launch:
		e.Launched = true
	case Release:
		delete(p.open, r.Run)
	case Spend:
		delete(p.open, r.Run)
		p.spend(e, r)
	}
}

// spend raises the spend of a run to that of the record. It never goes down: of several records the largest counts.
func (p *past) spend(e *run, r Record) {
	if len(r.ByModel) > 0 && (e.byModel == nil || r.Nano > e.nano || r.Nano == e.nano && r.Tokens > e.tokens) {
		e.byModel = r.ByModel
	}
	p.nano = money.Sum(p.nano, r.Nano-e.nano)
	p.tokens = money.Sum(p.tokens, r.Tokens-e.tokens)
	e.nano, e.tokens, e.requests = max(e.nano, r.Nano), max(e.tokens, r.Tokens), max(e.requests, r.Requests)
	e.settled, e.at = true, r.At
	e.unpriced = union(e.unpriced, r.Unpriced)
}
