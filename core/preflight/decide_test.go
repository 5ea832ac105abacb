package preflight

import (
	"errors"
	"strings"
	"testing"
	"time"

	"example.com/AutoAgentProject/core/cell"
	"example.com/AutoAgentProject/core/units"
	"example.com/AutoAgentProject/core/usererr"
)

func TestOlder(t *testing.T) {
	for _, x := range []struct {
		a, b string
		want bool
	}{
		{"2.1.9", "2.1.10", true}, {"2.1.10", "2.1.9", false}, {"2.1", "2.1.0", false}, {"2.1", "2.1.1", true}, {"2.1.0", "2.1", false},
		{"252.39-1~deb12u1", "252", false}, {"251.4-1", "252", true}, {"247-rc1", "247", false}, {"v257", "252", true}, {"", "1", true}, {"3", "2.9", false},
		{"99999999999999999999", "1", true}, // no number that a version has
	} {
		if got := older(x.a, x.b); got != x.want {
			t.Errorf("%q is older than %q: %v", x.a, x.b, got)
		}
	}
}

func TestDecisions(t *testing.T) {
	const kib, mib, gib = int64(1) << 10, int64(1) << 20, int64(1) << 30
	now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	lack := usererr.New(usererr.Environment, "do this", "something is missing")
	space := func(free, all, inodes int64) Finding {
		return spaceFinding("disk", "here", Space{Size: 1 << 50, Free: free, Inodes: all, FreeInodes: inodes})
	}
	clock := func(at, built time.Time, worst time.Duration, known bool) Finding {
		return clockFinding(at, built, worst, known)
	}
	for name, x := range map[string]struct {
		got   Finding
		state State
		text  string // a part of it
	}{
		"disk: plenty":               {space(50*gib, 1e6, 9e5), OK, "50 GiB are free here"},
		"disk: enough":               {space(2*gib, 1e6, 9e5), OK, "2048 MiB are free here"},
		"disk: low":                  {space(2*gib-1, 1e6, 9e5), Warn, "only 2047 MiB are free here"},
		"disk: the least":            {space(200*mib, 1e6, 9e5), Warn, "only 200 MiB"},
		"disk: full":                 {space(200*mib-1, 1e6, 9e5), Fail, "199 MiB are free here, that is too little"},
		"disk: nothing":              {space(0, 1e6, 9e5), Fail, "0 MiB"},
		"disk: few inodes":           {space(50*gib, 1e6, 49_999), Warn, "only 49999 more files can be made here"},
		"disk: no inodes":            {space(50*gib, 1e6, 1_999), Fail, "only 1999 more files can be made here"},
		"disk: no inodes, low":       {space(gib, 1e6, 0), Fail, "only 0 more files"},
		"disk: no disk":              {spaceFinding("disk", "here", Space{}), OK, "does not say"},
		"disk: uncounted inodes":     {space(50*gib, 0, 0), OK, "50 GiB"},
		"clock: right":               {clock(now, now.Add(-time.Hour), 3*time.Second, true), OK, "it is 2026-05-01T12:00:00Z"},
		"clock: nearly":              {clock(now, time.Time{}, 16*time.Second-1, true), OK, "it is"},
		"clock: not synchronised":    {clock(now, time.Time{}, 16*time.Second, true), Warn, "no time service sets the clock"},
		"clock: nobody can tell":     {clock(now, time.Time{}, 0, false), OK, "unknown"},
		"clock: before the build":    {clock(now, now.Add(25*time.Hour), 0, true), Fail, "the clock says 2026-05-01, which is before this program was made"},
		"clock: ahead builder":       {clock(now, now.Add(23*time.Hour), 0, true), OK, "it is"},
		"clock: 1970":                {clock(time.Unix(60, 0), time.Time{}, time.Hour, true), Fail, "1970-01-01"},
		"clock: 1970, a wrong build": {clock(time.Unix(60, 0), time.Unix(30, 0), 0, true), Fail, "1970-01-01"},
		"memory: enough":             {memoryFinding(gib, true), OK, "1024 MiB are available"},
		"memory: low":                {memoryFinding(gib-kib, true), Warn, "only 1023 MiB"},
		"memory: unknown":            {memoryFinding(0, false), OK, "unknown"},
		"claude: the one":            {agentFinding(triedAgent, "/c"), OK, triedAgent + " at /c"},
		"claude: newer":              {agentFinding("9.0.0", "/c"), OK, "9.0.0 at /c"},
		"claude: older":              {agentFinding("2.1.100", "/c"), Warn, "older than what was tried"},
		"claude: too old":            {agentFinding("2.0.999", "/c"), Fail, "too old"},
		"claude: no version":         {agentFinding("nightly", "/c"), Fail, "too old"},
		"systemd: fine":              {systemdFinding(units.User, "252.39-1~deb12u1", nil), OK, "your user manager can tick missions, version 252.39"},
		"systemd: the system's":      {systemdFinding(units.System, "257", nil), OK, "the system's manager can tick"},
		"systemd: older":             {systemdFinding(units.User, "249", nil), Warn, "systemd 249 is older than what was tried"},
		"systemd: too old":           {systemdFinding(units.User, "237", nil), Warn, "systemd 237 is too old"},
		"systemd: none":              {systemdFinding(units.User, "", lack), Warn, "something is missing"},
		"linger":                     {lingerFinding(nil), OK, "log out"},
		"linger: none":               {lingerFinding(lack), Warn, "something is missing"},
		"cgroup":                     {cgroupFinding([]string{"memory 1 GiB", "9 tasks"}, "", false), OK, "memory 1 GiB and 9 tasks"},
		"cgroup: systemd's":          {cgroupFinding(nil, "no right", true), OK, "the units bound a mission; the embedded engine could not (no right)"},
		"cgroup: none":               {cgroupFinding(nil, "no right", false), Warn, "no right"},
		"root":                       {rootFinding("/r", 1000, 1000, nil), OK, "/r"},
		"root: not made":             {rootFinding("/r", -1, 1000, nil), OK, "/r"},
		"root: another's":            {rootFinding("/r", 1001, 1000, nil), Fail, "/r belongs to user 1001"},
		"root: another's, for root":  {rootFinding("/r", 1001, 0, nil), OK, "/r"},
		"root: not writable":         {rootFinding("/r", 1000, 1000, lack), Fail, "something is missing"},
		"starts":                     {startsFinding(nil), OK, "none"},
		"starts: left":               {startsFinding([]string{".new-1", ".new-2"}), Warn, "2 folders"},
	} {
		if x.got.State != x.state || !strings.Contains(x.got.Text, x.text) {
			t.Errorf("%s: %s %q, want %s with %q", name, x.got.State, x.got.Text, x.state, x.text)
		}
		if (x.got.Remedy == "") != (x.state == OK) {
			t.Errorf("%s: %s with the remedy %q", name, x.got.State, x.got.Remedy)
		}
		err := x.got.Err()
		if (err != nil) != (x.state == Fail) || err != nil && (usererr.CodeOf(err) != usererr.Environment || err.Error() != x.got.Text) {
			t.Errorf("%s: the error is %v", name, err)
		}
	}
}

func TestWallFindings(t *testing.T) {
	good := cell.Report{Version: "bubblewrap 0.8.0", Walls: cell.Walls{Landlock: 7, Seccomp: true}, Bounds: []string{"processes: 9"}}
	bare, old := good, good
	bare.Walls = cell.Walls{}
	old.Version = "bubblewrap 0.3.3"
	lack := usererr.New(usererr.Environment, "a switch", "this machine does not let bwrap make user namespaces")
	for name, x := range map[string]struct {
		rep  cell.Report
		err  error
		want string
	}{
		"all":           {good, nil, "walls ok, userns ok, landlock ok, seccomp ok, bounds ok"},
		"an old kernel": {bare, nil, "walls ok, userns ok, landlock warn, seccomp warn, bounds ok"},
		"an old bwrap":  {old, errors.New("unknown option"), "walls fail"},
		"no namespaces": {good, lack, "walls fail"},
		"no bwrap":      {cell.Report{}, lack, "walls fail"},
	} {
		var got []string
		for _, f := range wallFindings(x.rep, x.err) {
			got = append(got, f.Name+" "+string(f.State))
			if f.State != OK && f.Remedy == "" {
				t.Errorf("%s: %s has no remedy", name, f.Name)
			}
		}
		if s := strings.Join(got, ", "); s != x.want {
			t.Errorf("%s: %s", name, s)
		}
	}
}
