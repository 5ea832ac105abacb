package view

import (
	"context"
	"io/fs"
	"path/filepath"
	"syscall"
)

// Size is what folders take on the disk, in bytes; a file with several names counts once. What cannot be looked at counts
// nothing. Links are not followed.
func Size(ctx context.Context, dirs ...string) int64 {
	type file struct{ dev, ino uint64 }
	seen := map[file]bool{}
	var sum int64
	for _, dir := range dirs {
		_ = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
			if ctx.Err() != nil {
				return fs.SkipAll
			}
			if err != nil {
				return nil
			}
			info, err := d.Info()
			if err != nil {
				return nil
			}
			st, ok := info.Sys().(*syscall.Stat_t)
			if !ok {
				return nil
			}
			if id := (file{st.Dev, st.Ino}); st.Nlink > 1 && !d.IsDir() {
				if seen[id] {
					return nil
				}
				seen[id] = true
			}
			sum += st.Blocks * 512
			return nil
		})
	}
	return sum
}
