package app

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"

	"example.com/AutoAgentProject/core/journal"
	"example.com/AutoAgentProject/core/mission"
	"example.com/AutoAgentProject/core/store"
)

// progressView prints what happens while a mission is ticked here: a line per event, and on a terminal one line at the
// bottom that shows who works on what and what it cost so far.
type progressView struct {
	c     *cli
	st    *store.Store
	m     mission.Mission
	tty   bool
	width int
	start time.Time
	quit  chan struct{}
	done  sync.WaitGroup
	shown bool // the bottom line is on the screen
}

func (c *cli) watchProgress(st *store.Store, m mission.Mission) *progressView {
	p := &progressView{c: c, st: st, m: m, start: time.Now(), quit: make(chan struct{})}
	if c.json {
		return p
	}
	p.tty, p.width = c.terminal()
	_, offset, _, _ := st.Journal().Read(0)
	p.done.Go(func() {
		every := time.NewTicker(200 * time.Millisecond)
		defer every.Stop()
		for {
			offset = p.print(offset)
			select {
			case <-p.quit:
				p.print(offset)
				p.clear()
				return
			case <-every.C:
			}
		}
	})
	return p
}

func (p *progressView) stop() {
	close(p.quit)
	p.done.Wait()
}

// print writes the new events and returns where the next ones begin.
func (p *progressView) print(offset int64) int64 {
	events, next, _, err := p.st.Journal().Read(offset)
	if err != nil {
		return offset
	}
	for _, e := range events {
		if e.Level == journal.End {
			continue // the whole end is told after it
		}
		p.clear()
		p.c.say("%s", p.line(e))
	}
	if p.tty {
		p.bottom()
	}
	return next
}

// line is one event: time, what happened.
func (p *progressView) line(e journal.Event) styled {
	text := fmt.Sprintf("%s  %s", e.At.Local().Format("15:04:05"), strings.ReplaceAll(e.Text, "\n", " "))
	if p.tty && p.width > 20 {
		text = cutRunes(text, p.width-1)
	}
	switch e.Level {
	case journal.Blocker:
		return p.c.colour("31;1", text)
	case journal.Milestone:
		return p.c.colour("32", text)
	}
	return styled(clean(text))
}

func (p *progressView) bottom() {
	var busy []string
	if s, err := p.st.State(); err == nil {
		for _, a := range p.m.Roster {
			if l := s.Agents[a.Name]; l.Doing == "working" {
				busy = append(busy, a.Name+": "+l.Text)
			}
		}
	}
	spent := ""
	if b, err := p.st.Ledger().Read(); err == nil {
		spent = b.Used.String()
	}
	text := fmt.Sprintf("%s  %s  %s", shortDuration(time.Since(p.start).Round(time.Second)), spent, strings.Join(busy, " · "))
	fmt.Fprintf(p.c.env.Stdout, "\r\x1b[K%s", p.c.colour("2", cutRunes(clean(text), max(p.width-1, 20))))
	p.shown = true
}

func (p *progressView) clear() {
	if p.shown {
		fmt.Fprint(p.c.env.Stdout, "\r\x1b[K")
		p.shown = false
	}
}

// terminal says whether the output is a terminal and how wide.
func (c *cli) terminal() (bool, int) {
	f, ok := c.env.Stdout.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) || c.env.Getenv("TERM") == "dumb" {
		return false, 0
	}
	w, _, err := term.GetSize(int(f.Fd()))
	if err != nil || w < 20 {
		w = 80
	}
	return true, w
}

// colour wraps text in an SGR code where the output is a terminal that wants it.
func (c *cli) colour(code, text string) styled {
	text = clean(text)
	if tty, _ := c.terminal(); !tty || c.env.Getenv("NO_COLOR") != "" {
		return styled(text)
	}
	return styled("\x1b[" + code + "m" + text + "\x1b[0m")
}

// styled is text that is safe for a terminal already and may hold our own colour codes.
type styled string

func cutRunes(s string, n int) string {
	r := []rune(s)
	if len(r) <= n {
		return s
	}
	return string(r[:max(n-1, 0)]) + "…"
}
