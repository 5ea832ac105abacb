package profession

import (
	"regexp"
	"strings"
	"time"

	"github.com/goccy/go-yaml/ast"
)

// value is the value of one key.
type value struct {
	r    *reader
	key  string
	line int
	node ast.Node
}

func (v value) wrong(want string) error {
	return fault(v.r.file, v.line, "", "%s must be %s, not %s", v.key, want, kind(v.node))
}

// kind names a value's type in plain words.
func kind(n ast.Node) string {
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

// scalar gives the text of a text value.
func scalar(n ast.Node) (string, bool) {
	switch n := n.(type) {
	case *ast.StringNode:
		return strings.TrimSpace(n.Value), true
	case *ast.LiteralNode:
		return strings.TrimSpace(n.Value.Value), true
	}
	return "", false
}

func (v value) text(to *string) error {
	s, ok := scalar(v.node)
	if !ok {
		return v.wrong("a text")
	}
	if s == "" {
		return fault(v.r.file, v.line, "", "%s is empty", v.key)
	}
	*to = s
	return nil
}

func (v value) matching(to *string, pattern *regexp.Regexp, want string) error {
	if err := v.text(to); err != nil {
		return err
	}
	if !pattern.MatchString(*to) {
		return fault(v.r.file, v.line, "", "%s %q must be %s", v.key, *to, want)
	}
	return nil
}

func (v value) name(to *string) error {
	if err := v.text(to); err != nil {
		return err
	}
	if err := checkName(*to); err != nil {
		return fault(v.r.file, v.line, "", "name %q: %v", *to, err)
	}
	return nil
}

func (v value) count(to *int) error {
	n, ok := v.node.(*ast.IntegerNode)
	if !ok {
		return v.wrong("a whole number")
	}
	u, ok := n.Value.(uint64) // negative ones come as int64
	if !ok || u < 1 || u > MaxTurns {
		return fault(v.r.file, v.line, "", "%s must be 1 to %d, not %s", v.key, MaxTurns, n.String())
	}
	*to = int(u)
	return nil
}

func (v value) yes(to *bool) error {
	n, ok := v.node.(*ast.BoolNode)
	if !ok {
		return v.wrong("true or false")
	}
	*to = n.Value
	return nil
}

func (v value) duration(to *time.Duration) error {
	var s string
	if err := v.text(&s); err != nil {
		return v.wrong("a duration such as 45m")
	}
	d, err := time.ParseDuration(s)
	if err != nil {
		return fault(v.r.file, v.line, "", "%s must be a duration such as 45m, not %q", v.key, s)
	}
	if d < time.Second || d > 24*time.Hour {
		return fault(v.r.file, v.line, "", "%s must be between 1s and 24h, not %s", v.key, s)
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
func (v value) items(sep string) ([]item, error) {
	var items []item
	seq, ok := v.node.(*ast.SequenceNode)
	if !ok {
		s, ok := scalar(v.node)
		if !ok {
			return nil, v.wrong("a list of texts")
		}
		parts := []string{s}
		if sep != "" {
			parts = strings.Split(s, sep)
		}
		for _, part := range parts {
			items = append(items, item{strings.TrimSpace(part), v.line})
		}
	} else {
		for _, n := range seq.Values {
			s, ok := scalar(n)
			if !ok {
				return nil, fault(v.r.file, line(n), "", "%s holds %s, only texts are allowed", v.key, kind(n))
			}
			items = append(items, item{s, line(n)})
		}
	}
	first := map[string]int{}
	for _, it := range items {
		if it.text == "" {
			return nil, fault(v.r.file, it.line, "", "%s has an empty entry", v.key)
		}
		if at, twice := first[it.text]; twice {
			return nil, fault(v.r.file, it.line, "", "%s has %q twice, first in line %d", v.key, it.text, at)
		}
		first[it.text] = it.line
	}
	return items, nil
}

// list reads texts that may hold commas; words splits one text at its commas.
func (v value) list(to *[]string, check func(string) error) error  { return v.collect(to, "", check) }
func (v value) words(to *[]string, check func(string) error) error { return v.collect(to, ",", check) }

func (v value) toolList(to *[]string) error {
	return v.words(to, func(s string) error {
		if forgone(s) && v.key == "tools" {
			return nil
		}
		return checkTool(s)
	})
}

func (v value) collect(to *[]string, sep string, check func(string) error) error {
	items, err := v.items(sep)
	if err != nil {
		return err
	}
	all := make([]string, 0, len(items))
	for _, it := range items {
		if check != nil {
			if err := check(it.text); err != nil {
				return fault(v.r.file, it.line, "", "%s %q: %v", v.key, it.text, err)
			}
		}
		all = append(all, it.text)
	}
	*to = all
	return nil
}
