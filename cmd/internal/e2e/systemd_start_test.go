package e2e

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"example.com/AutoAgentProject/core/testkit"
	"example.com/AutoAgentProject/core/units"
)

// TestSystemdStartKilled kills starts at some moment. What is left is nothing, not even a unit's file, or a mission that list
// shows and abort ends. By default three starts are killed with the system's manager, which has two
// parts to kill, with AUTOAGENT_FULL=1 thirty with each.
func TestSystemdStartKilled(t *testing.T) {
	mostly(t, units.System, func(t *testing.T, manager units.Manager) {
		seed := uint64(time.Now().UnixNano())
		random := rand.New(rand.NewPCG(seed, 2))
		p := personOf(t, manager, twoSteps("Two steps"))
		began := time.Now()
		p.start("whole", "Two steps")
		takes := time.Since(began)
		p.do("abort", "whole")
		kills := 3
		if full() {
			kills = 30
		}
		for i := range kills {
			id := fmt.Sprintf("killed-%d", i)
			argv := append(slices.Clone(p.env), programs+"/AutoAgentProject")
			cmd := p.host.Command(t.Context(), p.asks(), append(argv, p.starting(id, "Two steps")...)...)
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			after := takes * time.Duration(i*kills+random.IntN(kills)) / time.Duration(kills*kills)
			time.Sleep(after) // when it is killed is chance
			mine := func() (out []testkit.Proc) {
				for _, x := range p.marked("start " + id) {
					if strings.HasSuffix(x.Args[0], "/AutoAgentProject") {
						out = append(out, x)
					}
				}
				return out
			}
			found := mine()
			if len(found) > 0 { // root's part or the owner's
				_ = unix.Kill(found[random.IntN(len(found))].PID, unix.SIGKILL)
			}
			_ = cmd.Wait()
			p.until("the other part has ended, too", func() bool { return len(mine()) == 0 })
			there := p.store(id).Exists()
			loaded := p.listed("forge-autoagent-" + id + "*")
			t.Logf("%s: killed after %v of %v (seed %d): %d processes, mission %v, units loaded %v", id, after.Round(time.Millisecond), takes.Round(time.Millisecond), seed, len(found), there, loaded != "")
			if there {
				if code, out := p.do("list"); code != 0 || !strings.Contains(out, id) {
					t.Errorf("list does not know %s: %d\n%s", id, code, out)
				}
				if code, out := p.do("abort", id); code != 0 {
					t.Errorf("abort of %s: %d\n%s\n%s", id, code, out, p.history())
				}
			}
			p.nothingLeft()
		}
		p.start("again", "Two steps", "--verify", "test -f two")
		p.over("again")
		p.nothingLeft()
	})
}
