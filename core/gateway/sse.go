package gateway

import "bytes"

// maxEvent is the longest event that is looked into. Those that tell a usage have a few hundred bytes.
const maxEvent = 4 << 20

// splitter cuts a stream of server-sent events into events. It takes lines that end with LF or CRLF, as the service
// sends them; of any other stream nothing is counted, and so its worst case stays charged.
type splitter struct {
	event func(data []byte)
	lost  func() // an event was too long
	line  []byte // the beginning of a line whose end has not come
	data  []byte // of the event so far
	any   bool   // the event has data
	skip  bool   // the rest of the line is dropped
}

// write takes the next piece. Nothing of it is kept.
func (s *splitter) write(p []byte) {
	for len(p) > 0 {
		end := bytes.IndexByte(p, '\n')
		if end < 0 {
			s.hold(p)
			return
		}
		line := p[:end]
		p = p[end+1:]
		if s.skip {
			s.skip, s.line = false, s.line[:0]
			continue
		}
		if len(s.line) > 0 {
			s.line = append(s.line, line...)
			line = s.line
		}
		s.take(bytes.TrimSuffix(line, []byte("\r")))
		s.line = s.line[:0]
	}
}

func (s *splitter) hold(p []byte) {
	if s.skip {
		return
	}
	if len(s.line)+len(p) > maxEvent {
		s.skip, s.line = true, nil
		s.lost()
		return
	}
	s.line = append(s.line, p...)
}

func (s *splitter) take(line []byte) {
	if len(line) == 0 {
		if s.any {
			s.event(s.data)
		}
		s.data, s.any = s.data[:0], false
		return
	}
	value, ok := bytes.CutPrefix(line, []byte("data"))
	if !ok {
		return
	}
	if len(value) > 0 {
		if value[0] != ':' {
			return
		}
		value = bytes.TrimPrefix(value[1:], []byte(" "))
	}
	if len(s.data)+len(value) > maxEvent {
		s.data = s.data[:0]
		s.lost()
		return
	}
	if s.any {
		s.data = append(s.data, '\n')
	}
	s.data, s.any = append(s.data, value...), true
}
