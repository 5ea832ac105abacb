package systemdengine_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"example.com/AutoAgentProject/core/engine"
	"example.com/AutoAgentProject/core/store"
)

func record(t testing.TB, st *store.Store) engine.Record {
	t.Helper()
	var r engine.Record
	if err := st.Load("stopping.json", &r); err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return r
}

// TestCrash is one phase between two crashes of the host.
func TestCrash(t *testing.T) {
	needInside(t)
	dir := filepath.Join(tmp, "crash-"+string(manager()))
	p := newPlace(t, dir, time.Second, func(w *wired) { w.Grace = 14 * time.Second })
	lives, ends := "lives-"+string(manager()), "ends-"+string(manager())
	half := p.root.Mission(ends)
	switch os.Getenv("AUTOAGENT_TEST_PHASE") {
	case "begin":
		p.mission(lives, nil)
		p.mission(ends, map[string]string{"manager": deaf})
		p.start(lives)
		p.start(ends)
		p.until("both tick", func() bool { return p.ticks(lives, "reporter") > 0 && p.ticks(ends, "manager") > 0 })
	case "again":
		for id, agents := range map[string][]string{lives: {"manager", "codebuilder-1", "reporter", "quota"}, ends: {"manager", "quota"}} {
			for _, a := range agents {
				n := p.ticks(id, a)
				if a == "manager" && id == ends { // ticks once and stays
					n--
				}
				p.until(id+": "+a+" ticks again", func() bool { return p.ticks(id, a) > n })
			}
		}
		p.until("the deaf one runs", func() bool { return p.alive(ends) })
		p.tombstone(ends)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { defer close(ended); _, _ = p.e.Engine.Stop(ctx, ends) }()
		p.until("the stop has begun", func() bool { return record(t, half).Has(engine.SocketsClosed) })
		cancel()
		<-ended
		if r := record(t, half); r.Has(engine.TicksEnded) || len(installed(t, ends)) == 0 {
			t.Errorf("the stop is too far for this test: %+v", r)
		}
	case "finish":
		p.release(ends)
		p.until("the stop is finished", func() bool { return record(t, half).Done && len(installed(t, ends)) == 0 })
		p.until("the manager has forgotten it", func() bool {
			return systemctl("list-units", "--all", "--plain", "--no-legend", "forge-autoagent-"+ends+"*") == ""
		})
		nothing(t, ends)
		if p.alive(ends) {
			t.Error("something of it lives")
		}
		n := p.ticks(lives, "manager")
		p.until("the other one goes on", func() bool { return p.ticks(lives, "manager") > n })
		p.tombstone(lives)
		if rec, err := p.e.Stop(t.Context(), lives); err != nil || !rec.Done {
			t.Errorf("%+v, %v", rec, err)
		}
		nothing(t, lives)
	default:
		t.Fatal("no phase")
	}
}

// TestBus: the message bus is restarted in the middle of a stop that speaks over it.
func TestBus(t *testing.T) {
	needInside(t)
	p := fresh(t, time.Hour, func(w *wired) { w.BusOnly, w.Grace = true, 14*time.Second })
	st := p.mission("bus", map[string]string{"manager": deaf})
	p.start("bus")
	p.until("it ticks", func() bool { return p.ticks("bus", "manager") > 0 })
	p.tombstone("bus")
	type result struct {
		rec engine.Record
		err error
	}
	stopped := make(chan result, 1)
	go func() {
		rec, err := p.e.Stop(context.Background(), "bus")
		stopped <- result{rec, err}
	}()
	p.until("the stop has begun", func() bool { return record(t, st).Has(engine.SocketsClosed) })
	before := systemctl("show", "--property=MainPID", "--value", "dbus.service")
	// Not killed: a user's manager that meets a killed bus before it knows of its death waits 90 s for an answer.
	if out := systemctl("restart", "dbus.service"); out != "" {
		t.Fatal(out)
	}
	if now := systemctl("show", "--property=MainPID", "--value", "dbus.service"); now == before || now == "0" {
		t.Fatalf("the bus was process %s and is %s", before, now)
	}
	if record(t, st).Has(engine.TicksEnded) {
		t.Error("the stop was too fast for this test")
	}
	p.release("bus")
	r := <-stopped
	if r.err != nil || !r.rec.Done {
		t.Errorf("%+v, %v", r.rec, r.err)
	}
	nothing(t, "bus")
	if p.alive("bus") {
		t.Error("something of it lives")
	}
}
