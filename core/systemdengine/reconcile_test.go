package systemdengine_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coreos/go-systemd/v22/dbus"

	"example.com/AutoAgentProject/core/mission"
	"example.com/AutoAgentProject/core/store"
	"example.com/AutoAgentProject/core/systemdengine"
	"example.com/AutoAgentProject/core/units"
	"example.com/AutoAgentProject/core/usererr"
	"example.com/AutoAgentProject/core/wake"
)

// run starts a mission and hands it over, as the command does.
func (p *place) run(id string, do map[string]string) *store.Store {
	p.t.Helper()
	st := p.mission(id, do)
	p.start(id)
	p.hand(id)
	return st
}

func (p *place) hand(id string) {
	p.t.Helper()
	file := filepath.Join(p.root.Mission(id).Dir(), store.Handed)
	if err := errors.Join(os.WriteFile(file, []byte("{}\n"), 0o600), give(filepath.Join(p.dir, "r"))); err != nil {
		p.t.Fatal(err)
	}
}

// reconcile runs it and holds what it did to want: "mission verb outcome".
func (p *place) reconcile(want ...string) systemdengine.Report {
	p.t.Helper()
	rep, err := p.e.Reconcile(context.Background())
	if err != nil {
		p.t.Fatal(err)
	}
	p.check(rep, want...)
	return rep
}

func (p *place) check(rep systemdengine.Report, want ...string) {
	p.t.Helper()
	var got, texts []string
	for _, i := range rep.Items {
		got, texts = append(got, strings.TrimSpace(i.Mission+" "+i.What+" "+string(i.Outcome))), append(texts, i.Text)
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		p.t.Errorf("reconcile did %q and not %q:\n%s", got, want, strings.Join(texts, "\n"))
	}
}

// well checks that a mission has no trouble, and that nothing is left to do.
func (p *place) well(id string) {
	p.t.Helper()
	if said, err := p.e.Trouble(context.Background(), id); err != nil || len(said) > 0 {
		p.t.Errorf("%s: %q, %v", id, said, err)
	}
	p.reconcile()
}

func unit(id, rest string) string { return "forge-autoagent-" + id + "-" + rest }

func file(name string) string { return filepath.Join(unitDir(), name) }

// lose removes files of units.
func lose(t *testing.T, names ...string) {
	t.Helper()
	for _, name := range names {
		if err := os.Remove(file(name)); err != nil {
			t.Fatal(err)
		}
	}
}

func text(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// when is since when units are up, and that they were not started again.
func when(id string) string {
	return systemctl("show", "--property=Id,ActiveState,ActiveEnterTimestampMonotonic", unit(id, "manager.timer"), unit(id, "manager.socket"), unit(id, "stop.socket"), "forge-autoagent-"+id+".target")
}

func TestReconcile(t *testing.T) {
	needInside(t)
	t.Run("mends", testMends)
	t.Run("ends", testEnds)
	t.Run("cannot see", testCannotSee)
	t.Run("many", testMany)
	t.Run("whose word counts", testEvidence)
	t.Run("programs are gone", testMoved)
	t.Run("of the host", testHostUnits)
}

func testMends(t *testing.T) {
	p := fresh(t, time.Hour, nil)
	p.run("my", nil)
	p.run("my-site", nil)
	p.until("both tick", func() bool { return p.ticks("my", "manager") > 0 && p.ticks("my-site", "manager") > 0 })
	neighbour := when("my-site")
	p.reconcile()
	target := "forge-autoagent-my.target"

	for _, reload := range []bool{false, true} {
		lost := []string{unit("my", "manager.timer"), unit("my", "codebuilder-1.service"), target}
		before := text(t, file(lost[0])) + text(t, file(lost[1])) + text(t, file(lost[2]))
		lose(t, lost...)
		if reload {
			systemctl("daemon-reload")
		}
		p.reconcile("my repair done")
		if now := text(t, file(lost[0])) + text(t, file(lost[1])) + text(t, file(lost[2])); now != before {
			t.Errorf("other units were put back:\n%s\nand not\n%s", now, before)
		}
		p.well("my")
	}

	wake := p.socket("my", "manager")
	systemctl("stop", unit("my", "manager.socket"))
	if err := os.Mkdir(wake, 0o755); err != nil {
		t.Fatal(err)
	}
	systemctl("start", unit("my", "manager.socket"))
	p.until("the socket failed", func() bool { return systemctl("is-failed", unit("my", "manager.socket")) == "failed" })
	p.reconcile("my repair failed")
	if err := os.Remove(wake); err != nil {
		t.Fatal(err)
	}
	rep := p.reconcile("my repair done")
	if len(rep.Items) == 1 && !strings.Contains(rep.Items[0].Text, unit("my", "manager.socket")+" was failed; started again") {
		t.Errorf("says %q", rep.Items[0].Text)
	}
	p.well("my")

	systemctl("stop", target, unit("my", "quota.timer"), unit("my", "stop.socket"))
	systemctl("disable", target)
	if err := p.root.Mission("my").SetLine(context.Background(), "codebuilder-1", store.Line{Text: "works", Doing: "working"}, "", time.Now()); err != nil {
		t.Fatal(err)
	}
	rep = p.reconcile("my repair done")
	if len(rep.Items) == 1 && !strings.Contains(rep.Items[0].Text, "codebuilder-1 worked, but no tick of it lived") {
		t.Errorf("says %q", rep.Items[0].Text)
	}
	if got := systemctl("is-enabled", target); got != "enabled" {
		t.Errorf("it is %s", got)
	}
	p.well("my")

	drop := file(unit("my", "manager.timer") + ".d")
	if err := errors.Join(os.Mkdir(drop, 0o755), os.WriteFile(filepath.Join(drop, "x.conf"), []byte("[Timer]\nOnActiveSec=\nOnUnitInactiveSec=\nOnBootSec=1s\n"), 0o644)); err != nil {
		t.Fatal(err)
	}
	systemctl("daemon-reload")
	systemctl("stop", unit("my", "manager.timer"), unit("my", "manager.service"))
	systemctl("start", unit("my", "manager.timer"))
	elapsed := func() bool {
		return systemctl("show", "--property=ActiveState,SubState", unit("my", "manager.timer")) == "ActiveState=active\nSubState=elapsed"
	}
	p.until("the timer has no next run", elapsed) // it fires once, as its time is over
	n := p.ticks("my", "manager")
	p.reconcile("my repair done")
	p.until("it ticks again", func() bool { return p.ticks("my", "manager") > n })
	if err := os.RemoveAll(drop); err != nil {
		t.Fatal(err)
	}
	systemctl("daemon-reload")
	systemctl("restart", unit("my", "manager.timer"))
	p.until("its next tick is known", func() bool {
		l, err := p.e.Live(context.Background(), "my")
		return err == nil && !l.Next["manager"].IsZero()
	})
	p.well("my")

	name := file(unit("my", "reporter.service"))
	good := text(t, name)
	if err := os.WriteFile(name, []byte(strings.Replace(good, "version 1.", "version 0.", 1)), 0o644); err != nil {
		t.Fatal(err)
	}
	p.reconcile("my repair done")
	if text(t, name) != good {
		t.Error("a unit of another version stayed")
	}
	p.well("my")

	all := installed(t, "my")
	all = slices.DeleteFunc(all, func(n string) bool {
		return strings.HasPrefix(n, "forge-autoagent-my-site") || strings.Contains(n, `my\x2d`)
	})
	lose(t, all...)
	systemctl(append([]string{"stop", target}, all...)...)
	systemctl("daemon-reload")
	if manager() == units.System { // only root decides what root's manager starts
		rep := p.reconcile("my leave left")
		if len(rep.Items) == 1 && !strings.Contains(rep.Items[0].Text, "sudo AutoAgentProject run my --root "+string(p.root)) {
			t.Errorf("says %q", rep.Items[0].Text)
		}
		p.start("my")
	} else {
		p.reconcile("my repair done")
	}
	p.well("my")

	quits := filepath.Join(p.w.Settings.Bin, "run-my-codebuilder-1")
	if err := os.WriteFile(quits, []byte("exit 125\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	systemctl("start", unit("my", "codebuilder-1.service"))
	p.until("it said so, and is silenced", func() bool {
		if systemctl("is-failed", unit("my", "codebuilder-1.service")) != "failed" {
			return false
		}
		rep, err := p.e.Reconcile(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		if len(rep.Items) == 0 { // its timer's first tick came in between
			return false
		}
		p.check(rep, "my silence done")
		return true
	})
	for _, kind := range []string{"timer", "socket"} {
		if got := systemctl("is-active", unit("my", "codebuilder-1."+kind)); got != "inactive" {
			t.Errorf("the %s is %s", kind, got)
		}
	}
	p.reconcile()
	systemctl("stop", target)
	p.reconcile("my repair done")
	p.until("the silent one stays silent", func() bool {
		return systemctl("is-active", unit("my", "codebuilder-1.timer"), unit("my", "codebuilder-1.socket")) == "inactive\ninactive"
	})
	p.reconcile()

	// another root of the same manager, reconciled from here
	q := fresh(t, time.Hour, nil)
	q.run("else", nil)
	q.until("it ticks", func() bool { return q.ticks("else", "quota") > 0 })
	lose(t, unit("else", "quota.timer"))
	p.reconcile("else repair done")
	q.well("else")
	if err := os.RemoveAll(q.root.Mission("else").Dir()); err != nil {
		t.Fatal(err)
	}
	p.reconcile("else end done")
	nothing(t, "else")

	if got := when("my-site"); got != neighbour || !strings.Contains(got, "ActiveState=active") {
		t.Errorf("the neighbour was\n%s\nand is\n%s", neighbour, got)
	}
	p.well("my-site")
}

func testEnds(t *testing.T) {
	p := fresh(t, time.Hour, nil)
	p.run("my", map[string]string{"manager": deaf})
	p.run("my-site", nil)
	p.until("both tick", func() bool { return p.ticks("my", "manager") > 0 && p.ticks("my-site", "manager") > 0 })
	neighbour := when("my-site")
	if err := os.RemoveAll(p.root.Mission("my").Dir()); err != nil {
		t.Fatal(err)
	}
	p.reconcile("my end done")
	if p.alive("my") {
		t.Error("something of it lives")
	}
	gone := func(id string) {
		t.Helper()
		for _, f := range installed(t, id) {
			if !strings.HasPrefix(f, "forge-autoagent-my-site") && !strings.Contains(f, `my\x2dsite`) {
				t.Errorf("%s is left", f)
			}
		}
		p.reconcile()
	}
	gone("my")

	// its units' files went with its folder, and only the manager remembers
	p.run("my", map[string]string{"manager": deaf})
	p.until("it ticks", func() bool { return p.ticks("my", "manager") > 1 })
	if err := os.RemoveAll(p.root.Mission("my").Dir()); err != nil {
		t.Fatal(err)
	}
	lose(t, slices.DeleteFunc(installed(t, "my"), func(n string) bool { return strings.Contains(n, "my-site") || strings.Contains(n, `my\x2d`) })...)
	p.reconcile("my end done")
	if p.alive("my") {
		t.Error("something of it lives")
	}
	gone("my")

	// a tombstone whose stop nobody carried out
	st := p.run("left", map[string]string{"manager": deaf})
	p.until("it ticks", func() bool { return p.ticks("left", "manager") > 0 && p.ticks("left", "quota") > 0 })
	p.tombstone("left")
	all := map[string]string{}
	for _, f := range installed(t, "left") {
		all[f] = text(t, file(f))
	}
	p.reconcile("left stop done")
	if rec := record(t, st); !rec.Done || len(rec.Steps) != 6 || p.alive("left") {
		t.Errorf("%+v", rec)
	}
	nothing(t, "left")
	p.reconcile()
	// a removal that was cut off in its middle, and at its very end
	for _, left := range [][]string{{"forge-autoagentguard-left.slice", unit("left", "stop.service"), unit("left", "stop.socket")}, {"forge-autoagentguard-left.slice"}} {
		for _, f := range left {
			if err := os.WriteFile(file(f), []byte(all[f]), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		systemctl("daemon-reload")
		p.reconcile("left stop done")
		nothing(t, "left")
		p.reconcile()
	}
	if err := errors.Join(os.RemoveAll(st.Dir()), os.WriteFile(file("forge-autoagentguard-left.slice"), []byte(all["forge-autoagentguard-left.slice"]), 0o644)); err != nil {
		t.Fatal(err)
	}
	p.reconcile("left end done")
	nothing(t, "left")

	// half-made
	st = p.mission("half", nil)
	p.reconcile()
	m, err := st.Mission()
	if err != nil {
		t.Fatal(err)
	}
	m.CreatedAt = time.Now().Add(-time.Hour)
	old := filepath.Join(st.Dir(), "mission.json")
	if err := errors.Join(os.Remove(old), st.CreateMission(m), give(filepath.Join(p.dir, "r"))); err != nil {
		t.Fatal(err)
	}
	p.reconcile() // its file is young
	if err := os.Chtimes(old, m.CreatedAt, m.CreatedAt); err != nil {
		t.Fatal(err)
	}
	p.reconcile("half give up done")
	if stop, err := st.Stopped(); err != nil || stop == nil || stop.Cause != mission.FailedEnd || stop.Reason != "its start was cut off" || !record(t, st).Done {
		t.Errorf("%+v, %v, %+v", stop, err, record(t, st))
	}
	p.reconcile()

	if got := when("my-site"); got != neighbour || !strings.Contains(got, "ActiveState=active") {
		t.Errorf("the neighbour was\n%s\nand is\n%s", neighbour, got)
	}
	p.well("my-site")
}

// testCannotSee: where a probe fails, nothing is touched, though something is wrong.
func testCannotSee(t *testing.T) {
	ctx := context.Background()
	p := fresh(t, time.Hour, nil)
	st := p.run("blind", nil)
	p.run("well", nil)
	p.until("they tick", func() bool { return p.ticks("blind", "quota") > 0 && p.ticks("well", "quota") > 0 })
	systemctl("stop", unit("blind", "manager.timer"), unit("blind", "manager.socket"))
	all := append(installed(t, "blind"), installed(t, "well")...)
	before := when("blind") + when("well")
	untouched := func(what string) {
		t.Helper()
		if got := when("blind") + when("well"); got != before || !slices.Equal(append(installed(t, "blind"), installed(t, "well")...), all) {
			t.Errorf("%s: it was\n%s\nand is\n%s", what, before, got)
		}
		if stop, err := st.Stopped(); st.Exists() && (err != nil || stop != nil) {
			t.Errorf("%s: %+v, %v", what, stop, err)
		}
	}
	try := func(what string, change func(*systemdengine.Engine)) {
		t.Helper()
		e := *p.e.Engine
		change(&e)
		rep, err := e.Reconcile(ctx)
		if err != nil {
			t.Fatal(err)
		}
		p.check(rep, "look unknown")
		untouched(what)
	}
	try("no manager", func(e *systemdengine.Engine) {
		e.Connect = func(context.Context) (*dbus.Conn, error) { return nil, errors.New("cannot connect") }
	})
	try("no folder of units", func(e *systemdengine.Engine) { e.Settings.UnitDir = "/etc/passwd" })

	record := filepath.Join(st.Dir(), "mission.json")
	good := text(t, record)
	if err := os.WriteFile(record, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	p.reconcile("blind look unknown")
	untouched("an unreadable record")
	if err := os.WriteFile(record, []byte(good), 0o600); err != nil {
		t.Fatal(err)
	}

	home := p.root.Home()
	if err := os.Rename(home, home+".x"); err != nil {
		t.Fatal(err)
	}
	p.reconcile("blind look unknown", "well look unknown")
	untouched("a root that is not there")
	if err := os.Rename(home+".x", home); err != nil {
		t.Fatal(err)
	}

	// whoever owns a root writes the records in it
	forged := strings.Replace(good, `"codebuilder-1"`, `"site-manager"`, 1)
	p.run("blind-site", nil)
	lose(t, unit("blind-site", "manager.service"))
	neighbour := when("blind-site")
	if err := os.WriteFile(record, []byte(forged), 0o600); err != nil || forged == good {
		t.Fatal(err)
	}
	p.reconcile("blind refuse failed", "blind-site repair done")
	if got := when("blind") + when("well"); got != before {
		t.Errorf("a forged roster: it was\n%s\nand is\n%s", before, got)
	}
	if got := when("blind-site"); got != neighbour {
		t.Errorf("the neighbour was\n%s\nand is\n%s", neighbour, got)
	}
	if err := os.WriteFile(record, []byte(good), 0o600); err != nil {
		t.Fatal(err)
	}
	other := fresh(t, time.Hour, nil)
	other.mission("blind", nil)
	other.hand("blind")
	other.reconcile("blind refuse failed", "blind repair done")
	p.well("blind")
	if err := os.RemoveAll(other.root.Mission("blind").Dir()); err != nil {
		t.Fatal(err)
	}
}

// testEvidence: the owner of a root brings no mission into root's manager, by a copy of one or by taking a tombstone away.
func testEvidence(t *testing.T) {
	p := fresh(t, time.Hour, nil)
	st := p.run("real", nil)
	p.until("it ticks", func() bool { return p.ticks("real", "quota") > 0 })
	planted := p.mission("planted", nil)
	p.hand("planted")
	if manager() == units.User { // it is the owner's own
		p.reconcile("planted repair done")
		return
	}
	p.reconcile("planted leave left")
	nothing(t, "planted")
	if err := os.RemoveAll(planted.Dir()); err != nil {
		t.Fatal(err)
	}
	p.tombstone("real")
	if rec, err := p.e.Stop(context.Background(), "real"); err != nil || !rec.Done {
		t.Fatalf("%+v, %v", rec, err)
	}
	for _, name := range []string{"stop.json", "stopping.json"} {
		if err := os.Remove(filepath.Join(st.Dir(), name)); err != nil {
			t.Fatal(err)
		}
	}
	p.reconcile("real leave left")
	nothing(t, "real")
	if err := os.RemoveAll(st.Dir()); err != nil {
		t.Fatal(err)
	}
}

// testMoved: whose programs are gone is told, and ends all the same: by whoever stops it, and by reconcile.
func testMoved(t *testing.T) {
	p := fresh(t, time.Hour, nil)
	bin := p.w.Settings.Bin
	move := func(from, to string) {
		t.Helper()
		for _, name := range []string{"AutoAgentProject", "autoagent-manager", "autoagent-specialist", "autoagent-reporter", "autoagent-quota"} {
			if err := os.Rename(filepath.Join(bin, name+from), filepath.Join(bin, name+to)); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, id := range []string{"moved-a", "moved-b"} {
		st := p.run(id, map[string]string{"manager": deaf})
		p.until("it ticks", func() bool { return p.ticks(id, "manager") > 0 && p.ticks(id, "quota") > 0 })
		p.reconcile()
		move("", ".x")
		said, err := p.e.Trouble(context.Background(), id)
		if all := strings.Join(said, "\n"); err != nil || !strings.Contains(all, "the program "+bin+"/autoagent-manager of its units is not there") {
			t.Errorf("%v, says %s", err, all)
		}
		rep := p.reconcile(id + " refuse failed")
		if len(rep.Items) == 1 && !strings.Contains(rep.Items[0].Text, bin+"/AutoAgentProject") {
			t.Errorf("says %q", rep.Items[0].Text)
		}
		p.tombstone(id)
		if id == "moved-a" {
			if rec, err := p.e.Engine.Stop(context.Background(), id); err != nil || !rec.Done {
				t.Errorf("%+v, %v", rec, err)
			}
		} else {
			if err := wake.Send(units.StopSocket(units.Runtime(manager()), id)); err != nil {
				t.Fatal(err)
			}
			p.until("the stop waits to be started again", func() bool {
				return systemctl("show", "--value", "--property=SubState", unit(id, "stop.service")) == "auto-restart"
			})
			p.reconcile(id + " stop done")
		}
		if rec := record(t, st); !rec.Done || len(rec.Steps) != 6 || p.alive(id) {
			t.Errorf("%+v, alive: %v", rec, p.alive(id))
		}
		nothing(t, id)
		move(".x", "")
		p.reconcile()
	}
}

func testMany(t *testing.T) {
	p := fresh(t, time.Hour, nil)
	ids := []string{"many-a", "many-b", "many-c", "many-d"}
	for _, id := range ids {
		p.run(id, nil)
	}
	for _, id := range ids[:3] {
		if err := os.Rename(p.root.Mission(id).Dir(), filepath.Join(p.dir, "r", id+".away")); err != nil {
			t.Fatal(err)
		}
	}
	p.reconcile("many-a hold unknown", "many-b hold unknown", "many-c hold unknown")
	for _, id := range ids {
		if len(installed(t, id)) == 0 || systemctl("is-active", unit(id, "manager.timer")) != "active" {
			t.Errorf("%s was ended", id)
		}
	}
	if err := os.Rename(filepath.Join(p.dir, "r", "many-c.away"), p.root.Mission("many-c").Dir()); err != nil {
		t.Fatal(err)
	}
	p.reconcile("many-a end done", "many-b end done")
	nothing(t, "many-a")
	p.well("many-d")
}

func testHostUnits(t *testing.T) {
	ctx := context.Background()
	const timer, service = "forge-autoagent-reconcile.timer", "forge-autoagent-reconcile.service"
	p := fresh(t, time.Hour, nil)
	if err := p.e.EnsureHost(ctx); err != nil {
		t.Fatal(err)
	}
	if got := systemctl("is-active", timer) + systemctl("is-enabled", timer); got != "activeenabled" {
		t.Errorf("the timer is %s", got)
	}
	state := func() string {
		fi, err := os.Stat(file(service))
		if err != nil {
			t.Fatal(err)
		}
		return fi.ModTime().String() + systemctl("show", "--property=ActiveEnterTimestampMonotonic", timer)
	}
	before := state()
	if err := p.e.EnsureHost(ctx); err != nil || state() != before {
		t.Errorf("it was done again: %v", err)
	}
	st := p.run("hourly", map[string]string{"manager": deaf})
	p.mission("half", nil)
	m, err := p.root.Mission("half").Mission()
	old := filepath.Join(p.root.Mission("half").Dir(), "mission.json")
	m.CreatedAt = time.Now().Add(-time.Hour)
	if err := errors.Join(err, os.Remove(old), p.root.Mission("half").CreateMission(m), os.Chtimes(old, m.CreatedAt, m.CreatedAt), give(filepath.Join(p.dir, "r"))); err != nil {
		t.Fatal(err)
	}
	p.until("it ticks", func() bool { return p.ticks("hourly", "manager") > 0 && p.ticks("hourly", "quota") > 0 })
	if err := p.e.RemoveHost(ctx); usererr.CodeOf(err) != usererr.Conflict || !strings.Contains(err.Error(), "mission hourly") {
		t.Errorf("removed under a mission: %v", err)
	}
	// the unit itself, with the rights that it has
	lose(t, unit("hourly", "quota.timer"))
	systemctl("stop", unit("hourly", "reporter.socket"))
	if out := systemctl("start", service); out != "" {
		t.Error(out)
	}
	p.until("it was looked at", func() bool { return systemctl("show", "--property=Result", service) == "Result=success" })
	if stop, err := p.root.Mission("half").Stopped(); err != nil || stop == nil || !record(t, p.root.Mission("half")).Done {
		t.Errorf("half-made: %+v, %v, %+v", stop, err, record(t, p.root.Mission("half")))
	}
	p.well("hourly")
	p.tombstone("hourly")
	if out := systemctl("start", service); out != "" {
		t.Error(out)
	}
	if rec := record(t, st); !rec.Done || p.alive("hourly") {
		t.Errorf("%+v", rec)
	}
	nothing(t, "hourly")
	good := text(t, file(timer))
	if err := os.WriteFile(file(timer), []byte(strings.Replace(good, "version 1.", "version 9.", 1)), 0o644); err != nil {
		t.Fatal(err)
	}
	p.reconcile("host done")
	if text(t, file(timer)) != good {
		t.Error("another version stayed")
	}
	for range 2 {
		if err := p.e.RemoveHost(ctx); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{timer, service} {
			if _, err := os.Lstat(file(name)); err == nil {
				t.Errorf("%s is left", name)
			}
		}
		if got := systemctl("list-units", "--all", "--plain", "--no-legend", "forge-autoagent*"); got != "" {
			t.Errorf("left in the manager:\n%s", got)
		}
	}
	if err := os.WriteFile(file(timer), []byte("[Timer]\nOnCalendar=yearly\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := p.e.EnsureHost(ctx); usererr.CodeOf(err) != usererr.Conflict {
		t.Errorf("a foreign file: %v", err)
	}
	lose(t, timer)
	if _, err := os.Lstat(file(service)); err == nil {
		lose(t, service)
		t.Error("half of it was put there")
	}
	systemctl("daemon-reload")
}
