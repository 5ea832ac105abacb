package app_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"example.com/AutoAgentProject/core/claude"
	"example.com/AutoAgentProject/core/git"
	"example.com/AutoAgentProject/core/journal"
	"example.com/AutoAgentProject/core/login"
	"example.com/AutoAgentProject/core/mission"
	"example.com/AutoAgentProject/core/money"
	"example.com/AutoAgentProject/core/store"
	"example.com/AutoAgentProject/core/testkit"
)

var bin string // folder of the built programs

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "autoagent-script-")
	if err == nil {
		bin = filepath.Join(dir, "bin")
		err = errors.Join(os.Chmod(dir, 0o755), os.Mkdir(bin, 0o755), testkit.Build(bin, ""))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

// TestScript plays a person at the command line: the scripts of testdata/script call the built programs. Each has a
// home with a login, a root that is not made yet, and no terminal.
func TestScript(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireUniqueNames:  true,
		RequireExplicitExec: true,
		Deadline:            time.Now().Add(3 * time.Minute),
		Setup:               newHome,
		Condition: func(name string) (bool, error) {
			if name == "root" {
				return os.Geteuid() == 0, nil
			}
			return false, fmt.Errorf("there is no condition %s", name)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"needs": needs, "exits": exits, "starts": starts, "untouched": untouched,
			"write": write, "mode": mode, "json": jsonFields, "tools": tools, "mission": makeMission,
		},
	})
}

const exampleToken = "sk-ant-oat01-EXAMPLE-TOKEN"

func newHome(env *testscript.Env) error {
	home := filepath.Join(env.WorkDir, "home")
	env.Setenv("HOME", home)
	env.Setenv("BIN", bin)
	env.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	env.Setenv("AUTOAGENT_ROOT", filepath.Join(env.WorkDir, "root"))
	env.Setenv("LOGIN", filepath.Join(home, ".config", "autoagent", "credentials.json"))
	env.Setenv("GIT_CONFIG_GLOBAL", "/dev/null")
	for _, n := range []int{40, 41, 300} {
		env.Setenv(fmt.Sprintf("A%d", n), strings.Repeat("a", n))
	}
	if program, err := claude.Find(os.Getenv); err == nil {
		env.Setenv("AUTOAGENT_CLAUDE", program)
	}
	env.Values["t"] = env.T()
	return login.Write(env.Getenv("LOGIN"), login.File{Kind: login.PlanToken, Plan: "pro", Secret: exampleToken})
}

// needs PROGRAM…: without one of them the rest of the script is skipped, loudly, and fails where CI=true.
func needs(ts *testscript.TestScript, _ bool, args []string) {
	for _, name := range args {
		ok := testkit.OnPath(name)
		if name == "claude" {
			ok = ts.Getenv("AUTOAGENT_CLAUDE") != ""
		}
		switch {
		case ok:
		case os.Getenv("CI") == "true":
			ts.Fatalf("THIS TEST NEEDS %s", name)
		default:
			ts.Value("t").(testscript.T).Skip(fmt.Sprintf("THIS TEST NEEDS %s AND DID NOT RUN TO ITS END", name))
		}
	}
}

// exits CODE PROGRAM ARGUMENT…: the program must end with that exit status.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits code program [argument…]")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	err = ts.Exec(args[1], args[2:]...)
	got := 0
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		got = exit.ExitCode()
	} else {
		ts.Check(err)
	}
	if got != want {
		ts.Fatalf("exit status %d, want %d", got, want)
	}
}

// starts CODE ARGUMENT…: AutoAgentProject start must end with that exit status. Root says whom the mission runs as.
func starts(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 1 {
		ts.Fatalf("usage: starts code [argument…]")
	}
	all := []string{args[0], "AutoAgentProject", "start"}
	if os.Geteuid() == 0 {
		all = append(all, "--run-as", "root")
	}
	if args[0] != "0" { // should it start after all, it must not ask anybody
		ts.Setenv("AUTOAGENT_UPSTREAM", "http://127.0.0.1:9")
		defer ts.Setenv("AUTOAGENT_UPSTREAM", "")
	}
	exits(ts, false, append(all, args[1:]...))
}

// untouched: there is no root, the home holds nothing but the login, and no temporary file is left.
func untouched(ts *testscript.TestScript, _ bool, _ []string) {
	allowed := map[string]bool{ts.Getenv("LOGIN"): true, ts.Getenv("AUTOAGENT_CONFIG"): true}
	for _, dir := range []string{ts.Getenv("AUTOAGENT_ROOT"), ts.Getenv("HOME"), ts.Getenv("TMPDIR")} {
		err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			if err == nil && path != ts.Getenv("HOME") && path != ts.Getenv("TMPDIR") && !allowed[path] &&
				!strings.HasPrefix(ts.Getenv("LOGIN"), path+"/") {
				err = fmt.Errorf("%s was left behind", path)
			}
			return err
		})
		ts.Check(err)
	}
}

// write FILE TEXT [TIMES]: TEXT has the escapes of a Go string.
func write(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) < 2 {
		ts.Fatalf("usage: write file text [times]")
	}
	text, err := strconv.Unquote(`"` + strings.ReplaceAll(args[1], `"`, `\"`) + `"`)
	ts.Check(err)
	times := 1
	if len(args) == 3 {
		times, err = strconv.Atoi(args[2])
		ts.Check(err)
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(strings.Repeat(text, times)), 0o600))
}

// mode OCTAL FILE: the file has exactly these permissions.
func mode(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) != 2 {
		ts.Fatalf("usage: mode octal file")
	}
	st, err := os.Stat(ts.MkAbs(args[1]))
	ts.Check(err)
	if got := fmt.Sprintf("%04o", st.Mode().Perm()); got != args[0] {
		ts.Fatalf("%s has mode %s, want %s", args[1], got, args[0])
	}
}

// json FILE [KEY VALUE]…: the file is one JSON document, and these fields of it are those. A key is a path: agents.0.name.
func jsonFields(ts *testscript.TestScript, _ bool, args []string) {
	if len(args)%2 != 1 {
		ts.Fatalf("usage: json file [key value]…")
	}
	var doc any
	if err := json.Unmarshal([]byte(ts.ReadFile(args[0])), &doc); err != nil {
		ts.Fatalf("%s is no JSON: %v", args[0], err)
	}
	for i := 1; i < len(args); i += 2 {
		v := doc
		for key := range strings.SplitSeq(args[i], ".") {
			switch x := v.(type) {
			case map[string]any:
				v = x[key]
			case []any:
				n, err := strconv.Atoi(key)
				if err != nil || n >= len(x) {
					ts.Fatalf("%s has no %s", args[0], args[i])
				}
				v = x[n]
			default:
				ts.Fatalf("%s has no %s", args[0], args[i])
			}
		}
		if got := fmt.Sprint(v); got != args[i+1] {
			ts.Fatalf("%s: %s is %q, want %q", args[0], args[i], got, args[i+1])
		}
	}
}

// mission ID [AGENT…]: puts a mission below the root. More agents than codebuilder-1 have its profession.
func makeMission(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) < 1 {
		ts.Fatalf("usage: mission id [agent…]")
	}
	ts.Check(newMission(store.Root(ts.Getenv("AUTOAGENT_ROOT")), ts.Getenv("LOGIN"), args[0], args[1:]...))
}

// newMission makes a mission that nobody ticks, as a start leaves it behind that was killed at once.
func newMission(root store.Root, credentials, id string, more ...string) error {
	roster, err := mission.ParseRoster("codebuilder:1", []string{"codebuilder"})
	if err != nil {
		return err
	}
	for _, name := range more {
		roster = append(roster, mission.Agent{Name: name, Role: mission.Specialist, Profession: "codebuilder"})
	}
	m := mission.Mission{Version: mission.Version, ID: id, CreatedAt: time.Now().UTC(), Engine: "embedded", Roster: roster,
		Model: "claude-sonnet-5-5", BudgetAsked: "5usd", BudgetSentence: "$5.00", Budget: money.Amount{Unit: money.NanoUSD, N: 5e9}, MinRun: 2e7,
		MaxRun: mission.Duration(time.Hour), Payer: "the API key of the login, by use", Program: "/nowhere/claude",
		Path: "/usr/bin:/bin", Credentials: credentials, Base: strings.Repeat("0", 40)}
	st, ctx := root.Mission(m.ID), context.Background()
	if err := errors.Join(os.MkdirAll(filepath.Join(st.Notify(), "new"), 0o700), os.MkdirAll(st.Work(), 0o700)); err != nil {
		return err
	}
	errs := []error{os.WriteFile(st.Goal(), []byte("Build a page\nfor a bakery.\n"), 0o600)}
	for _, a := range roster {
		errs = append(errs, st.Queue().Make(a.Name))
	}
	_, err = git.Init(ctx, st.Repo())
	return errors.Join(append(errs, err, st.Ledger().Create(ctx, m.Budget, m.CreatedAt), st.PrepareTombstone(), st.CreateMission(m),
		st.Journal().Add(journal.Event{At: m.CreatedAt, Kind: journal.MissionStarted, Text: "mission " + m.ID + " started"}))...)
}

// tools FOLDER PROGRAM…: from here on PATH holds our programs and these, and no others.
func tools(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) < 1 {
		ts.Fatalf("usage: tools folder [program…]")
	}
	dir := ts.MkAbs(args[0])
	ts.Check(os.MkdirAll(dir, 0o755))
	for _, name := range args[1:] {
		path, err := exec.LookPath(name)
		ts.Check(err)
		ts.Check(os.Symlink(path, filepath.Join(dir, name)))
	}
	ts.Setenv("PATH", bin+":"+dir)
}
