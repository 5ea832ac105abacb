package git

import (
	"errors"
	"fmt"
	"io/fs"
	"sync"
	"testing"
	"time"
)

// TestDocuments: what is kept once stays, whoever keeps something at the same time, and the product knows nothing of it.
func TestDocuments(t *testing.T) {
	r, base := started(t, "f", "1\n")
	ref, at, who := DocsRef("my-site"), time.Unix(1_800_000_000, 0), Who{Name: "A", Email: "a@autoagent.example"}
	if _, err := r.Document(t.Context(), ref, "steps/a/1.md"); !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("before anything is kept: %v", err)
	}
	var all sync.WaitGroup
	for n := range 4 {
		all.Go(func() {
			if _, err := r.AddDocument(t.Context(), ref, fmt.Sprintf("steps/a/%d.md", n), fmt.Appendf(nil, "text %d\r\n", n), who, "Keep.\n", at); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	for n := range 4 {
		if b, err := r.Document(t.Context(), ref, fmt.Sprintf("steps/a/%d.md", n)); string(b) != fmt.Sprintf("text %d\r\n", n) || err != nil {
			t.Errorf("%d: %q, %v", n, b, err)
		}
	}
	before := must(r.Resolve(t.Context(), ref))
	if kept, err := r.AddDocument(t.Context(), ref, "steps/a/1.md", []byte("other"), who, "Keep.\n", at); string(kept) != "text 1\r\n" || err != nil {
		t.Errorf("the second time: %q, %v", kept, err)
	}
	if after := must(r.Resolve(t.Context(), ref)); after != before {
		t.Error("the second time moved the ref")
	}
	if main := must(r.Resolve(t.Context(), Main)); main != base {
		t.Error("main moved")
	}
	for _, path := range []string{"", ".", "/x", "../x", "a*", "a:b", "a\nb"} {
		if _, err := r.AddDocument(t.Context(), ref, path, nil, who, "Keep.\n", at); err == nil {
			t.Errorf("%q was kept", path)
		}
	}
	with := must(r.WithFile(t.Context(), base, "docs/x.md", []byte("x"), who, "Add.\n", at))
	if again := must(r.WithFile(t.Context(), with, "docs/x.md", []byte("x"), who, "Add.\n", at)); with == base || again != with {
		t.Error("the file is not added once")
	}
	if _, err := r.WithFile(t.Context(), base, "f/x.md", nil, who, "Add.\n", at); err == nil {
		t.Error("a file of the product was replaced by a folder")
	}
}
