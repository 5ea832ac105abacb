package journal

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// How Before reads: piece by piece from the end, and never more than most of them at once, however long the lines are.
const (
	piece = 64 << 10
	most  = 4 << 20
)

// Before returns the last n events that lie before a byte offset, oldest first, and where the first of them begins, from
// where one can go on; 0 there means that nothing is older. A negative end is the end of the file. What it reads does not
// grow with the age of a mission. A link or a FIFO in place of the file is refused.
func (j Journal) Before(end int64, n int) (events []Event, begin int64, err error) {
	f, err := os.OpenFile(j.Path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, 0, nil
	}
	if err != nil {
		return nil, 0, err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return nil, 0, err
	}
	if !st.Mode().IsRegular() {
		return nil, 0, fmt.Errorf("%s is no plain file", j.Path)
	}
	if end < 0 || end > st.Size() {
		end = st.Size()
	}
	var buf []byte
	at := end
	for at > 0 && end-at < most && bytes.Count(buf, []byte{'\n'}) <= n {
		size := min(piece, at)
		part := make([]byte, size, size+int64(len(buf)))
		if _, err := f.ReadAt(part, at-size); err != nil && err != io.EOF {
			return nil, 0, err
		}
		at -= size
		buf = append(part, buf...)
	}
	if at > 0 { // the first line is most likely cut
		cut := bytes.IndexByte(buf, '\n') + 1
		if cut == 0 {
			cut = len(buf)
		}
		buf, at = buf[cut:], at+int64(cut)
	}
	begin = at
	for off := int64(0); off < int64(len(buf)); {
		line, _, whole := bytes.Cut(buf[off:], []byte{'\n'})
		e := Event{Offset: at + off}
		off += int64(len(line)) + 1
		if whole && json.Unmarshal(line, &e) == nil && e.Kind != "" {
			events = append(events, e)
		}
	}
	if len(events) > n {
		events = events[len(events)-n:]
		begin = events[0].Offset
	}
	return events, begin, nil
}
