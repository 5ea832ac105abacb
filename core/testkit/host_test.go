package testkit

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"example.com/AutoAgentProject/core/claude"
)

// TestMain is also the program that tests run inside a host: it gets an address and says what is there.
func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == "get" {
		res, err := http.Get(os.Args[2])
		if err == nil {
			_, err = io.Copy(os.Stdout, res.Body)
		}
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// sh runs a shell script inside and fails the test if it fails.
func sh(t *testing.T, h *Host, user, script string, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	out, exit := h.Run(ctx, user, append([]string{"sh", "-ec", script, "sh"}, args...)...)
	if exit != 0 {
		t.Fatalf("%s as %q: exit %d\n%s", script, user, exit, out)
	}
	return strings.TrimSpace(out)
}

// put writes a file inside as its user.
func put(t *testing.T, h *Host, user, path, text string) {
	t.Helper()
	sh(t, h, user, `mkdir -p "$(dirname "$1")"; printf %s "$2" >"$1"`, path, text)
}

// unitDir is where a user's own units are, or the system's.
func unitDir(user string) string {
	if user == "" {
		return "/etc/systemd/system"
	}
	return "/home/" + user + "/.config/systemd/user"
}

// await polls until ok.
func await(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(15 * time.Second); !ok(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("still not: %s", what)
		}
	}
}

func lines(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return r == '\n' })
}

func TestHost(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(t.TempDir(), "program") // a copy: anybody may run it, whatever the umask is
	if out, err := exec.Command("install", "-m", "755", self, program).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	binds := []Bind{{Host: program, Inside: "/opt-test/program"}, {Host: t.TempDir(), Inside: "/srv/shared", Write: true}, {Host: t.TempDir(), Inside: "/var/run/seen"},
		{Host: t.TempDir(), Write: true}}
	inTmp := filepath.Join(binds[3].Host, "kept")
	if err := os.WriteFile(inTmp, []byte("kept"), 0o644); err != nil {
		t.Fatal(err)
	}
	agent, noAgent := claude.Find(os.Getenv)
	if noAgent == nil {
		binds = append(binds, Bind{Host: agent, Inside: "/opt-test/claude"})
	}
	outer := filepath.Join("/tmp", filepath.Base(t.TempDir())+"-host-test")
	if err := os.WriteFile(outer, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.Remove(outer) })
	t.Setenv("AUTOAGENT_EXAMPLE", "of the outer machine")
	h := NewHost(t, HostOptions{Users: []string{"ann", "bob"}, Linger: []string{"ann"}, Binds: binds})

	t.Run("is up", func(t *testing.T) {
		for _, user := range []string{"", "ann"} {
			if got := h.Systemctl(user, "is-system-running"); got != "running" {
				t.Errorf("the manager of %q is %s:\n%s", user, got, h.Systemctl(user, "--failed"))
			}
			bus := "--system"
			if user != "" {
				bus = "--user"
			}
			if got := sh(t, h, user, "busctl "+bus+" call org.freedesktop.DBus / org.freedesktop.DBus GetId"); !strings.HasPrefix(got, "s ") {
				t.Errorf("the message bus of %q says %q", user, got)
			}
		}
		if got := h.Systemctl("", "is-active", fmt.Sprintf("user@%d.service", h.UID("bob"))); got != "inactive" {
			t.Errorf("the manager of bob, who does not linger, is %s", got)
		}
		if got := sh(t, h, "", "loginctl show-user ann --property=Linger --value"); got != "yes" {
			t.Errorf("ann lingers: %s", got)
		}
	})

	t.Run("a command is as after a login", func(t *testing.T) {
		run := fmt.Sprintf("/run/user/%d", h.UID("ann"))
		want := []string{"DBUS_SESSION_BUS_ADDRESS=unix:path=" + run + "/bus", "HOME=/home/ann", "LANG=C.UTF-8", "LOGNAME=ann",
			"PATH=/usr/local/bin:/usr/bin:/bin", "SHELL=/bin/sh", "USER=ann", "XDG_RUNTIME_DIR=" + run}
		got := lines(sh(t, h, "ann", "env -u PWD -u OLDPWD -u SHLVL -u _ env"))
		if slices.Sort(got); !slices.Equal(got, want) {
			t.Errorf("the environment is\n%q", got)
		}
		if got := sh(t, h, "ann", "id -un; pwd; stat -c %U:%a . $XDG_RUNTIME_DIR"); got != "ann\n/home/ann\nann:700\nann:700" {
			t.Errorf("ann is %q", got)
		}
		if h.UID("ann") < 1000 || h.UID("bob") == h.UID("ann") {
			t.Errorf("the uids are %d and %d", h.UID("ann"), h.UID("bob"))
		}
		if out, exit := h.Run(t.Context(), "bob", "ls", "/home/ann"); exit == 0 {
			t.Errorf("bob sees ann's home: %q", out)
		}
		if out, exit := h.Run(t.Context(), "", "sh", "-c", "echo out; echo err >&2; exit 7"); out != "out\nerr\n" || exit != 7 {
			t.Errorf("%q, exit %d", out, exit)
		}
		if _, exit := h.Run(t.Context(), "", "sh", "-c", "kill -TERM $$"); exit != 128+int(syscall.SIGTERM) {
			t.Errorf("exit %d after TERM", exit)
		}
	})

	t.Run("a login starts a manager and ends it", func(t *testing.T) {
		if got := sh(t, h, "", "su -l bob -c 'systemctl --user is-system-running --wait'"); got != "running" {
			t.Errorf("it is %s", got)
		}
	})

	t.Run("a command in the background", func(t *testing.T) {
		p := h.Start("ann", "sh", "-c", "read line; echo got $line; echo said >&2; exit 3")
		fmt.Fprintln(p.In, "this")
		out, _ := io.ReadAll(p.Out)
		errs, _ := io.ReadAll(p.Err)
		_ = p.Wait()
		if got := fmt.Sprint(string(out), string(errs), p.ProcessState.ExitCode()); got != "got this\nsaid\n3" {
			t.Errorf("%q", got)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		defer cancel()
		h.Run(ctx, "ann", "sh", "-c", "sleep 4711; true")
		await(t, "the program of a command whose time is over is gone", func() bool { return !alive(h, "4711") })
	})

	t.Run("network", func(t *testing.T) {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		go func() {
			_ = http.Serve(l, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "from outside") }))
		}()
		for _, user := range []string{"", "ann"} {
			if got := sh(t, h, user, `/opt-test/program get "$1"`, "http://"+l.Addr().String()); got != "from outside" {
				t.Errorf("as %q: %s", user, got)
			}
		}
	})

	t.Run("programs", func(t *testing.T) {
		for _, p := range []string{"git", "node"} {
			Need(t, OnPath(p), p)
			path, _ := exec.LookPath(p)
			sh(t, h, "ann", `"$1" --version`, path)
		}
		Need(t, noAgent == nil, "THE AGENT PROGRAM (make tools)")
		if got := sh(t, h, "ann", "/opt-test/claude --version"); !strings.Contains(got, "Claude") {
			t.Errorf("the agent program says %q", got)
		}
	})

	t.Run("the outer machine is out of reach", func(t *testing.T) {
		for _, script := range []string{
			"ls " + outer, "touch /usr/x", "touch /opt-test/program", "touch /run/seen/x", "touch /sys/kernel/x", "date -s 2020-01-01",
			"test -e /dev/kmsg", "ip link add dummy9 type dummy || exit 1", "hostname | grep -qx " + hostname(t),
		} {
			if out, exit := h.Run(t.Context(), "", "sh", "-c", script); exit == 0 {
				t.Errorf("%s worked: %s", script, out)
			}
		}
		sh(t, h, "", "test -d /run/seen; echo x >/srv/shared/x; touch /tmp/only-inside /run/only-inside /etc/only-inside")
		for _, path := range []string{"/tmp/only-inside", "/run/only-inside", "/etc/only-inside"} {
			if _, err := os.Lstat(path); err == nil {
				t.Errorf("%s is outside", path)
			}
		}
		sh(t, h, "", "systemd-tmpfiles --remove --clean --boot; cat "+inTmp)
		if got := h.Path("/srv/shared/x"); !exists(got) || !exists(filepath.Join(binds[1].Host, "x")) {
			t.Errorf("%s is not in the bound folder", got)
		}
	})

	for _, user := range []string{"", "ann"} {
		t.Run("units of "+user, func(t *testing.T) { testUnits(t, h, user) })
	}

	t.Run("cells", func(t *testing.T) {
		Need(t, OnPath("bwrap"), "bwrap")
		const cell = "bwrap --unshare-all --ro-bind / / --dev /dev --proc /proc --tmpfs /tmp true"
		sh(t, h, "", cell)
		sh(t, h, "ann", cell)
		sh(t, h, "ann", "systemd-run --user --wait --pipe --quiet --property=PrivateUsers=yes --property=ProtectSystem=strict "+cell)
		sh(t, h, "", "systemd-run --uid=bob --wait --pipe --quiet --property=ProtectSystem=strict --property=PrivateTmp=yes "+cell)
	})

	t.Run("processes", func(t *testing.T) {
		Need(t, OnPath("bwrap"), "bwrap")
		sh(t, h, "ann", "systemd-run --user --quiet --unit=nested bwrap --unshare-all --ro-bind / / --proc /proc --dev /dev sh -c 'setsid sleep 4712; true'")
		await(t, "a process in a PID namespace of its own", func() bool { return alive(h, "4712") })
		for _, p := range h.Processes() {
			if (p.Inside == 1) != (p.PID == h.pid) || p.Inside == 1 && (p.UID != 0 || p.Cgroup != "/init.scope") {
				t.Errorf("PID 1 is not %+v", p)
			}
			if slices.Contains(p.Args, "4712") && p.Args[0] == "sleep" {
				if want := fmt.Sprintf("/user.slice/user-%d.slice/user@%[1]d.service/app.slice/nested.service", h.UID("ann")); p.Cgroup != want || p.UID != h.UID("ann") || p.Inside < 2 {
					t.Errorf("%+v is not in %s", p, want)
				}
				if b, err := os.ReadFile(h.CgroupRoot() + p.Cgroup + "/cgroup.procs"); err != nil || !slices.Contains(lines(string(b)), strconv.Itoa(p.PID)) {
					t.Errorf("%d is not in %s: %v", p.PID, h.CgroupRoot()+p.Cgroup, err)
				}
			}
			if p.PID == os.Getpid() {
				t.Error("this test is in the host")
			}
		}
		h.Systemctl("ann", "stop", "nested")
		await(t, "the process is gone", func() bool { return !alive(h, "4712") })
	})

	t.Run("limits", func(t *testing.T) { testLimits(t, h) })
}

// testUnits lets a oneshot be started by hand, by a timer and by a datagram, and reads its journal.
func testUnits(t *testing.T, h *Host, user string) {
	dir, out := unitDir(user), "/var/lib/ticks"
	if user != "" {
		out = "/home/" + user + "/ticks"
	}
	put(t, h, user, dir+"/tick.service", "[Unit]\nStartLimitIntervalSec=0\n[Service]\nType=oneshot\nSyslogIdentifier=example-tick\n"+
		"ExecStart=/bin/sh -c 'echo ran >>"+out+"; echo tick of %n; printf \"MESSAGE=structured\\\\nMISSION=demo\\\\n\" | logger --journald'\n")
	put(t, h, user, dir+"/soon.timer", "[Timer]\nOnActiveSec=50ms\nAccuracySec=1ms\nUnit=tick.service\n")
	put(t, h, user, dir+"/drain.service", "[Service]\nType=oneshot\nStandardInput=socket\nStandardOutput=append:"+out+"\nExecStart=/bin/dd bs=64 count=1 status=none\n")
	put(t, h, user, dir+"/drain.socket", "[Socket]\nListenDatagram=%t/wake\n")
	h.Systemctl(user, "daemon-reload")
	has := func(n int, word string) func() bool {
		return func() bool {
			b, _ := os.ReadFile(h.Path(out))
			return strings.Count(string(b), word) >= n
		}
	}
	if got := h.Systemctl(user, "start", "tick.service"); got != "" || !has(1, "ran")() {
		t.Fatalf("start: %s", got)
	}
	h.Systemctl(user, "start", "soon.timer")
	await(t, "the timer started it", has(2, "ran"))

	h.Systemctl(user, "start", "drain.socket")
	socket := "/run/wake"
	if user != "" {
		socket = fmt.Sprintf("/run/user/%d/wake", h.UID(user))
	}
	c, err := net.Dial("unixgram", h.Path(socket))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Write([]byte("woken\n")); err != nil {
		t.Fatal(err)
	}
	await(t, "the datagram started it", has(1, "woken"))

	field, may := "_SYSTEMD_UNIT", "tick.service"
	if user != "" {
		field, may = "_SYSTEMD_USER_UNIT", "" // the journal asks for it when the process may be gone
	}
	found := h.Journal(user, "SYSLOG_IDENTIFIER=example-tick")
	if len(found) != 2 {
		t.Errorf("the journal has %v", found)
	}
	for _, e := range found {
		if unit := e[field]; e["MESSAGE"] != "tick of tick.service" || unit != "tick.service" && unit != may || e["_UID"] != strconv.Itoa(h.UID(user)) {
			t.Errorf("the journal has %v", e)
		}
	}
	if found := h.Journal(user, "-u", "tick.service"); len(found) < 4 { // started and finished, twice
		t.Errorf("of the unit, the journal has %v", found)
	}
	if found := h.Journal(user, "MISSION=demo"); len(found) != 2 || found[0]["MESSAGE"] != "structured" {
		t.Errorf("by its field, the journal has %v", found)
	}
	if found := h.Journal(user, "MISSION=other"); len(found) != 0 {
		t.Errorf("the journal has %v", found)
	}
}

func testLimits(t *testing.T, h *Host) {
	for _, c := range []struct {
		name, controller, script string
		properties, results      []string
	}{
		{"TasksMax", "pids", "for i in 1 2 3 4 5 6; do sleep 0.1 & done; wait; echo all", []string{"TasksMax=4"}, []string{"exit-code"}},
		{"MemoryMax", "memory", "head -c 100M /dev/zero | tail -c 90M >/dev/null && echo all", []string{"MemoryMax=24M", "MemorySwapMax=0"},
			[]string{"oom-kill", "exit-code"}}, // of v1, systemd learns nothing of what the kernel killed
	} {
		t.Run(c.name, func(t *testing.T) {
			Need(t, h.Bounds(c.controller), "THE CGROUP CONTROLLER "+c.controller)
			run := func(user, manager string, properties []string) (out, result string) {
				argv := []string{"systemd-run", manager, "--wait", "--pipe"}
				for _, p := range properties {
					argv = append(argv, "--property="+p)
				}
				out, _ = h.Run(t.Context(), user, append(argv, "sh", "-c", c.script)...)
				_, result, _ = strings.Cut(out, "Finished with result: ")
				result, _, _ = strings.Cut(result, "\n")
				return out, result
			}
			for _, as := range []struct{ user, manager string }{{"", "--system"}, {"ann", "--user"}} {
				if out, result := run(as.user, as.manager, nil); result != "success" || !strings.Contains(out, "\nall\n") {
					t.Errorf("without a limit: %s", out)
				}
				out, result := run(as.user, as.manager, c.properties)
				switch {
				case as.user != "" && !cgroup2(h, c.controller):
					t.Logf("%s IN A USER MANAGER WAS NOT TRIED: %s is a controller of cgroup v1, which is not handed down", c.name, c.controller)
				case !slices.Contains(c.results, result) || strings.Contains(out, "\nall\n"):
					t.Errorf("with %s: %s", c.properties, out)
				}
			}
		})
	}
}

// cgroup2 says whether a controller belongs to the v2 tree.
func cgroup2(h *Host, controller string) bool {
	b, _ := os.ReadFile(h.CgroupRoot() + "/cgroup.controllers")
	return slices.Contains(strings.Fields(string(b)), controller)
}

// TestHostCrash: what is on the disk outlives a crash and a shutdown, and what is enabled starts again.
func TestHostCrash(t *testing.T) {
	disk := t.TempDir()
	h := NewHost(t, HostOptions{Users: []string{"ann"}, Linger: []string{"ann"}, KeepVar: disk})
	for user, kept := range map[string]string{"": "/var/lib/kept", "ann": "/home/ann/kept"} {
		target, cell := "multi-user.target", ""
		if user != "" {
			target = "default.target"
		}
		if OnPath("bwrap") { // as early as this, too
			cell = "ExecStart=bwrap --unshare-all --ro-bind / / --proc /proc --dev /dev true\n"
		}
		put(t, h, user, unitDir(user)+"/counted.service", "[Service]\nType=oneshot\nRemainAfterExit=yes\n"+cell+"ExecStart=/bin/sh -c 'echo boot >>"+kept+
			"'\nExecStop=/bin/sh -c 'echo stop >>"+kept+"'\n[Install]\nWantedBy="+target+"\n")
		h.Systemctl(user, "enable", "--now", "counted.service")
	}
	sh(t, h, "", "touch /tmp/lost /run/lost; setsid sh -c 'trap : TERM HUP; while :; do sleep 4713; done' >/dev/null 2>&1 </dev/null &")
	sh(t, h, "", "systemd-cat -t before echo 'of the first boot'")
	h.Journal("") // it is written
	machine := sh(t, h, "", "cat /etc/machine-id")
	root := h.CgroupRoot()

	h.Crash()
	if p := h.Processes(); len(p) > 0 {
		t.Errorf("after the crash there are %v", p)
	}
	if exists(root) {
		t.Errorf("after the crash there is %s", root)
	}
	h.Boot()
	if got := sh(t, h, "", "cat /etc/machine-id; ls /tmp/lost /run/lost 2>/dev/null || true"); got != machine {
		t.Errorf("the machine id was %s; now: %s", machine, got)
	}
	if alive(h, "4713") {
		t.Error("a process outlived the crash")
	}
	if found := h.Journal("", "SYSLOG_IDENTIFIER=before"); len(found) != 1 {
		t.Errorf("of the first boot, the journal has %v", found)
	}
	h.Shutdown()
	h.Boot()
	want := "boot\nboot\nstop\nboot\n" // no stop in a crash, one in the shutdown
	for _, kept := range []string{"var/lib/kept", "home/ann/kept"} {
		if b, err := os.ReadFile(filepath.Join(disk, kept)); err != nil || string(b) != want {
			t.Errorf("%s: %v\n%s", kept, err, b)
		}
	}
	if got := h.Systemctl("", "is-system-running"); got != "running" {
		t.Errorf("it is %s: %s", got, h.Systemctl("", "--failed"))
	}
}

// TestTwoHosts: a unit of the same name in another host is another unit.
func TestTwoHosts(t *testing.T) {
	var hosts [2]*Host
	for i := range hosts {
		hosts[i] = NewHost(t, HostOptions{Users: []string{"ann"}, Linger: []string{"ann"}, NoControllers: i == 1})
		for _, user := range []string{"", "ann"} {
			put(t, hosts[i], user, unitDir(user)+"/same.service", fmt.Sprintf("[Service]\nExecStart=/bin/sleep %d\n", 4720+i))
			hosts[i].Systemctl(user, "daemon-reload")
		}
	}
	one, two := hosts[0], hosts[1]
	if one.CgroupRoot() == two.CgroupRoot() {
		t.Errorf("both have %s", one.CgroupRoot())
	}
	if two.Bounds("pids") || two.Bounds("memory") || two.Systemctl("", "is-system-running") != "running" {
		t.Error("the host without controllers has some, or does not run")
	}
	for _, user := range []string{"", "ann"} {
		one.Systemctl(user, "start", "same.service")
		if got := two.Systemctl(user, "is-active", "same.service"); got != "inactive" {
			t.Errorf("started in one host, it is %s in the other one", got)
		}
		two.Systemctl(user, "start", "same.service")
		two.Systemctl(user, "kill", "--signal=KILL", "same.service")
		await(t, "it is killed", func() bool { return two.Systemctl(user, "is-active", "same.service") == "failed" })
		if got := one.Systemctl(user, "is-active", "same.service"); got != "active" {
			t.Errorf("killed in one host, it is %s in the other one", got)
		}
	}
	if !alive(one, "4720") || alive(two, "4720") || alive(one, "4721") {
		t.Error("a host sees processes of the other one, or not its own")
	}
	two.Crash()
	if got := one.Systemctl("", "is-active", "same.service"); got != "active" {
		t.Errorf("after the crash of one host, it is %s in the other one", got)
	}
}

// TestHostLeavesNothing: not even of what resists.
func TestHostLeavesNothing(t *testing.T) {
	before := outerState(t)
	var pid int
	var name string
	unit := fmt.Sprintf("example-resists-%d", os.Getpid())
	t.Run("host", func(t *testing.T) {
		h := NewHost(t, HostOptions{Users: []string{"ann"}, Linger: []string{"ann"}, Binds: []Bind{{Host: t.TempDir(), Inside: "/srv"}}})
		pid, name = h.pid, h.name
		sh(t, h, "", "systemd-run --quiet --unit="+unit+" sh -c 'trap : TERM HUP INT; setsid sleep "+ours()+"; sleep "+ours()+"'")
		sh(t, h, "ann", "systemd-run --quiet --user sh -c 'trap : TERM; sleep "+ours()+"'; setsid sleep "+ours()+" >/dev/null 2>&1 </dev/null &")
		h.Start("ann", "sleep", ours())
		sh(t, h, "", "mount -t tmpfs tmpfs /mnt; mkdir -p /var/lib/own; mount --bind /mnt /var/lib/own")
		await(t, "all of it runs", func() bool { return alive(h, ours()) })
		if got := outerState(t); slices.Equal(got, before) {
			t.Error("a running host cannot be seen: the comparison is worth nothing")
		}
	})
	if pid == 0 {
		t.Skip("THERE WAS NO HOST AND SO THIS TEST DID NOT RUN")
	}
	if got := outerState(t); !slices.Equal(got, before) {
		t.Errorf("before, there was\n%s\nand after it\n%s", strings.Join(before, "\n"), strings.Join(got, "\n"))
	}
	_ = filepath.WalkDir("/sys/fs/cgroup", func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && (strings.Contains(path, name) || strings.Contains(path, unit)) { // wherever it was made
			t.Errorf("there is %s", path)
		}
		return nil
	})
}

// TestHostOfKilledTest: a host does not outlive its test's process, and the next one clears up its cgroups.
func TestHostOfKilledTest(t *testing.T) {
	if os.Getenv("AUTOAGENT_TEST_KILLED") != "" {
		h := NewHost(t, HostOptions{})
		fmt.Printf("host %d %s\n", h.pid, h.CgroupRoot())
		select {} // until it is killed
	}
	needHost(t)
	cmd := exec.Command(os.Args[0], "-test.run=^TestHostOfKilledTest$", "-test.v")
	cmd.Env = append(os.Environ(), "AUTOAGENT_TEST_KILLED=1", "TMPDIR="+t.TempDir())
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var pid int
	var root, said string
	buf := make([]byte, 4096)
	for pid == 0 {
		n, err := out.Read(buf)
		said += string(buf[:n])
		if i := strings.Index(said, "host "); i >= 0 && strings.HasSuffix(said, "\n") {
			fmt.Sscanf(said[i:], "host %d %s", &pid, &root)
		}
		if err != nil {
			break
		}
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	Need(t, pid != 0 || !strings.Contains(said, "NEEDS"), "A HOST ("+said+")")
	if pid == 0 {
		t.Fatalf("it said %q", said)
	}
	await(t, "the host of the killed test is gone", func() bool { return syscall.Kill(pid, 0) == syscall.ESRCH })
	trees, err := hierarchies(false)
	if err != nil {
		t.Fatal(err)
	}
	for _, tree := range trees {
		left := filepath.Join(tree.path, filepath.Base(root))
		if sweepCgroups(tree.path); exists(left) {
			t.Errorf("there still is %s", left)
		}
	}
}

func alive(h *Host, arg string) bool {
	return slices.ContainsFunc(h.Processes(), func(p Proc) bool { return slices.Contains(p.Args, arg) })
}

func exists(path string) bool { _, err := os.Lstat(path); return err == nil }

func hostname(t *testing.T) string {
	t.Helper()
	name, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	return name
}

// ours is a time to sleep that tells this test's processes from others.
func ours() string { return fmt.Sprintf("4714.%d", os.Getpid()) }

// outerState is what a host could leave on the outer machine: mounts, abstract sockets, cgroups of this process's hosts,
// processes that sleep as long as ours.
func outerState(t *testing.T) []string {
	t.Helper()
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	state := lines(string(mounts))
	sockets, _ := os.ReadFile("/proc/net/unix")
	for _, line := range lines(string(sockets)) {
		if _, name, ok := strings.Cut(line, fmt.Sprintf("@%s%d-", cgroupPrefix, os.Getpid())); ok {
			state = append(state, "socket "+name)
		}
	}
	trees, err := hierarchies(false)
	if err != nil {
		return state
	}
	for _, tree := range trees {
		found, _ := filepath.Glob(filepath.Join(tree.path, fmt.Sprintf("%s%d-*", cgroupPrefix, os.Getpid())))
		state = append(state, found...)
	}
	processes, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, p := range processes {
		if b, _ := os.ReadFile(p); strings.Contains(string(b), "\x00"+ours()+"\x00") {
			state = append(state, p)
		}
	}
	return state
}
