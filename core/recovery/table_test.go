package recovery

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"
)

// TestTable: each row is reached by what it says, and by nothing else.
func TestTable(t *testing.T) {
	seen := map[string]bool{}
	for _, r := range Table {
		if Find(r.Fault).Seen != r.Seen {
			t.Errorf("%s stands there twice", r.Fault)
		}
		for _, c := range r.Classes {
			if seen[c] || Of(c, true) != r.Fault || Of(c, false) != r.Fault {
				t.Errorf("class %s means %s and %s", c, r.Fault, Of(c, true))
			}
			seen[c] = true
		}
		for _, text := range []string{r.Seen, r.Done} {
			if strings.ContainsAny(text, "|\n") || text == "" {
				t.Errorf("%s: %q does not fit into a table", r.Fault, text)
			}
		}
	}
	for _, c := range []string{"", "error", "no-result", "exit", "oom", "empty", "budget"} {
		if Of(c, true) != HalfBroken || Of(c, false) != Broken {
			t.Errorf("class %q: %s, %s", c, Of(c, true), Of(c, false))
		}
	}
}

// TestDecide: one counter, whatever the faults are; then a person.
func TestDecide(t *testing.T) {
	for _, r := range Table {
		for tries := range MaxTries + 2 {
			fault, row := Decide(r.Fault, tries)
			switch {
			case r.Action == Break || r.Action == Block:
				if fault != r.Fault || row.Action != r.Action {
					t.Errorf("%s after %d: %s", r.Fault, tries, row.Action)
				}
			case tries < MaxTries && (fault != r.Fault || row.Action != r.Action), tries >= MaxTries && (fault != Exhausted || row.Action != Block):
				t.Errorf("%s after %d: %s, %s", r.Fault, tries, fault, row.Action)
			}
		}
	}
}

// TestNumbersInWords: the words of the table say the numbers that count.
func TestNumbersInWords(t *testing.T) {
	for fault, n := range map[Fault]int{Empty: MaxEmpty, Exhausted: MaxTries, Crashing: MaxCrashes} {
		if r := Find(fault); !strings.Contains(r.Seen, fmt.Sprint(n)) {
			t.Errorf("%s: %q does not say %d", fault, r.Seen, n)
		}
	}
}

// TestDocument: docs/recovery.md shows the table as it is.
func TestDocument(t *testing.T) {
	doc, err := os.ReadFile("../../docs/recovery.md")
	if err != nil {
		t.Fatal(err)
	}
	var want strings.Builder
	want.WriteString("| fault | how it is seen | what is done |\n|---|---|---|\n")
	for _, r := range Table {
		fmt.Fprintf(&want, "| %s | %s | %s |\n", r.Fault, r.Seen, r.Done)
	}
	if !bytes.Contains(doc, []byte(want.String())) {
		t.Errorf("docs/recovery.md does not hold this table:\n%s", want.String())
	}
}

func TestSaysBlocked(t *testing.T) {
	for text, want := range map[string]bool{"BLOCKED: x": true, "\n BLOCKED:": true, "It is not BLOCKED: by anything": false, "blocked": false, "": false} {
		if SaysBlocked(text) != want {
			t.Errorf("%q", text)
		}
	}
}
