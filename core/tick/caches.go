package tick

import (
	"encoding/base64"
	"encoding/hex"
	"os"
	"path/filepath"
	"regexp"
	"slices"

	"example.com/AutoAgentProject/core/files"
)

// caches are variables that lead tools to a cache that agents may read. A module cache of Go serves as a proxy: what it
// holds is taken from there, into a module cache of the cell's own, which it can write.
func (t *Tick) caches() []string {
	dirs := []string{t.Mission.Caches.Go}
	for _, dir := range t.Mission.Read {
		dirs = append(dirs, filepath.Join(dir, "cache", "download"))
	}
	for _, downloads := range dirs {
		if st, err := os.Stat(downloads); err != nil || !st.IsDir() {
			continue
		}
		then := ",https://proxy.golang.org,direct"
		if t.walledOff() {
			then = ",off"
		}
		return []string{"GOPROXY=file://" + downloads + then}
	}
	return nil
}

// readable is what runs and verify commands may read besides.
func (t *Tick) readable() []string {
	out := append([]string{}, t.Mission.Read...)
	for _, dir := range []string{t.Mission.Caches.Go, NPMContent(t.Mission.Caches.NPM)} {
		if _, err := os.Stat(dir); dir != "" && err == nil { // it may be gone since the start; then things are downloaded
			out = append(out, dir)
		}
	}
	return out
}

// NPMContent is the folder with the packages of a cache of npm's (its _cacache).
func NPMContent(cache string) string {
	if cache == "" {
		return ""
	}
	return filepath.Join(cache, "content-v2")
}

// Bounds of what is looked for in a tree: lock files in it and in its folders, their bytes together, packages they name.
const (
	mostFolders  = 200
	mostLocked   = 32 << 20
	mostPackages = 10_000
)

// checksum is how a lock file of npm's names what a package must be.
var checksum = regexp.MustCompile(`"integrity": *"sha512-([A-Za-z0-9+/]{86}==)"`)

// seed gives a fresh home a cache of npm's that it can write. The packages that lock files in dir name are links in it to
// where they can only be read: npm takes them by their checksums, and must write into its cache at each one it does not find.
func (t *Tick) seed(home, dir string) error {
	from := NPMContent(t.Mission.Caches.NPM)
	if from == "" {
		return nil
	}
	to := NPMContent(filepath.Join(home, ".npm", "_cacache"))
	for i, sum := range lockedSums(dir) {
		if i == mostPackages {
			break
		}
		name := filepath.Join("sha512", sum[:2], sum[2:4], sum[4:])
		if _, err := os.Stat(filepath.Join(from, name)); err != nil {
			continue
		}
		if err := os.MkdirAll(filepath.Dir(filepath.Join(to, name)), 0o700); err != nil {
			return err
		}
		if err := os.Symlink(filepath.Join(from, name), filepath.Join(to, name)); err != nil {
			return err
		}
	}
	return nil
}

// lockedSums are the checksums in the lock files of a tree that an agent wrote, in hex, each once.
func lockedSums(dir string) []string {
	places := []string{"."}
	if root, err := os.OpenRoot(dir); err == nil {
		if d, err := root.Open("."); err == nil {
			entries, _ := d.ReadDir(mostFolders) // fewer, or none, are looked at then
			for _, e := range entries {
				if e.IsDir() {
					places = append(places, e.Name())
				}
			}
			d.Close()
		}
		root.Close()
	}
	left := int64(mostLocked)
	var sums []string
	for _, place := range places {
		for _, name := range []string{"package-lock.json", "npm-shrinkwrap.json"} {
			b, err := files.ReadBeneath(dir, filepath.Join(place, name), left)
			if err != nil {
				continue
			}
			left -= int64(len(b))
			for _, m := range checksum.FindAllSubmatch(b, -1) {
				if sum, err := base64.StdEncoding.DecodeString(string(m[1])); err == nil {
					sums = append(sums, hex.EncodeToString(sum))
				}
			}
		}
	}
	slices.Sort(sums)
	return slices.Compact(sums)
}
