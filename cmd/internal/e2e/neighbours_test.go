package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestMissionsOfOneRepository: two missions of one repository work at the same time, each in clones of its own. Both deliver, each
// a branch of its own; what one removes is none of the other's, and the repository's work tree stays as it was.
func TestMissionsOfOneRepository(t *testing.T) {
	t.Parallel()
	shop := t.TempDir()
	git(t, shop, "init", "-q", "-b", "trunk")
	put(t, shop, "base", "base\n")
	git(t, shop, "add", "-A")
	git(t, shop, "-c", "user.name=a", "-c", "user.email=a@host.example", "commit", "-qm", "base")
	put(t, shop, "uncommitted", "mine\n")
	w := newWorld(t, planned(step("one", "test -f one")), works("one", bash(`pwd >> one; sleep 1; test "$(wc -l < one)" = 1`)))
	ids := []string{"shop", "shop-2"}
	ends := map[string]func() (int, string){}
	for _, id := range ids {
		_, ends[id] = w.background("start", id, "One step", "--from", shop, "--from-head")
	}
	for _, id := range ids {
		if code, out := ends[id](); code != 0 {
			t.Fatalf("%s: %d\n%s", id, code, out)
		}
	}
	w.must(0, "deliver", "shop")
	w.must(0, "remove", "shop")
	for _, dir := range []string{w.store("shop-2").Dir(), w.store("shop-2").Repo(), w.store("shop-2").Clone("codebuilder-1")} {
		if _, err := os.Stat(dir); err != nil {
			t.Errorf("the other's: %v", err)
		}
	}
	w.must(0, "deliver", "shop-2")
	if got := strings.Fields(git(t, shop, "for-each-ref", "--format=%(refname:short)", "refs/heads")); strings.Join(got, " ") != "autoagent/shop autoagent/shop-2 trunk" {
		t.Errorf("branches %q", got)
	}
	for _, id := range ids {
		if got := strings.Count(git(t, shop, "show", "autoagent/"+id+":one")+"\n", "\n"); got != 1 {
			t.Errorf("%s: %d runs wrote into one file", id, got)
		}
	}
	if b, err := os.ReadFile(filepath.Join(shop, "uncommitted")); err != nil || string(b) != "mine\n" || git(t, shop, "status", "--porcelain") != "?? uncommitted" {
		t.Errorf("the work tree: %q, %v, %s", b, err, git(t, shop, "status", "--porcelain"))
	}
}
