package claude

import "io"

// A transcript is written whole up to maxTranscript bytes; from there on only the lines by which a run is counted, up to as much
// again. A line of type cut stands where it begins to have gaps.
const maxTranscript = 64 << 20

// keep writes a line of output down.
func (r *run) keep(line []byte, e *event) error {
	if r.job.Transcript == nil {
		return nil
	}
	if n := int64(len(line)) + 1; !r.full && r.kept+n > maxTranscript {
		r.full = true
		if err := r.write(cutLine(0)); err != nil {
			return err
		}
	}
	if r.full && (!e.counts() || r.kept > 2*maxTranscript) {
		return nil
	}
	return r.write(line)
}

func (r *run) write(line []byte) error {
	n, err := r.job.Transcript.Write(append(line, '\n'))
	if r.kept += int64(n); err == nil && n <= len(line) {
		err = io.ErrShortWrite
	}
	return err
}

// counts says whether an event tells how a run was set up, what it used, or how it ended.
func (e *event) counts() bool {
	return e.Type == "result" || e.Type == "system" || e.Type == "rate_limit_event" ||
		e.Type == "stream_event" && e.Stream != nil && (e.Stream.Type == "message_start" || e.Stream.Type == "message_delta" || e.Stream.Type == "message_stop")
}
