package claude

import (
	"bufio"
	"io"
)

// maxLine is where a line is no longer taken for one: the longest real ones have some megabytes, and a program gone
// wild must not take the memory of the tick.
const maxLine = 256 << 20

// readLines hands over every line without its end, however long, until the reader ends or take returns false. The last
// one need not have an end. A line beyond maxLine is handed over cut.
func readLines(r io.Reader, take func(line []byte) bool) error {
	br := bufio.NewReaderSize(r, 64<<10)
	var line []byte
	for {
		part, err := br.ReadSlice('\n')
		if room := maxLine - len(line); len(part) > room {
			part = part[:room]
		}
		line = append(line, part...)
		if err == bufio.ErrBufferFull {
			continue
		}
		if n := len(line); n > 0 && line[n-1] == '\n' {
			line = line[:n-1]
		}
		if (len(line) > 0 || err == nil) && !take(line) {
			return nil
		}
		line = nil
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}
