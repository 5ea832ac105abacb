package ledger

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"example.com/AutoAgentProject/core/money"
	"example.com/AutoAgentProject/core/usererr"
)

// history is a ledger with one record of each kind, and what it comes to after each of them.
func history(t *testing.T) (lines [][]byte, sums [][2]int64) {
	l := fresh(t, 1000)
	for _, do := range []func() error{
		func() error { return nil },
		func() error { must(t, l, "a"); return nil },
		func() error { return l.Launch(t.Context(), "a", at(2)) },
		func() error {
			return l.Spend(t.Context(), "a", Spent{Nano: 40, Tokens: 4, Note: "übrig 😀 \"}\""}, at(3))
		},
		func() error { must(t, l, "b"); return nil },
		func() error { return l.Release(t.Context(), "b", "not started", at(4)) },
		func() error {
			return l.SetBudget(t.Context(), money.Amount{Unit: money.NanoUSD, N: 2000}, "added", at(5))
		},
	} {
		ok(t, do())
		b := read(t, l)
		sums = append(sums, [2]int64{b.Used.N, b.Reserved.N})
	}
	data, err := os.ReadFile(l.path)
	ok(t, err)
	lines = bytes.SplitAfter(bytes.TrimSuffix(data, []byte("\n")), []byte("\n"))
	lines[len(lines)-1] = append(lines[len(lines)-1], '\n')
	if len(lines) != len(sums) {
		t.Fatalf("%d lines, %d sums", len(lines), len(sums))
	}
	return lines, sums
}

// TestDiedInTheMiddleOfALine writes every beginning of every record behind the whole ones, as a crash or a full disk
// leaves it.
func TestDiedInTheMiddleOfALine(t *testing.T) {
	lines, sums := history(t)
	for i := 1; i < len(lines); i++ {
		before := bytes.Join(lines[:i], nil)
		for cut := 1; cut < len(lines[i]); cut++ {
			half := lines[i][:cut]
			whole := cut == len(lines[i])-1 // only the newline is missing
			l := Open(filepath.Join(t.TempDir(), "ledger.jsonl"))
			ok(t, os.WriteFile(l.path, append(bytes.Clone(before), half...), 0o600))
			want := sums[i-1]
			if whole {
				want = sums[i]
			}
			where := fmt.Sprintf("record %d cut at %d", i, cut)
			b, err := l.Read()
			if err != nil || b.Used.N != want[0] || b.Reserved.N != want[1] {
				t.Fatalf("%s: %+v, %v; want %v", where, b, err, want)
			}
			if data, _ := os.ReadFile(l.path); len(data) != len(before)+cut {
				t.Fatalf("%s: reading changed the file", where)
			}
			ok(t, l.Spend(t.Context(), "next", Spent{Nano: 7}, at(9)))
			torn, _ := filepath.Glob(l.path + ".torn-*")
			if whole != (len(torn) == 0) {
				t.Fatalf("%s: kept %v", where, torn)
			}
			if !whole {
				if kept, _ := os.ReadFile(torn[0]); !bytes.Equal(kept, half) {
					t.Fatalf("%s: kept %q", where, kept)
				}
			}
			for _, l := range []*Ledger{l, Open(l.path)} {
				if b, err := l.Read(); err != nil || b.Used.N != want[0]+7 || b.Reserved.N != want[1] {
					t.Fatalf("%s, after the repair: %+v, %v", where, b, err)
				}
			}
		}
	}
}

func TestOtherHalfLines(t *testing.T) {
	lines, _ := history(t)
	good := bytes.Join(lines[:2], nil)
	for name, tail := range map[string]string{"NULs": strings.Repeat("\x00", 5000), "long": `{"v":1,"note":"` + strings.Repeat("x", 1<<20), "cut emoji": "{\"note\":\"\xf0\x9f"} {
		l := Open(filepath.Join(t.TempDir(), "ledger.jsonl"))
		ok(t, os.WriteFile(l.path, append(bytes.Clone(good), tail...), 0o600))
		wantSums(t, l, 0, 50, "a")
		ok(t, l.Launch(t.Context(), "a", at(3)))
		ok(t, l.Spend(t.Context(), "a", Spent{Nano: 3}, at(3)))
		wantSums(t, Open(l.path), 3, 0)
		if torn, _ := filepath.Glob(l.path + ".torn-*"); len(torn) != 1 {
			t.Errorf("%s: kept %v", name, torn)
		}
	}
}

func TestTwoHalfLinesInTheSameSecondAreBothKept(t *testing.T) {
	l := fresh(t, 1000)
	for _, half := range []string{`{"v":1,`, `{"v":1,"se`} {
		f, err := os.OpenFile(l.path, os.O_APPEND|os.O_WRONLY, 0)
		ok(t, err)
		f.WriteString(half)
		f.Close()
		ok(t, l.Spend(t.Context(), half, Spent{Nano: 1}, at(1)))
	}
	torn, _ := filepath.Glob(l.path + ".torn-*")
	if len(torn) != 2 {
		t.Errorf("kept %v", torn)
	}
}

// TestDamage: whatever is wrong with a whole line, wherever it stands, nothing is changed and no run starts.
func TestDamage(t *testing.T) {
	lines, _ := history(t)
	line := func(i int) string { return string(lines[i]) }
	all := string(bytes.Join(lines, nil))
	for name, bad := range map[string]string{
		"empty file":             "",
		"only empty lines":       "\n\n",
		"only NULs":              strings.Repeat("\x00", 4096),
		"half of the only line":  `{"v":1,"seq":1,`,
		"no JSON in the middle":  strings.Replace(all, line(2), "garbage\n", 1),
		"no JSON at the end":     all + "garbage\n",
		"NULs with a newline":    all + strings.Repeat("\x00", 100) + "\n",
		"line missing":           strings.Replace(all, line(2), "", 1),
		"first line missing":     strings.Replace(all, line(0), "", 1),
		"first is no budget":     strings.Replace(line(1), `"seq":2`, `"seq":1`, 1),
		"line twice":             strings.Replace(all, line(2), line(2)+line(2), 1),
		"lines swapped":          strings.Replace(all, line(2)+line(3), line(3)+line(2), 1),
		"two lines in one":       strings.Replace(all, line(2), strings.TrimSpace(line(2))+line(2), 1),
		"number instead":         all + "8\n",
		"whole record misplaced": all + strings.TrimSpace(line(3)),
		"null instead":           strings.Replace(all, line(2), "null\n", 1),
		"newer version":          strings.Replace(all, `{"v":1,"seq":3`, `{"v":2,"seq":3`, 1),
		"no version":             strings.Replace(all, `{"v":1,"seq":3`, `{"seq":3`, 1),
		"unknown kind":           strings.Replace(all, `"kind":"launch"`, `"kind":"refund"`, 1),
		"negative spend":         strings.Replace(all, `"nano_usd":40`, `"nano_usd":-40`, 1),
		"spend as text":          strings.Replace(all, `"nano_usd":40`, `"nano_usd":"40"`, 1),
		"spend too large":        strings.Replace(all, `"nano_usd":40`, `"nano_usd":1e309`, 1),
		"negative cap":           strings.Replace(all, `"cap":50`, `"cap":-50`, 1),
		"other unit":             strings.Replace(all, `"cap":50,"unit":"nano_usd"`, `"cap":50,"unit":"tokens"`, 1),
		"budget of 0":            strings.Replace(all, `"cap":2000`, `"cap":0`, 1),
		"run without a name":     strings.Replace(all, `"kind":"launch","run":"a"`, `"kind":"launch","run":""`, 1),
		"reserved twice":         strings.Replace(all, `"run":"b"`, `"run":"a"`, 1),
		"number too large":       strings.Replace(all, `"seq":4`, `"seq":9223372036854775808`, 1),
	} {
		if bad == all {
			t.Fatalf("%s: the edit finds nothing to change", name)
		}
		l := Open(filepath.Join(t.TempDir(), "ledger.jsonl"))
		ok(t, os.WriteFile(l.path, []byte(bad), 0o600))
		_, err := l.Read()
		if usererr.CodeOf(err) != usererr.Unreadable || !strings.Contains(err.Error(), l.path) {
			t.Errorf("%s: read: %v", name, err)
		}
		_, d, err := l.Reserve(t.Context(), request("new"))
		if usererr.CodeOf(err) != usererr.Unreadable || d != "" {
			t.Errorf("%s: reserve: %q, %v", name, d, err)
		}
		if err := l.Spend(t.Context(), "new", Spent{Nano: 1}, at(9)); usererr.CodeOf(err) != usererr.Unreadable {
			t.Errorf("%s: spend: %v", name, err)
		}
		if data, _ := os.ReadFile(l.path); string(data) != bad {
			t.Errorf("%s: the file was changed", name)
		}
		if entries, _ := filepath.Glob(l.path + ".torn-*"); len(entries) != 0 {
			t.Errorf("%s: %v", name, entries)
		}
	}
}

func TestUnreadableTellsTheLine(t *testing.T) {
	l := fresh(t, 1000)
	must(t, l, "a")
	f, err := os.OpenFile(l.path, os.O_APPEND|os.O_WRONLY, 0)
	ok(t, err)
	f.WriteString("\n{\"v\":1,\"seq\":9}\n")
	f.Close()
	_, err = l.Read()
	if err == nil || !strings.Contains(err.Error(), "line 4: bad line:") {
		t.Errorf("error is %v", err)
	}
	if _, err := l.Read(); usererr.CodeOf(err) != usererr.Unreadable { // and stays so
		t.Errorf("the second time: %v", err)
	}
}
