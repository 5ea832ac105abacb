package systemdengine

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"example.com/AutoAgentProject/core/mission"
	"example.com/AutoAgentProject/core/units"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// healthy is a mission that ticks.
func healthy(t *testing.T, id string) fact {
	t.Helper()
	roster, err := mission.ParseRoster("codebuilder:1", []string{"manager", "codebuilder"})
	if err != nil {
		t.Fatal(err)
	}
	f := fact{
		key: key{"/r", id}, set: set{id, roster}, m: &mission.Mission{ID: id, Roster: roster, Engine: Name}, handed: true, born: noon.Add(-time.Hour),
		files: map[string]unitFile{}, units: map[string]unitState{}, working: map[string]bool{},
	}
	for _, name := range f.set.names() {
		u := unitFile{ours: true, id: id, version: units.Version}
		state := unitState{id: id, load: "loaded", active: "active"}
		if filepath.Ext(name) == ".service" {
			u.root, state.active = "/r", "inactive"
		}
		f.files[name], f.units[name] = u, state
	}
	return f
}

func (f fact) turn(name, active string) { u := f.units[name]; u.active = active; f.units[name] = u }

// bare is a mission without a trace in the manager.
func (f *fact) bare() {
	clear(f.files)
	clear(f.units)
}

func show(acts []act) string {
	var out []string
	for _, a := range acts {
		s := string(a.do)
		for what, names := range map[string][]string{"write": a.write, "start": a.start, "again": a.again, "silent": a.silent} {
			if len(names) > 0 {
				short := strings.Split(strings.ReplaceAll(strings.Join(names, ","), "forge-autoagent-my-", ""), ",")
				slices.Sort(short)
				s += fmt.Sprintf(" %s=%s", what, strings.Join(short, ","))
			}
		}
		if a.agent != "" {
			s += " " + a.agent
		}
		f := strings.Fields(s)
		verbs := len(strings.Fields(string(a.do)))
		slices.Sort(f[verbs:])
		out = append(out, strings.Join(f, " "))
	}
	return strings.Join(out, " | ")
}

func TestDecide(t *testing.T) {
	const b = "forge-autoagent-my-"
	stopped := &mission.Stop{Cause: mission.Aborted}
	for name, c := range map[string]struct {
		change func(*fact)
		want   string
		says   string
	}{
		"all is well":                   {func(f *fact) {}, "", ""},
		"a tick runs":                   {func(f *fact) { f.turn(b+"manager.service", "activating") }, "", ""},
		"a tick failed":                 {func(f *fact) { f.turn(b+"manager.service", "failed") }, "", ""},
		"a job waits":                   {func(f *fact) { f.units[b+"manager.timer"] = unitState{active: "inactive", job: true} }, "", ""},
		"folder gone":                   {func(f *fact) { f.gone, f.m = true, nil }, "end", "its folder is gone; everything of it was ended"},
		"gone, loaded":                  {func(f *fact) { f.gone, f.m = true, nil; clear(f.files) }, "end", ""},
		"gone, no units":                {func(f *fact) { f.gone, f.m = true, nil; f.bare() }, "", ""},
		"gone, being stopped":           {func(f *fact) { f.gone, f.m = true, nil; f.turn(b+"stop.service", "activating") }, "", ""},
		"root not there":                {func(f *fact) { f.gone, f.m, f.unknown = true, nil, "no root" }, "look", "no root"},
		"unreadable":                    {func(f *fact) { f.m, f.unknown = nil, "mission.json cannot be read" }, "look", ""},
		"unreadable, stopped":           {func(f *fact) { f.m, f.stop = nil, stopped }, "stop", ""},
		"unreadable, stopped, no units": {func(f *fact) { f.m, f.stop = nil, stopped; f.bare() }, "", ""},
		"tombstone":                     {func(f *fact) { f.stop = stopped }, "stop", "units of it were left"},
		"tombstone, unknown":            {func(f *fact) { f.stop, f.unknown = stopped, "no answer" }, "look", ""},
		"stop at work":                  {func(f *fact) { f.stop = stopped; f.turn(b+"stop.service", "activating") }, "", ""},
		"half removed": {func(f *fact) {
			f.stop, f.ended = stopped, true
			clear(f.units)
			maps.DeleteFunc(f.files, func(n string, _ unitFile) bool { return n != b+"stop.service" })
		}, "stop", ""},
		"stopped, a timer runs without a file": {func(f *fact) {
			f.stop, f.ended = stopped, true
			clear(f.files)
			maps.DeleteFunc(f.units, func(n string, _ unitState) bool { return n != b+"manager.timer" })
		}, "stop", "units of it were left"},
		"ended":                  {func(f *fact) { f.stop, f.ended = stopped, true; f.bare() }, "", ""},
		"not ended":              {func(f *fact) { f.stop = stopped; f.bare() }, "stop", "was not finished"},
		"made, not handed over":  {func(f *fact) { f.handed, f.born = false, noon.Add(-time.Minute); f.bare() }, "", ""},
		"made in the future":     {func(f *fact) { f.handed, f.born = false, noon.Add(time.Hour); f.bare() }, "", ""},
		"half-made":              {func(f *fact) { f.handed, f.born = false, noon.Add(-halfMade-1); f.bare() }, "give up", "its start was cut off"},
		"half-made, just so old": {func(f *fact) { f.handed, f.born = false, noon.Add(-halfMade); f.bare() }, "", ""},
		"half-made, with units":  {func(f *fact) { f.handed = false }, "", ""},
		"half-made, unknown":     {func(f *fact) { f.handed, f.unknown = false, "?"; f.bare() }, "look", ""},
		"all units lost":         {func(f *fact) { f.bare() }, "repair start=codebuilder-1.socket,codebuilder-1.timer,forge-autoagent-my.target,manager.socket,manager.timer,quota.socket,quota.timer,reporter.socket,reporter.timer,stop.socket write=codebuilder-1.service,codebuilder-1.socket,codebuilder-1.timer,forge-autoagent-my.slice,forge-autoagent-my.target,forge-autoagentguard-my.slice,manager.service,manager.socket,manager.timer,quota.service,quota.socket,quota.timer,reporter.service,reporter.socket,reporter.timer,stop.service,stop.socket", "all its units were missing"},
		"stop fails": {func(f *fact) {
			f.stop = stopped
			f.units[b+"stop.service"] = unitState{active: "activating", sub: "auto-restart", job: true}
		}, "stop", "units of it were left"},
		"gone, and the stop fails": {func(f *fact) {
			f.gone, f.m = true, nil
			f.units[b+"stop.service"] = unitState{active: "activating", sub: "auto-restart"}
		}, "end", ""},
		"programs lost":          {func(f *fact) { f.lost = []string{"/opt/x"}; f.turn(b+"manager.timer", "failed") }, "refuse", "not there: /opt/x; put them back, or end it: AutoAgentProject abort my"},
		"programs lost, stopped": {func(f *fact) { f.lost, f.stop = []string{"/opt/x"}, stopped }, "stop", ""},
		"all units lost, root's": {func(f *fact) { f.roots = true; f.bare() }, "leave", "only root decides"},
		"services lost, root's": {func(f *fact) {
			f.roots = true
			maps.DeleteFunc(f.files, func(n string, _ unitFile) bool { return filepath.Ext(n) == ".service" })
		}, "leave", "sudo AutoAgentProject run my --root /r"},
		"another root's services, root's": {func(f *fact) {
			f.roots = true
			for n, u := range f.files {
				u.root = ""
				f.files[n] = u
			}
		}, "leave", ""},
		"one service left, root's": {func(f *fact) {
			f.roots = true
			u := f.files[b+"stop.service"]
			f.bare()
			f.files[b+"stop.service"] = u
		}, "repair start=codebuilder-1.socket,codebuilder-1.timer,forge-autoagent-my.target,manager.socket,manager.timer,quota.socket,quota.timer,reporter.socket,reporter.timer,stop.socket write=codebuilder-1.service,codebuilder-1.socket,codebuilder-1.timer,forge-autoagent-my.slice,forge-autoagent-my.target,forge-autoagentguard-my.slice,manager.service,manager.socket,manager.timer,quota.service,quota.socket,quota.timer,reporter.service,reporter.socket,reporter.timer,stop.socket", "were missing"},
		"half-made, root's":   {func(f *fact) { f.roots, f.handed, f.born = true, false, noon.Add(-halfMade-1); f.bare() }, "give up", ""},
		"young, root's":       {func(f *fact) { f.roots, f.handed, f.born = true, false, noon; f.bare() }, "", ""},
		"ended, root's":       {func(f *fact) { f.roots, f.stop, f.ended = true, stopped, true; f.bare() }, "", ""},
		"a timer's file lost": {func(f *fact) { delete(f.files, b+"manager.timer") }, "repair write=manager.timer", "manager.timer were missing"},
		"old version": {func(f *fact) {
			f.files[b+"quota.service"] = unitFile{ours: true, id: "my", root: "/r", version: units.Version + 1}
		}, "repair write=quota.service", "1 unit of another version"},
		"a file in the way": {func(f *fact) { delete(f.files, b+"manager.timer"); f.blocked = []string{b + "manager.timer"} }, "refuse", "is there already"},
		"timer dead":        {func(f *fact) { f.turn(b+"manager.timer", "failed") }, "repair start=manager.timer", "manager.timer was failed; started again"},
		"timer not loaded":  {func(f *fact) { delete(f.units, b+"manager.timer") }, "repair start=manager.timer", "not loaded"},
		"timer dead, works": {func(f *fact) { f.turn(b+"manager.timer", "inactive"); f.working["manager"] = true }, "repair start=manager.timer", "state.json said that manager worked"},
		"timer dead, tick lives": {func(f *fact) {
			f.turn(b+"manager.timer", "inactive")
			f.turn(b+"manager.service", "activating")
			f.working["manager"] = true
		}, "repair start=manager.timer", "manager.timer was inactive; started again"},
		"works, timer lives": {func(f *fact) { f.working["manager"] = true }, "", ""},
		"no next run":        {func(f *fact) { f.units[b+"manager.timer"] = unitState{active: "active", noNext: true} }, "repair again=manager.timer", "had no next run"},
		"no next run while it ticks": {func(f *fact) {
			f.units[b+"manager.timer"] = unitState{active: "active", noNext: true}
			f.turn(b+"manager.service", "activating")
		}, "", ""},
		"socket failed":                 {func(f *fact) { f.turn(b+"manager.socket", "failed") }, "repair start=manager.socket", ""},
		"socket failed while it ticks":  {func(f *fact) { f.turn(b+"manager.socket", "failed"); f.turn(b+"manager.service", "activating") }, "", ""},
		"stop's socket":                 {func(f *fact) { f.turn(b+"stop.socket", "inactive") }, "repair start=stop.socket", ""},
		"target":                        {func(f *fact) { f.turn("forge-autoagent-my.target", "inactive") }, "repair start=forge-autoagent-my.target", ""},
		"stop's socket, while it stops": {func(f *fact) { f.turn(b+"stop.socket", "inactive"); f.turn(b+"stop.service", "activating") }, "", ""},
		"gone, and one unit failed": {func(f *fact) {
			f.gone, f.m = true, nil
			f.bare()
			f.units[b+"manager.service"] = unitState{active: "failed"}
		}, "end", ""},
		"gone, and one unit settled": {func(f *fact) {
			f.gone, f.m = true, nil
			f.bare()
			f.units[b+"manager.service"] = unitState{active: "inactive"}
		}, "", ""},
		"another engine's, stopped, with units": {func(f *fact) { f.foreign, f.stop = true, stopped }, "stop", ""},
		"units of another root, being stopped":  {func(f *fact) { f.refused, f.stop = "they are another's", stopped; f.bare() }, "", ""},
		"not enabled":                           {func(f *fact) { f.disabled = true }, "repair", "after a reboot"},
		"125":                                   {func(f *fact) { f.units[b+"manager.service"] = unitState{active: "failed", exit: 125} }, "silence manager", "manager says that it must not be started again (exit status 125)"},
		"125, silent already": {func(f *fact) {
			f.units[b+"manager.service"] = unitState{active: "failed", exit: 125}
			f.turn(b+"manager.timer", "inactive")
			f.turn(b+"manager.socket", "failed")
		}, "", ""},
		"125, and the target down": {func(f *fact) {
			f.units[b+"manager.service"] = unitState{active: "failed", exit: 125}
			f.turn(b+"manager.timer", "inactive")
			f.turn(b+"manager.socket", "inactive")
			f.turn("forge-autoagent-my.target", "inactive")
		}, "repair silent=manager.socket,manager.timer start=forge-autoagent-my.target", ""},
		"1 is no 125":                    {func(f *fact) { f.units[b+"manager.service"] = unitState{active: "failed", exit: 1} }, "", ""},
		"125 of the guard":               {func(f *fact) { f.units[b+"quota.service"] = unitState{active: "failed", exit: 125} }, "refuse", "nobody else guards"},
		"another engine's":               {func(f *fact) { f.foreign = true; f.bare() }, "", ""},
		"another engine's, not finished": {func(f *fact) { f.foreign, f.stop = true, stopped; f.bare() }, "", ""},
		"another engine's, with units":   {func(f *fact) { f.foreign, f.m.Engine = true, "embedded" }, "look", "its record says that embedded ticks it"},
		"units of another root":          {func(f *fact) { f.refused = "they are another's"; f.bare() }, "refuse", "another's"},
		"units of another root, ended":   {func(f *fact) { f.refused, f.stop, f.ended = "they are another's", stopped, true; f.bare() }, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			f := healthy(t, "my")
			c.change(&f)
			acts := f.decide(noon)
			if got := show(acts); got != c.want {
				t.Errorf("decided\n%s\nand not\n%s", got, c.want)
			}
			if len(acts) > 0 && !strings.Contains(acts[0].text, c.says) {
				t.Errorf("says %q", acts[0].text)
			}
			if name == "timer dead, tick lives" && strings.Contains(acts[0].text, "no tick of it lived") {
				t.Errorf("says %q", acts[0].text)
			}
		})
	}
}

// TestManyDead: one probe that is broken ends nothing. What was dead at two looks ends.
func TestManyDead(t *testing.T) {
	gone := func(f fact) fact { f.gone, f.m = true, nil; return f }
	lost := func(f fact) fact { f.bare(); return f }
	half := func(f fact) fact { f.handed = false; f.bare(); return f }
	well := func(f fact) fact { return f }
	over := func(f fact) fact { f.stop, f.ended = &mission.Stop{}, true; f.bare(); return f }
	type change = func(fact) fact
	for name, c := range map[string]struct {
		now  []change
		held []string
		want string
	}{
		"three of three":                        {[]change{gone, gone, gone}, nil, "end end end"},
		"half of four":                          {[]change{gone, gone, well, well}, nil, "end end"},
		"three of four":                         {[]change{gone, gone, half, well}, nil, "hold hold hold"},
		"all of five":                           {[]change{gone, gone, gone, gone, gone}, nil, "hold hold hold hold hold"},
		"held, and again":                       {[]change{gone, gone, half, well}, []string{"m0", "m1", "m2"}, "end end give up"},
		"held, and one more":                    {[]change{gone, gone, half, gone}, []string{"m0", "m1", "m2"}, "hold hold hold hold"},
		"held, and fewer":                       {[]change{gone, well, gone, gone}, []string{"m0", "m1", "m2", "m3"}, "end end end"},
		"one that ended is none of four":        {[]change{gone, gone, gone, over}, nil, "end end end"},
		"those that ended do not count":         {[]change{gone, gone, over, over, over}, nil, "end end"},
		"a reboot without units":                {[]change{lost, lost, lost, lost}, nil, "repair repair repair repair"},
		"one is put back while others are held": {[]change{gone, gone, gone, lost}, nil, "hold hold hold repair"},
	} {
		var all []fact
		for i, change := range c.now {
			all = append(all, change(healthy(t, fmt.Sprintf("m%d", i))))
		}
		held := map[key]bool{}
		for _, id := range c.held {
			held[key{"/r", id}] = true
		}
		var got []string
		for _, a := range decide(all, noon, held) {
			got = append(got, string(a.do))
			if a.do == hold && (!strings.Contains(a.text, "look dead at once") || strings.Contains(a.text, "was ended and") || strings.Contains(a.text, "finished")) {
				t.Errorf("%s: says %q", name, a.text)
			}
		}
		if s := strings.Join(got, " "); s != c.want {
			t.Errorf("%s: %s, want %s", name, s, c.want)
		}
	}
}

// TestWhoseName: a unit that two missions would have is put back for neither, unless one has it.
func TestWhoseName(t *testing.T) {
	forged := func(id, agent string) fact {
		f := healthy(t, id)
		r := slices.Clone(f.m.Roster)
		r[1].Name = agent
		f.m, f.set = &mission.Mission{ID: id, Roster: r, Engine: Name}, set{id, r}
		return f
	}
	short := func(acts []act) string {
		var out []string
		for _, a := range acts {
			out = append(out, a.id+" "+string(a.do))
		}
		return strings.Join(out, ", ")
	}
	a, b := forged("my", "site-manager"), healthy(t, "my-site")
	a.bare()
	b.bare()
	if got := short(decide([]fact{a, b}, noon, nil)); got != "my refuse, my-site refuse" {
		t.Error(got)
	}
	b = healthy(t, "my-site")
	if got := short(decide([]fact{a, b}, noon, nil)); got != "my refuse" {
		t.Error(got)
	}
	b.stop, b.ended = &mission.Stop{}, true
	b.bare()
	if got := short(decide([]fact{a, b}, noon, nil)); got != "my repair" {
		t.Error(got)
	}
	b = healthy(t, "my-site")
	b.files["forge-autoagent-my-site-manager.service"] = unitFile{ours: true, id: "my-site", root: "/r", version: units.Version + 1}
	if got := short(decide([]fact{a, b}, noon, nil)); got != "my refuse, my-site repair" {
		t.Error(got)
	}
	a.refused = "its agent's units are another's"
	b = healthy(t, "my-site")
	delete(b.files, "forge-autoagent-my-site-manager.service")
	if got := short(decide([]fact{a, b}, noon, nil)); got != "my refuse, my-site repair" {
		t.Error(got)
	}
	// the same id below two roots
	p, q := healthy(t, "my"), healthy(t, "my")
	q.root = "/q"
	p.bare()
	q.bare()
	if got := short(decide([]fact{p, q}, noon, nil)); got != "my refuse, my refuse" {
		t.Error(got)
	}
	p = healthy(t, "my")
	delete(p.files, "forge-autoagent-my-manager.timer")
	if got := short(decide([]fact{p}, noon, nil)); got != "my repair" {
		t.Error(got)
	}
	if got := decide([]fact{p, q}, noon, nil); got[0].do != repair || got[1].do != refuse {
		t.Error(short(got))
	}
}

func TestDescribed(t *testing.T) {
	for text, want := range map[string]string{
		"AutoAgent my-site: a tick of manager": "my-site", "AutoAgent my": "my", "AutoAgent: every hour": "", "AutoAgent ": "",
		"AutoAgent My": "", "x": "", "AutoAgent a b: c": "", "forge-autoagent-my.target": "",
	} {
		if got := described(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

func TestOrder(t *testing.T) {
	got := order([]string{"x-a.timer", "x.target", "x-a.socket", "x-stop.socket"})
	if want := []string{"x-stop.socket", "x-a.socket", "x.target", "x-a.timer"}; !slices.Equal(got, want) {
		t.Error(got)
	}
}
