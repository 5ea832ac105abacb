package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"example.com/AutoAgentProject/core/scriptmodel"
)

// work is what an agent and a verify command must be able to do behind the walls: a script each, by the programs it needs.
var work = []struct {
	name, needs, script string
	long                bool // only with AUTOAGENT_FULL
}{
	{"git", "git", `mkdir gitwork && cd gitwork && git init -q -b main . && echo x >x && git add -A && git -c user.name=a -c user.email=a@host.example commit -qm mine && git log -1 && git checkout -qb side && git gc -q && git clone -q . ../gitclone`, false},
	{"go build and test", "go", `mkdir -p gowork && cd gowork && printf 'module example.com/x\n\ngo 1.24\n' >go.mod &&
printf 'package x\nimport ("os"; "testing")\nfunc TestA(t *testing.T) { if _, err := os.MkdirTemp("", "x"); err != nil { t.Fatal(err) } }\n' >a_test.go &&
go vet ./... && go test ./...`, true},
	{"npm install from a folder, node tests with a server", "npm", `mkdir -p npmwork dep && echo '{"name":"dep","version":"1.0.0","main":"i.js"}' >dep/package.json && echo 'module.exports=42' >dep/i.js && cd npmwork &&
echo '{"name":"x","version":"1.0.0","dependencies":{"dep":"file:../dep"},"scripts":{"test":"node --test"}}' >package.json &&
echo 'const t=require("node:test"),h=require("http"),{Worker}=require("worker_threads");t("a",async()=>{if(require("dep")!==42)throw 1;const s=h.createServer((q,r)=>r.end("x"));await new Promise(r=>s.listen(0,r));await fetch("http://127.0.0.1:"+s.address().port);s.close();require("child_process").execSync("true");await new Promise(r=>new Worker("1",{eval:true}).on("exit",r))})' >a.test.js &&
npm install --offline --no-audit --no-fund && npm test`, true},
	{"a C compiler", "gcc", `echo 'int main(void){return 0;}' >a.c && gcc -O2 -o a.out a.c && ./a.out`, false},
	{"python with processes, threads and a database", "python3", `printf 'import multiprocessing,subprocess,threading,sqlite3,tempfile,asyncio\ndef f(x): return x\nif __name__ == "__main__":\n    assert multiprocessing.Pool(2).map(f, [1, 2]) == [1, 2]\n    subprocess.run(["true"], check=True)\n    threading.Thread(target=f, args=(1,)).start()\n    sqlite3.connect(tempfile.mktemp()).execute("create table a(b)")\n    asyncio.run(asyncio.sleep(0))\n' >p.py && python3 p.py`, false},
	{"temporary files", "sh", `f=$(mktemp) && echo x >"$f" && d=$(mktemp -d) && mv "$f" "$d/" && echo x >/dev/shm/x && echo x >/var/tmp/x`, false},
	{"a server of its own", "python3", `python3 -c 'import http.server as h, threading, urllib.request as u; s = h.HTTPServer(("127.0.0.1", 0), h.SimpleHTTPRequestHandler); threading.Thread(target=s.serve_forever, daemon=True).start(); u.urlopen("http://localhost:%d/" % s.server_port)'`, false},
	{"make, tar, a pipe, a lock", "make", `printf 'all:\n\techo x | cat | tar cf a.tar --files-from=/dev/null\n' >Makefile && flock . make -j2`, false},
}

// TestWork: what a mission has to do still works behind the walls, in a run and in a verify command.
func TestWork(t *testing.T) {
	t.Parallel()
	script := "ok=1; : >work.txt\n"
	for _, w := range work {
		if w.long && os.Getenv("AUTOAGENT_FULL") == "" {
			continue
		}
		if _, err := exec.LookPath(w.needs); err != nil {
			t.Logf("%s is not installed: %s is NOT tested", w.needs, w.name)
			continue
		}
		script += "if ( " + strings.ReplaceAll(w.script, "\n", " ") + " ) >out.txt 2>&1; then echo 'works: " + w.name + "'; else echo 'FAILS: " + w.name + "'; tail -n 20 out.txt; ok=0; fi >>work.txt\n"
	}
	source := t.TempDir()
	put(t, source, "verify.sh", script+"cat work.txt; [ $ok = 1 ]\n")
	w := newWorld(t, planned(step("work", "sh verify.sh")), works("work", patient("sh verify.sh; cp work.txt of-the-run.txt; rm -rf gitwork gitclone gowork npmwork dep a.c a.out p.py server.txt Makefile a.tar out.txt work.txt; git checkout -q . ; true")))
	w.must(0, "start", "work", "Work", "--from", source)
	b, err := os.ReadFile(filepath.Join(w.store("work").Result(), "of-the-run.txt"))
	if err != nil || strings.Contains(string(b), "FAILS") || strings.Count(string(b), "works: ") < 5 {
		t.Errorf("in the run: %v\n%s", err, b)
	}
}

// patient is bash with as much time as the agent program gives.
func patient(command string) scriptmodel.Step {
	s := bash(command)
	s.Content[0]["input"].(block)["timeout"] = 600_000
	return s
}
