package cell

import "golang.org/x/sys/unix"

// older are the calls that only this architecture has, most of them forerunners of others.
func older() []uint32 {
	return []uint32{
		unix.SYS_DUP2, unix.SYS_ACCESS, unix.SYS_CHMOD, unix.SYS_CREAT, unix.SYS_FUTIMESAT, unix.SYS_GETDENTS, unix.SYS_INOTIFY_INIT,
		unix.SYS_LINK, unix.SYS_LSTAT, unix.SYS_MKDIR, unix.SYS_MKNOD, unix.SYS_OPEN, unix.SYS_READLINK, unix.SYS_RENAME,
		unix.SYS_RMDIR, unix.SYS_STAT, unix.SYS_SYMLINK, unix.SYS_UNLINK, unix.SYS_UTIME, unix.SYS_UTIMES, unix.SYS_CHOWN,
		unix.SYS_LCHOWN, unix.SYS_EPOLL_CREATE, unix.SYS_EPOLL_WAIT, unix.SYS_EVENTFD, unix.SYS_POLL, unix.SYS_SELECT, unix.SYS_FORK,
		unix.SYS_VFORK, unix.SYS_ARCH_PRCTL, unix.SYS_GET_THREAD_AREA, unix.SYS_SET_THREAD_AREA, unix.SYS_URETPROBE, unix.SYS_GETPGRP,
		unix.SYS_PAUSE, unix.SYS_SIGNALFD, unix.SYS_TIME, unix.SYS_ALARM, unix.SYS_PIPE,
	}
}
