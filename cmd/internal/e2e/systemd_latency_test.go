package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"example.com/AutoAgentProject/core/handoff"
	"example.com/AutoAgentProject/core/queue"
	"example.com/AutoAgentProject/core/scriptmodel"
	"example.com/AutoAgentProject/core/store"
	"example.com/AutoAgentProject/core/testkit"
	"example.com/AutoAgentProject/core/units"
	"example.com/AutoAgentProject/core/wake"
)

// wakeRounds is how often each way of being woken is tried; the median counts.
const wakeRounds = 21

// wakeLatency are medians, from a handoff's delivery on.
type wakeLatency struct {
	Tick time.Duration // until the recipient's tick was executed
	Bare time.Duration // from a byte on a socket until the process of a unit of nothing but /bin/true was there
	Poll time.Duration // until somebody who looks once a second saw it
}

// monotonic is the clock of the units' time stamps.
func monotonic() time.Duration {
	var ts unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts)
	return time.Duration(ts.Nano())
}

// measureWakeUps runs inside of a host. args are the root, the mission, the recipient, the bare unit's name without its ending and its
// socket, and where to write what was measured.
func measureWakeUps(args []string) error {
	st, agent := store.Root(args[0]).Mission(args[1]), args[2]
	m, err := st.Mission()
	if err != nil {
		return err
	}
	show := func(unit, property string) string {
		out, _ := exec.Command("systemctl", "--user", "show", "--value", "-p", property, unit).Output()
		return strings.TrimSpace(string(out))
	}
	// took lets f wake a unit that is not running and returns how long it took until the moment that a property of it tells.
	took := func(unit, property string, f func() (time.Duration, error)) (time.Duration, error) {
		for end := time.Now().Add(time.Minute); show(unit, "ActiveState") != "inactive" && time.Now().Before(end); {
			time.Sleep(20 * time.Millisecond)
		}
		time.Sleep(50 * time.Millisecond)
		from, err := f()
		if err != nil {
			return 0, err
		}
		for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
			if us, _ := strconv.ParseInt(show(unit, property), 10, 64); time.Duration(us)*time.Microsecond > from {
				return time.Duration(us)*time.Microsecond - from, nil
			}
		}
		out, _ := exec.Command("systemctl", "--user", "status", unit).CombinedOutput()
		return 0, fmt.Errorf("%s was not woken: %s", unit, out)
	}
	deliver := func(q queue.Queue, to string, n int) error {
		name, e := handoff.Message{Type: handoff.Note, From: "manager", To: []string{to}, Priority: "50", Text: fmt.Sprint("latency ", n)}.Envelope(700_000+n, time.Now())
		if err := q.Send("manager", name, e); err != nil {
			return err
		}
		_, err := q.Deliver("manager", time.Now())
		return err
	}
	polled := queue.Queue{Agents: filepath.Join(filepath.Dir(args[5]), "polled")}
	for _, a := range []string{"manager", "poller"} {
		if err := polled.Make(a); err != nil {
			return err
		}
	}
	tick, bare, poll := []time.Duration{}, []time.Duration{}, []time.Duration{}
	for n := range wakeRounds {
		d, err := took("forge-autoagent-"+m.ID+"-"+agent+".service", "ActiveEnterTimestampMonotonic", func() (time.Duration, error) {
			err := deliver(st.Queue(), agent, n)
			from := monotonic()
			if err == nil {
				err = wake.Send(units.Wakes(st, m, agent))
			}
			return from, err
		})
		if err != nil {
			return err
		}
		tick = append(tick, d)
		d, err = took(args[3]+".service", "ExecMainStartTimestampMonotonic", func() (time.Duration, error) {
			from := monotonic()
			return from, wake.Send(args[4])
		})
		if err != nil {
			return err
		}
		bare = append(bare, d)
		next := time.NewTicker(time.Second)
		time.Sleep(time.Duration(n*37%97) * 10 * time.Millisecond) // at any moment of the poller's second
		if err := deliver(polled, "poller", n); err != nil {
			return err
		}
		from := monotonic()
		<-next.C
		if found, err := polled.Pending("poller"); err != nil || !found {
			return fmt.Errorf("the poller found %v, %w", found, err)
		}
		poll = append(poll, monotonic()-from)
		next.Stop()
	}
	median := func(d []time.Duration) time.Duration { slices.Sort(d); return d[len(d)/2] }
	b, err := json.Marshal(wakeLatency{median(tick), median(bare), median(poll)})
	if err != nil {
		return err
	}
	return os.WriteFile(args[5], b, 0o600)
}

// BenchmarkSystemdWakeUp: how long it takes from a handoff's delivery until its recipient's tick was executed, with its walls around it,
// over what a bare unit with /bin/true takes that a byte on a socket starts, which is given the time of its exec; and over the same work with a poll once a second.
func BenchmarkSystemdWakeUp(b *testing.B) {
	never := bash("true")
	never.DelayMS = 170_000
	p := personOf(b, units.User, []scriptmodel.Rule{planned(step("one", "test -f one")), works("one", bash("true"), never)}, testkit.Bind{Host: filepath.Dir(os.Args[0]), Inside: "/srv/test"})
	p.start("mail", "One step", "--specialists", "codebuilder:2")
	p.until("one agent works", func() bool { return p.model.Stats().ByRule["one"] > 0 })
	home := "/home/" + owner
	p.inside(owner, "mkdir -p "+home+"/latency && cd "+p.unitDir()+
		" && printf '[Socket]\nListenDatagram="+home+"/latency/bare\nFlushPending=yes\n' > bare.socket && printf '[Unit]\nStartLimitIntervalSec=0\n[Service]\nType=exec\nExecStart=/bin/true\n' > bare.service"+
		" && systemctl --user daemon-reload && systemctl --user start bare.socket")
	b.ResetTimer()
	for range b.N {
		argv := []string{"env", sends + "=latency", "/srv/test/" + filepath.Base(os.Args[0]), p.missions(), "mail", "codebuilder-2", "bare", home + "/latency/bare", home + "/latency/result"}
		if out, exit := p.host.Run(b.Context(), owner, argv...); exit != 0 {
			b.Fatalf("%d\n%s", exit, out)
		}
		var l wakeLatency
		if err := json.Unmarshal([]byte(p.inside(owner, "cat "+home+"/latency/result")), &l); err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(l.Tick)/1e6, "ms/tick")
		b.ReportMetric(float64(l.Bare)/1e6, "ms/bare")
		b.ReportMetric(float64(l.Poll)/1e6, "ms/poll")
		b.ReportMetric(float64(l.Tick)/float64(l.Bare), "tick/bare")
		b.ReportMetric(float64(l.Tick)/float64(l.Poll), "tick/poll")
	}
	p.inside(owner, "systemctl --user stop bare.socket bare.service; rm "+p.unitDir()+"/bare.*")
	p.do("abort", "mail")
	p.nothingLeft()
}
