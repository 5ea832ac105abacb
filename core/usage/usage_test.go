package usage

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/txtar"

	"example.com/AutoAgentProject/core/money"
)

var list = money.Default()

// example is one file of testdata: transcripts, how to count them, and what the right count is.
type example struct {
	name, under, zone string
	want              map[string]any
	files             map[string]string
}

func examples(t testing.TB) []example {
	t.Helper()
	paths, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(paths) < 15 {
		t.Fatal(len(paths), err)
	}
	var out []example
	for _, p := range paths {
		a, err := txtar.ParseFile(p)
		if err != nil {
			t.Fatal(err)
		}
		e := example{name: strings.TrimSuffix(filepath.Base(p), ".txtar"), zone: "UTC", files: map[string]string{}}
		for line := range strings.Lines(string(a.Comment)) {
			key, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
			switch key {
			case "under":
				e.under = value
			case "tz":
				e.zone = value
			}
		}
		for _, f := range a.Files {
			if f.Name != "want.json" {
				e.files[f.Name] = string(f.Data)
			} else if err := json.Unmarshal(f.Data, &e.want); err != nil {
				t.Fatal(p, err)
			}
		}
		if len(e.want) == 0 || len(e.files) == 0 {
			t.Fatal(p, "says too little")
		}
		out = append(out, e)
	}
	return out
}

func (e example) write(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	for name, data := range e.files {
		put(t, filepath.Join(dir, name), data)
	}
	return dir
}

func put(t testing.TB, path, data string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(data), 0o644); err != nil {
		t.Fatal(err)
	}
}

func scanned(t testing.TB, dir, under string) *Scan {
	t.Helper()
	s := NewScan(under)
	update(t, s, dir)
	return s
}

func update(t testing.TB, s *Scan, dir string) {
	t.Helper()
	if err := s.Update(t.Context(), dir); err != nil || len(s.Unreadable()) > 0 {
		t.Fatal(err, s.Unreadable())
	}
}

func summary(s *Scan) Summary { return s.Summary(list.Cost, time.UTC) }

// differs lists what of want is otherwise in got, as JSON.
func differs(t testing.TB, got Summary, want map[string]any) []string {
	t.Helper()
	b, err := json.Marshal(got)
	var m map[string]any
	if err != nil || json.Unmarshal(b, &m) != nil {
		t.Fatal(err)
	}
	var out []string
	var walk func(at string, got, want any)
	walk = func(at string, got, want any) {
		if w, ok := want.(map[string]any); ok && (at == ".diagnostics" || at == "") {
			g, _ := got.(map[string]any)
			for k, v := range w {
				walk(at+"."+k, g[k], v)
			}
			return
		}
		if !reflect.DeepEqual(got, want) {
			g, _ := json.Marshal(got)
			w, _ := json.Marshal(want)
			out = append(out, at+" is "+string(g)+", want "+string(w))
		}
	}
	walk("", m, want)
	return out
}

func TestExamples(t *testing.T) {
	for _, e := range examples(t) {
		t.Run(e.name, func(t *testing.T) {
			zone, err := time.LoadLocation(e.zone)
			if err != nil {
				t.Fatal(err)
			}
			s := scanned(t, e.write(t), e.under)
			for _, d := range differs(t, s.Summary(list.Cost, zone), e.want) {
				t.Error(d)
			}
		})
	}
}

// TestOrderOfFilesDoesNotMatter: which of its copies a response is found in first changes nothing.
func TestOrderOfFilesDoesNotMatter(t *testing.T) {
	for _, e := range examples(t) {
		if e.zone != "UTC" {
			continue
		}
		turned := example{files: map[string]string{}}
		names := slices.Sorted(maps.Keys(e.files))
		for i, name := range names {
			turned.files["projects/"+string(rune('z'-i))+".jsonl"] = e.files[name]
		}
		for _, d := range differs(t, summary(scanned(t, turned.write(t), e.under)), e.want) {
			t.Errorf("%s: %s", e.name, d)
		}
	}
}

// TestByteByByte: a scan that looks at every state of growing files, and is written down and read again each time, ends
// with the same count.
func TestByteByByte(t *testing.T) {
	for _, e := range examples(t) {
		if e.zone != "UTC" {
			continue
		}
		dir, state := t.TempDir(), filepath.Join(t.TempDir(), "state")
		for _, name := range slices.Sorted(maps.Keys(e.files)) {
			data := e.files[name]
			for cut := 0; cut <= len(data); cut += 97 {
				put(t, filepath.Join(dir, name), data[:cut])
				s, err := LoadScan(state, e.under)
				if err != nil {
					t.Fatal(e.name, err)
				}
				update(t, s, dir)
				if err := s.Save(state); err != nil {
					t.Fatal(err)
				}
			}
			put(t, filepath.Join(dir, name), data)
		}
		s, err := LoadScan(state, e.under)
		if err != nil {
			t.Fatal(e.name, err)
		}
		update(t, s, dir)
		for _, d := range differs(t, summary(s), e.want) {
			t.Errorf("%s: %s", e.name, d)
		}
	}
}
