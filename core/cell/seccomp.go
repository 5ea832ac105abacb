package cell

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"unsafe"

	"golang.org/x/sys/unix"
)

// refused are system calls that are not allowed and answer EPERM, because whoever makes one means it: they change what is
// mounted, leave or make namespaces, look into other processes, or are known ways into the kernel. Every other call that
// is not allowed answers that it does not exist, so that a C library falls back to an older one.
func refused() []uint32 {
	return []uint32{
		unix.SYS_MOUNT, unix.SYS_UMOUNT2, unix.SYS_PIVOT_ROOT, unix.SYS_CHROOT, unix.SYS_MOVE_MOUNT, unix.SYS_MOUNT_SETATTR,
		unix.SYS_OPEN_TREE, unix.SYS_OPEN_TREE_ATTR, unix.SYS_FSOPEN, unix.SYS_FSCONFIG, unix.SYS_FSMOUNT, unix.SYS_FSPICK,
		unix.SYS_SETNS, unix.SYS_SETHOSTNAME, unix.SYS_SETDOMAINNAME,
		unix.SYS_PTRACE, unix.SYS_PROCESS_VM_READV, unix.SYS_PROCESS_VM_WRITEV, unix.SYS_PIDFD_GETFD, unix.SYS_KCMP,
		unix.SYS_KEYCTL, unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY,
		unix.SYS_BPF, unix.SYS_PERF_EVENT_OPEN, unix.SYS_USERFAULTFD,
		unix.SYS_IO_URING_SETUP, unix.SYS_IO_URING_ENTER, unix.SYS_IO_URING_REGISTER,
		unix.SYS_KEXEC_LOAD, unix.SYS_KEXEC_FILE_LOAD, unix.SYS_INIT_MODULE, unix.SYS_FINIT_MODULE, unix.SYS_DELETE_MODULE,
		unix.SYS_OPEN_BY_HANDLE_AT, unix.SYS_QUOTACTL, unix.SYS_QUOTACTL_FD, unix.SYS_SWAPON, unix.SYS_SWAPOFF,
		unix.SYS_FANOTIFY_INIT, unix.SYS_NAME_TO_HANDLE_AT, unix.SYS_MOVE_PAGES, unix.SYS_MIGRATE_PAGES,
		unix.SYS_REBOOT, unix.SYS_SETTIMEOFDAY, unix.SYS_CLOCK_SETTIME, unix.SYS_ACCT, unix.SYS_SYSLOG, unix.SYS_VHANGUP,
	}
}

const (
	queryPersonality = 0xffffffff
	noRandomize      = 0x40000 // ADDR_NO_RANDOMIZE: what thread sanitizers ask for

	newNamespaces = unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWNET | unix.CLONE_NEWIPC |
		unix.CLONE_NEWUTS | unix.CLONE_NEWCGROUP

	retAllow = unix.SECCOMP_RET_ALLOW
	retEPERM = unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)
	// clone3 hides its flags behind a pointer; told that it does not exist, every C library falls back to clone.
	retENOSYS   = unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS)
	retFamily   = unix.SECCOMP_RET_ERRNO | uint32(unix.EAFNOSUPPORT)
	retProtocol = unix.SECCOMP_RET_ERRNO | uint32(unix.EPROTONOSUPPORT)
	retFastOpen = unix.SECCOMP_RET_ERRNO | uint32(unix.EOPNOTSUPP)

	protocolSMC = 256 // IPPROTO_SMC

	// Offsets in struct seccomp_data.
	offsetCall = 0
	offsetArch = 4
	offsetArgs = 16 // 8 bytes each; the kernel reads only the low half of all that are looked at here

	x32Bit = 0x40000000
)

func load(offset uint32) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: offset}
}

// on is a jump over yes instructions if op holds for k, else over no.
func on(op uint16, k uint32, yes, no uint8) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_JMP | op | unix.BPF_K, K: k, Jt: yes, Jf: no}
}

func answerWith(k uint32) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: k}
}

// filterProgram is the system call filter for one architecture: an allow-list.
func filterProgram(arch uint32) []unix.SockFilter {
	p := []unix.SockFilter{
		load(offsetArch),
		on(unix.BPF_JEQ, arch, 1, 0),
		answerWith(unix.SECCOMP_RET_KILL_PROCESS), // the numbers below mean something else there
		load(offsetCall),
	}
	if arch == unix.AUDIT_ARCH_X86_64 {
		p = append(p, on(unix.BPF_JGE, x32Bit, 0, 1), answerWith(retENOSYS))
	}
	// refuse answers no if op holds for k and the argument of the call, else goes on.
	refuse := func(call uint32, arg uint32, no uint32, op uint16, k uint32) {
		p = append(p, on(unix.BPF_JEQ, call, 0, 4), load(offsetArgs+8*arg), on(op, k, 0, 1), answerWith(no), load(offsetCall))
	}
	// Landlock sees neither a connection of these protocols to a TCP port, nor one that is made by sending.
	for _, protocol := range []uint32{unix.IPPROTO_MPTCP, protocolSMC} {
		refuse(unix.SYS_SOCKET, 2, retProtocol, unix.BPF_JEQ, protocol)
	}
	for _, c := range [][2]uint32{{unix.SYS_SENDTO, 3}, {unix.SYS_SENDMSG, 2}, {unix.SYS_SENDMMSG, 3}} {
		refuse(c[0], c[1], retFastOpen, unix.BPF_JSET, unix.MSG_FASTOPEN)
	}
	for _, r := range ranges(allowed()) {
		if r[0] == r[1] {
			p = append(p, on(unix.BPF_JEQ, r[0], 0, 1), answerWith(retAllow))
		} else {
			p = append(p, on(unix.BPF_JGE, r[0], 0, 2), on(unix.BPF_JGT, r[1], 1, 0), answerWith(retAllow))
		}
	}
	// look answers yes if op holds for any of ks and the argument of the call, else no.
	look := func(call uint32, arg uint32, yes, no uint32, op uint16, ks ...uint32) {
		n := uint8(len(ks))
		p = append(p, on(unix.BPF_JEQ, call, 0, n+3), load(offsetArgs+8*arg))
		for i, k := range ks {
			p = append(p, on(op, k, n-uint8(i), 0))
		}
		p = append(p, answerWith(no), answerWith(yes))
	}
	look(unix.SYS_CLONE, 0, retEPERM, retAllow, unix.BPF_JSET, newNamespaces)
	look(unix.SYS_UNSHARE, 0, retEPERM, retAllow, unix.BPF_JSET, newNamespaces|unix.CLONE_NEWTIME)
	look(unix.SYS_IOCTL, 1, retEPERM, retAllow, unix.BPF_JEQ, unix.TIOCSTI, unix.TIOCLINUX) // both type into a terminal that is not theirs
	look(unix.SYS_PERSONALITY, 0, retAllow, retEPERM, unix.BPF_JEQ, 0, noRandomize, queryPersonality)
	for _, call := range []uint32{unix.SYS_SOCKET, unix.SYS_SOCKETPAIR} {
		look(call, 0, retAllow, retFamily, unix.BPF_JEQ, unix.AF_UNIX, unix.AF_INET, unix.AF_INET6, unix.AF_NETLINK)
	}
	for _, call := range refused() {
		p = append(p, on(unix.BPF_JEQ, call, 0, 1), answerWith(retEPERM))
	}
	return append(p, answerWith(retENOSYS))
}

// ranges are the numbers as a sorted list of ranges, both ends included.
func ranges(numbers []uint32) [][2]uint32 {
	numbers = slices.Clone(numbers)
	slices.Sort(numbers)
	var out [][2]uint32
	for _, n := range numbers {
		if last := len(out) - 1; last >= 0 && n <= out[last][1]+1 {
			out[last][1] = n
		} else {
			out = append(out, [2]uint32{n, n})
		}
	}
	return out
}

// seccomp puts the filter on this thread, which must have no_new_privs set.
func seccomp() error {
	var arch uint32
	switch runtime.GOARCH {
	case "amd64":
		arch = unix.AUDIT_ARCH_X86_64
	case "arm64":
		arch = unix.AUDIT_ARCH_AARCH64
	default:
		return fmt.Errorf("no system call filter for %s", runtime.GOARCH)
	}
	p := filterProgram(arch)
	prog := unix.SockFprog{Len: uint16(len(p)), Filter: &p[0]}
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0, uintptr(unsafe.Pointer(&prog)))
	if errno != 0 {
		return os.NewSyscallError("seccomp", errno)
	}
	return nil
}
