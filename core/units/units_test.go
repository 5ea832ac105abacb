package units

import (
	"bytes"
	"flag"
	"fmt"
	"math/rand"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"example.com/AutoAgentProject/core/mission"
	"example.com/AutoAgentProject/core/store"
	"example.com/AutoAgentProject/systemd"
)

var update = flag.Bool("update", false, "write testdata anew")

func sample(t *testing.T, id, specialists string) mission.Mission {
	t.Helper()
	roster, err := mission.ParseRoster(specialists, []string{"manager", "codebuilder", "designer", "site-codebuilder"})
	if err != nil {
		t.Fatal(err)
	}
	return mission.Mission{
		Version: mission.Version, ID: id, Roster: roster, VerifyLimit: mission.Duration(20 * time.Minute),
		Program: "/opt/claude/bin/claude", Credentials: "/home/example/.config/autoagent/credentials.json",
	}
}

func userSettings() Settings {
	return Settings{
		Templates: systemd.Files(), Manager: User,
		Root: "/home/example/.local/share/autoagent", Bin: "/usr/local/bin", UnitDir: "/home/example/.config/systemd/user",
		Path: "/home/example/bin:/usr/local/bin:/usr/bin:/bin", Home: "/home/example", Lang: "en_GB.UTF-8",
		Env:     map[string]string{"AUTOAGENT_CONFIG": "/home/example/my settings.yaml"},
		RunWall: time.Hour,
	}
}

func systemSettings() Settings {
	return Settings{
		Templates: systemd.Files(), Manager: System, User: "autoagent",
		Root: "/var/lib/autoagent", Bin: "/usr/local/bin", UnitDir: "/etc/systemd/system",
		Path: "/usr/local/bin:/usr/bin:/bin", Home: "/var/lib/autoagent",
		Memory: 8 << 30, Tasks: 2048, CPUWeight: 80, TickEvery: 90 * time.Second, RunWall: time.Hour,
	}
}

func render(t *testing.T, m mission.Mission, s Settings) []File {
	t.Helper()
	files, err := Render(m, s)
	if err != nil {
		t.Fatal(err)
	}
	host, err := Host(s)
	if err != nil {
		t.Fatal(err)
	}
	return append(files, host...)
}

func find(t *testing.T, files []File, name string) string {
	t.Helper()
	i := slices.IndexFunc(files, func(f File) bool { return f.Name == name })
	if i < 0 {
		t.Fatalf("there is no unit %s", name)
	}
	return string(files[i].Text)
}

// lines returns the values of a key.
func lines(text, key string) []string {
	var out []string
	for line := range strings.Lines(text) {
		if v, ok := strings.CutPrefix(line, key+"="); ok {
			out = append(out, strings.TrimSuffix(v, "\n"))
		}
	}
	return out
}

// TestGolden holds what is rendered to testdata, which people review.
func TestGolden(t *testing.T) {
	for name, s := range map[string]Settings{"user": userSettings(), "system": systemSettings()} {
		t.Run(name, func(t *testing.T) {
			var b bytes.Buffer
			for _, f := range render(t, sample(t, "my-site", "codebuilder"), s) {
				fmt.Fprintf(&b, "==> %s\n%s\n", f.Name, f.Text)
			}
			path := filepath.Join("testdata", name+".golden")
			if *update {
				if err := os.WriteFile(path, b.Bytes(), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if got := b.String(); got != string(want) {
				t.Errorf("the units changed; go test ./core/units -update writes %s:\n%s", path, firstDifference(got, string(want)))
			}
		})
	}
}

func firstDifference(got, want string) string {
	g, w := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range g {
		if i >= len(w) || g[i] != w[i] {
			return fmt.Sprintf("line %d is  %q\nand was %q", i+1, g[i], append(w, make([]string, len(g))...)[i])
		}
	}
	return "lines are missing at the end"
}

// TestNames: exactly the reserved names, whatever the roster.
func TestNames(t *testing.T) {
	r := rand.New(rand.NewSource(1))
	letters := "abcxyz019"
	word := func() string {
		b := []byte{letters[r.Intn(6)]}
		for range r.Intn(12) {
			b = append(b, letters[r.Intn(len(letters))])
		}
		return string(b)
	}
	for range 300 {
		id := word()
		for len(id) < 25 && r.Intn(2) == 0 {
			id += "-" + word()
		}
		kinds := []string{"manager"}
		var asked []string
		for range 1 + r.Intn(4) {
			k := word()
			if r.Intn(2) == 0 {
				k += "-" + word()
			}
			if !slices.Contains(kinds, k) && k != "manager" {
				kinds, asked = append(kinds, k), append(asked, fmt.Sprintf("%s:%d", k, 1+r.Intn(5)))
			}
		}
		roster, err := mission.ParseRoster(strings.Join(asked, ","), kinds)
		if err != nil {
			t.Fatal(err)
		}
		s := userSettings()
		if r.Intn(2) == 0 {
			s = systemSettings()
		}
		s.Root = "/r"
		files, err := Render(mission.Mission{ID: id, Roster: roster}, s)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, f := range files {
			got = append(got, f.Name)
			if len(f.Text) == 0 {
				t.Errorf("%s is empty", f.Name)
			}
		}
		if want := mission.UnitNames(id, roster); !slices.Equal(got, want) {
			t.Fatalf("%s: got\n%q\nwant\n%q", id, got, want)
		}
	}
}

// TestNoUserText: whatever a person or a model wrote, nothing of it stands in a unit. Fields that come later are held to
// it too.
func TestNoUserText(t *testing.T) {
	const mark = "MARK-%h-$HOME"
	m := sample(t, "my-site", "codebuilder")
	m.From = &mission.Source{}
	var fill func(v reflect.Value)
	fill = func(v reflect.Value) {
		switch v.Kind() {
		case reflect.String:
			v.SetString(mark)
		case reflect.Pointer:
			fill(v.Elem())
		case reflect.Struct:
			for i := range v.NumField() {
				if v.Field(i).CanSet() {
					fill(v.Field(i))
				}
			}
		}
	}
	id := m.ID
	fill(reflect.ValueOf(&m).Elem())
	m.ID = id
	for i := range m.Roster {
		m.Roster[i].Profession = mark
	}
	if m.Verify != mark || m.From.Path != mark {
		t.Fatal("this test could not fail")
	}
	for _, s := range []Settings{userSettings(), systemSettings()} {
		for _, f := range render(t, m, s) {
			if strings.Contains(string(f.Text), "MARK") {
				t.Errorf("%s of the %s manager holds text of the mission:\n%s", f.Name, s.Manager, f.Text)
			}
		}
	}
}

// TestWhoIsWhere: agents in the mission's slice and ended with the target, what stops them in neither.
func TestWhoIsWhere(t *testing.T) {
	m := sample(t, "my-site", "codebuilder:2,designer")
	for _, s := range []Settings{userSettings(), systemSettings()} {
		files := render(t, m, s)
		target := find(t, files, "forge-autoagent-my-site.target")
		for _, a := range m.Roster {
			for _, kind := range []string{"service", "timer", "socket"} {
				name := "forge-autoagent-my-site-" + a.Name + "." + kind
				text := find(t, files, name)
				part := slices.Equal(lines(text, "PartOf"), []string{"forge-autoagent-my-site.target"})
				if part == (a.Role == mission.Quota) {
					t.Errorf("%s: PartOf=%q", name, lines(text, "PartOf"))
				}
				if kind != "service" && !slices.Contains(lines(target, "Wants"), name) {
					t.Errorf("the target does not want %s", name)
				}
			}
			want := mission.Slice(m.ID)
			if a.Role == mission.Quota {
				want = mission.GuardSlice(m.ID)
			}
			text := find(t, files, "forge-autoagent-my-site-"+a.Name+".service")
			if got := lines(text, "Slice"); !slices.Equal(got, []string{want}) {
				t.Errorf("%s is in %q", a.Name, got)
			}
			if got := lines(text, "User"); (s.Manager == System) != slices.Equal(got, []string{"autoagent"}) || s.Manager == User && got != nil {
				t.Errorf("%s of the %s manager runs as %q", a.Name, s.Manager, got)
			}
			cells := a.Role == mission.Manager || a.Role == mission.Specialist
			if got := lines(text, "RestrictNamespaces"); cells && got != nil || !cells && got == nil {
				t.Errorf("%s: RestrictNamespaces=%q", a.Name, got)
			}
		}
		for _, kind := range []string{"service", "socket"} {
			text := find(t, files, "forge-autoagent-my-site-stop."+kind)
			if lines(text, "PartOf") != nil {
				t.Errorf("the stop's %s ends with the mission", kind)
			}
		}
		if got := lines(find(t, files, "forge-autoagent-my-site-stop.service"), "Slice"); !slices.Equal(got, []string{mission.GuardSlice(m.ID)}) {
			t.Errorf("the stop is in %q", got)
		}
	}
}

// TestKeepsOutOfCells: lines that keep bwrap from starting, or that reach into cells and break what runs there, stand in
// no unit whose ticks start cells.
func TestKeepsOutOfCells(t *testing.T) {
	bad := regexp.MustCompile(`(?m)^(RestrictNamespaces|SystemCall\w+|ProtectProc|ProcSubset|ProtectKernel\w+|ProtectHostname|MemoryDenyWriteExecute|InaccessiblePaths|TemporaryFileSystem|PrivateNetwork|PrivateDevices|RootDirectory)=|^ProtectHome=(yes|tmpfs)`)
	if !bad.MatchString("A=1\nProtectProc=invisible\n") {
		t.Fatal("this test could not fail")
	}
	for _, s := range []Settings{userSettings(), systemSettings()} {
		for _, f := range render(t, sample(t, "my-site", "codebuilder"), s) {
			if !strings.HasSuffix(f.Name, "-manager.service") && !strings.HasSuffix(f.Name, "-codebuilder-1.service") {
				continue
			}
			if got := bad.FindString(string(f.Text)); got != "" {
				t.Errorf("%s of the %s manager has %s", f.Name, s.Manager, got)
			}
		}
	}
}

// TestSandbox: none of these lines does what it says without the others.
func TestSandbox(t *testing.T) {
	for _, s := range []Settings{userSettings(), systemSettings()} {
		for _, f := range render(t, sample(t, "my-site", "codebuilder"), s) {
			text := string(f.Text)
			if lines(text, "StartLimitIntervalSec") == nil && !strings.HasSuffix(f.Name, ".slice") && !strings.HasSuffix(f.Name, ".target") {
				t.Errorf("systemd stops starting %s after five times", f.Name)
			}
			if lines(text, "ProtectSystem") == nil {
				continue
			}
			if lines(text, "ProtectHome") == nil && f.Name != Reconcile+".service" { // roots lie there, and owners' children write in them
				t.Errorf("%s of the %s manager can write home folders", f.Name, s.Manager)
			}
			if s.Manager == User && lines(text, "PrivateUsers") == nil {
				t.Errorf("the walls of %s are void in a user manager", f.Name)
			}
			for _, paths := range lines(text, "ReadWritePaths") {
				for _, p := range split(paths) {
					if !strings.HasPrefix(p, "-/") {
						t.Errorf("%s does not start when %s is gone", f.Name, p)
					}
				}
			}
		}
	}
	for _, name := range []string{"forge-autoagent-my-site-stop.service", Reconcile + ".service"} {
		if text := find(t, render(t, sample(t, "my-site", "codebuilder"), userSettings()), name); lines(text, "PrivateUsers") != nil {
			t.Errorf("%s could not look at the namespaces of cells", name)
		}
	}
}

// TestDocumented: every line of the templates is explained.
func TestDocumented(t *testing.T) {
	page, err := os.ReadFile("../../docs/units.md")
	if err != nil {
		t.Fatal(err)
	}
	keys := regexp.MustCompile(`(?m)^([A-Z]\w+)=`)
	n := 0
	for _, s := range []Settings{userSettings(), systemSettings()} {
		for _, f := range render(t, sample(t, "my-site", "codebuilder"), s) {
			for _, m := range keys.FindAllStringSubmatch(string(f.Text), -1) {
				n++
				if !bytes.Contains(page, []byte("`"+m[1]+"=")) {
					t.Errorf("docs/units.md does not explain %s= of %s", m[1], f.Name)
				}
			}
		}
	}
	if n < 200 {
		t.Errorf("only %d lines were looked at", n)
	}
}

// TestRootsUnits: what root runs gets nothing that another user decides.
func TestRootsUnits(t *testing.T) {
	s := systemSettings()
	s.Path, s.Env = "/home/example/bin:/usr/bin", map[string]string{"AUTOAGENT_CONFIG": "/home/example/config.yaml"}
	roots := 0
	for _, f := range render(t, sample(t, "my-site", "codebuilder"), s) {
		if !strings.HasSuffix(f.Name, ".service") || lines(string(f.Text), "User") != nil {
			continue
		}
		roots++
		if strings.Contains(string(f.Text), "/home/example") || lines(string(f.Text), "Environment") != nil {
			t.Errorf("%s takes something of the owner:\n%s", f.Name, f.Text)
		}
		caps := strings.Fields(strings.Join(lines(string(f.Text), "CapabilityBoundingSet"), " "))
		if len(caps) == 0 || slices.Contains(caps, "CAP_DAC_OVERRIDE") || slices.Contains(caps, "CAP_CHOWN") {
			t.Errorf("%s can write what is not root's: %q", f.Name, caps)
		}
	}
	if roots != 2 {
		t.Errorf("root runs %d units, not stop and reconcile", roots)
	}
	for _, f := range render(t, sample(t, "my-site", "codebuilder"), s) {
		// systemd follows links when it gives a socket away, and whoever owns the folder may put one there.
		if strings.HasSuffix(f.Name, ".socket") && lines(string(f.Text), "SocketUser") != nil && !strings.HasPrefix(lines(string(f.Text), "ListenDatagram")[0], "%t/") {
			t.Errorf("%s gives a socket away in a folder that is not root's", f.Name)
		}
	}
}

// TestPrivateTmp: a private /tmp must not hide what a tick needs, or every mission in it would look like one that is gone.
func TestPrivateTmp(t *testing.T) {
	for _, c := range []struct {
		change func(*Settings, *mission.Mission)
		own    bool
	}{
		{func(*Settings, *mission.Mission) {}, true},
		{func(s *Settings, _ *mission.Mission) { s.Root = "/tmp/root" }, false},
		{func(s *Settings, _ *mission.Mission) { s.Root = "/tmpfoo" }, true},
		{func(s *Settings, _ *mission.Mission) { s.Bin = "/var/tmp/bin" }, false},
		{func(s *Settings, _ *mission.Mission) { s.Path = "/tmp/x/bin:/usr/bin" }, false},
		{func(_ *Settings, m *mission.Mission) { m.Program = "/tmp/claude" }, false},
		{func(_ *Settings, m *mission.Mission) { m.Credentials = "/tmp/login" }, false},
	} {
		s, m := userSettings(), sample(t, "x", "codebuilder")
		c.change(&s, &m)
		text := find(t, render(t, m, s), "forge-autoagent-x-manager.service")
		writes := strings.Contains(text, "\nReadWritePaths=-/tmp -/var/tmp\n")
		if own := lines(text, "PrivateTmp") != nil; own != c.own || writes == c.own {
			t.Errorf("root %s, bin %s: a /tmp of its own: %v, writes to the real one: %v", s.Root, s.Bin, own, writes)
		}
	}
}

// TestLimits: a tick may take as long as its runs need, the guard's may not hang.
func TestLimits(t *testing.T) {
	s := userSettings()
	s.RunWall = 2 * time.Hour
	files := render(t, sample(t, "x", "codebuilder"), s)
	for name, want := range map[string]string{
		"codebuilder-1": fmt.Sprintf("%ds", int((TickTime + 2*time.Hour + 2*20*time.Minute + gitTime).Seconds())), "quota": "120s", "reporter": "120s",
	} {
		if got := lines(find(t, files, "forge-autoagent-x-"+name+".service"), "RuntimeMaxSec"); !slices.Equal(got, []string{want}) {
			t.Errorf("%s: RuntimeMaxSec=%q, want %s", name, got, want)
		}
	}
}

// TestHostUnits: they do not depend on a root, or on who starts a mission.
func TestHostUnits(t *testing.T) {
	for _, s := range []Settings{userSettings(), systemSettings()} {
		want, err := Host(s)
		if err != nil {
			t.Fatal(err)
		}
		for name, change := range map[string]func(*Settings){
			"root": func(s *Settings) { s.Root = "/tmp/other" }, "no root": func(s *Settings) { s.Root, s.Home, s.User = "", "", "" },
			"PATH": func(s *Settings) { s.Path = "/x" }, "every": func(s *Settings) { s.TickEvery = time.Hour }, "limits": func(s *Settings) { s.Memory, s.Tasks = 1, 1 },
		} {
			s := s
			change(&s)
			if got, err := Host(s); err != nil || !reflect.DeepEqual(got, want) {
				t.Errorf("%s manager, another %s: %v\n%s", s.Manager, name, err, got)
			}
		}
		s.Bin = `/a"b`
		if _, err := Host(s); err == nil {
			t.Error("a program that systemd cannot start")
		}
	}
}

// TestSockets: who asks for a stop or wakes an agent writes where the units listen, and no socket lies in a folder of the
// root's owner: systemd removes and makes it there as root, whatever the folder has become.
func TestSockets(t *testing.T) {
	if got := StopSocket("/run/user/1000", "my-site"); got != "/run/user/1000/forge-autoagent/my-site.stop" {
		t.Error(got)
	}
	if got := WakeSocket("/run", "my-site", "codebuilder-1"); got != "/run/forge-autoagent/my-site.codebuilder-1.wake" {
		t.Error(got)
	}
	m := sample(t, "my-site", "codebuilder")
	for _, s := range []Settings{userSettings(), systemSettings()} {
		want := map[string]string{"forge-autoagent-my-site-stop.socket": StopSocket("%t", m.ID)}
		for _, a := range m.Roster {
			want["forge-autoagent-my-site-"+a.Name+".socket"] = WakeSocket("%t", m.ID, a.Name)
		}
		for name, at := range want {
			text := find(t, render(t, m, s), name)
			if got := lines(text, "ListenDatagram"); !slices.Equal(got, []string{at}) {
				t.Errorf("%s listens on %q, not %q", name, got, at)
			}
			if got := lines(text, "SocketMode"); !slices.Equal(got, []string{"0600"}) {
				t.Errorf("%s has mode %q", name, got)
			}
			if got := strings.Join(lines(text, "SocketUser"), " "); got != s.User {
				t.Errorf("%s is given to %q", name, got)
			}
		}
	}
}

// TestWakes: an agent is woken where its own engine listens.
func TestWakes(t *testing.T) {
	t.Setenv("XDG_RUNTIME_DIR", "/run/user/7")
	st := store.Root("/r").Mission("my")
	for _, c := range []struct{ engine, manager, want string }{
		{"embedded", "", "/r/data/autoagent/my/agents/quota/wake"},
		{Engine, "system", "/run/forge-autoagent/my.quota.wake"},
		{Engine, "user", "/run/user/7/forge-autoagent/my.quota.wake"},
		{Engine, "", "/run/user/7/forge-autoagent/my.quota.wake"},
	} {
		if got := Wakes(st, mission.Mission{Engine: c.engine, Manager: c.manager}, "quota"); got != c.want {
			t.Errorf("%s, %q: %s, want %s", c.engine, c.manager, got, c.want)
		}
	}
	t.Setenv("XDG_RUNTIME_DIR", "")
	if got := Runtime(User); got != fmt.Sprintf("/run/user/%d", os.Getuid()) {
		t.Error(got)
	}
}
