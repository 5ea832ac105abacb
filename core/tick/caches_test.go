package tick

import (
	"archive/zip"
	"os"
	"path/filepath"
	"testing"

	"example.com/AutoAgentProject/core/mission"
	"example.com/AutoAgentProject/core/money"
)

// TestSharedModuleCache: without a network, a verify command builds with a module that lies in a read-only module cache.
func TestSharedModuleCache(t *testing.T) {
	need(t, "go")
	need(t, "bwrap")
	w := newWorld(t, money.NanoUSD)
	w.Mission.Path = "/usr/local/go/bin:" + w.Mission.Path
	w.begin()
	cache, dir := t.TempDir(), t.TempDir()
	at := filepath.Join(cache, "cache", "download", "example.com", "dep", "@v")
	ok(t, os.MkdirAll(at, 0o755))
	const mod = "module example.com/dep\n\ngo 1.21\n"
	for name, text := range map[string]string{
		filepath.Join(at, "list"): "v1.0.0\n", filepath.Join(at, "v1.0.0.info"): `{"Version":"v1.0.0"}`, filepath.Join(at, "v1.0.0.mod"): mod,
		filepath.Join(dir, "go.mod"):  "module example.com/x\n\ngo 1.21\n\nrequire example.com/dep v1.0.0\n",
		filepath.Join(dir, "main.go"): "package main\n\nimport \"example.com/dep\"\n\nfunc main() { println(dep.X) }\n",
	} {
		ok(t, os.WriteFile(name, []byte(text), 0o644))
	}
	f, err := os.Create(filepath.Join(at, "v1.0.0.zip"))
	ok(t, err)
	z := zip.NewWriter(f)
	for name, text := range map[string]string{"go.mod": mod, "dep.go": "package dep\n\nconst X = 1\n"} {
		out, err := z.Create("example.com/dep@v1.0.0/" + name)
		ok(t, err)
		_, err = out.Write([]byte(text))
		ok(t, err)
	}
	ok(t, z.Close())
	ok(t, f.Close())
	const command = "GOTOOLCHAIN=local GOFLAGS=-mod=mod GONOSUMDB=example.com go build -o /dev/null ."
	w.Mission.Network = mission.NetworkNone
	if good, out, err := w.Check(t.Context(), dir, command); good || err != nil {
		t.Errorf("without the cache: %v\n%s", err, out)
	}
	w.Mission.Read = []string{cache}
	if good, out, err := w.Check(t.Context(), dir, command); !good || err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
