package flow

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode"

	"example.com/AutoAgentProject/core/front"
)

// A .flow.ad file is prose with nodes: $Name(key: value, …) { key: value … }, each at the begin of a line. What follows reads
// them; flow.go's words stand in them under the names in fromAD.

// node is one $Name(…){…}.
type node struct {
	name    string
	line    int
	entries []entry // of the parentheses and of the braces
}

type entry struct {
	key   string
	line  int
	value any // string, int, float64, bool, nil, []any, []entry, ident
}

// ident is a bare word.
type ident string

var nodeStart = regexp.MustCompile(`^\$[A-Za-z_]`)

// escaped are prose lines that would begin a node, or look as if they were escaped.
var escaped = regexp.MustCompile(`^\\*\$[A-Za-z_]`)

// nodes takes a file apart into prose and nodes.
func nodes(file, text string) (prose string, all []node, err error) {
	var lines []string
	rest, at := text, 1
	for rest != "" {
		if nodeStart.MatchString(rest) {
			l := &lexer{file: file, text: rest, line: at}
			n, err := l.node()
			if err != nil {
				return "", nil, err
			}
			all = append(all, n)
			rest, at = l.text, l.line
			tail, after, _ := strings.Cut(rest, "\n")
			if strings.TrimSpace(tail) != "" && !strings.HasPrefix(strings.TrimSpace(tail), "//") {
				return "", nil, front.Fault(file, at, "", "something stands behind a node: %q", cut(tail))
			}
			rest, at = after, at+1
			continue
		}
		line, after, _ := strings.Cut(rest, "\n")
		if strings.HasPrefix(line, `\`) && escaped.MatchString(line) {
			line = line[1:]
		}
		lines = append(lines, line)
		rest, at = after, at+1
	}
	return strings.TrimSpace(strings.Join(lines, "\n")), all, nil
}

// lexer reads one node from the begin of text.
type lexer struct {
	file string
	text string
	line int
	deep int
}

func (l *lexer) fault(format string, args ...any) error {
	return front.Fault(l.file, l.line, "", "%s", fmt.Sprintf(format, args...))
}

// skip passes white space, comments and commas.
func (l *lexer) skip() error {
	for l.text != "" {
		switch {
		case l.text[0] == '\n':
			l.line++
			l.text = l.text[1:]
		case strings.IndexByte(" \t,", l.text[0]) >= 0:
			l.text = l.text[1:]
		case strings.HasPrefix(l.text, "//"):
			if i := strings.IndexByte(l.text, '\n'); i >= 0 {
				l.text = l.text[i:]
			} else {
				l.text = ""
			}
		case strings.HasPrefix(l.text, "/*"):
			i := strings.Index(l.text, "*/")
			if i < 0 {
				return l.fault("a comment is not closed")
			}
			l.line += strings.Count(l.text[:i], "\n")
			l.text = l.text[i+2:]
		default:
			return nil
		}
	}
	return nil
}

func (l *lexer) word() string {
	i := 0
	for _, c := range l.text {
		if c != '_' && !unicode.IsLetter(c) && !(i > 0 && (unicode.IsDigit(c) || c == '-')) {
			break
		}
		i += len(string(c))
	}
	w := l.text[:i]
	l.text = l.text[i:]
	return w
}

func (l *lexer) node() (node, error) {
	l.text = l.text[1:] // the $
	n := node{line: l.line, name: l.word()}
	for _, pair := range []string{"()", "{}"} {
		if pair == "{}" { // a brace may stand on the same line only, so that prose is not taken for a body
			l.text = strings.TrimLeft(l.text, " \t")
		}
		if l.text == "" || l.text[0] != pair[0] {
			continue
		}
		l.text = l.text[1:]
		more, err := l.entries(pair[1])
		if err != nil {
			return n, err
		}
		n.entries = append(n.entries, more...)
	}
	return n, nil
}

// entries reads key: value up to the closing character.
func (l *lexer) entries(end byte) ([]entry, error) {
	if l.deep++; l.deep > 20 {
		return nil, l.fault("too many brackets inside each other")
	}
	defer func() { l.deep-- }()
	var out []entry
	for {
		if err := l.skip(); err != nil {
			return nil, err
		}
		if l.text == "" {
			return nil, l.fault("%q is missing", string(end))
		}
		if l.text[0] == end {
			l.text = l.text[1:]
			return out, nil
		}
		e := entry{line: l.line}
		if l.text[0] == '"' {
			s, err := l.quoted()
			if err != nil {
				return nil, err
			}
			e.key = s
		} else if e.key = l.word(); e.key == "" {
			return nil, l.fault("a key is expected, not %q", cut(l.text))
		}
		if err := l.skip(); err != nil {
			return nil, err
		}
		if l.text == "" || l.text[0] != ':' {
			return nil, l.fault("%s has no value", e.key)
		}
		l.text = l.text[1:]
		v, err := l.value()
		if err != nil {
			return nil, err
		}
		e.value = v
		out = append(out, e)
	}
}

func (l *lexer) value() (any, error) {
	if err := l.skip(); err != nil {
		return nil, err
	}
	if l.text == "" {
		return nil, l.fault("a value is missing")
	}
	switch c := l.text[0]; {
	case c == '"':
		return l.quoted()
	case c == '{':
		l.text = l.text[1:]
		return l.entries('}')
	case c == '[':
		if l.deep++; l.deep > 20 {
			return nil, l.fault("too many brackets inside each other")
		}
		defer func() { l.deep-- }()
		l.text = l.text[1:]
		list := []any{}
		for {
			if err := l.skip(); err != nil {
				return nil, err
			}
			if strings.HasPrefix(l.text, "]") {
				l.text = l.text[1:]
				return list, nil
			}
			v, err := l.value()
			if err != nil {
				return nil, err
			}
			list = append(list, v)
		}
	case c == '-' || c >= '0' && c <= '9':
		i := 1
		for i < len(l.text) && strings.IndexByte("0123456789.", l.text[i]) >= 0 {
			i++
		}
		s := l.text[:i]
		l.text = l.text[i:]
		if n, err := strconv.ParseInt(s, 10, 32); err == nil {
			return int(n), nil
		}
		f, err := strconv.ParseFloat(s, 64)
		if err != nil {
			return nil, l.fault("%q is no number", s)
		}
		return f, nil
	}
	switch w := l.word(); w {
	case "":
		return nil, l.fault("a value is expected, not %q", cut(l.text))
	case "true", "false":
		return w == "true", nil
	case "null", "nil":
		return nil, nil
	default:
		return ident(w), nil
	}
}

func (l *lexer) quoted() (string, error) {
	var b strings.Builder
	for i := 1; i < len(l.text); i++ {
		switch c := l.text[i]; c {
		case '"':
			l.text = l.text[i+1:]
			return b.String(), nil
		case '\n':
			return "", l.fault("a text is not closed; a line break in it is written \\n")
		case '\\':
			i++
			if i == len(l.text) {
				return "", l.fault("a text is not closed")
			}
			switch l.text[i] {
			case 'n':
				b.WriteByte('\n')
			case 't':
				b.WriteByte('\t')
			case 'r':
				b.WriteByte('\r')
			case '\\', '"':
				b.WriteByte(l.text[i])
			default:
				return "", l.fault("a backslash before %q means nothing in a text", string(l.text[i]))
			}
		default:
			b.WriteByte(c)
		}
	}
	return "", l.fault("a text is not closed")
}

// cut is the begin of a text for a message.
func cut(s string) string {
	s, _, _ = strings.Cut(s, "\n")
	if r := []rune(s); len(r) > 20 {
		return string(r[:20]) + "…"
	}
	return s
}
