package cell

import (
	"os"
	"testing"
)

func TestMain(m *testing.M) {
	ShimMain()
	os.Exit(m.Run())
}
func TestX(t *testing.T) {
	r, err := Check(t.Context())
	t.Logf("%+v %v", r, err)
	d := t.TempDir()
	os.MkdirAll(d+"/data/m", 0755)
	os.MkdirAll(d+"/ms/a", 0755)
	a, err := Probe(t.Context(), d+"/data", d+"/ms/a")
	for _, x := range a {
		t.Logf("%+v", x)
	}
	t.Log(err)
	o, err := Run(t.Context(), Spec{Argv: []string{"sh", "-c", "id; env; ls -la / /etc /dev /tmp /proc/self/fd; cat /proc/self/status /proc/self/limits; cat /proc/self/mounts; ps ax"}, Env: []string{"PATH=/usr/bin", "A=b"}}, 20000)
	t.Logf("%s %+v %v", o.Text, o.Status, err)
}
func BenchmarkCell(b *testing.B) {
	for b.Loop() {
		c, err := Start(b.Context(), Spec{Argv: []string{"/bin/true"}})
		if err != nil {
			b.Fatal(err)
		}
		if s, err := c.Wait(); err != nil || s.Exit != 0 {
			b.Fatal(s, err)
		}
	}
}
