package claude

import (
	"bufio"
	"fmt"
	"io"
)

// maxLine is where a line is no longer taken for one: the longest that say something here have a few megabytes, and a program
// gone wild must not take the memory of the tick.
const maxLine = 8 << 20

// cutLine stands for a line that was too long, and for what a full transcript left out.
func cutLine(bytes int64) []byte { return fmt.Appendf(nil, `{"type":"cut","bytes":%d}`, bytes) }

// readLines hands over every line without its end until the reader ends or take returns false. The last one need not have an
// end. In place of a line beyond maxLine a mark is handed over that says how long it was.
func readLines(r io.Reader, take func(line []byte) bool) error {
	br := bufio.NewReaderSize(r, 64<<10)
	var line []byte
	var length int64
	for {
		part, err := br.ReadSlice('\n')
		if length += int64(len(part)); length <= maxLine {
			line = append(line, part...)
		} else {
			line = nil
		}
		if err == bufio.ErrBufferFull {
			continue
		}
		if length > maxLine {
			line = cutLine(length)
		}
		if n := len(line); n > 0 && line[n-1] == '\n' {
			line = line[:n-1]
		}
		if (len(line) > 0 || err == nil) && !take(line) {
			return nil
		}
		line, length = nil, 0
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}
