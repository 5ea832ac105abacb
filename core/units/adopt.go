package units

import (
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// Adopt returns s with what the installed units of a mission say about themselves, so that one that is rendered again is
// like the rest: service and timer are those of one of its agents, as Render made them. Whether that is the guard makes a
// difference: its limits are not the mission's. What they do not say stays as it is in s.
func Adopt(s Settings, guard bool, service, timer string) Settings {
	env := map[string]string{}
	for line := range strings.Lines(service) {
		key, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "=")
		switch key {
		case "ExecStart":
			if program := first(value); program != "" {
				s.Bin = filepath.Dir(program)
			}
		case "User":
			s.User = value
		case "Environment":
			if name, text, ok := strings.Cut(first(value), "="); ok {
				env[name] = text
			}
		case "MemoryMax", "TasksMax", "CPUWeight":
			if !guard {
				s.limit(key, value)
			}
		}
	}
	if path, ok := env["PATH"]; ok {
		s.Path, s.Home, s.Lang = path, or(env["HOME"], s.Home), or(env["LANG"], s.Lang)
		delete(env, "PATH")
		delete(env, "HOME")
		delete(env, "LANG")
		s.Env = env
	}
	for line := range strings.Lines(timer) {
		value, ok := strings.CutPrefix(line, "OnUnitInactiveSec=")
		if d, err := time.ParseDuration(strings.TrimSpace(value)); ok && err == nil && !guard {
			s.TickEvery = d
		}
	}
	return s
}

func (s *Settings) limit(key, value string) {
	n, err := strconv.ParseInt(value, 10, 64)
	switch {
	case err != nil: // a share of the machine: the default
	case key == "MemoryMax":
		s.Memory = n
	case key == "TasksMax":
		s.Tasks = int(n)
	case key == "CPUWeight":
		s.CPUWeight = int(n)
	}
}

// first is the first quoted word of a line, as word wrote it.
func first(s string) string {
	_, s, _ = strings.Cut(s, `"`)
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		c := s[i]
		switch {
		case c == '"':
			return b.String()
		case (c == '\\' || c == '%') && i+1 < len(s):
			i++
			c = s[i]
		}
		b.WriteByte(c)
	}
	return ""
}

// Program is what an installed service runs; "" if that cannot be read.
func Program(service string) string {
	for line := range strings.Lines(service) {
		if line, found := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "ExecStart=:"); found {
			return first(line)
		}
	}
	return ""
}

// Owner says to which mission and root an installed service belongs: of an agent, or the mission's stop. ok is false for
// every other text.
func Owner(service string) (root, id string, ok bool) {
	for line := range strings.Lines(service) {
		line, found := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "ExecStart=:")
		if !found {
			continue
		}
		program := first(line)
		_, rest, _ := strings.Cut(line, word(program)+" ")
		if more, stop := strings.CutPrefix(rest, "stop-mission "); stop {
			id, rest, _ = strings.Cut(more, " ")
		}
		if rest, found = strings.CutPrefix(rest, "--root "); !found {
			return "", "", false
		}
		root = first(rest)
		rest, found = strings.CutPrefix(rest, word(root))
		if id == "" {
			rest, _ = strings.CutPrefix(rest, " --mission ")
			id, _, _ = strings.Cut(rest, " ")
		}
		return root, id, found && filepath.IsAbs(root)
	}
	return "", "", false
}
