package tick

import (
	"os"
	"path/filepath"
)

// caches are variables that lead tools to a cache among the folders that agents may read. A module cache of Go serves as a
// proxy: what it holds is taken from there, into a module cache of the cell's own, which it can write.
func (t *Tick) caches() []string {
	for _, dir := range t.Mission.Read {
		downloads := filepath.Join(dir, "cache", "download")
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
