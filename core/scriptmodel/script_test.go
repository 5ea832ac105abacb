package scriptmodel

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	for _, c := range []struct{ name, in, want string }{
		{"good", `{"rules":[{"when":["a"],"not":["b"],"steps":[{"content":[{"type":"text","text":"x"}]}],"after":"fail"}]}`, ""},
		{"no rules", `{}`, "no rules"},
		{"unknown key", `{"rules":[{"steps":[{"contnet":[]}]}]}`, "contnet"},
		{"no steps", `{"rules":[{"name":"builder","steps":[]}]}`, "builder has no steps"},
		{"bad after", `{"rules":[{"steps":[{}],"after":"loop"}]}`, `after is "loop"`},
		{"block without type", `{"rules":[{"steps":[{},{"content":[{"text":"x"}]}]}]}`, "rule 1, step 2: a content block without a type"},
		{"bad status", `{"rules":[{"steps":[{"status":42}]}]}`, "status 42"},
		{"redirect without a body", `{"rules":[{"steps":[{"status":302}]}]}`, "needs a raw body"},
		{"two values", `{"rules":[{"steps":[{}]}]} {}`, "something follows"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := Parse([]byte(c.in))
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Fatalf("Parse: %v, want %q", err, c.want)
			}
		})
	}
}

func TestFits(t *testing.T) {
	r := Rule{When: []string{"builder", "step one"}, Not: []string{"again"}}
	for text, want := range map[string]bool{
		"you are builder\nstep one":        true,
		"you are builder":                  false,
		"step one again for the builder":   false,
		"step one of builder, and nothing": true,
	} {
		if r.fits(text) != want {
			t.Errorf("fits(%q) is not %v", text, want)
		}
	}
	if !(Rule{}).fits("") {
		t.Error("a rule without texts fits always")
	}
}

func TestFill(t *testing.T) {
	r := Request{Conversation: "c1", Text: "# Environment\n - Primary working directory: /srv/a b\nTask: one\nTask: two\n"}
	for in, want := range map[string]string{
		"plain":                          "plain",
		"{{cwd}}/x":                      "/srv/a b/x",
		"{{session}}{{session}}":         "c1c1",
		"{{match:Task: (\\w+)}}!":        "two!",
		"{{match:Env\\w+}}":              "Environment",
		"{{other}} {{ {{cwd}}":           "{{other}} {{ {{cwd}}",
		"open {{cwd":                     "open {{cwd",
		`{"a":"{{cwd}}"} not {{}} empty`: `{"a":"/srv/a b"} not {{}} empty`,
	} {
		if got, err := r.fillText(in); err != nil || got != want {
			t.Errorf("fillText(%q) = %q, %v; want %q", in, got, err, want)
		}
	}
	for _, in := range []string{"{{match:nowhere}}", "{{match:(}}"} {
		if got, err := r.fillText(in); err == nil {
			t.Errorf("fillText(%q) = %q, want an error", in, got)
		}
	}
	got, err := r.fill(map[string]any{"a": []any{"{{session}}", 1.0, nil}})
	if b, _ := json.Marshal(got); err != nil || string(b) != `{"a":["c1",1,null]}` {
		t.Errorf("fill: %s, %v", b, err)
	}
}

func TestChunks(t *testing.T) {
	for _, c := range []struct {
		in   string
		n    int
		want []string
	}{
		{"abcdef", 0, []string{"abcdef"}},
		{"abcdef", 4, []string{"abcd", "ef"}},
		{"a😀b", 2, []string{"a", "😀", "b"}},
		{"😀😀", 1, []string{"😀", "😀"}},
		{"", 3, []string{""}},
	} {
		got := chunks(c.in, c.n)
		if strings.Join(got, "|") != strings.Join(c.want, "|") {
			t.Errorf("chunks(%q, %d) = %q, want %q", c.in, c.n, got, c.want)
		}
	}
}

func TestCounted(t *testing.T) {
	for in, want := range map[string]Usage{
		`{"input_tokens":1,"output_tokens":2,"cache_read_input_tokens":3,"cache_creation_input_tokens":4}`:                  {1, 2, 4, 0, 3},
		`{"cache_creation_input_tokens":10,"cache_creation":{"ephemeral_5m_input_tokens":1,"ephemeral_1h_input_tokens":6}}`: {0, 0, 4, 6, 0},
		`{"cache_creation":{"ephemeral_1h_input_tokens":6},"input_tokens":"7"}`:                                             {0, 0, 0, 6, 0},
	} {
		var u map[string]any
		if err := json.Unmarshal([]byte(in), &u); err != nil {
			t.Fatal(err)
		}
		if got := counted(u); got != want {
			t.Errorf("counted(%s) = %+v, want %+v", in, got, want)
		}
	}
}
