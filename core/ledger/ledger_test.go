package ledger

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"example.com/AutoAgentProject/core/files"
	"example.com/AutoAgentProject/core/money"
	"example.com/AutoAgentProject/core/usererr"
)

// at is the i-th second of the tests' own time.
func at(i int) time.Time { return time.Date(2026, 11, 2, 10, 0, i, 0, time.UTC) }

// fresh makes a ledger with a budget in nano-USD.
func fresh(t testing.TB, budget int64) *Ledger {
	t.Helper()
	l := Open(filepath.Join(t.TempDir(), "ledger.jsonl"))
	if err := l.Create(t.Context(), money.Amount{Unit: money.NanoUSD, N: budget}, at(0)); err != nil {
		t.Fatal(err)
	}
	return l
}

func read(t testing.TB, l *Ledger) Book {
	t.Helper()
	b, err := l.Read()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// must reserves the least run of 50 and wants it admitted.
func must(t testing.TB, l *Ledger, run string) {
	t.Helper()
	if n, d, err := l.Reserve(t.Context(), request(run)); err != nil || d != money.Admit || n != 50 {
		t.Fatalf("reserve %s: %d, %q, %v", run, n, d, err)
	}
}

func request(run string) ReserveRequest {
	return ReserveRequest{Run: run, Agent: "codebuilder-1", Step: "s1", Model: "claude-opus-5-5", StepLimit: 50, MinRun: 50, AgentsDue: 1, Now: at(1)}
}

func ok(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func wantCode(t testing.TB, err error, want usererr.Code) {
	t.Helper()
	if err == nil || usererr.CodeOf(err) != want {
		t.Errorf("error is %v (code %d), want code %d", err, usererr.CodeOf(err), want)
	}
}

// wantSums compares the figures that decisions rest on.
func wantSums(t testing.TB, l *Ledger, used, reserved int64, open ...string) {
	t.Helper()
	b := read(t, l)
	var runs []string
	for _, r := range b.OpenRuns {
		runs = append(runs, r.ID)
	}
	if b.Used.N != used || b.Reserved.N != reserved || !slices.Equal(runs, open) {
		t.Errorf("used %d, reserved %d, open %v; want %d, %d, %v", b.Used.N, b.Reserved.N, runs, used, reserved, open)
	}
}

func TestFiveAgentsOneFreePlaceForTwo(t *testing.T) {
	l := fresh(t, 1_000_000_000)
	ok(t, l.Spend(t.Context(), "earlier", Spent{Nano: 900_000_000}, at(0)))
	want := map[string]money.Decision{"supervisor": money.Admit, "executor": money.Admit, "reviewer": money.Wait, "tester": money.Wait, "reporter": money.Wait}
	for i, run := range []string{"supervisor", "executor", "reviewer", "tester", "reporter"} {
		q := ReserveRequest{Run: run, Agent: run, StepLimit: 50_000_000, MinRun: 50_000_000, AgentsDue: 5 - i, Now: at(i)}
		n, d, err := l.Reserve(t.Context(), q)
		if err != nil || d != want[run] || (d == money.Admit) != (n == 50_000_000) {
			t.Errorf("%s: %d, %s, %v", run, n, d, err)
		}
	}
	wantSums(t, l, 900_000_000, 100_000_000, "supervisor", "executor")

	ok(t, l.Launch(t.Context(), "supervisor", at(6)))
	ok(t, l.Launch(t.Context(), "executor", at(6)))
	ok(t, l.Spend(t.Context(), "supervisor", Spent{Nano: 20_000_000, Source: "gateway"}, at(7)))
	// The executor's tick was killed. Another process finds the open run and settles it by its transcript.
	later := Open(l.path)
	b := read(t, later)
	if len(b.OpenRuns) != 1 || b.OpenRuns[0].ID != "executor" || !b.OpenRuns[0].Launched || b.OpenRuns[0].Cap != 50_000_000 {
		t.Fatalf("open runs: %+v", b.OpenRuns)
	}
	ok(t, later.Spend(t.Context(), "executor", Spent{Nano: 35_000_000, Source: "transcript"}, at(8)))
	wantSums(t, l, 955_000_000, 0)
	if _, d, err := l.Reserve(t.Context(), ReserveRequest{Run: "tester-2", MinRun: 50_000_000, StepLimit: 50_000_000, AgentsDue: 1, Now: at(9)}); err != nil || d != money.Exhausted {
		t.Errorf("with 45 of 50 free and nothing reserved: %s, %v", d, err)
	}
}

func TestLaunchTellsTheReservedFromTheStarted(t *testing.T) {
	l := fresh(t, 1000)
	must(t, l, "a")
	must(t, l, "b")
	ok(t, l.Launch(t.Context(), "b", at(2)))
	b := read(t, l)
	if len(b.OpenRuns) != 2 || b.OpenRuns[0].Launched || !b.OpenRuns[1].Launched {
		t.Errorf("open runs: %+v", b.OpenRuns)
	}
	want := Run{ID: "a", Agent: "codebuilder-1", Step: "s1", Model: "claude-opus-5-5", Cap: 50, At: at(1)}
	if b.OpenRuns[0] != want {
		t.Errorf("run is %+v, want %+v", b.OpenRuns[0], want)
	}
	wantCode(t, l.Launch(t.Context(), "never-reserved", at(3)), usererr.Conflict)
	ok(t, l.Spend(t.Context(), "b", Spent{Nano: 1}, at(4)))
	wantCode(t, l.Launch(t.Context(), "b", at(5)), usererr.Conflict)
}

func TestReplayChangesNothing(t *testing.T) {
	l := fresh(t, 1000)
	must(t, l, "a")
	must(t, l, "b")
	for name, again := range map[string]func(l *Ledger) error{
		"reserve": func(l *Ledger) error { must(t, l, "b"); return nil },
		"launch":  func(l *Ledger) error { return l.Launch(t.Context(), "a", at(2)) },
		"budget": func(l *Ledger) error {
			return l.SetBudget(t.Context(), money.Amount{Unit: money.NanoUSD, N: 2000}, "added", at(3))
		},
	} {
		ok(t, again(l))
		before := read(t, l)
		ok(t, again(l))
		ok(t, again(Open(l.path)))
		if after := read(t, l); !reflect.DeepEqual(after, before) {
			t.Errorf("%s again: %+v became %+v", name, before, after)
		}
	}
	spend := Spent{Nano: 40, Tokens: 7, Unpriced: []string{"claude-nova-9"}, ByModel: map[string]money.Usage{"claude-nova-9": {Input: 7}}}
	ok(t, l.Spend(t.Context(), "a", spend, at(4)))
	ok(t, l.Release(t.Context(), "b", "not started", at(4)))
	before := read(t, l)
	ok(t, l.Spend(t.Context(), "a", spend, at(5)))
	ok(t, l.Release(t.Context(), "a", "twice", at(5))) // closed by its spend
	ok(t, l.Release(t.Context(), "b", "twice", at(5)))
	ok(t, l.Release(t.Context(), "never-reserved", "", at(5)))
	if after := read(t, l); !reflect.DeepEqual(after, before) {
		t.Errorf("%+v became %+v", before, after)
	}
	for _, run := range []string{"a", "b"} { // an ended run's id starts no run
		_, _, err := l.Reserve(t.Context(), request(run))
		wantCode(t, err, usererr.Conflict)
	}
	must(t, l, "c")
	ok(t, l.Launch(t.Context(), "c", at(6)))
	_, _, err := l.Reserve(t.Context(), request("c")) // nor does a running one's
	wantCode(t, err, usererr.Conflict)
	must(t, l, "d")
	other := request("d")
	other.Agent = "designer-1"
	_, _, err = l.Reserve(t.Context(), other) // nor another agent's
	wantCode(t, err, usererr.Conflict)
}

func TestSpendNeverGoesDown(t *testing.T) {
	l := fresh(t, 1_000_000_000)
	said := 0
	for i, c := range []struct {
		nano money.Nano
		used int64
		say  int
	}{{400_000_000, 400_000_000, 0}, {860_000_000, 860_000_000, 85}, {0, 860_000_000, 0}, {200_000_000, 860_000_000, 0}, {1_250_000_000, 1_250_000_000, 100}, {1_300_000_000, 1_300_000_000, 0}} {
		ok(t, l.Spend(t.Context(), "a", Spent{Nano: c.nano, Tokens: int64(c.nano)}, at(i)))
		wantSums(t, l, c.used, 0)
		wantSums(t, Open(l.path), c.used, 0)
		var say int
		if say, said = money.Thresholds(1_000_000_000, read(t, l).Used.N, said); say != c.say {
			t.Errorf("at %d says %d, want %d", c.used, say, c.say)
		}
	}
	for run, s := range map[string]Spent{"a": {Nano: -5, Tokens: 9e9}, "new": {Tokens: -1}} {
		if err := l.Spend(t.Context(), run, s, at(9)); err == nil {
			t.Errorf("the spend %+v was taken", s)
		}
	}
	if err := l.Spend(t.Context(), "a", Spent{Nano: -5}, at(9)); err == nil {
		t.Error("a negative spend that changes nothing was taken")
	}
	wantSums(t, l, 1_300_000_000, 0)
}

func TestLargerInOneUnitOnlyStillCounts(t *testing.T) {
	l := fresh(t, 1000)
	ok(t, l.Spend(t.Context(), "a", Spent{Nano: 100, Tokens: 10, ByModel: map[string]money.Usage{"m": {Input: 10}}}, at(1)))
	ok(t, l.Spend(t.Context(), "a", Spent{Nano: 90, Tokens: 20, ByModel: map[string]money.Usage{"m": {Input: 20}}}, at(2)))
	b := read(t, l)
	if b.Nano != 100 || b.Tokens != 20 || b.ByModel["m"].Input != 10 {
		t.Errorf("nano %d, tokens %d, models %v", b.Nano, b.Tokens, b.ByModel)
	}
	ok(t, l.Spend(t.Context(), "a", Spent{Nano: 110, Tokens: 20, ByModel: map[string]money.Usage{"m": {Input: 20}}}, at(3)))
	if b := read(t, l); b.Nano != 110 || b.ByModel["m"].Input != 20 {
		t.Errorf("nano %d, models %v", b.Nano, b.ByModel)
	}
}

func TestBookByAgentStepAndModel(t *testing.T) {
	l := fresh(t, 1000)
	must(t, l, "a")
	must(t, l, "b")
	q := request("c")
	q.Agent, q.Step = "designer-1", "s2"
	if _, _, err := l.Reserve(t.Context(), q); err != nil {
		t.Fatal(err)
	}
	u := map[string]money.Usage{"x": {Input: 1, Output: 2}, "y": {CacheRead: 5}}
	ok(t, l.Spend(t.Context(), "a", Spent{Nano: 10, Tokens: 8, ByModel: u, Unpriced: []string{"y", "x"}}, at(2)))
	ok(t, l.Spend(t.Context(), "b", Spent{Nano: 20, Tokens: 8, ByModel: u, Unpriced: []string{"y"}}, at(3)))
	ok(t, l.Spend(t.Context(), "c", Spent{Nano: 5, Tokens: 1}, at(4)))
	must(t, l, "released")
	ok(t, l.Release(t.Context(), "released", "", at(5)))
	ok(t, l.Spend(t.Context(), "c", Spent{Unpriced: []string{"z"}}, at(5))) // tells a name, no amount
	ok(t, l.Spend(t.Context(), "stray", Spent{Nano: 1, Tokens: 1, Agent: "manager", Step: "plan"}, at(5)))
	for _, l := range []*Ledger{l, Open(l.path)} {
		b := read(t, l)
		want := Book{
			Budget: money.Amount{Unit: money.NanoUSD, N: 1000}, Used: money.Amount{Unit: money.NanoUSD, N: 36}, Reserved: money.Amount{Unit: money.NanoUSD},
			Nano: 36, Tokens: 18,
			ByAgent:  map[string]Sum{"codebuilder-1": {30, 16, 2}, "designer-1": {5, 1, 1}, "manager": {1, 1, 1}},
			ByStep:   map[string]Sum{"s1": {30, 16, 2}, "s2": {5, 1, 1}, "plan": {1, 1, 1}},
			ByModel:  map[string]money.Usage{"x": {Input: 2, Output: 4}, "y": {CacheRead: 10}},
			Unpriced: []string{"x", "y", "z"},
			Records:  11,
		}
		if !reflect.DeepEqual(b, want) {
			t.Errorf("book is\n%+v, want\n%+v", b, want)
		}
		maps.DeleteFunc(b.ByAgent, func(string, Sum) bool { return true })
		b.Unpriced[0] = "changed"
		if !reflect.DeepEqual(read(t, l), want) {
			t.Error("a change of the book changed the ledger")
		}
		for limit, left := range map[int64]int64{0: 0, 31: 1, 30: -1, 10: -1, -5: -1} {
			if got := b.StepLeft("s1", limit); got != left {
				t.Errorf("of a step limit of %d %d is left, want %d", limit, got, left)
			}
		}
		if got := b.StepLeft("s9", 30); got != 30 {
			t.Errorf("of a new step's limit %d is left", got)
		}
	}
}

func TestTokenBudget(t *testing.T) {
	l := Open(filepath.Join(t.TempDir(), "ledger.jsonl"))
	ok(t, l.Create(t.Context(), money.Amount{Unit: money.Tokens, N: 100}, at(0)))
	ok(t, l.Spend(t.Context(), "a", Spent{Nano: 5_000_000, Tokens: 40}, at(1)))
	b := read(t, l)
	if b.Used.String() != "40 tokens" || b.Nano != 5_000_000 {
		t.Errorf("used %s, nano %d", b.Used, b.Nano)
	}
	q := ReserveRequest{Run: "b", MinRun: 10, AgentsDue: 1, Now: at(2)}
	if n, d, err := l.Reserve(t.Context(), q); n != 60 || d != money.Admit || err != nil {
		t.Errorf("reserve: %d, %s, %v", n, d, err)
	}
	q.Run, q.Budget = "c", money.Amount{Unit: money.NanoUSD, N: 10}
	if _, _, err := l.Reserve(t.Context(), q); err == nil {
		t.Error("reserved dollars from a budget of tokens")
	}
	if err := l.SetBudget(t.Context(), money.Amount{Unit: money.NanoUSD, N: 10}, "", at(3)); err == nil {
		t.Error("a budget of tokens became one of dollars")
	}
	wantSums(t, l, 40, 60, "b")
}

func TestBudgetOfTheRequestOnlyLowers(t *testing.T) {
	usd := func(n int64) money.Amount { return money.Amount{Unit: money.NanoUSD, N: n} }
	for _, c := range []struct {
		budget money.Amount
		limit  int64
		d      money.Decision
	}{{usd(2000), 1000, money.Admit}, {usd(300), 300, money.Admit}, {usd(0), 0, money.Exhausted}, {usd(-1), 0, money.Exhausted}, {money.Amount{}, 1000, money.Admit}} {
		l := fresh(t, 1000)
		if n, d, err := l.Reserve(t.Context(), ReserveRequest{Run: "a", Budget: c.budget, MinRun: 50, AgentsDue: 1, Now: at(1)}); n != c.limit || d != c.d || err != nil {
			t.Errorf("budget %v: %d, %s, %v", c.budget, n, d, err)
		}
	}
}

func TestSetBudget(t *testing.T) {
	l := fresh(t, 100)
	ok(t, l.Spend(t.Context(), "a", Spent{Nano: 100}, at(1)))
	if _, d, err := l.Reserve(t.Context(), request("b")); d != money.Exhausted || err != nil {
		t.Fatal(d, err)
	}
	ok(t, l.SetBudget(t.Context(), money.Amount{Unit: money.NanoUSD, N: 150}, "added by hand", at(2)))
	must(t, Open(l.path), "b")
	if err := l.SetBudget(t.Context(), money.Amount{Unit: money.NanoUSD}, "", at(3)); err == nil {
		t.Error("a budget of 0 was taken")
	}
	if b := read(t, l); b.Budget.N != 150 {
		t.Errorf("budget is %v", b.Budget)
	}
}

func TestSumsThatDoNotFit(t *testing.T) {
	l := fresh(t, 1<<62)
	for _, run := range []string{"a", "b", "c"} {
		ok(t, l.Spend(t.Context(), run, Spent{Nano: 1<<63 - 1, Tokens: 1<<63 - 1, ByModel: map[string]money.Usage{"m": {Input: 1<<63 - 1}}}, at(1)))
	}
	b := read(t, l)
	if b.Used.N != 1<<63-1 || b.Tokens != 1<<63-1 || b.ByAgent[""].Nano != 1<<63-1 || b.ByModel["m"].Input != 1<<63-1 {
		t.Errorf("book: %+v", b)
	}
}

func TestOpenTouchesNothingAndMissingIsUnreadable(t *testing.T) {
	dir := t.TempDir()
	l := Open(filepath.Join(dir, "ledger.jsonl"))
	if entries, _ := os.ReadDir(dir); len(entries) != 0 {
		t.Errorf("Open made %v", entries)
	}
	_, err := l.Read()
	wantCode(t, err, usererr.Unreadable)
	_, _, err = l.Reserve(t.Context(), request("a"))
	wantCode(t, err, usererr.Unreadable)
	wantCode(t, l.Spend(t.Context(), "a", Spent{Nano: 1}, at(1)), usererr.Unreadable)
	if _, err := os.Lstat(l.path); !os.IsNotExist(err) {
		t.Error("a missing ledger was made anew")
	}
	gone := Open(filepath.Join(dir, "no", "such", "folder", "ledger.jsonl"))
	wantCode(t, gone.Spend(t.Context(), "a", Spent{Nano: 1}, at(1)), usererr.Unreadable)
}

func TestCreateNeverReplaces(t *testing.T) {
	l := fresh(t, 1000)
	ok(t, l.Spend(t.Context(), "a", Spent{Nano: 10}, at(1)))
	wantCode(t, l.Create(t.Context(), money.Amount{Unit: money.NanoUSD, N: 5000}, at(2)), usererr.Conflict)
	wantSums(t, l, 10, 0)
	for _, bad := range []money.Amount{{}, {Unit: money.NanoUSD}, {Unit: money.Tokens, N: -1}, {Unit: "eur", N: 5}} {
		l := Open(filepath.Join(t.TempDir(), "ledger.jsonl"))
		if err := l.Create(t.Context(), bad, at(0)); err == nil {
			t.Errorf("made a ledger for %+v", bad)
		}
	}
}

func TestBusyLedgerSaysLater(t *testing.T) {
	l := fresh(t, 1000)
	unlock, err := files.TryLock(l.path + ".lock")
	ok(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	_, _, err = l.Reserve(ctx, request("a"))
	wantCode(t, err, usererr.Later)
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the cause is lost: %v", err)
	}
	wantSums(t, l, 0, 0) // reading needs no lock
	unlock()
	must(t, l, "a")
}

func TestFileModeAndText(t *testing.T) {
	l := fresh(t, 1000)
	must(t, l, "a")
	info, err := os.Stat(l.path)
	ok(t, err)
	if info.Mode().Perm() != 0o600 {
		t.Errorf("mode is %v", info.Mode())
	}
	data, err := os.ReadFile(l.path)
	ok(t, err)
	want := `{"v":1,"seq":1,"at":"2026-11-02T10:00:00Z","kind":"budget","cap":1000,"unit":"nano_usd"}
{"v":1,"seq":2,"at":"2026-11-02T10:00:01Z","kind":"reserve","run":"a","agent":"codebuilder-1","step":"s1","model":"claude-opus-5-5","cap":50,"unit":"nano_usd"}
`
	if string(data) != want {
		t.Errorf("file is\n%s", data)
	}
}

func TestLongAndEmptyLines(t *testing.T) {
	l := fresh(t, 1000)
	long := strings.Repeat("x", 5<<20)
	ok(t, l.Spend(t.Context(), "a", Spent{Nano: 10, Note: long}, at(1)))
	f, err := os.OpenFile(l.path, os.O_APPEND|os.O_WRONLY, 0)
	ok(t, err)
	f.WriteString("\n  \n\r\n\n")
	f.Close()
	ok(t, l.Spend(t.Context(), "b", Spent{Nano: 5, Note: long}, at(2)))
	wantSums(t, l, 15, 0)
	wantSums(t, Open(l.path), 15, 0)
}

func TestReadingAgainReadsOnlyWhatIsNew(t *testing.T) {
	l := fresh(t, 1000)
	ok(t, l.Spend(t.Context(), "a", Spent{Nano: 10}, at(1)))
	read(t, l)
	f, err := os.OpenFile(l.path, os.O_WRONLY, 0)
	ok(t, err)
	defer f.Close()
	if _, err := f.WriteAt([]byte("#"), 0); err != nil { // whoever reads from the start must stumble
		t.Fatal(err)
	}
	wantSums(t, l, 10, 0)
	_, err = Open(l.path).Read()
	wantCode(t, err, usererr.Unreadable)
}

func TestFileTakenBackToAnEarlierState(t *testing.T) {
	for name, undo := range map[string]func(path string, old []byte) error{
		"cut in place":     func(path string, old []byte) error { return os.Truncate(path, int64(len(old))) },
		"an older copy":    func(path string, old []byte) error { return files.Replace(path, old, 0o600) },
		"removed":          func(path string, old []byte) error { return os.Remove(path) },
		"replaced by none": func(path string, old []byte) error { return files.Replace(path, nil, 0o600) },
	} {
		l := fresh(t, 1000)
		old, err := os.ReadFile(l.path)
		ok(t, err)
		ok(t, l.Spend(t.Context(), "a", Spent{Nano: 900}, at(1)))
		ok(t, undo(l.path, old))
		_, err = l.Read()
		if usererr.CodeOf(err) != usererr.Unreadable {
			t.Errorf("%s: %v", name, err)
		}
		if _, _, err := l.Reserve(t.Context(), request("b")); usererr.CodeOf(err) != usererr.Unreadable {
			t.Errorf("%s: reserve: %v", name, err)
		}
	}
	// Another file under the same name is read from its start.
	l := fresh(t, 1000)
	ok(t, l.Spend(t.Context(), "a", Spent{Nano: 900}, at(1)))
	read(t, l)
	other, err := os.ReadFile(l.path)
	ok(t, err)
	ok(t, files.Replace(l.path, bytes.Replace(other, []byte(`"nano_usd":900`), []byte(`"nano_usd":905`), 1), 0o600))
	wantSums(t, l, 905, 0)
	must(t, l, "b")
}

func TestNoRegularFile(t *testing.T) {
	for name, make := range map[string]func(path string) error{
		"folder":  func(path string) error { return os.Mkdir(path, 0o700) },
		"FIFO":    func(path string) error { return syscall.Mkfifo(path, 0o600) },
		"symlink": func(path string) error { return os.Symlink(path+".real", path) },
	} {
		l := fresh(t, 1000)
		ok(t, os.Rename(l.path, l.path+".real"))
		ok(t, make(l.path))
		if _, err := Open(l.path).Read(); usererr.CodeOf(err) != usererr.Unreadable {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestRunsThatStartTogether: five agents want the same cap at once and two fit; what ends gives back what it did not
// use, also when it died and its transcript was counted.
func TestRunsThatStartTogether(t *testing.T) {
	l := fresh(t, 1000)
	ok(t, l.Spend(t.Context(), "earlier", Spent{Nano: 880}, at(1)))
	start := func(run string, least int64) money.Decision {
		_, d, err := l.Reserve(t.Context(), ReserveRequest{Run: run, Agent: run, StepLimit: 60, MinRun: least, AgentsDue: 1, Now: at(2)})
		ok(t, err)
		return d
	}
	for i, want := range []money.Decision{money.Admit, money.Admit, money.Wait, money.Wait, money.Wait} {
		if got := start(fmt.Sprintf("r%d", i), 60); got != want {
			t.Errorf("run %d: %q, want %q", i, got, want)
		}
	}
	ok(t, l.Launch(t.Context(), "r0", at(3)))
	ok(t, l.Launch(t.Context(), "r1", at(3)))
	ok(t, l.Spend(t.Context(), "r0", Spent{Nano: 25}, at(4)))
	ok(t, l.Spend(t.Context(), "r1", Spent{Nano: 40, Source: "transcript"}, at(5)))
	b := read(t, l)
	if b.Used.N != 945 || b.Reserved.N != 0 || money.Remaining(b.Budget.N, b.Used.N) != 55 {
		t.Errorf("used %d, reserved %d", b.Used.N, b.Reserved.N)
	}
	if got := start("r5", 60); got != money.Exhausted {
		t.Errorf("the rest is too little for a run of 60: %q", got)
	}
	if got := start("r6", 50); got != money.Admit {
		t.Errorf("the rest is enough for a run of 50: %q", got)
	}
}
