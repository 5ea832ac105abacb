package gateway

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"time"
)

// tap lets a body pass and shows it to the meter. What it cost is settled before the reader gets the end, so that the
// reader's next request finds the rest given back.
type tap struct {
	body   io.ReadCloser
	call   *call
	events *splitter // nil: it is no stream
	whole  []byte
	large  bool
}

func (t *tap) Read(p []byte) (int, error) {
	n, err := t.body.Read(p)
	switch {
	case t.call.settled:
	case t.events != nil:
		if t.events.write(p[:n]); t.call.meter.Count().Final {
			t.call.settle()
		}
	case len(t.whole)+n > maxAnswer:
		t.large, t.whole = true, nil
	case !t.large:
		t.whole = append(t.whole, p[:n]...)
	}
	if errors.Is(err, io.EOF) && !t.call.settled {
		if t.events == nil {
			t.call.meter.Body(t.whole)
		}
		t.call.settle()
	}
	return n, err
}

func (t *tap) Close() error { return t.body.Close() }

// patient cuts a response whose next piece does not come. The time in which the reader is slow does not count.
type patient struct {
	io.ReadCloser
	idle   time.Duration
	cancel context.CancelCauseFunc
}

func (p *patient) Read(b []byte) (int, error) {
	t := time.AfterFunc(p.idle, func() { p.cancel(fmt.Errorf("the service sent nothing for %v", p.idle)) })
	defer t.Stop()
	return p.ReadCloser.Read(b)
}

// unpacked is a gzipped body as it was meant. The beginning is not read before somebody asks for it.
type unpacked struct {
	from   io.ReadCloser
	reader *gzip.Reader
}

func (u *unpacked) Read(p []byte) (int, error) {
	if u.reader == nil {
		r, err := gzip.NewReader(u.from)
		if err != nil {
			return 0, fmt.Errorf("unpack the answer: %w", err)
		}
		u.reader = r
	}
	return u.reader.Read(p)
}

func (u *unpacked) Close() error { return u.from.Close() }
