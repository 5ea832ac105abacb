package gateway

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
)

// The functions below split JSON without copying or decoding it: a long conversation is split with each request, many
// levels deep. Only object takes whatever comes; the others want a part of valid JSON.

// object splits the body of a request.
func object(body []byte) (fields map[string]json.RawMessage, at map[string]int, err error) {
	if !json.Valid(body) {
		return nil, nil, errors.New("the body is not JSON")
	}
	fields, at, err = members(body)
	if err != nil {
		return nil, nil, fmt.Errorf("the body is not understood: %w", err)
	}
	return fields, at, nil
}

// members splits an object. A name that stands there twice is an error: two readers could take different ones.
func members(raw []byte) (fields map[string]json.RawMessage, at map[string]int, err error) {
	i := space(raw, 0)
	if i == len(raw) || raw[i] != '{' {
		return nil, nil, errors.New("not an object")
	}
	fields, at = map[string]json.RawMessage{}, map[string]int{}
	for i = space(raw, i+1); raw[i] != '}'; i = next(raw, i) {
		end := skip(raw, i)
		name := text(raw[i:end])
		i = space(raw, space(raw, end)+1) // the colon
		if _, twice := fields[name]; twice {
			return nil, nil, fmt.Errorf("%.40q stands there twice", name)
		}
		end = skip(raw, i)
		fields[name], at[name] = raw[i:end:end], i
		i = end
	}
	return fields, at, nil
}

// elements splits an array.
func elements(raw []byte) (all []json.RawMessage, err error) {
	if len(raw) == 0 || raw[0] != '[' {
		return nil, errors.New("not an array")
	}
	for i := space(raw, 1); raw[i] != ']'; i = next(raw, i) {
		end := skip(raw, i)
		all = append(all, raw[i:end:end])
		i = end
	}
	return all, nil
}

// typeOf is the type that an object names; "" if it names none.
func typeOf(raw []byte) (string, error) {
	fields, _, err := members(raw)
	if err != nil {
		return "", err
	}
	return text(fields["type"]), nil
}

// text is a JSON text, "" for null and whatever else.
func text(raw []byte) string {
	if n := len(raw); n > 1 && raw[0] == '"' && bytes.IndexByte(raw, '\\') < 0 {
		return string(raw[1 : n-1])
	}
	var s string
	if json.Unmarshal(raw, &s) != nil {
		return ""
	}
	return s
}

// space is where white space that begins at i ends.
func space(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\t' || b[i] == '\n' || b[i] == '\r') {
		i++
	}
	return i
}

// next is where the next member begins, or the end of the object or array, after a value that ended at i.
func next(b []byte, i int) int {
	if i = space(b, i); b[i] == ',' {
		i = space(b, i+1)
	}
	return i
}

// skip is where the value that begins at i ends.
func skip(b []byte, i int) int {
	switch b[i] {
	case '"':
		return quoted(b, i)
	case '{', '[':
		for depth := 0; ; i++ {
			switch b[i] {
			case '"':
				i = quoted(b, i) - 1
			case '{', '[':
				depth++
			case '}', ']':
				if depth--; depth == 0 {
					return i + 1
				}
			}
		}
	}
	for i < len(b) && bytes.IndexByte([]byte(" \t\n\r,]}"), b[i]) < 0 {
		i++
	}
	return i
}

// quoted is where the text that begins at i ends.
func quoted(b []byte, i int) int {
	for i++; ; i++ {
		n := bytes.IndexByte(b[i:], '"')
		i += n
		back := i
		for b[back-1] == '\\' {
			back--
		}
		if (i-back)%2 == 0 {
			return i + 1
		}
	}
}
