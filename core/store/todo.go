package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"
	"unicode"

	"example.com/AutoAgentProject/core/files"
)

// maxTodo is how long TODO-human.md may get, in bytes. The oldest entries that are ticked off go first, then the oldest.
const maxTodo = 256 << 10

// Todo is the file in which stands what only a person can do: one entry a line, with a box to tick off. A person may write
// in it as well.
func (s *Store) Todo() string { return s.file("TODO-human.md") }

const todoHead = "# What a person has to do\n\n"

// todoMark ends the line of an entry and names its incident.
func todoMark(incident string) string { return "<!-- " + incident + " -->" }

// HasTodo says whether there is an entry for an incident.
func (s *Store) HasTodo(incident string) (bool, error) {
	text, err := s.todo()
	return strings.Contains(text, todoMark(incident)), err
}

func (s *Store) todo() (string, error) {
	b, err := files.Read(s.Todo(), 4*maxTodo)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if errors.Is(err, files.ErrNotRegular) || errors.Is(err, files.ErrTooBig) {
		return "", nil // a record only: it is written anew
	}
	return strings.ToValidUTF8(string(b), "\uFFFD"), err
}

// AddTodo writes an entry down, once for each incident.
func (s *Store) AddTodo(ctx context.Context, incident, text string, now time.Time) error {
	return s.changeTodo(ctx, func(old string) string {
		if strings.Contains(old, todoMark(incident)) {
			return old
		}
		if strings.TrimSpace(old) == "" {
			old = todoHead
		}
		if !strings.HasSuffix(old, "\n") {
			old += "\n"
		}
		return old + fmt.Sprintf("- [ ] 🚫 %s %s %s\n", now.UTC().Format("2006-01-02 15:04"), todoLine(text), todoMark(incident))
	})
}

// TickTodo ticks the entries off whose incident fits.
func (s *Store) TickTodo(ctx context.Context, fits func(incident string) bool) error {
	return s.changeTodo(ctx, func(old string) string {
		lines := strings.Split(old, "\n")
		for i, l := range lines {
			head, mark, ok := strings.Cut(l, "<!-- ")
			incident, _, _ := strings.Cut(mark, " -->")
			if ok && strings.HasPrefix(head, "- [ ] ") && fits(incident) {
				lines[i] = "- [x] " + strings.TrimPrefix(l, "- [ ] ")
			}
		}
		return strings.Join(lines, "\n")
	})
}

func (s *Store) changeTodo(ctx context.Context, change func(string) string) error {
	unlock, err := s.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	old, err := s.todo()
	if err != nil {
		return err
	}
	text := shortTodo(change(old))
	if text == old || text == "" {
		return nil
	}
	return files.Replace(s.Todo(), []byte(text), 0o600)
}

// shortTodo leaves entries out until the rest has room.
func shortTodo(text string) string {
	for _, begin := range []string{"- [x] ", "- ["} {
		for len(text) > maxTodo {
			at := strings.Index(text, "\n"+begin)
			if at < 0 {
				break
			}
			end := strings.IndexByte(text[at+1:], '\n')
			if end < 0 {
				break
			}
			text = text[:at] + text[at+1+end:]
		}
	}
	return text
}

// todoLine makes one line of a text, which cannot end the comment behind it nor begin one.
func todoLine(s string) string {
	s = strings.Join(strings.FieldsFunc(strings.ToValidUTF8(s, "\uFFFD"), unicode.IsControl), " ")
	s = strings.NewReplacer("<!--", "<!", "-->", "->").Replace(s)
	if r := []rune(s); len(r) > 2000 {
		s = string(r[:1999]) + "…"
	}
	return s
}
