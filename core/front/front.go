// Package front reads text files that begin with YAML front matter, as professions and flows do: strictly, and with every
// fault told by file and line.
package front

import (
	"errors"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"

	"example.com/AutoAgentProject/core/usererr"
)

// Limits of a file.
const (
	MaxFile  = 128 << 10 // bytes; of a profession all of it goes into every request of a run
	MaxFront = 16 << 10  // bytes of front matter
)

// Parts are what a file consists of.
type Parts struct {
	Entries []*ast.MappingValueNode // of the front matter, in order
	Body    string                  // the text below it, without white space around
	End     int                     // line of the front matter's end
}

// Read takes a file apart.
// needs are the keys that an empty front matter lacks, for the message. file is its name for messages. Every error is a
// usererr of code Usage that begins with file and line.
func Read(file string, data []byte, needs string) (Parts, error) {
	text, err := Clean(file, data)
	if err != nil {
		return Parts{}, err
	}
	head, body, err := split(file, text, needs)
	if err != nil {
		return Parts{}, err
	}
	entries, err := frontEntries(file, head, needs)
	return Parts{entries, body, strings.Count(head, "\n") + 1}, err
}

// Fault is an error in a file, told with the line.
func Fault(file string, line int, hint, format string, args ...any) error {
	return usererr.New(usererr.Usage, hint, "%s:%d: "+format, append([]any{file, line}, args...)...)
}

// Clean refuses what is not text and gives the text with plain line ends.
func Clean(file string, data []byte) (string, error) {
	if len(data) > MaxFile {
		return "", Fault(file, 1, "", "the file has %d bytes, at most %d are allowed", len(data), MaxFile)
	}
	text := strings.ReplaceAll(strings.TrimPrefix(string(data), "\ufeff"), "\r\n", "\n")
	line := 1
	for i, c := range text {
		switch {
		case c == '\n':
			line++
		case c == utf8.RuneError && !strings.HasPrefix(text[i:], "\ufffd"):
			return "", Fault(file, line, "", "the file is not UTF-8 text")
		case c != '\t' && unicode.IsControl(c):
			return "", Fault(file, line, "", "the control character %U does not belong into a text file", c)
		}
	}
	return text, nil
}

// split parts the front matter from the body. The front matter begins with an empty line in place of its ---, so
// that its lines have the numbers of the file.
func split(file, text, needs string) (front, body string, err error) {
	hint := "begin the file with a line ---, then " + needs + ", then a line ---, then the text"
	first, rest, _ := strings.Cut(text, "\n")
	if strings.TrimRight(first, " \t") != "---" {
		return "", "", Fault(file, 1, hint, "there is no front matter")
	}
	lines := strings.Split(rest, "\n")
	for i, l := range lines {
		if strings.TrimRight(l, " \t") != "---" {
			continue
		}
		front = "\n" + strings.Join(lines[:i], "\n") + "\n"
		if len(front) > MaxFront {
			return "", "", Fault(file, 1, "", "the front matter has more than %d bytes", MaxFront)
		}
		body = strings.TrimSpace(strings.Join(lines[i+1:], "\n"))
		return front, body, nil
	}
	return "", "", Fault(file, 1, hint, "the front matter is not closed by a line ---")
}

// frontEntries reads the front matter as YAML and returns its keys with their values.
func frontEntries(file, front, needs string) ([]*ast.MappingValueNode, error) {
	tree, err := parser.ParseBytes([]byte(front), 0)
	if err != nil {
		// Claude Code takes a description with ": " in it although YAML does not, and many files have one.
		again, quoteErr := parser.ParseBytes([]byte(quoteDescription(front)), 0)
		if quoteErr != nil {
			return nil, yamlFault(file, quoteErr)
		}
		tree = again
	}
	if len(tree.Docs) > 1 {
		return nil, Fault(file, 1, "", "the front matter holds more than one YAML document")
	}
	if len(tree.Docs) == 0 || tree.Docs[0].Body == nil {
		return nil, Fault(file, 1, "", "the front matter is empty, %s are needed", needs)
	}
	switch body := tree.Docs[0].Body.(type) {
	case *ast.MappingNode:
		return body.Values, nil
	case *ast.MappingValueNode:
		return []*ast.MappingValueNode{body}, nil
	default:
		return nil, Fault(file, Line(body), "", "the front matter must be lines of key: value")
	}
}

// quoteDescription puts quotes around a plain one-line description.
func quoteDescription(front string) string {
	lines := strings.Split(front, "\n")
	for i, l := range lines {
		value, ok := strings.CutPrefix(l, "description:")
		value = strings.TrimSpace(value)
		if ok && value != "" && !strings.ContainsAny(value[:1], `"'|>`) {
			lines[i] = "description: '" + strings.ReplaceAll(value, "'", "''") + "'"
		}
	}
	return strings.Join(lines, "\n")
}

// yamlFault tells a YAML error in one line, without the excerpt and the raw characters it may hold.
func yamlFault(file string, err error) error {
	plain := func(message string) string {
		message, _, _ = strings.Cut(message, "\n")
		return strings.ReplaceAll(message, "\t", "tab")
	}
	var at interface {
		GetMessage() string
		GetToken() *token.Token
	}
	if errors.As(err, &at) && at.GetToken() != nil && at.GetToken().Position != nil {
		hint := ""
		if strings.Contains(at.GetMessage(), "mapping value") {
			hint = "put a text with a colon in it between quotes"
		}
		return Fault(file, at.GetToken().Position.Line, hint, "not YAML: %s", plain(at.GetMessage()))
	}
	return Fault(file, 1, "", "not YAML: %s", plain(err.Error()))
}

// Line is where a node begins.
func Line(n ast.Node) int {
	if t := n.GetToken(); t != nil && t.Position != nil {
		return t.Position.Line
	}
	return 1
}
