package handoff

import "strings"

// Text is a handoff file as it lies there, whoever wrote it. It is read like SwarmForge's helpers do: a header is the first
// line "name: value" before the first blank line, a file without any is a body-less message of nobody. Envelope is the
// strict reading.
type Text string

// Field returns the value of a header and whether it is there.
func (t Text) Field(name string) (string, bool) {
	for _, line := range lines(string(t)) {
		if blank(line) {
			break
		}
		if v, ok := strings.CutPrefix(line, name+": "); ok {
			return v, true
		}
	}
	return "", false
}

// Or is Field with a value for files that lack the header.
func (t Text) Or(name, otherwise string) string {
	if v, ok := t.Field(name); ok {
		return v
	}
	return otherwise
}

// Priority is the header priority, 50 without one.
func (t Text) Priority() string { return t.Or("priority", DefaultPriority) }

// Set replaces a header in place, else adds it before the first blank line, else at the end. Every line of the result
// ends with LF.
func (t Text) Set(name, value string) Text {
	header := name + ": " + value
	var out []string
	head, replaced := true, false
	for _, line := range lines(string(t)) {
		if head && blank(line) {
			head = false
			if !replaced {
				out = append(out, header)
			}
		} else if head && strings.HasPrefix(line, name+": ") {
			replaced = true
			line = header
		}
		out = append(out, line)
	}
	if head && !replaced {
		out = append(out, header)
	}
	return Text(strings.Join(out, "\n") + "\n")
}

// Without removes a header.
func (t Text) Without(name string) Text {
	var out []string
	head := true
	for _, line := range lines(string(t)) {
		head = head && !blank(line)
		if head && strings.HasPrefix(line, name+": ") {
			continue
		}
		out = append(out, line)
	}
	return Text(strings.Join(out, "\n") + "\n")
}

// Body is everything after the first empty line, as it is.
func (t Text) Body() string {
	_, body, _ := strings.Cut(string(t), "\n\n")
	return body
}

// Recipients returns the names in the header to.
func (t Text) Recipients() []string {
	if to := t.Or("to", ""); to != "" {
		return strings.Split(to, ",")
	}
	return nil
}

// MergeOnly says whether this is a terminal broadcast: work with priority 00 for more than one recipient. Whoever gets it
// merges, tests and is done; it is not handed on.
func (t Text) MergeOnly() bool {
	return t.Or("type", "") == GitHandoff && t.Priority() == "00" && len(t.Recipients()) > 1
}

// Headers returns the lines "name: value" before the first blank line, in their order.
func (t Text) Headers() []Header {
	var out []Header
	for _, line := range lines(string(t)) {
		if blank(line) {
			break
		}
		if name, value, ok := strings.Cut(line, ": "); ok {
			out = append(out, Header{name, value})
		}
	}
	return out
}
