package app

import (
	"io/fs"
	"syscall"
)

// fileOwner is the user id that a file belongs to.
func fileOwner(st fs.FileInfo) int { return int(st.Sys().(*syscall.Stat_t).Uid) }
