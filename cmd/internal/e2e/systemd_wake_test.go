package e2e

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"example.com/AutoAgentProject/core/handoff"
	"example.com/AutoAgentProject/core/scriptmodel"
	"example.com/AutoAgentProject/core/store"
	"example.com/AutoAgentProject/core/testkit"
	"example.com/AutoAgentProject/core/units"
	"example.com/AutoAgentProject/core/wake"
)

const (
	sends = "AUTOAGENT_TEST_SENDS" // of this test's own program inside a host: sendNotes does the rest
	notes = 100
)

// asInside is what this test's own program does inside of a host.
var asInside = map[string]func(args []string) error{"1": sendNotes, "latency": measureWakeUps}

// sendNotes sends notes from the manager to the agents of a mission, as a tick would: into the outbox, delivered, woken.
// args are the root, the mission, the longest pause between two, and the agents, each of which gets all.
func sendNotes(args []string) error {
	st, agents := store.Root(args[0]).Mission(args[1]), args[3:]
	pause, err := time.ParseDuration(args[2])
	if err != nil {
		return err
	}
	m, err := st.Mission()
	if err != nil {
		return err
	}
	for i := range notes {
		for _, to := range agents {
			name := fmt.Sprintf("50_note%03d_to_%s%s", i, to, handoff.Suffix)
			e := handoff.Envelope{Headers: []handoff.Header{{Name: "id", Value: name}, {Name: "from", Value: "manager"}, {Name: "to", Value: to},
				{Name: "priority", Value: "50"}, {Name: "type", Value: handoff.Note}, {Name: "message", Value: fmt.Sprintf("note %d", time.Now().UnixNano())}}}
			if err := st.Queue().Send("manager", name, e); err != nil {
				return err
			}
		}
		woken, err := st.Queue().Deliver("manager", time.Now())
		for _, to := range woken {
			err = errors.Join(err, wake.Send(units.Wakes(st, m, to)))
		}
		if err != nil {
			return err
		}
		if pause > 0 {
			time.Sleep(time.Duration(rand.Int64N(int64(pause))))
		}
	}
	return nil
}

// TestSystemdWakeUps: of many wake-ups that come while ticks run and end, none is lost: every message is taken long before
// the timer's time, also those that an agent finds when it has worked for a while.
func TestSystemdWakeUps(t *testing.T) {
	mostly(t, units.User, func(t *testing.T, manager units.Manager) {
		never := bash("true")
		never.DelayMS = 170_000
		other := step("two", "true")
		other.Profession = "designer" // who keeps the mission alive
		p := personOf(t, manager, []scriptmodel.Rule{planned(step("one", "test -f one"), other), works("one", bash("while [ ! -e go ]; do sleep 0.1; done; rm go; echo 1 > one")), works("two", never)},
			testkit.Bind{Host: filepath.Dir(os.Args[0]), Inside: "/srv/test"})
		p.start("mail", "Two steps", "--specialists", "codebuilder:2,designer:1")
		p.until("one agent works", func() bool { return p.model.Stats().ByRule["one"] > 0 })
		const busy, idle = "codebuilder-1", "codebuilder-2"
		send := func(pause string, agents ...string) {
			argv := append([]string{"env", sends + "=1", "/srv/test/" + filepath.Base(os.Args[0]), p.missions(), "mail", pause}, agents...)
			if out, exit := p.host.Run(t.Context(), owner, argv...); exit != 0 {
				t.Fatalf("send: %d\n%s", exit, out)
			}
		}
		send("0s", busy)
		p.inside(owner, "touch "+store.Root(p.missions()).Mission("mail").Clone(busy)+"/go")
		send("20ms", idle)
		took := func(agent string) []time.Time {
			var out []time.Time
			for _, e := range p.events("mail", "mail_received") {
				if e.Agent == agent {
					out = append(out, e.At)
				}
			}
			return out
		}
		p.until("all notes are taken", func() bool { return len(took(idle)) == notes && len(took(busy)) == notes })
		worked := p.events("mail", "step_done")[0].At
		seen, slowest := map[string]bool{}, map[string]time.Duration{}
		for _, e := range p.events("mail", "mail_received") {
			_, note, _ := strings.Cut(e.Text, ": note ")
			at, err := strconv.ParseInt(note, 10, 64)
			if err != nil || seen[e.Agent+note] {
				t.Errorf("%s: %v", e.Text, err)
			}
			seen[e.Agent+note] = true
			from := time.Unix(0, at)
			if e.Agent == busy && worked.After(from) {
				from = worked
			}
			slowest[e.Agent] = max(slowest[e.Agent], e.At.Sub(from))
		}
		t.Logf("the slowest of %d notes to each was taken after %v", notes, slowest)
		for agent, d := range slowest {
			if d > units.DefaultTickEvery/2 {
				t.Errorf("a note to %s waited %v: for the timer", agent, d)
			}
		}
		p.do("abort", "mail")
		p.nothingLeft()
	})
}
