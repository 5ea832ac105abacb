package claude

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"example.com/AutoAgentProject/core/usererr"
)

// PinnedVersion is the version of the program that this package was tried with.
const PinnedVersion = "2.1.332"

// PinnedPackage is the npm package that holds the program for this kind of machine, complete in itself.
func PinnedPackage() string {
	arch := runtime.GOARCH
	if arch == "amd64" {
		arch = "x64"
	}
	return "@anthropic-ai/claude-code-linux-" + arch
}

// PinnedPath is where the pinned version is looked for: below $XDG_CACHE_HOME, or ~/.cache. It is empty if env has
// neither that nor HOME.
func PinnedPath(env func(string) string) string {
	cache := env("XDG_CACHE_HOME")
	if !filepath.IsAbs(cache) {
		home := env("HOME")
		if !filepath.IsAbs(home) {
			return ""
		}
		cache = filepath.Join(home, ".cache")
	}
	return filepath.Join(cache, "autoagent", "claude", PinnedVersion, inPackage())
}

func inPackage() string { return filepath.Join("node_modules", PinnedPackage(), "claude") }

// hint says how to get the program. pinned is where it is looked for; it may be empty.
func hint(pinned string) string {
	prefix := strings.TrimSuffix(pinned, "/"+inPackage())
	if prefix == "" {
		prefix = "FOLDER"
	}
	return fmt.Sprintf("npm install --ignore-scripts --prefix %s %s@%s; or name the program in AUTOAGENT_CLAUDE", prefix, PinnedPackage(), PinnedVersion)
}

// Find returns the program's file with all symbolic links resolved: the one AUTOAGENT_CLAUDE names, else the first on
// PATH, else the pinned one in the cache.
func Find(env func(string) string) (string, error) {
	pinned := PinnedPath(env)
	if named := env("AUTOAGENT_CLAUDE"); named != "" {
		file, err := program(named)
		if err != nil {
			return "", usererr.Wrap(err, usererr.Environment, hint(pinned), "AUTOAGENT_CLAUDE names no program")
		}
		return file, nil
	}
	for _, dir := range filepath.SplitList(env("PATH")) {
		if file, err := program(filepath.Join(dir, "claude")); err == nil {
			return file, nil
		}
	}
	if file, err := program(pinned); err == nil {
		return file, nil
	}
	return "", usererr.New(usererr.Environment, hint(pinned), "there is no claude on PATH, nor the pinned one at %q", pinned)
}

// program resolves a path to a file that can be executed. A relative one is refused: what it means depends on where
// somebody stands.
func program(path string) (string, error) {
	if !filepath.IsAbs(path) {
		return "", fmt.Errorf("%q is not an absolute path", path)
	}
	file, err := filepath.EvalSymlinks(path)
	if err != nil {
		return "", err
	}
	info, err := os.Stat(file)
	if err != nil {
		return "", err
	}
	if !info.Mode().IsRegular() || info.Mode().Perm()&0o111 == 0 {
		return "", fmt.Errorf("%s cannot be executed", file)
	}
	return file, nil
}
