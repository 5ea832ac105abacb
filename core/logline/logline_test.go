package logline

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	_ "unsafe" // for the next line

	"github.com/coreos/go-systemd/v22/journal"
	"golang.org/x/sys/unix"

	"example.com/AutoAgentProject/core/testkit"
)

// journalSocket is where the library sends to.
//
//go:linkname journalSocket github.com/coreos/go-systemd/v22/journal.journalSocket
var journalSocket string

func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == "play" {
		os.Exit(play(os.Args[2]))
	}
	os.Exit(m.Run())
}

// fakeJournal is the journal's socket with a reader that knows its protocol.
type fakeJournal struct {
	t    *testing.T
	conn *net.UnixConn
}

func newFakeJournal(t *testing.T) *fakeJournal {
	path := filepath.Join(t.TempDir(), "socket")
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	old := journalSocket
	journalSocket = path
	t.Cleanup(func() { journalSocket = old; conn.Close() })
	return &fakeJournal{t, conn}
}

// next is the next entry: field to its values.
func (f *fakeJournal) next() map[string][]string {
	f.t.Helper()
	buf, oob := make([]byte, 1<<20), make([]byte, unix.CmsgSpace(4))
	_ = f.conn.SetReadDeadline(time.Now().Add(20 * time.Second))
	n, oobn, _, _, err := f.conn.ReadMsgUnix(buf, oob)
	if err != nil {
		f.t.Fatal(err)
	}
	data := buf[:n]
	if oobn > 0 { // a long entry comes as a file
		messages, err := unix.ParseSocketControlMessage(oob[:oobn])
		if err != nil {
			f.t.Fatal(err)
		}
		fds, err := unix.ParseUnixRights(&messages[0])
		if err != nil {
			f.t.Fatal(err)
		}
		file := os.NewFile(uintptr(fds[0]), "entry")
		defer file.Close()
		if data, err = io.ReadAll(io.NewSectionReader(file, 0, 1<<30)); err != nil {
			f.t.Fatal(err)
		}
	}
	entry, err := parse(data)
	if err != nil {
		f.t.Fatalf("%v in %q", err, data)
	}
	return entry
}

// parse reads the journal's native protocol.
func parse(data []byte) (map[string][]string, error) {
	entry := map[string][]string{}
	for len(data) > 0 {
		line, rest, ok := bytes.Cut(data, []byte("\n"))
		if !ok {
			return nil, errors.New("no line end")
		}
		name, value, text := bytes.Cut(line, []byte("="))
		if !text {
			if len(rest) < 8 {
				return nil, errors.New("no length")
			}
			n := binary.LittleEndian.Uint64(rest)
			if rest = rest[8:]; uint64(len(rest)) <= n || rest[n] != '\n' {
				return nil, fmt.Errorf("%s: wrong length %d", name, n)
			}
			value, rest = rest[:n], rest[n+1:]
		}
		entry[string(name)] = append(entry[string(name)], string(value))
		data = rest
	}
	return entry, nil
}

func toJournal() *Handler {
	return &Handler{name: "autoagent-test", out: &output{send: journal.Send, instead: func(b []byte) { panic(string(b)) }}}
}

func TestFields(t *testing.T) {
	f := newFakeJournal(t)
	log := slog.New(toJournal()).With(Mission, "my-site", Agent, "manager", Tick, "t1")
	log.Info("run 3 began: step one", Run, "r3", "step", "one", "event", "run_started")
	log.Warn("the status line could not be written", "err", errors.New("no space"), "left_over", 12, "empty", "")
	log.WithGroup("a").With("b", 1).Error("grouped", "c", true, slog.Group("d", "e", "x"))
	log.Debug("left out")
	log.Info("the last")

	base := map[string][]string{"MISSION": {"my-site"}, "AGENT": {"manager"}, "TICK": {"t1"}, "SYSLOG_IDENTIFIER": {"autoagent-test"}}
	for _, want := range []map[string][]string{
		{"MESSAGE": {"run 3 began: step one"}, "PRIORITY": {"6"}, "RUN": {"r3"}, "STEP": {"one"}, "EVENT": {"run_started"}},
		{"MESSAGE": {"the status line could not be written: no space (left over: 12)"}, "PRIORITY": {"4"}, "ERR": {"no space"}, "LEFT_OVER": {"12"}},
		{"MESSAGE": {"grouped (a c: true, a d e: x)"}, "PRIORITY": {"3"}, "A_B": {"1"}, "A_C": {"true"}, "A_D_E": {"x"}},
		{"MESSAGE": {"the last"}, "PRIORITY": {"6"}},
	} {
		maps.Copy(want, base)
		if got := f.next(); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("the journal got\n%v\nand not\n%v", got, want)
		}
	}
}

func TestFieldName(t *testing.T) {
	for in, want := range map[string]string{
		"run": "RUN", "left over": "LEFT_OVER", "_PID": "PID", "ünit": "NIT", "3rd": "AUTOAGENT_3RD", "": "", "__": "", "=\n": "",
		"message": "AUTOAGENT_MESSAGE", "Priority": "AUTOAGENT_PRIORITY", "code_file": "AUTOAGENT_CODE_FILE", "unit": "AUTOAGENT_UNIT",
		strings.Repeat("x", 80): strings.Repeat("X", 64), "MESSAGE_ID": "AUTOAGENT_MESSAGE_ID",
	} {
		if got := fieldName(in); got != want {
			t.Errorf("%q becomes %q, not %q", in, got, want)
		}
	}
}

// TestHardText: whatever a line holds arrives, and the sentence is one that journalctl shows.
func TestHardText(t *testing.T) {
	f := newFakeJournal(t)
	log := slog.New(toJournal())
	big := strings.Repeat("0123456789abcde\n", 1<<16) // 1 MB
	for _, x := range []struct{ in, want string }{
		{"two\nlines\n", "two\nlines"},
		{"a\x00b\x1b[31m\r\nc\u0085", "a\uFFFDb\uFFFD[31m\nc\uFFFD"},
		{"bad \xff utf", "bad \uFFFD utf"},
		{"MESSAGE=x\nPRIORITY=0\n_UID=0", "MESSAGE=x\nPRIORITY=0\n_UID=0"},
		{"", ""},
		{big, strings.TrimRight(big, "\n")},
	} {
		log.Info(x.in, "raw", x.in)
		got := f.next()
		if len(got["MESSAGE"]) != 1 || !strings.HasPrefix(got["MESSAGE"][0], x.want) || got["PRIORITY"][0] != "6" || len(got["_UID"]) > 0 {
			t.Errorf("%.40q became %.80q", x.in, got["MESSAGE"])
		}
		if raw := strings.Join(got["RAW"], "|"); raw != x.in {
			t.Errorf("the field %.40q became %.40q (%d bytes)", x.in, raw, len(raw))
		}
	}
}

func FuzzLine(f *testing.F) {
	f.Add("a sentence", "key", "value")
	f.Add("x\n\x00", "message", "\nPRIORITY=0\n")
	f.Fuzz(func(t *testing.T, message, key, value string) {
		fields := fieldsOf(flatten(nil, "", []slog.Attr{slog.String(key, value)}))
		for n, v := range fields {
			if v != value || len(n) > maxName || strings.Trim(n, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") != "" || n[0] == '_' || n[0] <= '9' || n == "MESSAGE" || n == "PRIORITY" {
				t.Errorf("%q=%q", n, v)
			}
		}
		s := sentence(message, []slog.Attr{slog.String(key, value)})
		if readable(s) != s || strings.ContainsAny(s, "\x00\x1b\r") {
			t.Errorf("%q", s)
		}
	})
}

// TestJournalGone: a line that the journal does not take goes to stderr with its priority, and the next one is tried again.
func TestJournalGone(t *testing.T) {
	var lines []string
	h := toJournal()
	h.out.instead = func(b []byte) { lines = append(lines, string(b)) }
	log := slog.New(h).With(Mission, "my-site")
	f := newFakeJournal(t)
	at := journalSocket
	journalSocket += "-gone"
	log.Warn("two\nlines", "err", errors.New("x"))
	log.Info(strings.Repeat("long ", 1<<16))
	if len(lines) != 2 || lines[0] != "<4>level=WARN msg=\"two\\nlines\" mission=my-site err=x\n" {
		t.Errorf("stderr got %.200q", lines)
	}
	if l := lines[1]; len(l) > maxStream+1 || strings.Count(l, "\n") != 1 {
		t.Errorf("a line of %d bytes", len(l))
	}
	journalSocket = at
	log.Info("there again")
	if got := f.next(); got["MESSAGE"][0] != "there again" || len(lines) != 2 {
		t.Errorf("%v %q", got, lines)
	}
}

// TestJournalHangs: a journal that takes nothing costs the program half a second once, not for every line; once it takes
// lines again, it gets them.
func TestJournalHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		free := make(chan struct{})
		var sent, instead atomic.Int32
		h := &Handler{out: &output{
			send:    func(string, journal.Priority, map[string]string) error { <-free; sent.Add(1); return nil },
			instead: func([]byte) { instead.Add(1) },
		}}
		log := slog.New(h)
		began := time.Now()
		var all sync.WaitGroup
		for range 50 {
			all.Go(func() { log.Info("a line") })
		}
		all.Wait()
		log.Info("another")
		if took := time.Since(began); took != patience || instead.Load() != 51 {
			t.Errorf("%d lines went to stderr after %v", instead.Load(), took)
		}
		close(free)
		synctest.Wait()
		before := sent.Load()
		log.Info("taken")
		if sent.Load() != before+1 || instead.Load() != 51 {
			t.Errorf("a line was not sent to a journal that takes lines again")
		}
	})
}

// TestNotTheJournal: what is not descriptor 2, and descriptor 2 that is not what JOURNAL_STREAM names, gets text.
func TestNotTheJournal(t *testing.T) {
	t.Setenv("JOURNAL_STREAM", "1:2")
	var out bytes.Buffer
	for _, w := range []io.Writer{&out, os.Stderr} {
		if _, ok := Stderr(w, "x").(*slog.TextHandler); !ok {
			t.Errorf("%T is taken for the journal", w)
		}
	}
	slog.New(Stderr(&out, "x")).Info("a line", Mission, "my-site")
	if got := out.String(); !strings.HasPrefix(got, "time=") || !strings.HasSuffix(got, "level=INFO msg=\"a line\" mission=my-site\n") {
		t.Errorf("%q", got)
	}
}

// play is the program of the host's tests.
func play(part string) int {
	h := Stderr(os.Stderr, "autoagent-play")
	log := slog.New(h).With(Mission, "my-site", Agent, "manager", Tick, "t-"+part)
	if _, ok := h.(*Handler); !ok {
		fmt.Fprintln(os.Stderr, "this is no journal")
		return 1
	}
	switch part {
	case "big":
		log.Info(strings.Repeat("0123456789abcde\n", 1<<16)+"end", Run, "r1")
	case "many":
		for i := range 3000 {
			log.Info(fmt.Sprintf("line %d", i), Run, "r1")
		}
	}
	log.Warn("a line of "+part, Run, "r1")
	return 0
}

// TestRealJournal: in a user manager lines arrive with their fields, a long one whole; who only inherits the variable is
// not taken in; and a journal that is stopped or hangs neither fails nor holds up a unit.
func TestRealJournal(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	h := testkit.NewHost(t, testkit.HostOptions{Users: []string{"alice"}, Linger: []string{"alice"}, Binds: []testkit.Bind{{Host: self, Inside: "/srv/play"}}})
	unit := func(part string, more ...string) (string, int) {
		argv := append([]string{"systemd-run", "--user", "--wait", "--quiet", "--collect", "-p", "PrivateUsers=yes", "-p", "ProtectSystem=strict", "-p", "RuntimeMaxSec=20"}, more...)
		return h.Run(t.Context(), "alice", append(argv, "/srv/play", "play", part)...)
	}
	lines := func(part string) []map[string]string {
		return h.Journal("alice", "MISSION=my-site", "AGENT=manager", "RUN=r1", "TICK=t-"+part)
	}
	for _, part := range []string{"small", "big"} {
		if out, exit := unit(part); exit != 0 {
			t.Fatalf("%s: %d %s", part, exit, out)
		}
	}
	got := lines("small")
	if len(got) != 1 || got[0]["MESSAGE"] != "a line of small" || got[0]["PRIORITY"] != "4" || got[0]["SYSLOG_IDENTIFIER"] != "autoagent-play" {
		t.Errorf("the journal has %v", got)
	}
	if got := lines("big"); len(got) != 2 || len(got[0]["MESSAGE"]) != 1<<20+3 || !strings.HasSuffix(got[0]["MESSAGE"], "\nend") {
		t.Errorf("the journal has %d lines, the first of %d bytes", len(got), len(got[0]["MESSAGE"]))
	}
	if out, exit := unit("file", "-p", "StandardError=append:/home/alice/log", "-p", "ReadWritePaths=/home/alice", "-p", "Environment=JOURNAL_STREAM=8:1234"); exit != 1 {
		t.Errorf("a file was taken for the journal: %d %s", exit, out)
	}

	h.Run(t.Context(), "", "systemctl", "kill", "--signal=STOP", "systemd-journald")
	out, exit := unit("many")
	h.Run(t.Context(), "", "systemctl", "kill", "--signal=CONT", "systemd-journald")
	if exit != 0 {
		t.Errorf("a journal that hangs: %d %s", exit, out)
	}
	// The sender had ended when they were read; then systemd does not find out whose journal they belong to.
	if len(h.Journal("", "TICK=t-many")) == 0 {
		t.Error("nothing of what was sent to the hanging journal arrived")
	}

	h.Run(t.Context(), "", "sh", "-c", "systemctl stop systemd-journald.socket systemd-journald-dev-log.socket systemd-journald-audit.socket systemd-journald.service; rm -f /run/systemd/journal/socket")
	out, exit = unit("gone")
	if exit != 0 && exit != 1 { // 1: no stream could be opened, systemd gave it /dev/null
		t.Errorf("without a journal: %d %s", exit, out)
	}
}
