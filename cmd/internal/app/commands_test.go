package app

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"example.com/AutoAgentProject/core/usererr"
)

var update = flag.Bool("update", false, "write docs/exit-codes.md")

// verbs are what the short helps begin with. A new one is a word that people know.
var verbs = []string{"Add", "Bring", "Check", "Finish", "Go", "Hold", "List", "Merge", "Print", "Remove", "Repeat", "Run", "Say", "Send", "Show", "Start", "Stop", "Store", "Take", "Tell", "Tick"}

// commands returns all commands that people see, by their path.
func commands(t *testing.T) map[string]*cobra.Command {
	t.Helper()
	c := &cli{env: Env{Getenv: func(string) string { return "" }}}
	root := c.root()
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	all := map[string]*cobra.Command{}
	var walk func(*cobra.Command)
	walk = func(cmd *cobra.Command) {
		if !cmd.Hidden {
			all[cmd.CommandPath()] = cmd
		}
		for _, sub := range cmd.Commands() {
			walk(sub)
		}
	}
	walk(root)
	return all
}

func TestCommandTree(t *testing.T) {
	all := commands(t)
	if len(all) < 14 {
		t.Errorf("only %d commands", len(all))
	}
	for path, cmd := range all {
		verb, _, _ := strings.Cut(cmd.Short, " ")
		if !slices.Contains(verbs, verb) || strings.HasSuffix(cmd.Short, ".") {
			t.Errorf("%s: its short help does not begin with a verb that the others begin with, or ends with a full stop: %q", path, cmd.Short)
		}
		if cmd.Long == "" || !strings.HasSuffix(cmd.Long, ".") {
			t.Errorf("%s: its long help is no sentence: %q", path, cmd.Long)
		}
		if !strings.Contains(cmd.Example, Program) {
			t.Errorf("%s has no example", path)
		}
		for line := range strings.SplitSeq(cmd.Example, "\n") {
			if !strings.HasPrefix(line, "  ") {
				t.Errorf("%s: the example is not indented: %q", path, line)
			}
		}
		for line := range strings.SplitSeq(cmd.Long, "\n") {
			if len([]rune(line)) > 120 {
				t.Errorf("%s: a line of its help is longer than 120: %q", path, line)
			}
		}
	}
}

// TestExamples: the examples name commands and flags that exist.
func TestExamples(t *testing.T) {
	flags := regexp.MustCompile(` (--?[a-z][a-z-]*)`)
	quoted := regexp.MustCompile(`"[^"]*"`)
	for path, cmd := range commands(t) {
		for line := range strings.SplitSeq(cmd.Example, "\n") {
			_, call, ours := strings.Cut(quoted.ReplaceAllString(line, "x"), Program+" ")
			if !ours {
				continue
			}
			name, _, _ := strings.Cut(call, " ")
			meant, _, err := cmd.Root().Find(strings.Fields(strings.TrimRight(call, ")")))
			if err != nil || meant == cmd.Root() {
				t.Errorf("%s: the example calls %q", path, name)
				continue
			}
			for _, m := range flags.FindAllStringSubmatch(call, -1) {
				known := meant.Flag(strings.TrimLeft(m[1], "-")) != nil
				if len(m[1]) == 2 {
					known = meant.Flags().ShorthandLookup(m[1][1:]) != nil
				}
				if !known {
					t.Errorf("%s: the example uses %s, which %s does not have", path, m[1], name)
				}
			}
		}
	}
}

// run runs the command line inside the test.
func run(args ...string) (status int, stdout, stderr string) {
	var out, errs bytes.Buffer
	status = Run(context.Background(), Env{Args: args, Stdin: strings.NewReader(""), Stdout: &out, Stderr: &errs, Getenv: func(string) string { return "" }})
	return status, out.String(), errs.String()
}

// codes are the rows of the table of exit statuses in a help.
func codes(text string) []usererr.Row {
	var rows []usererr.Row
	for _, m := range regexp.MustCompile(`(?m)^ +([0-9]+)  (.*)$`).FindAllStringSubmatch(text, -1) {
		n, _ := strconv.Atoi(m[1])
		rows = append(rows, usererr.Row{Code: usererr.Code(n), Meaning: m[2]})
	}
	return rows
}

func TestExitStatusInHelp(t *testing.T) {
	for path := range commands(t) {
		args := append(strings.Fields(path)[1:], "--help")
		status, out, errs := run(args...)
		_, table, found := strings.Cut(out, "\nEXIT STATUS\n")
		if status != 0 || errs != "" || !found {
			t.Errorf("%s: exit status %d, table %v, %s", strings.Join(args, " "), status, found, errs)
			continue
		}
		if got := codes(table); !slices.Equal(got, usererr.Codes()) {
			t.Errorf("%s: its table is\n%v\nand not\n%v", strings.Join(args, " "), got, usererr.Codes())
		}
	}
}

const exitCodes = "../../../docs/exit-codes.md"

func exitCodesPage() string {
	var b strings.Builder
	b.WriteString("# Exit statuses\n\n" +
		"Every command ends with one of these. The numbers are a contract for scripts: none is ever used for something else.\n\n" +
		"| status | meaning |\n|---|---|\n")
	for _, r := range usererr.Codes() {
		fmt.Fprintf(&b, "| %d | %s |\n", r.Code, r.Meaning)
	}
	b.WriteString("\nErrors go to standard error: a sentence that begins with `autoagent: error:`, and where something can be done about it a\n" +
		"second line that begins with `autoagent: hint:`. With `--json` it is one JSON object with `error`, `hint` and `exit`.\n\n" +
		"The programs that tick a role (`autoagent-manager` and its like) keep to the same table. Whoever ticks them reads it: after\n" +
		"0 and 75 the next tick comes in its time, after 125 none, after anything else one comes soon and then ever later.\n\n" +
		"This page is written by `go test ./cmd/internal/app -run TestExitCodesPage -update`.\n")
	return b.String()
}

func TestExitCodesPage(t *testing.T) {
	want := exitCodesPage()
	if *update {
		if err := os.WriteFile(exitCodes, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(exitCodes)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Errorf("docs/exit-codes.md is not what the program does; run this test with -update")
	}
}

// TestFault: a fault of ours is not taken for a wrong argument.
func TestFault(t *testing.T) {
	var errs bytes.Buffer
	status := func() (status int) {
		defer catch(Env{Stderr: &errs}, "autoagent", &status)
		panic("a fault\x1b[31m")
	}()
	if status != int(usererr.Bug) || !strings.Contains(errs.String(), "autoagent: error: the program has a fault: a fault\uFFFD[31m") {
		t.Errorf("exit status %d:\n%s", status, errs.String())
	}
}
