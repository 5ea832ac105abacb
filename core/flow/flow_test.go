package flow

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"example.com/AutoAgentProject/core/profession"
	"example.com/AutoAgentProject/core/usererr"
)

const shippedDir = "../../prompts"

func shippedProfessions(t testing.TB) profession.Set {
	t.Helper()
	s, err := profession.Load(os.DirFS(shippedDir))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func shipped(t testing.TB) Set {
	t.Helper()
	s, err := Load(shippedProfessions(t), profession.Layer{Name: profession.BuiltIn, Files: os.DirFS(shippedDir)})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// plain is a flow without where it came from.
func plain(f Flow) Flow {
	f.Source, f.Origin = "", ""
	f.Steps = slices.Clone(f.Steps)
	for i := range f.Steps {
		f.Steps[i].Line = 0
	}
	return f
}

func TestShipped(t *testing.T) {
	s := shipped(t)
	want := map[string]string{
		"feature":  "assistant advisor architect planner tester coder reviewer documenter",
		"fix":      "tester coder reviewer",
		"six-pack": "specifier coder cleaner pack-architect hardener qa",
		"project":  "thinker evaluator coder",
	}
	if len(s.IDs()) != len(want) {
		t.Errorf("shipped are %q", s.IDs())
	}
	for id, profs := range want {
		f, ok := s.Get(id)
		if got := strings.Join(f.Professions(), " "); !ok || got != profs {
			t.Errorf("%s: %q, want %q", id, got, profs)
		}
		if !f.NeedsVerify() || f.Body == "" || f.Mode != GSD {
			t.Errorf("%s: %+v", id, f)
		}
	}
	p, _ := s.Get("project")
	var ids []string
	for _, st := range p.Steps {
		ids = append(ids, st.ID)
	}
	if got := strings.Join(ids, " "); got != "vision vision-eval research spec spec-eval plan plan-eval execute execute-eval verify extract extract-eval" {
		t.Errorf("the phases are %q", got)
	}
}

// TestRoundTrip: each shipped flow, and the others, come back from both forms as they were.
func TestRoundTrip(t *testing.T) {
	s := shipped(t)
	var all []Flow
	for _, id := range s.IDs() {
		f, _ := s.Get(id)
		all = append(all, f)
	}
	seed := parseFile(t, "testdata/good/feature_impl.flow.ad")
	every := parseFile(t, "testdata/good/every-key.md")
	for _, f := range append(all, seed, every) {
		for form, text := range map[string]string{"again.md": f.Markdown(), "again.flow.ad": f.AD()} {
			back, err := Parse(form, []byte(text))
			if err != nil {
				t.Errorf("%s as %s: %v\n%s", f.ID, form, err, text)
				continue
			}
			if !reflect.DeepEqual(plain(back), plain(f)) {
				t.Errorf("%s as %s came back as\n%+v\nfrom\n%+v\n%s", f.ID, form, plain(back), plain(f), text)
			}
		}
	}
}

func parseFile(t testing.TB, name string) Flow {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	f, err := Parse(name, data)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// TestImport: a flow as others write it, without ids and with professions as targets.
func TestImport(t *testing.T) {
	f := parseFile(t, "testdata/good/feature_impl.flow.ad")
	if err := f.Fit(shippedProfessions(t).Get, nil); err != nil {
		t.Fatal(err)
	}
	if f.ID != "feature-impl" || f.Version != 1 || !strings.HasPrefix(f.Body, "# Flow: Feature Implementation") {
		t.Errorf("%+v", f)
	}
	var ids []string
	for _, s := range f.Steps {
		ids = append(ids, s.ID)
	}
	if got := strings.Join(ids, " "); got != "assistant advisor architect planner tester coder tester-2 reviewer documenter" {
		t.Errorf("ids %q", got)
	}
	coder, _ := f.Step("coder")
	if coder.Exit.To != "tester-2" || coder.Loop != (Loop{Max: 5, OnFail: "architect"}) || !slices.Equal(coder.Produces, []string{Code}) {
		t.Errorf("%+v", coder)
	}
	again, _ := f.Step("tester-2")
	if again.Loop != (Loop{Max: 3, OnFail: "coder"}) || !slices.Equal(again.Requires, []string{"tests", Code}) || !slices.Equal(again.Produces, []string{"tests"}) {
		t.Errorf("%+v", again)
	}
	first := f.Steps[0]
	for answer, want := range map[string]string{"QUESTION": Stop, "DIRECT": "coder", "NEW_GOAL": "advisor", "anything": "advisor"} {
		if to, ok := f.Target(first, answer); !ok || to != want {
			t.Errorf("%s leads to %q, %v", answer, to, ok)
		}
	}
	if last := f.Steps[8]; last.Exit.To != Complete {
		t.Errorf("%+v", last)
	}
}

// TestBadFiles: each file in testdata/bad is refused, with file, line and remedy as its first lines say.
func TestBadFiles(t *testing.T) {
	names, err := filepath.Glob("testdata/bad/*")
	if err != nil || len(names) < 20 {
		t.Fatalf("%d files, %v", len(names), err)
	}
	profs := shippedProfessions(t)
	for _, name := range names {
		t.Run(filepath.Base(name), func(t *testing.T) {
			data, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			// The head: expect: <line>: <part of the message>, then maybe remedy: <part of the hint>, up to a line ====.
			head, body, ok := strings.Cut(string(data), "====\n")
			if !ok {
				t.Fatal("it has no head")
			}
			want, remedy := "", ""
			for line := range strings.SplitSeq(head, "\n") {
				if s, ok := strings.CutPrefix(line, "expect: "); ok {
					want = s
				}
				if s, ok := strings.CutPrefix(line, "remedy: "); ok {
					remedy = s
				}
			}
			file := "dir/" + filepath.Base(name)
			f, err := Parse(file, []byte(body))
			if err == nil {
				err = f.Fit(profs.Get, profs.Names())
			}
			line, says, _ := strings.Cut(want, ": ")
			if err == nil || want == "" || !strings.HasPrefix(err.Error(), file+":"+line+": ") || !strings.Contains(err.Error(), says) {
				t.Fatalf("error %v, want %q", err, want)
			}
			var told *usererr.Error
			if !errors.As(err, &told) || told.Code != usererr.Usage || !strings.Contains(told.Hint, remedy) {
				t.Errorf("%+v, want the hint %q", told, remedy)
			}
		})
	}
}

func TestGates(t *testing.T) {
	for _, c := range []struct {
		gate       string
		kinds      []string
		gsd, check bool
	}{
		{"", nil, false, false}, {"auto", []string{"code"}, false, false}, {"", []string{"code"}, false, true},
		{"goal", nil, false, true}, {"review", []string{"code"}, false, true}, {"human", nil, true, true},
	} {
		s := Step{Gate: c.gate}
		if s.ByPerson(GSD, c.kinds) != c.gsd || s.ByPerson(Check, c.kinds) != c.check {
			t.Errorf("%+v", c)
		}
	}
}

func TestCommand(t *testing.T) {
	s := Step{Verify: []string{"! {verify}", "test -f x"}}
	want := "(gofmt -l .\n) &&\n(! ( make test # all\n)\n) &&\n(test -f x\n)"
	if got := s.Command([]string{"gofmt -l ."}, "make test # all"); got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got := (Step{}).Command(nil, "x"); got != "" {
		t.Errorf("%q", got)
	}
}

func TestMermaid(t *testing.T) {
	f, _ := shipped(t).Get("fix")
	want := `flowchart TD
  s_reproduce["reproduce<br/>tester"]
  s_mend["mend<br/>coder"]
  s_review["review<br/>reviewer"]
  s_reproduce --> s_mend
  s_reproduce -.->|failed, 2 times| s_reproduce
  s_reproduce -.->|exhausted| end_gate
  s_mend --> s_review
  s_mend -.->|failed, 4 times| s_mend
  s_mend -.->|exhausted| end_gate
  s_review -->|accept| end_complete
  s_review -.->|change, 2 times| s_mend
  s_review -.->|exhausted| end_gate
  end_complete(["complete"])
  end_gate(["a person decides"])
`
	if got := f.Mermaid(); got != want {
		t.Errorf("got\n%s", got)
	}
}

// FuzzParse holds for any bytes and both forms: no panic, an error names file and line, and what is accepted comes back from both
// forms as it was.
func FuzzParse(f *testing.F) {
	for _, pattern := range []string{"testdata/good/*", "testdata/bad/*", shippedDir + "/flows/*.md"} {
		names, err := filepath.Glob(pattern)
		if err != nil || len(names) == 0 {
			f.Fatalf("no seeds in %s: %v", pattern, err)
		}
		for _, n := range names {
			data, err := os.ReadFile(n)
			if err != nil {
				f.Fatal(err)
			}
			if _, body, ok := strings.Cut(string(data), "====\n"); ok {
				data = []byte(body)
			}
			f.Add(data, strings.HasSuffix(n, ".ad"))
		}
	}
	f.Fuzz(func(t *testing.T, data []byte, ad bool) {
		name := "f.md"
		if ad {
			name = "f.flow.ad"
		}
		got, err := Parse(name, data)
		if err != nil {
			if usererr.CodeOf(err) != usererr.Usage || !strings.HasPrefix(err.Error(), name+":") || strings.Contains(err.Error(), "\n") {
				t.Fatalf("error %q", err)
			}
			return
		}
		for form, text := range map[string]string{"again.md": got.Markdown(), "again.flow.ad": got.AD()} {
			back, err := Parse(form, []byte(text))
			if err != nil {
				t.Fatalf("as %s: %v\n%s", form, err, text)
			}
			if !reflect.DeepEqual(plain(back), plain(got)) {
				t.Fatalf("as %s\n%+v\nfrom\n%+v", form, plain(back), plain(got))
			}
		}
		got.Mermaid()
	})
}
