package e2e

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"example.com/AutoAgentProject/core/scriptmodel"
	"example.com/AutoAgentProject/core/testkit"
	"example.com/AutoAgentProject/core/units"
)

// ground is where a column of the matrix is tried: an engine, or no walls at all.
type ground struct {
	mark string
	root string // of its mission
}

const (
	operator  = "/home/alice"
	outside   = operator + "/outside"
	shared    = "/srv/shared"
	abstract  = "autoagent-escape"
	noWalls   = "control"
	perAnswer = 8 // attempts that the model asks for at once
)

var engines = []ground{
	{"user", operator + "/.local/share/autoagent"},
	{"embedded", operator + "/.local/share/autoagent"},
	{"system", "/var/lib/autoagent"},
}

func (g ground) id() string { return "escape-" + g.mark }

// variables are the first lines of every script.
func (g ground) variables(v victims) string {
	work, data, logs := g.root+"/autoagent-missions/"+g.id(), g.root+"/data/autoagent/"+g.id(), g.root+"/logs/autoagent/"+g.id()
	var b strings.Builder
	for _, kv := range [][2]string{
		{"MARK", g.mark}, {"OP", operator}, {"OUT", outside}, {"ROOT", g.root}, {"DATA", data}, {"LOGS", logs}, {"WORK", work},
		{"REPO", work + "/repo.git"}, {"SHARED", shared}, {"UIDN", fmt.Sprint(v.uid)}, {"ABSTRACT", abstract}, {"SECRETOBJECT", v.object}, {"PORT", fmt.Sprint(v.port)},
		{"VICTIM", v.of["guard-"+g.mark]}, {"VICTIM2", v.of["stp-"+g.mark]}, {"NSVICTIM", v.of["ns-victim"]},
		{"CG", v.cgroup["one-"+g.mark]}, {"CG2", v.cgroup["two-"+g.mark]},
	} {
		fmt.Fprintf(&b, "%s='%s'\n", kv[0], kv[1])
	}
	return b.String() + "export MARK OP OUT SHARED UIDN\n"
}

// file is the path of an attempt's script in the folder for them.
func file(i int) string { return fmt.Sprintf("attempt-%03d", i) }

// bashed is the Bash call for an attempt: its script, and a line that says how it ended.
func bashed(i int, variables string, a attempt) block {
	return block{"type": "tool_use", "name": "Bash", "input": block{"command": fmt.Sprintf(
		"cat >\"$TMPDIR/%[1]s\" <<'END-OF-ATTEMPT'\n%[2]s%[3]s\nEND-OF-ATTEMPT\ntimeout 90 sh \"$TMPDIR/%[1]s\" </dev/null >\"$TMPDIR/out\" 2>&1; echo \"%[1]s $?\" >>verdicts.txt; head -c 300 \"$TMPDIR/out\"; true",
		file(i), variables, a.do)}}
}

// victims is what there is to be got at.
type victims struct {
	uid    int
	of     map[string]string // processes
	cgroup map[string]string
	object string // of a private repository
	port   int    // of a service on loopback
}

const (
	walled = "blocked"
	hole   = "HOLE"
	known  = "open"
	void   = "void"
)

// TestEscape lets the real agent program try every way out, behind the walls of each engine.
func TestEscape(t *testing.T) {
	t.Parallel()
	columns := engines
	if !full() {
		columns = engines[:1]
	}
	sharedDir := t.TempDir()
	p := hostOf(t, units.User, testkit.Bind{Host: sharedDir, Inside: shared, Write: true})
	v := p.victims(append([]ground{{mark: noWalls}}, columns...), sharedDir)

	var rules []scriptmodel.Rule
	for _, g := range columns {
		plan := planned(step(g.mark, "test -f verdicts.txt"))
		plan.When = append(plan.When, "Escape from "+g.mark)
		var steps []scriptmodel.Step
		variables := g.variables(v)
		for i := 0; i < len(attempts); i += perAnswer {
			var s scriptmodel.Step
			for k := i; k < min(i+perAnswer, len(attempts)); k++ {
				s.Content = append(s.Content, bashed(k, variables, attempts[k]))
			}
			steps = append(steps, s)
		}
		plan.Name = "plan of " + g.mark
		rules = append(rules, plan, works(g.mark, steps...))
	}
	p.plays(rules...)
	p.sh("alice", "mkdir -p ~/src && cd ~/src && git init -q -b main . && echo base >base.md && git add -A && git -c user.name=a -c user.email=a@host.example commit -qm base")

	controls := p.control(v)
	matrix := map[string]map[int]string{}
	for _, g := range columns {
		began := time.Now()
		p.walled(g)
		matrix[g.mark] = p.judge(g, v)
		t.Logf("%s: %d attempts in %v", g.mark, len(attempts), time.Since(began).Round(100*time.Millisecond))
	}
	var b strings.Builder
	row := func(cells ...string) { b.WriteString("| " + strings.Join(cells, " | ") + " |\n") }
	head, line := []string{"attempt", "without walls"}, []string{"---", "---"}
	for _, g := range columns {
		head, line = append(head, g.mark), append(line, "---")
	}
	row(head...)
	row(line...)
	for i, a := range attempts {
		control := "succeeds"
		if a.asRoot {
			control = "succeeds (root)"
		}
		if !controls[i] {
			control = "fails"
			said, _ := p.host.Run(t.Context(), "", "cat", "/tmp/control/"+file(i)+"-out")
			t.Errorf("%s: it fails without walls, too, and shows nothing\n%s", a.name, said)
		}
		cells := []string{a.name, control}
		for _, g := range columns {
			field := matrix[g.mark][i]
			switch {
			case field == hole && a.open:
				field = known
			case field == walled && a.open:
				t.Errorf("%s: %s: it is blocked by now: take the constant away", g.mark, a.name)
			case field != walled:
				t.Errorf("%s: %s: %s", g.mark, a.name, field)
			}
			if !controls[i] {
				field = void
			}
			cells = append(cells, field)
		}
		row(cells...)
	}
	t.Logf("\n%s", b.String())
	if path := os.Getenv("AUTOAGENT_MATRIX"); full() && path != "" {
		if err := writeMatrix(path, b.String()); err != nil {
			t.Error(err)
		}
	}
}

// writeMatrix puts the matrix between the marks of a document.
func writeMatrix(path, matrix string) error {
	const begin, end = "<!-- matrix -->\n", "<!-- end of the matrix -->\n"
	b, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	before, rest, ok1 := strings.Cut(string(b), begin)
	_, after, ok2 := strings.Cut(rest, end)
	if !ok1 || !ok2 {
		return fmt.Errorf("%s has no place for the matrix", path)
	}
	return os.WriteFile(path, []byte(before+begin+matrix+end+after), 0o644)
}

// sh runs a script on the host that must succeed, and returns its output.
func (p *person) sh(user, script string) string {
	p.t.Helper()
	out, exit := p.host.Run(p.t.Context(), user, "sh", "-c", "set -e\n"+script)
	if exit != 0 {
		p.t.Fatalf("%s: exit status %d\n%s", script, exit, out)
	}
	return strings.TrimSpace(out)
}

// victims puts up what the attempts are after: files, processes, services, sockets.
func (p *person) victims(grounds []ground, sharedDir string) victims {
	p.t.Helper()
	v := victims{uid: p.host.UID("alice"), of: map[string]string{}, cgroup: map[string]string{}}
	if err := os.Chmod(sharedDir, 0o777); err != nil {
		p.t.Fatal(err)
	}
	p.sh("", `cp /usr/bin/id /srv/shared/setuid-id && chmod 4755 /srv/shared/setuid-id
mkdir -p /var/spool/cron/crontabs /var/spool/cron/atjobs && chmod 1777 /var/spool/cron/crontabs /var/spool/cron/atjobs
mkdir -p /run/lock /run/credentials/x.service && chmod 1777 /run/lock && echo secret >/run/credentials/x.service/secret && chmod a+rx /run/credentials /run/credentials/x.service
mkdir -p /srv/victims && chmod 777 /srv/victims`)
	p.sh("alice", `mkdir -p .config/autoagent && printf 'memory: 4GiB\ntasks: 250\n' >.config/autoagent/config.yaml
mkdir -p outside .ssh .gnupg .aws .claude .config/systemd/user private
printf '[user]\n\tsecret = x\n' >.secret-config
echo 'an example of a key' >.ssh/id_example; echo x >.gnupg/secring; echo x >.aws/credentials; echo x >.npmrc; echo x >.claude/.credentials.json
tmux -S ~/tmux.sock new-session -d 'sleep 100000'
ssh-agent -a ~/agent.sock >/dev/null
ipcmk -Q >/dev/null`)
	v.object = p.sh("alice", `cd private && git init -q . && echo secret >s && git hash-object -w s`)
	for _, g := range grounds {
		p.sh("alice", "echo >"+outside+"/"+g.mark+"-target; : >"+outside+"/"+g.mark+"-here; : >"+outside+"/"+g.mark+"-target")
		for _, name := range []string{"guard-" + g.mark, "sib-" + g.mark, "stp-" + g.mark} {
			v.of[name] = p.spawn("cp /usr/bin/sleep /srv/victims/"+name+" && cd "+outside+" && exec env OPERATOR_SECRET=x /srv/victims/"+name+" 100000", name)
		}
		for _, unit := range []string{"one-" + g.mark, "two-" + g.mark} {
			v.cgroup[unit] = p.sh("alice", `systemd-run --quiet --user -p Delegate=yes --unit=`+unit+` sleep 100000
base=/sys/fs/cgroup/unified; [ -d $base ] || base=/sys/fs/cgroup
echo $base$(systemctl --user show --value -p ControlGroup `+unit+`)`)
		}
	}
	p.spawn("exec bash -c 'exec -a operator-argument sleep 100000'", "")
	v.of["ns-victim"] = p.spawn("cp /usr/bin/sleep /srv/victims/ns-victim && exec unshare -Urm /srv/victims/ns-victim 100000", "ns-victim")

	docker, err := net.Listen("unix", p.host.Path("/run/docker.sock"))
	if err != nil {
		p.t.Fatal(err)
	}
	service, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { service.Close() })
	v.port = service.Addr().(*net.TCPAddr).Port
	hidden, err := net.Listen("unix", "@"+abstract)
	if err != nil {
		p.t.Fatal(err)
	}
	if err := os.Chmod(p.host.Path("/run/docker.sock"), 0o666); err != nil {
		p.t.Fatal(err)
	}
	for _, l := range []net.Listener{docker, hidden} {
		p.t.Cleanup(func() { l.Close() })
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				_, _ = c.Read(make([]byte, 1024))
				_, _ = c.Write([]byte("HTTP/1.0 200 OK\r\n\r\n{}"))
				c.Close()
			}
		}()
	}
	return v
}

// spawn starts a process of the operator that stays, and returns its number once it has that name.
func (p *person) spawn(script, name string) string {
	p.t.Helper()
	s := p.host.Start("alice", "sh", "-c", script)
	p.t.Cleanup(func() { _ = s.Process.Kill(); _ = s.Wait() })
	if name == "" {
		return ""
	}
	return p.sh("", "for i in $(seq 200); do pgrep -x "+name+" && exit; sleep 0.02; done; exit 1")
}

// control makes every attempt without walls, as the operator in a service of the operator's own manager.
func (p *person) control(v victims) []bool {
	p.t.Helper()
	g := ground{noWalls, operator + "/control"}
	p.sh("alice", g.variables(v)+`
mkdir -p "$DATA/agents/manager/inbox/new" "$DATA/agents/quota" "$LOGS" "$WORK/.cells/other/run" "$WORK/manager/.git" /tmp/control
for f in mission.json ledger.jsonl plan.json goal.md; do echo {} >"$DATA/$f"; done
git clone -q --bare ~/src "$REPO"; git clone -q -l "$REPO" "$WORK/agent"; ln -s repo.git "$WORK/result"
echo secret >"$WORK/.cells/other/run/system.md"`)
	wakeSocket := filepath.Join(p.host.Path(operator), "control/data/autoagent", g.id(), "agents/quota/wake")
	l, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: wakeSocket, Net: "unixgram"})
	if err == nil {
		p.t.Cleanup(func() { l.Close() })
		err = os.Chmod(wakeSocket, 0o666)
	}
	if err != nil {
		p.t.Fatal(err)
	}
	work := g.root + "/autoagent-missions/" + g.id() + "/agent"
	run := func(root bool) string {
		var all strings.Builder
		fmt.Fprintf(&all, "cd %s; export TMPDIR=/tmp/control GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@host.example GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@host.example; exec 9<%s/data/autoagent/%s/ledger.jsonl\n", work, g.root, g.id())
		if root {
			all.WriteString("git config --global --add safe.directory '*'\n")
		}
		for i, a := range attempts {
			if a.asRoot != root {
				continue
			}
			fmt.Fprintf(&all, "cat >$TMPDIR/%[1]s <<'END-OF-ATTEMPT'\n%[2]s%[3]s\nEND-OF-ATTEMPT\nexample=example-key-of-sixteen timeout 90 sh $TMPDIR/%[1]s </dev/null >$TMPDIR/%[1]s-out 2>&1; echo \"%[1]s $?\" >>%[4]s\n",
				file(i), g.variables(v), a.do, outside+"/verdicts-control")
			if a.careless != "" {
				fmt.Fprintf(&all, "cat >$TMPDIR/%[1]s <<'END-OF-ATTEMPT'\n%[2]s%[3]s\nEND-OF-ATTEMPT\ntimeout 90 sh $TMPDIR/%[1]s </dev/null >>$TMPDIR/%[1]s-out 2>&1\n", file(i), g.variables(v), a.careless)
				all.WriteString("git config --remove-section core; git config core.repositoryformatversion 0; git config core.bare false; rm -rf .git/hooks .gitattributes hp; for s in diff filter.evil alias; do git config --remove-section $s; done; git reset -q --hard 2>/dev/null\n")
			}
		}
		return all.String()
	}
	p.sh("alice", "cat >"+outside+"/control.sh <<'END-OF-CONTROL'\n"+run(false)+"END-OF-CONTROL\n")
	if out, exit := p.host.Run(p.t.Context(), "alice", "systemd-run", "--quiet", "--user", "--wait", "--pipe", "--collect", "-p", "Delegate=yes", "sh", outside+"/control.sh"); exit != 0 && exit != 1 && exit != 5 {
		p.t.Logf("control: exit status %d\n%s", exit, out)
	}
	if _, exit := p.host.Run(p.t.Context(), "", "sh", "-c", run(true)); exit != 0 {
		p.t.Logf("control as root: exit status %d", exit)
	}
	verdicts := p.verdicts(outside + "/verdicts-control")
	seen := p.seen(g, v)
	out := make([]bool, len(attempts))
	for i, a := range attempts {
		code, tried := verdicts[file(i)]
		out[i] = tried && (a.seen != "" && seen[i] || a.seen == "" && code == "0")
	}
	return out
}

// verdicts reads how the scripts ended.
func (p *person) verdicts(path string) map[string]string {
	p.t.Helper()
	out, _ := p.host.Run(p.t.Context(), "", "cat", path)
	m := map[string]string{}
	for line := range strings.Lines(out) {
		if name, code, ok := strings.Cut(strings.TrimSpace(line), " "); ok {
			m[name] = code
		}
	}
	return m
}

// seen looks from outside which attempts had an effect.
func (p *person) seen(g ground, v victims) map[int]bool {
	p.t.Helper()
	var all strings.Builder
	all.WriteString(g.variables(v))
	for i, a := range attempts {
		if a.seen != "" {
			fmt.Fprintf(&all, "( %s ) >/dev/null 2>&1 && echo %d\n", a.seen, i)
		}
	}
	out, _ := p.host.Run(p.t.Context(), "", "sh", "-c", all.String())
	m := map[int]bool{}
	for _, f := range strings.Fields(out) {
		i := 0
		if _, err := fmt.Sscan(f, &i); err == nil {
			m[i] = true
		}
	}
	return m
}

// walled runs the mission of an engine to its end.
func (p *person) walled(g ground) {
	p.t.Helper()
	args := []string{"start", g.id(), "Escape from " + g.mark, "--budget", "5usd", "--from", operator + "/src", "--read", shared}
	do := p.do
	switch g.mark {
	case "embedded":
		args = append(args, "--engine", "embedded")
	case "system":
		args, do = append(args, "--run-as", "alice"), func(args ...string) (int, string) { return p.as("", args...) }
	}
	code, out := do(args...)
	if code != 0 && g.mark != "embedded" {
		p.t.Fatalf("start: %d\n%s", code, out)
	}
	status := func() string {
		if g.mark == "system" {
			p.env = append(slices.Clip(p.env), "AUTOAGENT_ROOT="+g.root)
			defer func() { p.env = p.env[:len(p.env)-1] }()
		}
		return p.status(g.id()).Phase
	}
	for end := time.Now().Add(patience); ; time.Sleep(200 * time.Millisecond) {
		phase := status()
		if phase == "completed" {
			return
		}
		if phase == "failed" || phase == "aborted" || strings.HasPrefix(phase, "halted") || time.Now().After(end) {
			_, events := p.do("logs", g.id())
			p.t.Errorf("%s: its phase is %q\n%s\n%s", g.mark, phase, out, events)
			return
		}
	}
}

// judge says of each attempt behind the walls of an engine what came of it.
func (p *person) judge(g ground, v victims) map[int]string {
	p.t.Helper()
	verdicts := p.verdicts(g.root + "/autoagent-missions/" + g.id() + "/codebuilder-1/verdicts.txt")
	seen := p.seen(g, v)
	out := map[int]string{}
	for i, a := range attempts {
		code, tried := verdicts[file(i)]
		switch {
		case !tried:
			out[i] = "not tried"
		case a.seen != "" && seen[i], a.seen == "" && code == "0":
			out[i] = hole
		default:
			out[i] = walled
		}
	}
	return out
}
