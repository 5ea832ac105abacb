package e2e

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"example.com/AutoAgentProject/core/plan"
	"example.com/AutoAgentProject/core/scriptmodel"
	"example.com/AutoAgentProject/core/testkit"
)

// replaced are the files of a clone that programs of ours, or git for them, could want to open.
const replaced = ".git/HEAD .git/config .git/index .git/packed-refs .git/info/exclude .git/info/attributes .git/objects/info/alternates .git/hooks .git/refs/heads .git/commondir " +
	".git/shallow .git/logs/HEAD .gitattributes .gitignore .gitmodules .autoagent/handoff.md .autoagent/draft .autoagent package-lock.json web/package-lock.json web .claude CLAUDE.md"

// TestOurOwnHands: whatever an agent puts in place of the files of its clone (links that lead out, FIFOs, folders, huge files), our
// programs open nothing in it outside of a cell in a way that could be led elsewhere. All system calls with paths of all
// processes of a mission are looked at.
func TestOurOwnHands(t *testing.T) {
	t.Parallel()
	testkit.Need(t, testkit.OnPath("strace"), "strace")
	outside := t.TempDir()
	put(t, outside, "secret", leakMark+"\n")
	hostile := func(id, put string) []scriptmodel.Rule {
		again := works(id, bash("echo 1 >"+id))
		again.Name, again.When = id+" again", append(again.When, "It came back to you")
		rule := works(id)
		// The .git itself comes last, because git is needed until then.
		rule.Steps = []scriptmodel.Step{bash("echo 1 >" + id + "; for f in " + replaced + "; do rm -rf $f; mkdir -p $(dirname $f); " + put + "; done; rm -rf .git/objects/pack; cd .git/objects && f=pack && " + put), text("did " + id)}
		return []scriptmodel.Rule{again, rule}
	}
	kinds := [][2]string{{"links", "ln -s " + outside + "/secret $f"}, {"fifos", "mkfifo $f"}, {"folder-links", "ln -s " + outside + " $f"}, {"huge", "truncate -s 40M $f"}, {"folders", "mkdir $f"}, {"sockets", `python3 -c "import socket; socket.socket(socket.AF_UNIX).bind('$f')"`}}
	steps, rules := []string{"links", "fifos"}, []scriptmodel.Rule(nil)
	if full() {
		steps = append(steps, "huge", "folder-links", "folders", "sockets")
	}
	for _, k := range kinds {
		rules = append(rules, hostile(k[0], k[1])...)
	}
	var all []plan.ProposedStep
	for i, s := range steps {
		all = append(all, step(s, "test -f "+s, steps[max(0, i-1):i]...))
	}
	w := newWorld(t, append(rules, planned(all...))...)
	home := ""
	for _, e := range w.env {
		if v, ok := strings.CutPrefix(e, "HOME="); ok {
			home = v
		}
	}
	if err := os.MkdirAll(filepath.Join(home, ".npm/_cacache/content-v2"), 0o700); err != nil {
		t.Fatal(err)
	}
	source := t.TempDir()
	put(t, source, "package-lock.json", "{}\n")
	log := filepath.Join(t.TempDir(), "calls")
	cmd := w.command("start", "hands", "Do it all", "--from", source, "--caches", "npm")
	cmd.Args = append([]string{"strace", "-f", "--seccomp-bpf", "-qq", "-y", "-v", "-s", "4096", "-o", log, "-e", "signal=none", "-e",
		"trace=open,openat,openat2,creat,execve,execveat,clone,clone3,fork,vfork,mkdir,mkdirat,rename,renameat,renameat2,link,linkat,symlink,symlinkat,unlink,unlinkat,rmdir,chmod,fchmodat,chown,lchown,fchownat,truncate,utimensat,mknod,mknodat,chdir"}, cmd.Args...)
	path, err := exec.LookPath("strace")
	if err != nil {
		t.Fatal(err)
	}
	cmd.Path = path
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s%s", err, out, w.history())
	}
	clones := filepath.Join(w.root, "autoagent-missions", "hands")
	trace := readCalls(t, log)
	mine := func(path string) bool {
		return strings.HasPrefix(path, clones+"/") && !strings.HasPrefix(path, clones+"/repo.git")
	}
	seen, bad := trace.judge(mine)
	if seen < 20 {
		t.Errorf("only %d system calls of ours in what agents write were seen: is the trace read right?", seen)
	}
	for i, b := range bad {
		if i == 40 {
			t.Errorf("and %d more", len(bad)-i)
			break
		}
		t.Error(b)
	}
	// Who judges must see what would be wrong.
	clone := w.store("hands").Clone("codebuilder-1")
	for _, wrong := range []call{
		{name: "openat", args: `AT_FDCWD</>, "` + clone + `/.autoagent/handoff.md", O_RDONLY|O_NOFOLLOW) = 7`},
		{name: "openat", args: `7<` + clone + `>, "handoff.md", O_RDONLY|O_CLOEXEC) = 7`},
		{name: "unlinkat", args: `7<` + clone + `>, "a/b", 0) = 0`},
		{name: "chmod", args: `"` + clone + `/x", 0700) = 0`},
		{name: "execve", args: `"` + clone + `/x", ["x"], []) = 0`},
	} {
		wrong.pid = trace.lines[0].pid
		forged := trace
		forged.lines = append(slices.Clip(trace.lines), wrong)
		if _, found := forged.judge(mine); len(found) != len(bad)+1 {
			t.Errorf("it was not seen: %s", wrong.text())
		}
	}
	for _, dir := range []string{w.store("hands").Dir(), w.store("hands").Logs(), w.store("hands").Repo()} {
		grep := exec.Command("grep", "-rl", leakMark, dir)
		if out, _ := grep.Output(); len(out) > 0 && !strings.Contains(string(out), "stream.jsonl") {
			t.Errorf("what a link led to was read: %s", out)
		}
	}
}

// calls are the system calls of a trace, and who made whom.
type calls struct {
	lines   []call
	parents map[string]string // by pid, of processes that one outside of a cell made or could have
}

type call struct{ pid, name, args string }

var (
	callLine = regexp.MustCompile(`^(\d+) +(\w+)\((.*)$`)
	madeLine = regexp.MustCompile(`^(\d+) +(?:<\.\.\. )?(?:clone|clone3|fork|vfork)(?:\(| resumed).* = (\d+)(?:<.*>)?$`)
	quoted   = regexp.MustCompile(`"((?:[^"\\]|\\.)*)"`)
	atFolder = regexp.MustCompile(`(?:AT_FDCWD|\b\d+)<([^>]*)>, "((?:[^"\\]|\\.)*)"`)
)

func readCalls(t *testing.T, log string) calls {
	t.Helper()
	f, err := os.Open(log)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	c := calls{parents: map[string]string{}}
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		if m := madeLine.FindStringSubmatch(lines.Text()); m != nil {
			c.parents[m[2]] = m[1]
		}
		if m := callLine.FindStringSubmatch(lines.Text()); m != nil {
			c.lines = append(c.lines, call{m[1], m[2], m[3]})
		}
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return c
}

// judge returns how many calls outside of cells were about something below a folder that a cell could have written by then, and
// those that could have been led elsewhere. Such a folder is what a cell before had bound for writing.
func (c calls) judge(mine func(path string) bool) (seen int, bad []string) {
	first := c.lines[0].pid
	inside := map[string]bool{}
	var outside func(pid string) bool
	outside = func(pid string) bool {
		if inside[pid] {
			return false
		}
		if pid == first {
			return true
		}
		parent, ok := c.parents[pid] // one in a PID namespace of its own has another number there and is not found
		return ok && outside(parent)
	}
	var written []string
	below := func(path string) (parts int, ok bool) {
		for _, w := range written {
			if path == w {
				return 0, true
			}
			if rest, ok := strings.CutPrefix(path, w+"/"); ok {
				return strings.Count(strings.TrimSuffix(rest, "/"), "/") + 1, true
			}
		}
		return 0, false
	}
	for _, l := range c.lines {
		if !outside(l.pid) {
			continue
		}
		paths := quoted.FindAllStringSubmatch(l.args, -1)
		if strings.HasPrefix(l.name, "exec") && len(paths) > 0 {
			if _, in := below(paths[0][1]); in {
				bad = append(bad, "run: "+l.text())
			}
			if filepath.Base(paths[0][1]) == "bwrap" && !strings.Contains(l.args, "ENOENT") {
				inside[l.pid] = true
				for i, p := range paths {
					if p[1] == "--bind" && i+1 < len(paths) && mine(paths[i+1][1]) && !slices.Contains(written, paths[i+1][1]) {
						written = append(written, paths[i+1][1])
					}
				}
			}
			continue
		}
		if strings.HasPrefix(l.name, "clone") {
			continue
		}
		type use struct {
			parts int
			in    bool
		}
		var uses []use
		rest := l.args
		for _, m := range atFolder.FindAllStringSubmatch(l.args, -1) {
			rest = strings.Replace(rest, m[0], "", 1)
			folder, name := m[1], m[2]
			if filepath.IsAbs(name) {
				folder, name = "/", name[1:]
			}
			total, in := below(filepath.Join(folder, name))
			before, was := below(folder) // what is open already cannot be led elsewhere
			if strings.HasPrefix(name, "..") || strings.Contains(name, "/..") {
				before, total, in = 0, 99, in || was
			}
			if was {
				total -= before
			}
			uses = append(uses, use{total, in})
		}
		for _, m := range quoted.FindAllStringSubmatch(rest, -1) {
			if filepath.IsAbs(m[1]) {
				parts, in := below(m[1])
				uses = append(uses, use{parts, in})
			}
		}
		for _, u := range uses {
			if !u.in {
				continue
			}
			seen++
			follows := strings.HasPrefix(l.name, "open") || l.name == "creat" || strings.HasPrefix(l.name, "chmod") || strings.HasPrefix(l.name, "fchmodat") || l.name == "chown" || l.name == "truncate" || l.name == "chdir"
			safe := strings.Contains(l.args, "NOFOLLOW") || strings.Contains(l.args, "O_EXCL") || strings.Contains(l.args, "RESOLVE_BENEATH") || strings.Contains(l.args, "RESOLVE_NO_SYMLINKS")
			if u.parts > 1 && !strings.Contains(l.args, "RESOLVE_") || u.parts == 1 && follows && !safe {
				bad = append(bad, fmt.Sprintf("%d elements: %s", u.parts, l.text()))
			}
		}
	}
	return seen, bad
}

func (c call) text() string { return fmt.Sprintf("%s %s(%.300s", c.pid, c.name, c.args) }
