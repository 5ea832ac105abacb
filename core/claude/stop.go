package claude

// stop ends a run that still has something to say, for a reason of ours.
func (r *run) stop(why outcome) {
	if r.stopped != nil || r.closing {
		return
	}
	r.stopped = &why
	r.silence.Stop()
	r.stdin.send(interruptRequest())
	if r.followed != nil {
		r.stdin.close() // it waits for us: there is nothing to interrupt
	}
	r.ladder.Reset(r.grace.answer)
}

// kill ends a run that is not what was asked for, before it does anything.
func (r *run) kill(why outcome) {
	if r.stopped == nil {
		r.stopped = &why
	}
	r.silence.Stop()
	r.ladder.Stop()
	r.rung = 2
	r.Kill()
}

// close lets the program end by itself.
func (r *run) close() {
	if r.stopped != nil || r.closing {
		r.stdin.close()
		return
	}
	r.closing = true
	r.silence.Stop()
	r.stdin.close()
	r.ladder.Reset(r.grace.answer)
}

// hush follows the end of the output: nothing can be said any more, but why is told by the program's end, or by ours.
func (r *run) hush() {
	r.silence.Stop()
	r.stdin.close()
	if r.stopped == nil && !r.closing {
		r.ladder.Reset(r.grace.answer)
	}
}

// climb takes the next harder way of ending.
func (r *run) climb() {
	if r.status != nil {
		return
	}
	if r.rung++; r.rung == 1 {
		_ = r.Terminate() // if it cannot be reached, killing is next
		r.ladder.Reset(r.grace.term)
		return
	}
	r.Kill()
}
