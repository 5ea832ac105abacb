package tick

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/sha512"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

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

// registry is one of npm's with one package, as npm asks it.
func registry(t *testing.T) *httptest.Server {
	var tgz bytes.Buffer
	z := gzip.NewWriter(&tgz)
	tw := tar.NewWriter(z)
	for name, text := range map[string]string{"package/package.json": `{"name":"dep","version":"1.0.0"}`, "package/index.js": "module.exports = 42\n"} {
		ok(t, tw.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(text))}))
		_, err := tw.Write([]byte(text))
		ok(t, err)
	}
	ok(t, tw.Close())
	ok(t, z.Close())
	sum := sha512.Sum512(tgz.Bytes())
	mux := http.NewServeMux()
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	for _, name := range []string{"dep", "later"} {
		mux.HandleFunc("/"+name, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprintf(w, `{"name":%[1]q,"dist-tags":{"latest":"1.0.0"},"versions":{"1.0.0":{"name":%[1]q,"version":"1.0.0","dist":{"tarball":"%[2]s/%[1]s.tgz","integrity":"sha512-%[3]s"}}}}`,
				name, s.URL, base64.StdEncoding.EncodeToString(sum[:]))
		})
		mux.HandleFunc("/"+name+".tgz", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(tgz.Bytes()) })
	}
	return s
}

// TestSharedNPMCache: without a network, a verify command installs what lies in a cache of npm's that it cannot write, and with
// one it adds to a cache of its own.
func TestSharedNPMCache(t *testing.T) {
	need(t, "npm")
	need(t, "bwrap")
	w := newWorld(t, money.NanoUSD)
	w.begin()
	w.Mission.Network = mission.NetworkHost // the registry is on this machine
	reg := registry(t)
	filled, dir := t.TempDir(), t.TempDir()
	ok(t, os.WriteFile(filepath.Join(dir, "package.json"), []byte(`{"name":"x","version":"1.0.0","dependencies":{"dep":"1.0.0"}}`), 0o644))
	const quiet = " --no-audit --no-fund --no-update-notifier"
	// With a token in the settings and a cache in the tree, which is then moved to where only the operator is.
	good, out, err := w.Check(t.Context(), dir, "printf 'registry="+reg.URL+"/\n//"+strings.TrimPrefix(reg.URL, "http://")+"/:_authToken=example-token\n' >~/.npmrc && npm install --cache $PWD/cache"+quiet)
	if !good || err != nil {
		t.Fatalf("fill the cache: %v\n%s", err, out)
	}
	ok(t, os.Rename(filepath.Join(dir, "cache"), filepath.Join(filled, "npm")))
	cache := filepath.Join(filled, "npm", "_cacache")
	before := listing(t, cache)

	w.Mission.Network = mission.NetworkNone
	install := "rm -rf node_modules && npm ci --offline --registry " + reg.URL + quiet + ` && node -e 'if (require("dep") !== 42) throw 1'`
	if good, out, err := w.Check(t.Context(), dir, install); good || err != nil {
		t.Errorf("without the cache: %v\n%s", err, out)
	}
	w.Mission.Caches.NPM = cache
	if good, out, err := w.Check(t.Context(), dir, install); !good || err != nil {
		t.Errorf("with the cache: %v\n%s", err, out)
	}
	w.Mission.Network = mission.NetworkHost // the registry is on this machine
	if good, out, err := w.Check(t.Context(), dir, "npm install later --registry "+reg.URL+quiet+" && ls -l ~/.npm/_cacache/content-v2/sha512/*/*"); !good || err != nil {
		t.Errorf("with something new: %v\n%s", err, out)
	}
	for name, command := range map[string]string{
		"write through a link": `f=$(find ~/.npm/_cacache/content-v2 -type l | head -n 1) && test -s "$f" && ! sh -c "echo x >'$f'"`,
		"find a token":         `! grep -r example-token ~ ` + cache + ` && ! ls ` + filepath.Dir(cache) + `/_logs && ! ls ` + cache + `/index-v5`,
	} {
		if good, out, err := w.Check(t.Context(), dir, command); !good || err != nil {
			t.Errorf("%s: %v\n%s", name, err, out)
		}
	}
	if after := listing(t, cache); after != before {
		t.Errorf("the cache was changed:\n%s\n%s", before, after)
	}
}

// TestLockedSums: checksums are read beneath the tree only, whatever stands in place of a lock file.
func TestLockedSums(t *testing.T) {
	dir, outside := t.TempDir(), t.TempDir()
	line := func(n byte) []byte {
		return fmt.Appendf(nil, `{"a":{"integrity": "sha512-%s"}, "b":{"integrity":"sha1-xxxx"}}`, base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{n}, 64)))
	}
	ok(t, os.WriteFile(filepath.Join(outside, "package-lock.json"), line(0xee), 0o644))
	ok(t, os.Symlink(outside, filepath.Join(dir, "a-link")))
	for i, name := range []string{"web", "fifo", "link", "folder", "huge"} {
		ok(t, os.Mkdir(filepath.Join(dir, name), 0o755))
		file := filepath.Join(dir, name, "package-lock.json")
		switch i {
		case 0:
			ok(t, os.WriteFile(file, append(line(1), line(1)...), 0o644))
		case 1:
			ok(t, unix.Mkfifo(file, 0o644))
		case 2:
			ok(t, os.Symlink(filepath.Join(outside, "package-lock.json"), file))
		case 3:
			ok(t, os.Mkdir(file, 0o755))
		case 4:
			ok(t, os.WriteFile(file, line(0xdd), 0o644))
			ok(t, os.Truncate(file, mostLocked+1))
		}
	}
	ok(t, os.WriteFile(filepath.Join(dir, "npm-shrinkwrap.json"), line(2), 0o644))
	if got, want := lockedSums(dir), []string{strings.Repeat("01", 64), strings.Repeat("02", 64)}; !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}

// listing is all that is below a folder, with sizes and times.
func listing(t *testing.T, dir string) string {
	t.Helper()
	var b strings.Builder
	ok(t, filepath.Walk(dir, func(path string, info os.FileInfo, err error) error {
		ok(t, err)
		fmt.Fprintln(&b, path, info.Mode(), info.Size(), info.ModTime().UnixNano())
		return nil
	}))
	return b.String()
}

// BenchmarkSeed is what a lock file of 1,000 packages costs each run and verify command where a cache of npm's is shared.
func BenchmarkSeed(b *testing.B) {
	cache, dir := filepath.Join(b.TempDir(), "_cacache"), b.TempDir()
	var lock bytes.Buffer
	for i := range 1000 {
		sum := sha512.Sum512([]byte{byte(i), byte(i >> 8)})
		fmt.Fprintf(&lock, "{\"integrity\": \"sha512-%s\"}\n", base64.StdEncoding.EncodeToString(sum[:]))
		hex := fmt.Sprintf("%x", sum)
		at := filepath.Join(NPMContent(cache), "sha512", hex[:2], hex[2:4])
		if err := errors.Join(os.MkdirAll(at, 0o755), os.WriteFile(filepath.Join(at, hex[4:]), nil, 0o644)); err != nil {
			b.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "package-lock.json"), lock.Bytes(), 0o644); err != nil {
		b.Fatal(err)
	}
	t := &Tick{Mission: mission.Mission{Caches: mission.Caches{NPM: cache}}}
	for b.Loop() {
		home := b.TempDir()
		if err := t.seed(home, dir); err != nil {
			b.Fatal(err)
		}
		if links, _ := filepath.Glob(filepath.Join(home, ".npm/_cacache/content-v2/sha512/*/*/*")); len(links) != 1000 {
			b.Fatalf("%d links", len(links))
		}
	}
}
