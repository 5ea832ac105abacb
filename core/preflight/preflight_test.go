package preflight

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"example.com/AutoAgentProject/core/cell"
	"example.com/AutoAgentProject/core/files"
	"example.com/AutoAgentProject/core/login"
	"example.com/AutoAgentProject/core/testkit"
	"example.com/AutoAgentProject/core/units"
	"example.com/AutoAgentProject/core/usererr"
)

// The test binary is also the shim inside of cells.
func TestMain(m *testing.M) {
	cell.ShimMain()
	os.Exit(m.Run())
}

// machine is one that lacks nothing that it is asked about, with a root of its own.
func machine(t *testing.T) Machine {
	testkit.Need(t, testkit.OnPath("bwrap"), "bwrap (apt-get install bubblewrap)")
	return Machine{
		Root: filepath.Join(t.TempDir(), "a/root"), Temp: t.TempDir(), UID: os.Geteuid(), Now: time.Now(),
		Roles:    func() error { return nil },
		Program:  func() (string, error) { return "/c", nil },
		Agent:    func(context.Context, string) (string, error) { return triedAgent, nil },
		Config:   func() (string, error) { return "none", nil },
		Login:    func() (login.File, error) { return login.File{Kind: login.APIKey, Secret: "EXAMPLE"}, nil },
		Payer:    func(login.File) string { return "the key" },
		Place:    func() error { return nil },
		Writable: func(string) error { return nil },
		Manager:  units.User,
		Systemd:  func(context.Context, units.Manager) (string, error) { return "252", nil },
		Lingers:  func() error { return nil },
	}
}

func names(r Report) string {
	var out []string
	for _, f := range r.Findings {
		out = append(out, f.Name)
	}
	return strings.Join(out, " ")
}

func TestAll(t *testing.T) {
	m := machine(t)
	r := All(t.Context(), m)
	want := "git walls userns landlock seccomp bounds config claude programs login root starts disk tmp memory clock systemd linger cgroup"
	if m.UID == 0 {
		want += " user"
	}
	if got := names(r); got != want {
		t.Errorf("the checks are\n%s\nand not\n%s", got, want)
	}
	if err := r.Failed(); err != nil {
		t.Error(err)
	}
	for _, f := range r.Findings {
		if strings.Contains(f.Text+f.Remedy, "EXAMPLE") {
			t.Errorf("%s tells the login: %q", f.Name, f.Text)
		}
	}
	if _, err := os.Stat(filepath.Dir(m.Root)); err == nil {
		t.Error("something was made")
	}

	// Everything fails; every check is made all the same.
	lack := func() error { return errors.New("x") }
	m.Roles, m.Place, m.Lingers = lack, lack, lack
	m.Program = func() (string, error) { return "", lack() }
	m.Config = func() (string, error) { return "", lack() }
	m.Login = func() (login.File, error) { return login.File{}, lack() }
	m.Systemd = func(context.Context, units.Manager) (string, error) { return "", lack() }
	m.Root, m.Temp, m.Now = "", filepath.Join(t.TempDir(), "none"), time.Unix(0, 0)
	if got := names(All(t.Context(), m)); !strings.HasPrefix(got, "git walls") || !strings.Contains(got, " config claude programs login root memory clock systemd cgroup") {
		t.Errorf("the checks are %s", got)
	}
}

// TestForStart: a start is refused for what every mission needs, in the words of doctor, and is not for what it can do without.
func TestForStart(t *testing.T) {
	lack := usererr.New(usererr.Environment, "a remedy", "it is missing")
	for name, x := range map[string]struct {
		change func(*Machine)
		want   string
	}{
		"nothing missing":    {func(*Machine) {}, ""},
		"programs":           {func(m *Machine) { m.Roles = func() error { return lack } }, "it is missing"},
		"clock":              {func(m *Machine) { m.Now = time.Unix(0, 0) }, "the clock says 1970-01-01, which is before this program was made"},
		"no temporary files": {func(m *Machine) { m.Temp += "/none" }, "there is no folder for temporary files: "},
		"a file for a folder": {func(m *Machine) {
			m.Temp += "/file"
			_ = os.WriteFile(m.Temp, nil, 0o600)
		}, "there is no folder for temporary files: "},
		"no agent program":  {func(m *Machine) { m.Program = func() (string, error) { return "", lack } }, "it is missing"},
		"an old one":        {func(m *Machine) { m.Agent = func(context.Context, string) (string, error) { return "1.9", nil } }, "1.9 at /c is too old"},
		"no linger":         {func(m *Machine) { m.Lingers = func() error { return lack } }, ""},
		"one that is older": {func(m *Machine) { m.Agent = func(context.Context, string) (string, error) { return "2.1.1", nil } }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			m := machine(t)
			x.change(&m)
			r := ForStart(t.Context(), m)
			err := r.Failed()
			if x.want == "" {
				if err != nil || r.Cell.Version == "" || r.Program != "/c" || r.Agent == "" {
					t.Errorf("%v, %+v", err, r)
				}
				warned := slices.ContainsFunc(r.Warnings(), func(s string) bool { return strings.Contains(s, "2.1.1 at /c is older than what was tried; install") })
				if warned != (r.Agent == "2.1.1") {
					t.Errorf("warnings: %q", r.Warnings())
				}
				return
			}
			if err == nil || !strings.HasPrefix(err.Error(), x.want) || usererr.CodeOf(err) != usererr.Environment {
				t.Fatalf("%v, want %s", err, x.want)
			}
			u, _ := errors.AsType[*usererr.Error](err)
			all := All(t.Context(), m)
			if !slices.ContainsFunc(all.Findings, func(f Finding) bool { return f.State == Fail && f.Text == err.Error() && f.Remedy == u.Hint }) {
				t.Errorf("doctor says something else than %q, %q", err, u.Hint)
			}
		})
	}
}

func TestStaleStarts(t *testing.T) {
	root := t.TempDir()
	now := time.Now()
	for _, name := range []string{".new-dead", ".new-held", ".new-young", "other"} {
		dir := filepath.Join(root, name)
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if name == ".new-held" {
			unlock, err := files.TryLock(filepath.Join(dir, "lock"))
			if err != nil {
				t.Fatal(err)
			}
			defer unlock()
		}
		if name != ".new-young" {
			if err := os.Chtimes(dir, now, now.Add(-time.Hour)); err != nil {
				t.Fatal(err)
			}
		}
	}
	if got := staleStarts(root, now); !slices.Equal(got, []string{".new-dead"}) {
		t.Errorf("%v", got)
	}
	if _, err := os.Stat(filepath.Join(root, ".new-dead/lock")); err == nil {
		t.Error("looking made a file")
	}
}

// TestFacts: the machine is really asked.
func TestFacts(t *testing.T) {
	s, err := spaceOf(filepath.Join(t.TempDir(), "not/yet/made"))
	if err != nil || s.Free <= 0 || s.Device == 0 {
		t.Errorf("space: %+v, %v", s, err)
	}
	if n, known := availableMemory(); !known || n < 1<<20 {
		t.Errorf("memory: %d", n)
	}
	if worst, known := clockError(); known && worst < 0 {
		t.Errorf("clock: %v", worst)
	}
	if owner(t.TempDir()) != os.Geteuid() || owner("/nowhere/at/all") != -1 {
		t.Error("owner")
	}
}
