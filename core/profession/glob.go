package profession

import (
	"errors"
	"path"
	"strings"
)

// CheckGlob says what is wrong with a glob of owns or reads. A glob is a slash-separated path relative to the
// repository; inside one name it is path.Match, and the name ** stands for any number of folders, none included.
func CheckGlob(glob string) error {
	switch {
	case glob != strings.TrimSpace(glob):
		return errors.New("it has spaces around it")
	case strings.HasPrefix(glob, "!"):
		return errors.New("exceptions are not possible, name what is owned")
	case !local(glob):
		return errors.New("it must be a path inside the repository, without . or .. or empty names")
	}
	for name := range strings.SplitSeq(glob, "/") {
		if strings.Contains(name, "**") && name != "**" {
			return errors.New("** must stand alone between slashes")
		}
		if _, err := path.Match(name, ""); err != nil {
			return errors.New("its brackets or backslashes are not complete")
		}
	}
	return nil
}

// local says whether p stays inside the repository and is written in the only way git writes it.
func local(p string) bool {
	return p != "" && path.Clean(p) == p && p != "." && p != ".." && !strings.HasPrefix(p, "/") && !strings.HasPrefix(p, "../")
}

// matchGlob says whether a glob that CheckGlob accepts matches a path. It takes time linear in the product of both
// lengths: after a later ** an earlier one need not be tried again.
func matchGlob(glob, file string) bool {
	globs, names := strings.Split(glob, "/"), strings.Split(file, "/")
	g, n := 0, 0
	star, from := -1, 0 // the last ** seen, and the first name it does not take
	for n < len(names) {
		switch {
		case g < len(globs) && globs[g] == "**":
			star, from = g, n
			g++
		case g < len(globs) && matchName(globs[g], names[n]):
			g++
			n++
		case star >= 0:
			from++
			g, n = star+1, from
		default:
			return false
		}
	}
	return g == len(globs)
}

func matchName(glob, name string) bool {
	ok, err := path.Match(glob, name)
	return ok && err == nil
}
