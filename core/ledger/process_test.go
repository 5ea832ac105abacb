package ledger

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"example.com/AutoAgentProject/core/money"
	"example.com/AutoAgentProject/core/usererr"
)

// The test binary, started again with these variables, is one of the programs that use a ledger.
const (
	childDoes = "LEDGER_TEST_CHILD"
	childPath = "LEDGER_TEST_PATH"
	childName = "LEDGER_TEST_NAME"
)

func TestMain(m *testing.M) {
	path, name := os.Getenv(childPath), os.Getenv(childName)
	var err error
	switch os.Getenv(childDoes) {
	case "":
		os.Exit(m.Run())
	case "reserve":
		err = childReserve(path, name)
	case "loop":
		err = childLoop(path, name)
	case "session":
		err = session(Open(path))
	case "full-disk":
		err = childFullDisk(path)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func child(ctx context.Context, does, path, name string, env ...string) *exec.Cmd {
	c := exec.CommandContext(ctx, os.Args[0])
	c.Env = append(append(os.Environ(), childDoes+"="+does, childPath+"="+path, childName+"="+name), env...)
	c.Stderr = new(bytes.Buffer)
	return c
}

// childReserve is a tick that starts at the same time as others, and dies without settling.
func childReserve(path, name string) error {
	q := request(name)
	q.AgentsDue = 3
	_, d, err := Open(path).Reserve(context.Background(), q)
	if err == nil {
		_, err = fmt.Print(d)
	}
	return err
}

func TestFiftyProcessesReserveAtOnce(t *testing.T) {
	const budget, each = 1000, 50
	l := fresh(t, budget)
	ok(t, l.Spend(t.Context(), "earlier", Spent{Nano: 120}, at(0)))
	outs := make([]bytes.Buffer, 50)
	var wait sync.WaitGroup
	for i := range outs {
		c := child(t.Context(), "reserve", l.path, fmt.Sprintf("run-%d", i))
		c.Stdout = &outs[i]
		wait.Go(func() {
			if err := c.Run(); err != nil {
				t.Errorf("process %d: %v: %s", i, err, c.Stderr)
			}
		})
	}
	wait.Wait()
	admitted := 0
	for i := range outs {
		switch money.Decision(outs[i].String()) {
		case money.Admit:
			admitted++
		case money.Wait:
		default:
			t.Errorf("process %d says %q", i, &outs[i])
		}
	}
	b := read(t, l)
	if admitted != (budget-120)/each || len(b.OpenRuns) != admitted || b.Used.N+b.Reserved.N > budget {
		t.Errorf("%d admitted, %d open, used %d, reserved %d of %d", admitted, len(b.OpenRuns), b.Used.N, b.Reserved.N, budget)
	}
}

func TestFiftyGoroutinesReserveWhileOthersRead(t *testing.T) {
	l := fresh(t, 1000)
	stop := make(chan struct{})
	var readers, writers sync.WaitGroup
	for _, l := range []*Ledger{l, Open(l.path)} {
		readers.Go(func() {
			var last int64
			for {
				b, err := l.Read()
				if err != nil {
					t.Errorf("read: %v", err)
					return
				}
				if b.Used.N+b.Reserved.N > 1000 || b.Used.N < last {
					t.Errorf("used %d after %d, reserved %d", b.Used.N, last, b.Reserved.N)
				}
				last = b.Used.N
				select {
				case <-stop:
					return
				case <-time.After(time.Millisecond):
				}
			}
		})
	}
	for i := range 50 {
		own := l
		if i%2 == 0 {
			own = Open(l.path)
		}
		writers.Go(func() {
			run := fmt.Sprintf("run-%d", i)
			_, d, err := own.Reserve(t.Context(), request(run))
			if err != nil {
				t.Errorf("%s: %v", run, err)
			}
			if d == money.Admit && i%3 == 0 {
				if err := own.Spend(t.Context(), run, Spent{Nano: 49}, at(2)); err != nil {
					t.Errorf("%s: %v", run, err)
				}
			}
		})
	}
	writers.Wait()
	close(stop)
	readers.Wait()
	if b := read(t, Open(l.path)); len(b.OpenRuns) < 1 || b.Used.N+b.Reserved.N > 1000 || b.Used.N+b.Reserved.N < 900 {
		t.Errorf("used %d, reserved %d, %d open", b.Used.N, b.Reserved.N, len(b.OpenRuns))
	}
}

// childLoop reserves, launches and settles until it is killed, and says after each settled run that it is durable.
func childLoop(path, name string) error {
	l := Open(path)
	ctx := context.Background()
	for i := 0; ; i++ {
		run := fmt.Sprintf("%s-%d", name, i)
		if _, d, err := l.Reserve(ctx, request(run)); err != nil || d != money.Admit {
			return fmt.Errorf("reserve %s: %s, %w", run, d, err)
		}
		if err := l.Launch(ctx, run, at(i)); err != nil {
			return err
		}
		if err := l.Spend(ctx, run, Spent{Nano: 1, Note: strings.Repeat("x", i%7*900)}, at(i)); err != nil {
			return err
		}
		fmt.Println(i + 1)
	}
}

func TestKilledAtAnyInstant(t *testing.T) {
	l := fresh(t, 1_000_000)
	var told int64
	for round := range 8 {
		c := child(t.Context(), "loop", l.path, fmt.Sprintf("round-%d", round))
		var out bytes.Buffer
		c.Stdout = &out
		ok(t, c.Start())
		time.Sleep(time.Duration(60+7*round) * time.Millisecond)
		ok(t, c.Process.Kill())
		c.Wait()
		if errs := c.Stderr.(*bytes.Buffer); errs.Len() > 0 {
			t.Fatalf("round %d: %s", round, errs)
		}
		lines := strings.Fields(out.String())
		if len(lines) > 0 {
			n, err := strconv.ParseInt(lines[len(lines)-1], 10, 64)
			ok(t, err)
			told += n
		}
		b := read(t, Open(l.path))
		if b.Used.N < told || b.Used.N > told+int64(round)+1 || len(b.OpenRuns) > 1 {
			t.Fatalf("round %d: used %d, told %d, open %v", round, b.Used.N, told, b.OpenRuns)
		}
		for _, r := range b.OpenRuns {
			ok(t, l.Release(t.Context(), r.ID, "its tick died", at(round)))
		}
	}
	if told == 0 {
		t.Skip("the machine was too slow: no run was settled before the kill")
	}
	wantSums(t, l, read(t, l).Used.N, 0)
}

// session is what a tick does with a ledger, each step ready to be done again after a crash.
func session(l *Ledger) error {
	ctx := context.Background()
	again := func(err error) error {
		if usererr.CodeOf(err) == usererr.Conflict {
			return nil // it was done before the crash
		}
		return err
	}
	reserve := func(run string) error {
		_, d, err := l.Reserve(ctx, request(run))
		if err == nil && d != money.Admit {
			return fmt.Errorf("%s: %s", run, d)
		}
		return again(err)
	}
	return errors.Join(
		again(l.Create(ctx, money.Amount{Unit: money.NanoUSD, N: 120}, at(0))),
		reserve("a"),
		reserve("b"),
		again(l.Launch(ctx, "a", at(2))),
		l.Spend(ctx, "a", Spent{Nano: 30, Tokens: 3}, at(3)),
		l.Release(ctx, "b", "not needed", at(4)),
		l.SetBudget(ctx, money.Amount{Unit: money.NanoUSD, N: 200}, "added", at(5)),
	)
}

func TestSessionAgain(t *testing.T) {
	l := Open(filepath.Join(t.TempDir(), "ledger.jsonl"))
	ok(t, session(l))
	before := read(t, l)
	ok(t, session(Open(l.path)))
	if b := read(t, l); b.Records != before.Records || b.Used.N != 30 || b.Reserved.N != 0 || b.Budget.N != 200 {
		t.Errorf("%+v became %+v", before, b)
	}
}

// childFullDisk runs in a mount namespace of its own, where path is a file system of a few pages.
func childFullDisk(path string) error {
	if err := unix.Mount("none", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("mount: %w", err)
	}
	if err := unix.Mount("none", path, "tmpfs", 0, "size=64k"); err != nil {
		return fmt.Errorf("mount: %w", err)
	}
	ctx := context.Background()
	l := Open(filepath.Join(path, "ledger.jsonl"))
	if err := l.Create(ctx, money.Amount{Unit: money.NanoUSD, N: 1_000_000}, at(0)); err != nil {
		return err
	}
	var failed error
	n := int64(0)
	for ; failed == nil; n++ {
		if n > 2000 {
			return errors.New("the disk never got full")
		}
		failed = l.Spend(ctx, fmt.Sprintf("run-%d", n), Spent{Nano: 1, Note: "three hundred bytes of this and that" + strings.Repeat(".", 170)}, at(1))
	}
	n--
	if !errors.Is(failed, unix.ENOSPC) {
		return fmt.Errorf("not told as a full disk: %w", failed)
	}
	info, err := os.Stat(l.path)
	if err != nil {
		return err
	}
	torn := info.Size()%4096 == 0
	for _, l := range []*Ledger{l, Open(l.path)} {
		if b, err := l.Read(); err != nil || b.Used.N != n {
			return fmt.Errorf("full disk: used %d of %d, %w", b.Used.N, n, err)
		}
		if _, d, err := l.Reserve(ctx, request("full")); !errors.Is(err, unix.ENOSPC) || d != "" {
			return fmt.Errorf("full disk: reserve says %q, %w", d, err)
		}
	}
	if !torn {
		return fmt.Errorf("size %d: no half line was left, the test shows less than it should", info.Size())
	}
	// Room again: remounted larger, nothing else done.
	if err := unix.Mount("none", path, "tmpfs", unix.MS_REMOUNT, "size=256k"); err != nil {
		return fmt.Errorf("mount: %w", err)
	}
	if err := l.Spend(ctx, "later", Spent{Nano: 5}, at(2)); err != nil {
		return err
	}
	b, err := Open(l.path).Read()
	kept, _ := filepath.Glob(l.path + ".torn-*")
	if err != nil || b.Used.N != n+5 || len(kept) != 1 {
		return fmt.Errorf("room again: used %d of %d, kept %v, %w", b.Used.N, n+5, kept, err)
	}
	fmt.Print("done")
	return nil
}

func TestFullDisk(t *testing.T) {
	c := child(t.Context(), "full-disk", t.TempDir(), "")
	var out bytes.Buffer
	c.Stdout = &out
	c.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
	}
	err := c.Run()
	errs := c.Stderr.(*bytes.Buffer).String()
	if err != nil && (strings.HasPrefix(errs, "mount:") || errs == "") {
		say := "NOT TESTED: a full disk. This machine lets us have no small file system in a user namespace: %v %s"
		if os.Getenv("CI") == "true" {
			t.Fatalf(say, err, errs)
		}
		t.Skipf(say, err, errs)
	}
	if err != nil || out.String() != "done" {
		t.Errorf("%v: %s", err, errs)
	}
}
