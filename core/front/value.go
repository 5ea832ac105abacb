package front

import (
	"regexp"
	"strings"
	"time"

	"github.com/goccy/go-yaml/ast"
)

// Value is the value of one key.
type Value struct {
	File string
	Key  string
	Line int
	Node ast.Node
}

// Entry takes a key with its value apart.
func Entry(file string, e *ast.MappingValueNode) (Value, error) {
	name, ok := e.Key.(*ast.StringNode)
	if !ok {
		return Value{}, Fault(file, Line(e.Key), "", "%q is not a key", e.Key.String())
	}
	return Value{File: file, Key: name.Value, Line: Line(e.Key), Node: e.Value}, nil
}

// Wrong says that a value is of another kind.
func (v Value) Wrong(want string) error {
	return Fault(v.File, v.Line, "", "%s must be %s, not %s", v.Key, want, Kind(v.Node))
}

// Kind names a value's type in plain words.
func Kind(n ast.Node) string {
	switch n.(type) {
	case *ast.StringNode, *ast.LiteralNode:
		return "a text"
	case *ast.IntegerNode:
		return "a number"
	case *ast.FloatNode, *ast.InfinityNode, *ast.NanNode:
		return "a decimal number"
	case *ast.BoolNode:
		return "true or false"
	case *ast.NullNode:
		return "nothing"
	case *ast.SequenceNode:
		return "a list"
	case *ast.MappingNode, *ast.MappingValueNode:
		return "a table"
	}
	return "an anchor, alias or tag"
}

// Scalar gives the text of a text value.
func Scalar(n ast.Node) (string, bool) {
	switch n := n.(type) {
	case *ast.StringNode:
		return strings.TrimSpace(n.Value), true
	case *ast.LiteralNode:
		return strings.TrimSpace(n.Value.Value), true
	}
	return "", false
}

// Text reads a text that is not empty.
func (v Value) Text(to *string) error {
	s, ok := Scalar(v.Node)
	if !ok {
		return v.Wrong("a text")
	}
	if s == "" {
		return Fault(v.File, v.Line, "", "%s is empty", v.Key)
	}
	*to = s
	return nil
}

// Matching reads a text of a form that want describes.
func (v Value) Matching(to *string, pattern *regexp.Regexp, want string) error {
	if err := v.Text(to); err != nil {
		return err
	}
	if !pattern.MatchString(*to) {
		return Fault(v.File, v.Line, "", "%s %q must be %s", v.Key, *to, want)
	}
	return nil
}

// Count reads a whole number from 1 to most.
func (v Value) Count(to *int, most int) error {
	n, ok := v.Node.(*ast.IntegerNode)
	if !ok {
		return v.Wrong("a whole number")
	}
	u, ok := n.Value.(uint64) // negative ones come as int64
	if !ok || u < 1 || u > uint64(most) {
		return Fault(v.File, v.Line, "", "%s must be 1 to %d, not %s", v.Key, most, n.String())
	}
	*to = int(u)
	return nil
}

// Duration reads a duration from a second to a day.
func (v Value) Duration(to *time.Duration) error {
	var s string
	if err := v.Text(&s); err != nil {
		return v.Wrong("a duration such as 45m")
	}
	d, err := time.ParseDuration(s)
	if err != nil {
		return Fault(v.File, v.Line, "", "%s must be a duration such as 45m, not %q", v.Key, s)
	}
	if d < time.Second || d > 24*time.Hour {
		return Fault(v.File, v.Line, "", "%s must be between 1s and 24h, not %s", v.Key, s)
	}
	*to = d
	return nil
}

// item is one entry of a list, with its line.
type item struct {
	text string
	line int
}

// items reads a list of texts. One text counts as a list of one, or of its parts when sep is given.
func (v Value) items(sep string) ([]item, error) {
	var items []item
	seq, ok := v.Node.(*ast.SequenceNode)
	if !ok {
		s, ok := Scalar(v.Node)
		if !ok {
			return nil, v.Wrong("a list of texts")
		}
		parts := []string{s}
		if sep != "" {
			parts = strings.Split(s, sep)
		}
		for _, part := range parts {
			items = append(items, item{strings.TrimSpace(part), v.Line})
		}
	} else {
		for _, n := range seq.Values {
			s, ok := Scalar(n)
			if !ok {
				return nil, Fault(v.File, Line(n), "", "%s holds %s, only texts are allowed", v.Key, Kind(n))
			}
			items = append(items, item{s, Line(n)})
		}
	}
	first := map[string]int{}
	for _, it := range items {
		if it.text == "" {
			return nil, Fault(v.File, it.line, "", "%s has an empty entry", v.Key)
		}
		if at, twice := first[it.text]; twice {
			return nil, Fault(v.File, it.line, "", "%s has %q twice, first in line %d", v.Key, it.text, at)
		}
		first[it.text] = it.line
	}
	return items, nil
}

// List reads texts that may hold commas; Words splits one text at its commas.
func (v Value) List(to *[]string, check func(string) error) error  { return v.collect(to, "", check) }
func (v Value) Words(to *[]string, check func(string) error) error { return v.collect(to, ",", check) }

func (v Value) collect(to *[]string, sep string, check func(string) error) error {
	items, err := v.items(sep)
	if err != nil {
		return err
	}
	all := make([]string, 0, len(items))
	for _, it := range items {
		if check != nil {
			if err := check(it.text); err != nil {
				return Fault(v.File, it.line, "", "%s %q: %v", v.Key, it.text, err)
			}
		}
		all = append(all, it.text)
	}
	*to = all
	return nil
}

// Yes reads true or false.
func (v Value) Yes(to *bool) error {
	n, ok := v.Node.(*ast.BoolNode)
	if !ok {
		return v.Wrong("true or false")
	}
	*to = n.Value
	return nil
}
