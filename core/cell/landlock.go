package cell

import (
	"fmt"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Landlock needs no more than three system calls here, and they apply to the calling thread: the one that becomes the
// program. Every right the kernel knows is handled, so what no rule allows is refused.
const (
	landlockRead   = unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_READ_DIR
	landlockFile   = unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_TRUNCATE
	landlockFolder = unix.LANDLOCK_ACCESS_FS_REMOVE_DIR | unix.LANDLOCK_ACCESS_FS_REMOVE_FILE |
		unix.LANDLOCK_ACCESS_FS_MAKE_DIR | unix.LANDLOCK_ACCESS_FS_MAKE_REG | unix.LANDLOCK_ACCESS_FS_MAKE_SOCK |
		unix.LANDLOCK_ACCESS_FS_MAKE_FIFO | unix.LANDLOCK_ACCESS_FS_MAKE_SYM | unix.LANDLOCK_ACCESS_FS_REFER
	landlockDevice = unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_TRUNCATE | unix.LANDLOCK_ACCESS_FS_IOCTL_DEV

	// The first version forbids every rename and link between folders, which builds need: it is not used.
	landlockOldest = 2
	// Version 6 kernels without the fix of this erratum refuse signals between the threads of one process.
	landlockSignalFixed = 1 << 1
)

// landlockVersion is what this kernel offers; 0: nothing of use.
func landlockVersion() int {
	v, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if errno != 0 || int(v) < landlockOldest {
		return 0
	}
	if v >= 6 {
		errata, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_ERRATA)
		if errno != 0 || errata&landlockSignalFixed == 0 {
			return 5
		}
	}
	return int(v)
}

// landlock lets this thread write only below the given paths, and cuts it off from signals and abstract sockets of
// processes outside. It returns the version that is in force; 0 without an error: the kernel has none of use.
// The thread must have no_new_privs set.
func landlock(write []string) (version int, scoped bool, err error) {
	version = landlockVersion()
	if version == 0 {
		return 0, false, nil
	}
	handled := uint64(landlockRead | landlockFile | landlockFolder | unix.LANDLOCK_ACCESS_FS_MAKE_CHAR | unix.LANDLOCK_ACCESS_FS_MAKE_BLOCK | unix.LANDLOCK_ACCESS_FS_IOCTL_DEV)
	if version < 3 {
		handled &^= unix.LANDLOCK_ACCESS_FS_TRUNCATE
	}
	if version < 5 {
		handled &^= unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
	}
	attr := unix.LandlockRulesetAttr{Handled_access_fs: handled}
	if version >= 6 {
		attr.Scoped = unix.LANDLOCK_SCOPE_SIGNAL | unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET
	}
	fd, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr), 0)
	if errno != 0 {
		return 0, false, os.NewSyscallError("landlock_create_ruleset", errno)
	}
	defer unix.Close(int(fd))
	if err := landlockAllow(int(fd), "/", landlockRead, handled); err != nil {
		return 0, false, err
	}
	if err := landlockAllow(int(fd), "/dev", landlockDevice, handled); err != nil {
		return 0, false, err
	}
	for _, path := range write {
		if err := landlockAllow(int(fd), path, landlockRead|landlockFile|landlockFolder, handled); err != nil {
			return 0, false, err
		}
	}
	if _, _, errno := unix.Syscall(unix.SYS_LANDLOCK_RESTRICT_SELF, fd, 0, 0); errno != 0 {
		return 0, false, os.NewSyscallError("landlock_restrict_self", errno)
	}
	return version, attr.Scoped != 0, nil
}

// landlockAllow adds a rule for everything at and below path.
func landlockAllow(ruleset int, path string, access, handled uint64) error {
	fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("landlock %s: %w", path, err)
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return fmt.Errorf("landlock %s: %w", path, err)
	}
	if st.Mode&unix.S_IFMT != unix.S_IFDIR {
		access &^= landlockFolder | unix.LANDLOCK_ACCESS_FS_READ_DIR // the kernel refuses a folder's rights on a file
	}
	attr := unix.LandlockPathBeneathAttr{Allowed_access: access & handled, Parent_fd: int32(fd)}
	if _, _, errno := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, uintptr(ruleset), unix.LANDLOCK_RULE_PATH_BENEATH, uintptr(unsafe.Pointer(&attr)), 0, 0, 0); errno != 0 {
		return fmt.Errorf("landlock %s: %w", path, os.NewSyscallError("landlock_add_rule", errno))
	}
	return nil
}
