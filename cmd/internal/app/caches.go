package app

import (
	"os"
	"path/filepath"
	"strings"

	"example.com/AutoAgentProject/core/files"
	"example.com/AutoAgentProject/core/tick"
	"example.com/AutoAgentProject/core/usererr"
)

// cacheNames are the words of --caches.
func cacheNames() []string { return []string{"go", "npm"} }

// fixCaches reads --caches, else what the configuration shares. A cache that was asked for and is not there is an error, one
// of the configuration a warning.
func (c *cli) fixCaches(d *draft, typed, configured []string) error {
	words := typed
	if len(typed) == 0 {
		words = configured
	}
	for _, word := range strings.Split(strings.Join(words, ","), ",") {
		m := &d.mission.Caches
		dir, needs, to := "", "", (*string)(nil)
		switch word = strings.TrimSpace(word); word {
		case "", "none":
			if strings.Join(words, ",") != word {
				return usererr.New(usererr.Usage, "write --caches go,npm, or none", "--caches %q is no list of caches", strings.Join(words, ","))
			}
			return nil
		case "go":
			dir, to = c.goCache(), &m.Go
			needs = dir
		case "npm":
			dir, to = c.npmCache(), &m.NPM
			needs = tick.NPMContent(dir)
		default:
			return usererr.New(usererr.Usage, "there are "+strings.Join(cacheNames(), " and ")+"; --read shows agents any folder", "there is no cache called %q", word)
		}
		if st, err := os.Stat(needs); err != nil || !st.IsDir() {
			if len(typed) > 0 {
				return usererr.New(usererr.Usage, "leave it out: things are downloaded then", "there is no cache of %s at %s", word, dir)
			}
			d.warnings = append(d.warnings, "there is no cache of "+word+" at "+dir)
			continue
		}
		real, err := c.readable(string(d.root), []string{dir}, d.mission.Credentials)
		if err != nil {
			return err
		}
		*to = real[0]
	}
	return nil
}

// goCache is cache/download of Go's module cache: by $GOMODCACHE, $GOPATH, what go env -w wrote, or in the home.
func (c *cli) goCache() string {
	home, written := c.env.Getenv("HOME"), map[string]string{}
	if b, err := files.Read(filepath.Join(home, ".config", "go", "env"), 1<<16); err == nil {
		for line := range strings.Lines(string(b)) {
			k, v, _ := strings.Cut(strings.TrimSpace(line), "=")
			written[k] = v
		}
	}
	dir := first(c.env.Getenv("GOMODCACHE"), written["GOMODCACHE"])
	if dir == "" {
		path := filepath.SplitList(first(c.env.Getenv("GOPATH"), written["GOPATH"], filepath.Join(home, "go")))[0]
		dir = filepath.Join(path, "pkg", "mod")
	}
	return filepath.Join(dir, "cache", "download")
}

// npmCache is _cacache of npm's cache: by $npm_config_cache, or in the home. No .npmrc is read: tokens stand there.
func (c *cli) npmCache() string {
	return filepath.Join(first(c.env.Getenv("npm_config_cache"), filepath.Join(c.env.Getenv("HOME"), ".npm")), "_cacache")
}
