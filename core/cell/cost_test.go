package cell

import (
	"os/exec"
	"testing"
	"time"
)

// BenchmarkWalls is what the walls cost: the same work without and within, in turns. A start costs a fixed time; system calls of the
// work pass the filter and Landlock. core/claude measures a whole run.
func BenchmarkWalls(b *testing.B) {
	needBwrap(b)
	for _, w := range []struct {
		name, script string
		closed       []uint16
	}{
		{"start", "true", nil},
		{"start with closed ports", "true", []uint16{8080}},
		{"work", `i=0; while [ $i -lt 300 ]; do i=$((i+1)); echo x >"$HOME/f$i"; cat "$HOME/f$i" >/dev/null; rm "$HOME/f$i"; done`, nil},
	} {
		b.Run(w.name, func(b *testing.B) {
			home := b.TempDir()
			var without, within time.Duration
			for b.Loop() {
				cmd := exec.Command("sh", "-c", w.script)
				cmd.Env = append(testEnv(), "HOME="+home)
				began := time.Now()
				if out, err := cmd.CombinedOutput(); err != nil {
					b.Fatalf("%v: %s", err, out)
				}
				without += time.Since(began)
				s := shell(w.script, "")
				s.Home, s.Closed = home, w.closed
				began = time.Now()
				if o, err := Run(b.Context(), s, 1000); err != nil || o.Status != (Status{}) {
					b.Fatalf("%v: %+v %s", err, o.Status, o.Text)
				}
				within += time.Since(began)
			}
			b.ReportMetric(float64(within)/float64(without), "within/without")
			b.ReportMetric(float64(within-without)/float64(b.N)/1e6, "ms-added")
		})
	}
}
