package preflight

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"example.com/AutoAgentProject/core/cell"
	"example.com/AutoAgentProject/core/claude"
	"example.com/AutoAgentProject/core/units"
	"example.com/AutoAgentProject/core/usererr"
)

// The oldest versions that can do what is asked of them. Of git, core/git knows it.
const (
	oldestBwrap   = "0.4.0" // what the oldest supported distributions have; the walls are tried besides
	oldestAgent   = "2.1.0" // the protocol of the stream that is read
	triedAgent    = claude.PinnedVersion
	oldestSystemd = "247" // LoadCredential=, SetCredential= and the other lines of the units
	triedSystemd  = "252"
)

// older says whether version a is before b, number by number. What is no number counts as the end.
func older(a, b string) bool {
	x, y := numbers(a), numbers(b)
	for i := range max(len(x), len(y)) {
		var m, n int
		if i < len(x) {
			m = x[i]
		}
		if i < len(y) {
			n = y[i]
		}
		if m != n {
			return m < n
		}
	}
	return false
}

// numbers are those at the beginning of a version: of "252.39-1~deb12u1" 252, 39.
func numbers(version string) []int {
	var out []int
	for part := range strings.SplitSeq(version, ".") {
		digits := part
		if i := strings.IndexFunc(part, func(r rune) bool { return r < '0' || r > '9' }); i >= 0 {
			digits = part[:i]
		}
		n, err := strconv.Atoi(digits)
		if err != nil {
			break
		}
		if out = append(out, n); digits != part {
			break
		}
	}
	return out
}

// wallFindings tell of the cell that was tried.
func wallFindings(rep cell.Report, err error) []Finding {
	version := strings.TrimPrefix(rep.Version, "bubblewrap ")
	if len(numbers(version)) > 0 && older(version, oldestBwrap) {
		return []Finding{{Name: "walls", State: Fail, Text: "bubblewrap " + version + " is too old", Remedy: "install bubblewrap " + oldestBwrap + " or newer"}}
	}
	if err != nil {
		return []Finding{failed("walls", err)}
	}
	out := []Finding{ok("walls", rep.Version+", a cell was started and its walls hold"), ok("userns", "this user may make user namespaces")}
	if n := rep.Walls.Landlock; n > 0 {
		out = append(out, ok("landlock", "version "+strconv.Itoa(n)))
	} else {
		out = append(out, Finding{Name: "landlock", State: Warn, Text: "this kernel has no Landlock: mounts and the system call filter hold alone", Remedy: "a kernel of 5.19 or newer"})
	}
	if rep.Walls.Seccomp {
		out = append(out, ok("seccomp", "system calls are filtered"))
	} else {
		out = append(out, Finding{Name: "seccomp", State: Warn, Text: "this kernel filters no system calls", Remedy: "a kernel with CONFIG_SECCOMP_FILTER"})
	}
	return append(out, ok("bounds", "of each cell: "+strings.Join(rep.Bounds, ", ")))
}

func agentFinding(version, path string) Finding {
	const remedy = "install the version that was tried, " + triedAgent
	switch {
	case older(version, oldestAgent):
		return Finding{Name: "claude", State: Fail, Text: version + " at " + path + " is too old", Remedy: remedy}
	case older(version, triedAgent):
		return Finding{Name: "claude", State: Warn, Text: version + " at " + path + " is older than what was tried", Remedy: remedy}
	}
	return ok("claude", version+" at "+path)
}

// rootFinding: owner is -1 where the root is not made yet. Root may look after a root that is somebody else's.
func rootFinding(root string, owner, uid int, writable error) Finding {
	switch {
	case writable != nil:
		return failed("root", writable)
	case owner >= 0 && owner != uid && uid != 0:
		return Finding{Name: "root", State: Fail, Text: fmt.Sprintf("%s belongs to user %d", root, owner), Remedy: "give another --root, or run it as that user"}
	}
	return ok("root", root)
}

const startsLimit = time.Minute

func startsFinding(left []string) Finding {
	if len(left) == 0 {
		return ok("starts", "none was cut off")
	}
	return Finding{Name: "starts", State: Warn, Text: fmt.Sprintf("%d folders of starts that were cut off lie in the root, %s the first", len(left), left[0]), Remedy: "the next start removes them"}
}

// Space is what a file system has left.
type Space struct {
	Size       int64 // bytes in all; 0: it is none that holds files, or one that does not say
	Free       int64 // bytes for who is not root
	Inodes     int64 // of all; 0: it has no fixed number
	FreeInodes int64
	Device     uint64
}

// Below these a person is warned, and a mission is refused: what it has paid for could not be written down.
const (
	lowSpace, noSpace   = 2 << 30, 200 << 20
	lowInodes, noInodes = 50_000, 2_000
)

func spaceFinding(name, where string, s Space) Finding {
	const remedy = "free some space: clones, builds and transcripts need it"
	free := fmt.Sprintf("%d MiB", s.Free>>20)
	if s.Free >= 10<<30 {
		free = fmt.Sprintf("%d GiB", s.Free>>30)
	}
	counted := s.Inodes > 0
	switch {
	case s.Size == 0:
		return ok(name, "the file system does not say how much is free "+where)
	case s.Free < noSpace:
		return Finding{Name: name, State: Fail, Text: free + " are free " + where + ", that is too little", Remedy: remedy}
	case counted && s.FreeInodes < noInodes:
		return Finding{Name: name, State: Fail, Text: fmt.Sprintf("only %d more files can be made %s", s.FreeInodes, where), Remedy: "remove files: the disk has no more inodes"}
	case s.Free < lowSpace:
		return Finding{Name: name, State: Warn, Text: "only " + free + " are free " + where, Remedy: remedy}
	case counted && s.FreeInodes < lowInodes:
		return Finding{Name: name, State: Warn, Text: fmt.Sprintf("only %d more files can be made %s", s.FreeInodes, where), Remedy: "remove files: the disk is short of inodes"}
	}
	return ok(name, free+" are free "+where)
}

const lowMemory = 1 << 30

func memoryFinding(available int64, known bool) Finding {
	switch {
	case !known:
		return ok("memory", "it is unknown how much is available")
	case available < lowMemory:
		return Finding{Name: "memory", State: Warn, Text: fmt.Sprintf("only %d MiB are available", available>>20), Remedy: "end something: an agent's builds and tests need memory"}
	}
	return ok("memory", fmt.Sprintf("%d MiB are available", available>>20))
}

const (
	// tooWrong is from when on the kernel's own bound of the clock's error means that nobody keeps it right.
	tooWrong = 16 * time.Second
	// slack is how far the clock of whoever built the program may have been ahead.
	slack = 24 * time.Hour
)

// released is when no program of this version can have been built yet, for builds that do not know their own time.
var released = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// clockFinding: worst is the kernel's bound of how wrong the clock is.
func clockFinding(now, built time.Time, worst time.Duration, known bool) Finding {
	if built.Before(released) {
		built = released
	}
	text := "it is " + now.UTC().Format(time.RFC3339)
	switch {
	case now.Before(built.Add(-slack)):
		return Finding{Name: "clock", State: Fail, Text: "the clock says " + now.UTC().Format("2006-01-02") + ", which is before this program was made", Remedy: "set the clock: limits and prices go by it"}
	case !known:
		return ok("clock", text+"; whether it is synchronised is unknown")
	case worst >= tooWrong:
		return Finding{Name: "clock", State: Warn, Text: "no time service sets the clock, which says " + now.UTC().Format(time.RFC3339), Remedy: "timedatectl set-ntp true, or another time service: --until and prices go by it"}
	}
	return ok("clock", text)
}

func systemdFinding(m units.Manager, version string, err error) Finding {
	f := Finding{Name: "systemd", State: Warn}
	const remedy = "systemd " + triedSystemd + " is what was tried; --engine embedded does without it"
	whose := "your user manager"
	if m == units.System {
		whose = "the system's manager"
	}
	switch {
	case err != nil:
		f = failed("systemd", err)
		f.State, f.err = Warn, nil // missions can be ticked in the foreground
		if u, is := errors.AsType[*usererr.Error](err); is {
			f.Text = u.Sentence
		}
	case older(version, oldestSystemd):
		f.Text, f.Remedy = "systemd "+version+" is too old for the units", remedy
	case older(version, triedSystemd):
		f.Text, f.Remedy = "systemd "+version+" is older than what was tried", remedy
	default:
		f = ok("systemd", whose+" can tick missions, version "+version)
	}
	return f
}

func lingerFinding(err error) Finding {
	f := either("linger", "your units go on when you log out", err)
	if f.State == Fail { // start refuses it unless told otherwise
		f.State, f.err = Warn, nil
	}
	return f
}

// cgroupFinding tells what bounds a mission as a whole.
func cgroupFinding(bounds []string, lacks string, systemd bool) Finding {
	switch {
	case lacks == "":
		return ok("cgroup", "a mission is bounded by "+strings.Join(bounds, " and "))
	case systemd:
		return ok("cgroup", "the units bound a mission; the embedded engine could not ("+lacks+")")
	}
	return Finding{Name: "cgroup", State: Warn, Text: "no cgroup bounds a mission as a whole: " + lacks, Remedy: "let systemd tick it, or give this process a delegated cgroup (systemd-run --user --scope -p Delegate=yes)"}
}
