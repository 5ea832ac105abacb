package cell

import (
	"os/exec"
	"testing"
)

// BenchmarkWalls is what the walls cost: the same work without and within. A start costs a fixed time; system calls of the
// work pass the filter and Landlock.
func BenchmarkWalls(b *testing.B) {
	needBwrap(b)
	for _, w := range []struct{ name, script string }{
		{"start", "true"},
		{"work", `i=0; while [ $i -lt 300 ]; do i=$((i+1)); echo x >"$HOME/f$i"; cat "$HOME/f$i" >/dev/null; rm "$HOME/f$i"; done`},
	} {
		b.Run(w.name+"/without", func(b *testing.B) {
			home := b.TempDir()
			for b.Loop() {
				cmd := exec.Command("sh", "-c", w.script)
				cmd.Env = append(testEnv(), "HOME="+home)
				if out, err := cmd.CombinedOutput(); err != nil {
					b.Fatalf("%v: %s", err, out)
				}
			}
		})
		b.Run(w.name+"/within", func(b *testing.B) {
			home := b.TempDir()
			for b.Loop() {
				s := shell(w.script, "")
				s.Home = home
				if o, err := Run(b.Context(), s, 1000); err != nil || o.Status != (Status{}) {
					b.Fatalf("%v: %+v %s", err, o.Status, o.Text)
				}
			}
		})
	}
}
