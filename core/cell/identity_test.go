package cell

import (
	"encoding/json"
	"os"
	"os/exec"
	"testing"
)

func TestIdentity(t *testing.T) {
	needBwrap(t)
	c, err := Start(t.Context(), Spec{Argv: []string{"sleep", "1000"}, Env: testEnv()})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Kill()
	b, err := json.Marshal(c.Identity())
	if err != nil {
		t.Fatal(err)
	}
	var id Identity
	if err := json.Unmarshal(b, &id); err != nil || id != c.Identity() {
		t.Fatalf("%s became %+v: %v", b, id, err)
	}
	own, err := namespace(os.Getpid())
	if err != nil || id.NS == own || id.NS == 0 {
		t.Errorf("its PID namespace is %d, ours %d: %v", id.NS, own, err)
	}
	for name, other := range map[string]Identity{
		"another boot":      {Boot: "00000000-0000-0000-0000-000000000000", PID: id.PID, Start: id.Start, NS: id.NS},
		"number used again": {Boot: id.Boot, PID: id.PID, Start: id.Start + 1, NS: id.NS},
		"another namespace": {Boot: id.Boot, PID: id.PID, Start: id.Start, NS: id.NS + 1},
		"nobody":            {},
		"impossible number": {Boot: id.Boot, PID: 1 << 30, Start: id.Start, NS: id.NS},
	} {
		if alive, err := other.Alive(); alive || err != nil {
			t.Errorf("%s: alive %v, error %v", name, alive, err)
		}
		if err := other.Kill(); err != nil {
			t.Errorf("%s: kill: %v", name, err)
		}
	}
	if alive, err := id.Alive(); !alive || err != nil {
		t.Fatalf("after the others were killed: alive %v, error %v", alive, err)
	}
	if err := id.Kill(); err != nil {
		t.Error(err)
	}
	if alive, err := id.Alive(); alive || err != nil {
		t.Errorf("after Kill: alive %v, error %v", alive, err)
	}
	if err := id.Kill(); err != nil {
		t.Errorf("second Kill: %v", err)
	}
}

func TestZombieIsGone(t *testing.T) {
	cmd := exec.Command("sleep", "1000")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	id, err := identify(cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	if err := id.Kill(); err != nil { // nobody has waited for it yet
		t.Error(err)
	}
	if alive, err := id.Alive(); alive || err != nil {
		t.Errorf("a zombie: alive %v, error %v", alive, err)
	}
	_ = cmd.Wait()
}
