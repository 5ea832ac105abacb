package systemdengine_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/coreos/go-systemd/v22/dbus"

	"example.com/AutoAgentProject/core/engine"
	"example.com/AutoAgentProject/core/mission"
	"example.com/AutoAgentProject/core/store"
	"example.com/AutoAgentProject/core/systemdengine"
	"example.com/AutoAgentProject/core/units"
	"example.com/AutoAgentProject/core/usererr"
	"example.com/AutoAgentProject/systemd"
)

const owner = "ann" // of the roots in a host

// TestMain is one of the programs around an engine when it is told so: what the stop's service runs, what an owner runs,
// and what writes for the owner.
func TestMain(m *testing.M) {
	if len(os.Args) > 3 && os.Args[1] == "play" {
		if err := play(os.Args[2], os.Args[3], os.Args[4:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(int(usererr.CodeOf(err)))
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// wired is what is written down beside the programs of a mission, for the processes that play them.
type wired struct {
	Settings units.Settings
	Grace    time.Duration
	BusOnly  bool   // never the direct way to the manager
	Obstacle string // a file; while it is there the end cannot be written down
}

func (w wired) engine(file string) *systemdengine.Engine {
	e := &systemdengine.Engine{Root: store.Root(w.Settings.Root), Settings: w.Settings, Grace: w.Grace, Log: slog.New(slog.NewTextHandler(os.Stderr, nil))}
	e.Settings.Templates = systemd.Files()
	e.Save = func(ctx context.Context, id string, r engine.Record) error {
		b, err := json.Marshal(r)
		if err != nil {
			return err
		}
		_, err = asOwner(ctx, string(b), "play", "save", file, id)
		return err
	}
	e.Mark = func(ctx context.Context, id string, stop mission.Stop) error {
		b, err := json.Marshal(stop)
		if err != nil {
			return err
		}
		_, err = asOwner(ctx, string(b), "play", "mark", file, id)
		return err
	}
	e.Open = func(root store.Root) (*systemdengine.Engine, error) {
		file := filepath.Join(filepath.Dir(filepath.Dir(string(root))), "b/bin/wired.json")
		other, err := read(file)
		return other.engine(file), err
	}
	e.Finish = func(context.Context, mission.Mission, mission.Stop) error {
		if _, err := os.Stat(w.Obstacle); err == nil {
			return errors.New("there is an obstacle")
		}
		return nil
	}
	if w.BusOnly {
		e.Connect = dbus.NewSystemConnectionContext
		if w.Settings.Manager == units.User {
			e.Connect = dbus.NewUserConnectionContext
		}
	}
	return e
}

// asOwner runs this program as the owner of the root: root gives its rights away.
func asOwner(ctx context.Context, stdin string, args ...string) (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	cmd := exec.CommandContext(ctx, self, args...)
	cmd.Stdin = strings.NewReader(stdin)
	if os.Geteuid() == 0 {
		uid, err := ownerID()
		if err != nil {
			return "", err
		}
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}}
	}
	var errs strings.Builder
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		err = fmt.Errorf("%v: %w: %s", args, err, errs.String())
	}
	return string(out), err
}

func ownerID() (uint32, error) {
	b, err := os.ReadFile("/etc/passwd")
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(b)) {
		if f := strings.Split(line, ":"); f[0] == owner {
			n, err := strconv.ParseUint(f[2], 10, 32)
			return uint32(n), err
		}
	}
	return 0, errors.New("there is no " + owner)
}

func read(file string) (wired, error) {
	var w wired
	b, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(b, &w)
	}
	return w, err
}

func play(part, file string, args []string) error {
	if part == "poke" {
		c, err := net.Dial("unixgram", file)
		if err != nil {
			return nil // it does not listen any more
		}
		defer c.Close()
		_, err = c.Write([]byte("s"))
		return err
	}
	w, err := read(file)
	if err != nil {
		return err
	}
	ctx := context.Background()
	e := w.engine(file)
	switch part {
	case "stop-mission":
		return e.Carry(ctx, args[0])
	case "stop":
		rec, err := e.Stop(ctx, args[0])
		if err != nil {
			return err
		}
		return json.NewEncoder(os.Stdout).Encode(rec)
	case "reconcile":
		rep, err := e.Reconcile(ctx)
		for _, i := range rep.Items {
			fmt.Println("mission", i.Mission+":", i.Outcome, i.Text)
		}
		return err
	case "mark":
		var stop mission.Stop
		if err := json.NewDecoder(os.Stdin).Decode(&stop); err != nil {
			return err
		}
		_, err := store.Root(w.Settings.Root).Mission(args[0]).Stop(stop)
		return err
	case "save":
		var r engine.Record
		if err := json.NewDecoder(os.Stdin).Decode(&r); err != nil {
			return err
		}
		return store.Root(w.Settings.Root).Mission(args[0]).Save("stopping.json", r)
	}
	return fmt.Errorf("there is no part %q", part)
}

// The programs of the units. What an agent does stands in run-<agent>; the guard asks for the stop when there is a tombstone.
const (
	tickScript = `#!/bin/sh
if [ -n "$LISTEN_FDS" ]; then
	while dd bs=64 count=1 iflag=nonblock of=/dev/null <&3 2>/dev/null; do :; done
	exec 3<&-
fi
while [ $# -gt 0 ]; do
	case $1 in --root) root=$2 ;; --mission) id=$2 ;; --agent) agent=$2 ;; esac
	shift
done
if [ "$agent" = quota ] && [ -e "$root/data/autoagent/$id/stop.json" ]; then '%[1]s' play poke "%[2]s/forge-autoagent/$id.stop"; fi
[ ! -f '%[3]s'/run-"$id-$agent" ] || . '%[3]s'/run-"$id-$agent"
`
	stopScript = `#!/bin/sh
exec '%[1]s' play "$1" '%[2]s/wired.json' "$2"
`
)

// manager is the one that this process is to test, inside a host.
func manager() units.Manager { return units.Manager(os.Getenv("AUTOAGENT_TEST_INSIDE")) }

func unitDir() string {
	if manager() == units.System {
		return "/etc/systemd/system"
	}
	return "/home/" + owner + "/.config/systemd/user"
}

// wire writes the programs of missions below root into bin.
func wire(t testing.TB, root, bin string, every time.Duration, change func(*wired)) wired {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Dir(bin), 0o755); err != nil { // the owner runs what lies there
		t.Fatal(err)
	}
	w := wired{Grace: 1500 * time.Millisecond, Settings: units.Settings{
		Manager: manager(), Root: root, Bin: bin, UnitDir: unitDir(), Path: "/usr/bin:/bin", Home: "/home/" + owner, TickEvery: every, RunWall: time.Minute,
	}}
	runtime := "/run"
	if manager() == units.System {
		w.Settings.User = owner
	} else {
		runtime = os.Getenv("XDG_RUNTIME_DIR")
	}
	if change != nil {
		change(&w)
	}
	b, err := json.Marshal(w)
	if err != nil {
		t.Fatal(err)
	}
	tick := fmt.Sprintf(tickScript, self, runtime, bin)
	scripts := map[string]string{"AutoAgentProject": fmt.Sprintf(stopScript, self, bin), "wired.json": string(b)}
	for _, r := range []string{"manager", "specialist", "reporter", "quota"} {
		scripts["autoagent-"+r] = tick
	}
	for name, text := range scripts {
		if err := os.WriteFile(filepath.Join(bin, name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return w
}

// give makes everything below dir the owner's.
func give(dir string) error {
	if os.Geteuid() != 0 {
		return nil
	}
	uid, err := ownerID()
	if err != nil {
		return err
	}
	return filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if err == nil {
			err = os.Lchown(path, int(uid), int(uid))
		}
		if errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
		return err
	})
}

// owned is the engine as a person meets it: root starts in the system's manager, the owner stops.
type owned struct {
	*systemdengine.Engine
	file    string
	command func(mission.Mission, mission.Agent) []string
}

// Manager is the manager whose sockets wake agents.
func (o owned) Manager() string { return string(o.Settings.Manager) }

func (o owned) Start(ctx context.Context, id string) (mission.Stop, error) {
	m, err := o.Root.Mission(id).Mission()
	if err != nil {
		return mission.Stop{}, err
	}
	for _, a := range m.Roster {
		text := "exec '" + strings.Join(o.command(m, a), "' '") + "'\n"
		if err := os.WriteFile(filepath.Join(o.Settings.Bin, "run-"+id+"-"+a.Name), []byte(text), 0o644); err != nil {
			return mission.Stop{}, err
		}
	}
	if err := give(filepath.Dir(string(o.Root))); err != nil {
		return mission.Stop{}, err
	}
	return o.Engine.Start(ctx, id)
}

func (o owned) Stop(ctx context.Context, id string) (engine.Record, error) {
	var r engine.Record
	if err := give(filepath.Dir(string(o.Root))); err != nil {
		return r, err
	}
	out, err := asOwner(ctx, "", "play", "stop", o.file, id)
	if err == nil {
		err = json.Unmarshal([]byte(out), &r)
	}
	return r, err
}
