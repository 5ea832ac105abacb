package systemdengine

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"example.com/AutoAgentProject/core/mission"
	"example.com/AutoAgentProject/core/units"
	"example.com/AutoAgentProject/core/usererr"
)

// verb is what Reconcile does about a mission; it stands in the report.
type verb string

const (
	look    verb = "look"    // nothing: something about it cannot be known
	refuse  verb = "refuse"  // nothing: what is wrong is not for reconcile to mend
	hold    verb = "hold"    // nothing: too many look dead at once
	leave   verb = "leave"   // nothing: a person has to say whether it goes on
	endGone verb = "end"     // its folder is gone: end it and take its units away
	carryOn verb = "stop"    // it has a tombstone: carry its stop to the end
	giveUpd verb = "give up" // its start was cut off: tombstone, and to the end
	silence verb = "silence" // an agent says that it must not be started again
	repair  verb = "repair"  // put units back, start them again
)

// halfMade is how long a start may take to hand its mission over.
const halfMade = 15 * time.Minute

// act is one decision.
type act struct {
	key
	do     verb
	agent  string   // silence
	write  []string // repair: units that are missing or of another version
	start  []string // repair
	again  []string // repair: timers to stop and start
	silent []string // repair: what must not come back with the target
	text   string   // what was wrong, and in one that succeeds what was done
}

// decide says what is done about missions. It looks at nothing but its arguments. held are the missions that looked dead
// the last time, when nothing was done about them.
//
// Where more than half of at least four missions look dead at once, what looked may be broken, or a disk not there yet:
// nothing ends, and the next look ends those that look dead again. Putting back and starting goes on meanwhile: it is
// what a machine needs whose units were lost, and harmless where nothing was.
func decide(all []fact, now time.Time, held map[key]bool) []act {
	var out []act
	var dead []key
	total := 0
	for _, f := range all {
		acts := f.decide(now)
		if f.exists() {
			total++
		}
		for i := range acts {
			if acts[i].do == repair {
				acts[i] = checkNames(acts[i], f, all)
			}
			if acts[i].do == endGone || acts[i].do == giveUpd {
				dead = append(dead, f.key)
			}
		}
		out = append(out, acts...)
	}
	known := func(k key) bool { return held[k] }
	if total < 4 || 2*len(dead) <= total || !slices.ContainsFunc(dead, func(k key) bool { return !known(k) }) {
		return out
	}
	for i, a := range out {
		if slices.Contains(dead, a.key) {
			out[i].do = hold
			out[i].text = fmt.Sprintf("%s; %d of %d missions look dead at once, so nothing was ended; the next look ends those that look dead then", strings.TrimSuffix(a.text, done(a.do)), len(dead), total)
		}
	}
	return out
}

// exists says whether a mission counts: it should tick, or units of it are there.
func (f fact) exists() bool {
	return len(f.files) > 0 || f.stop == nil && !f.foreign && !f.gone
}

// done is how the text of an ending goes on.
func done(v verb) string {
	switch v {
	case endGone:
		return "; everything of it was ended and its units were removed"
	case giveUpd:
		return "; it was marked as failed and finished"
	}
	return ""
}

// checkNames refuses to write a unit that another mission would have too, if it is not clear whose it is.
func checkNames(a act, f fact, all []fact) act {
	for _, g := range all {
		if g.key == f.key || g.gone || g.foreign || g.refused != "" || g.stop != nil || g.m == nil {
			continue
		}
		theirs := mission.UnitNames(g.id, g.m.Roster)
		for _, name := range a.write {
			if _, mine := f.files[name]; slices.Contains(theirs, name) && !mine && (g.id != f.id || !f.owns()) {
				return act{key: f.key, do: refuse, text: fmt.Sprintf("%s is missing, and would be a unit of mission %s below %s too", name, g.id, g.root)}
			}
		}
	}
	return a
}

// owns says whether an installed service names this mission and its root. In the system manager that is what says that root
// started it, and has not stopped it: everything else belongs to the owner, who can copy a mission or take a tombstone away.
func (f fact) owns() bool {
	for _, u := range f.files {
		if u.root == f.root {
			return true
		}
	}
	return false
}

func (f fact) decide(now time.Time) []act {
	one := func(do verb, format string, args ...any) []act {
		return []act{{key: f.key, do: do, text: fmt.Sprintf(format, args...) + done(do)}}
	}
	here := len(f.files) > 0 || slices.ContainsFunc(f.set.ending(), func(name string) bool {
		u, ok := f.units[name]
		return ok && (!u.settled() || u.active == "failed")
	})
	stopper := f.units[f.set.stopService()]
	ending := !stopper.settled() && !stopper.again() // the stop's own service is at it
	switch {
	case f.foreign && f.stop == nil && f.refused == "" && f.owns():
		return one(look, "its units are here, but its record says that %s ticks it", cmp.Or(f.m.Manager, f.m.Engine))
	case f.foreign && !f.owns():
		return nil
	case f.stop != nil && (ending || !here && (f.ended || f.refused != "" || f.m == nil)): // without units it can be another engine's
		return nil
	case f.refused != "":
		return one(refuse, "%s", f.refused)
	case f.unknown != "":
		return one(look, "%s", f.unknown)
	case f.gone && here && !ending:
		return one(endGone, "its folder is gone")
	case f.gone:
		return nil
	case f.stop != nil && here:
		return one(carryOn, "it was stopped, but units of it were left; its stop was carried to the end")
	case f.stop != nil:
		return one(carryOn, "its stop was not finished; it was carried to the end")
	case !here && !f.handed && now.Sub(f.born) > halfMade:
		return one(giveUpd, "its start was cut off")
	case !here && !f.handed:
		return nil
	case len(f.lost) > 0:
		return one(refuse, "its units run programs that are not there: %s; put them back, or end it: AutoAgentProject abort %s", strings.Join(f.lost, ", "), f.id)
	case f.roots && !f.owns():
		return one(leave, "no service of it is installed, and only root decides that one is: sudo AutoAgentProject run %s --root %s puts its units back", f.id, f.root)
	case len(f.blocked) > 0:
		return one(refuse, "%s is there already and is not of this mission", strings.Join(f.blocked, ", "))
	}
	return f.mend()
}

// mend decides about a mission that should tick.
func (f fact) mend() []act {
	var out []act
	r := act{key: f.key, do: repair}
	var said []string
	var missing, old, stale []string
	for _, name := range f.set.names() {
		switch u, ok := f.files[name]; {
		case !ok:
			missing = append(missing, name)
		case u.version != units.Version:
			old = append(old, name)
		}
	}
	down := func(name string) bool { u := f.units[name]; return u.active != "active" && !u.job }
	free := func(service string) bool { return f.units[service].settled() }
	stop, closed := f.set.stopSocket(), f.units[f.set.stopSocket()]
	if down(stop) && free(f.set.stopService()) {
		r.start = append(r.start, stop)
		said = append(said, stop+" was "+stateOf(closed))
	}
	if down(f.set.target()) {
		r.start = append(r.start, f.set.target())
		said = append(said, f.set.target()+" was "+stateOf(f.units[f.set.target()]))
	}
	for _, a := range f.set.roster {
		base := f.set.base() + "-" + a.Name
		timer, socket, service := base+".timer", base+".socket", base+".service"
		if u := f.units[service]; u.active == "failed" && usererr.Code(u.exit) == usererr.DoNotRetry {
			if a.Role != mission.Quota { // nobody else guards it
				r.silent = append(r.silent, timer, socket)
				if !f.units[timer].settled() || !f.units[socket].settled() {
					out = append(out, act{key: f.key, do: silence, agent: a.Name, text: fmt.Sprintf(
						"%s says that it must not be started again (exit status %d); its timer and its socket were stopped", a.Name, u.exit)})
				}
				continue
			}
			out = append(out, act{key: f.key, do: refuse, text: fmt.Sprintf("%s says that it must not be started again (exit status %d), but nobody else guards the mission", a.Name, u.exit)})
		}
		dead := down(timer)
		switch {
		case dead:
			r.start = append(r.start, timer)
			said = append(said, timer+" was "+stateOf(f.units[timer]))
		case f.units[timer].noNext && free(service):
			r.again = append(r.again, timer)
			said = append(said, timer+" had no next run")
			dead = true
		}
		if down(socket) && free(service) { // systemd opens none whose service runs
			r.start = append(r.start, socket)
			said = append(said, socket+" was "+stateOf(f.units[socket]))
		}
		if dead && f.working[a.Name] && free(service) {
			stale = append(stale, a.Name)
		}
	}
	var text []string
	if len(missing) == len(f.set.names()) {
		text, said = append(text, "all its units were missing and were put back"), nil
	} else if len(missing) > 0 {
		text = append(text, strings.Join(missing, ", ")+" were missing and were put back")
	}
	if len(old) > 0 {
		text = append(text, fmt.Sprintf("%s of another version were written anew", count(len(old), "unit")))
	}
	if len(said) > 0 {
		text = append(text, strings.Join(said, ", ")+"; started again")
	}
	if len(stale) > 0 {
		text = append(text, "state.json said that "+strings.Join(stale, ", ")+" worked, but no tick of it lived")
	}
	if f.disabled && !slices.Contains(missing, f.set.target()) {
		text = append(text, f.set.target()+" was not enabled, so the mission would not have come back after a reboot")
	}
	if r.write = append(missing, old...); len(text) > 0 {
		r.text = strings.Join(text, "; ")
		out = append(out, r)
	}
	return out
}

// stateOf is a unit's state in a word.
func stateOf(u unitState) string {
	if u.active == "" {
		return "not loaded"
	}
	return u.active
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// order puts sockets before timers, and what stops before all: systemd opens no socket whose service runs.
func order(names []string) []string {
	rank := map[string]int{".socket": 1, ".target": 2, ".timer": 3}
	slices.SortStableFunc(names, func(a, b string) int {
		if s := strings.HasSuffix(b, "-stop.socket"); s != strings.HasSuffix(a, "-stop.socket") {
			return map[bool]int{true: 1, false: -1}[s]
		}
		return rank[filepath.Ext(a)] - rank[filepath.Ext(b)]
	})
	return names
}
