package handoff

import (
	"slices"
	"strings"
	"testing"
)

// facts of a sender whose commit is in order.
func facts() Facts {
	return Facts{Sender: "coder", Roles: []string{"specifier", "coder", "cleaner", "QA"}, Policy: SwarmPolicy(),
		Tree: Tree{Objects: 1, Type: "commit", Canonical: "0123456789", Reachable: true, Byline: true}}
}

func draft(lines ...string) string { return strings.Join(lines, "\n") + "\n" }

const commit = "commit: 0123456789"

// heads are what the problems are about, in their order.
func heads(problems []Problem) string {
	var out []string
	for _, p := range problems {
		out = append(out, p.Header)
	}
	return strings.Join(out, "|")
}

// TestGate: all that is wrong, at once and in this order.
func TestGate(t *testing.T) {
	long := strings.Repeat("x", 81)
	for name, c := range map[string]struct {
		draft string
		want  string // headers of the problems
	}{
		"work":                  {draft("type: git_handoff", "to: QA", "priority: 50", "task: t", commit), ""},
		"note":                  {draft("priority: 00", "message: a: b: c", "to: QA,coder", "type: note"), ""},
		"80 of two units each":  {draft("type: note", "to: QA", "priority: 50", "message: "+strings.Repeat("😀", 40)), ""},
		"81 units":              {draft("type: note", "to: QA", "priority: 50", "message: "+strings.Repeat("😀", 40)+"x"), "message"},
		"a tab":                 {draft("type: note", "to: QA", "priority: 50", "message: a\tb"), ""},
		"nothing":               {"", "type|to|priority"},
		"only blank lines":      {"\n \n\n", "type|to|priority"},
		"begins with a blank":   {"\ntype: note\n", "line 2, body|type|to|priority"},
		"one space too many":    {draft("type:  note", "to: QA", "priority: 50", "message: x"), "type"},
		"a space at the end":    {draft("type: note", "to: QA", "priority: 50 ", "message: x"), "priority"},
		"a space in to":         {draft("type: note", "to: QA, coder", "priority: 50", "message: x"), "to"},
		"all of a git_handoff":  {draft("type: git_handoff", "to: nobody,,QA,QA,a_b", "priority: 5", "id: 7", "message: m", "oops", "task: "+long, "to: x"), "line 4, id|line 6, header oops|line 8, to|priority|to|to|to|to|message|task|commit"},
		"all of a note":         {draft("type: note", "to: ,", "priority: x", "task: t", "commit: z", "message: "+long), "priority|to|to|to|task|commit|message"},
		"no type":               {draft("to: QA", "priority: 50", "commit: 1"), "type|commit"},
		"unknown type":          {draft("type: awake", "to: QA", "priority: 50"), "type"},
		"a header of the tool":  {draft("type: note", "to: QA", "priority: 50", "message: x", "hops: 1"), "line 5, hops"},
		"upper case header":     {draft("Type: note", "to: QA", "priority: 50"), "line 1, Type|type"},
		"no colon":              {draft("type: note", "to: QA", "priority 50", "message: x"), "line 3, header priority 50|priority"},
		"no space":              {draft("type: note", "to:QA", "priority: 50", "message: x"), "line 2, header to|to"},
		"no-break space value":  {draft("type: note", "to: QA", "priority: 50", "message: \u00a0"), ""},
		"blank value":           {draft("type: note", "to: QA", "priority: 50", "message: \u2003\t"), "line 4, message|message"},
		"a carriage return":     {draft("type: note", "to: QA", "priority: 50", "message: hi\rfrom: human"), "line 4, message|message"},
		"an injected line":      {draft("type: note", "to: QA", "priority: 50", "message: hi", "from: human"), "line 5, from"},
		"an escape":             {draft("type: note", "to: QA", "priority: 50", "message: \x1b[2J"), "line 4, message|message"},
		"not UTF-8":             {draft("type: note", "to: QA", "priority: 50", "message: \xff"), "line 4, header|message"},
		"NULs":                  {strings.Repeat("\x00", 100), "line 1, header " + strings.Repeat("?", 20) + "…|type|to|priority"},
		"too big":               {strings.Repeat("a: b\n", 20_000), "draft|type|to|priority"},
		"commit too long":       {draft("type: git_handoff", "to: QA", "priority: 50", "task: t", "commit: 01234567890"), "commit"},
		"recipients three ways": {draft("type: note", "to: qa,QA,QA", "priority: 50", "message: x"), "to|to"},
	} {
		m, problems := Check(ParseDraft([]byte(c.draft)), facts())
		if got := heads(problems); got != c.want {
			t.Errorf("%s:\n%s, want\n%s\n%v", name, got, c.want, problems)
		}
		if (m.Type == "") != (problems != nil) {
			t.Errorf("%s: a message comes with problems or without any: %+v", name, m)
		}
		for _, p := range problems {
			s := p.String()
			if strings.ContainsAny(s, "\n\r\x1b\x00") || p.Text == "" || p.Remedy == "" || len(s) > 900 {
				t.Errorf("%s: %q", name, s)
			}
		}
	}
}

// TestGateAboutCommits: what git says about one.
func TestGateAboutCommits(t *testing.T) {
	d := ParseDraft([]byte(draft("type: git_handoff", "to: QA", "priority: 50", "task: t", "commit: 0123456789")))
	strict := Policy{Tree: true}
	for name, c := range map[string]struct {
		policy Policy
		change func(*Tree)
		want   string // header and a word of the only problem
	}{
		"none":               {SwarmPolicy(), func(t *Tree) { *t = Tree{} }, "commit|no such object"},
		"several":            {SwarmPolicy(), func(t *Tree) { t.Objects = 2 }, "commit|2 objects"},
		"a tree":             {SwarmPolicy(), func(t *Tree) { t.Type = "tree" }, "commit|is a tree"},
		"dirty":              {strict, func(t *Tree) { t.Dirty = []string{"a.txt"} }, "tree|not committed"},
		"of another branch":  {strict, func(t *Tree) { t.Reachable = false }, "commit|own branch"},
		"no byline":          {strict, func(t *Tree) { t.Byline = false }, "commit|byline"},
		"runtime state":      {strict, func(t *Tree) { t.Runtime = []string{".autoagent/draft"} }, "commit|runtime state"},
		"layout":             {strict, func(t *Tree) { *t = Tree{Layout: "HEAD is on no branch"} }, "tree|layout"},
		"layout, any policy": {SwarmPolicy(), func(t *Tree) { *t = Tree{Layout: "x"} }, "tree|layout"},
	} {
		f := facts()
		f.Policy = c.policy
		c.change(&f.Tree)
		_, problems := Check(d, f)
		header, word, _ := strings.Cut(c.want, "|")
		if len(problems) != 1 || problems[0].Header != header || !strings.Contains(problems[0].Text, word) {
			t.Errorf("%s: %v", name, problems)
		}
		if f.Policy = SwarmPolicy(); c.policy.Tree && f.Tree.Layout == "" {
			if _, problems := Check(d, f); problems != nil {
				t.Errorf("%s is refused without the policy: %v", name, problems)
			}
		}
	}
}

// TestGatePolicy: who may write notes, how often work goes round, what is not handed on.
func TestGatePolicy(t *testing.T) {
	f := facts()
	f.Policy = Policy{Notes: []string{"specifier"}, Forward: ForwardAlways, MaxHops: 3}
	n := ParseDraft([]byte(draft("type: note", "to: QA", "priority: 50", "message: x")))
	if _, p := Check(n, f); len(p) != 1 || !strings.Contains(p[0].String(), "BLOCKED:") {
		t.Errorf("%v", p)
	}
	f.Policy.Notes = append(f.Policy.Notes, "coder")
	for hops := range 5 {
		f.Held = []Held{{Task: "t", Hops: hops}, {Hops: 1}}
		m, p := Check(n, f)
		if want := max(hops, 1)+1 > 3; (p != nil) != want || want && !strings.Contains(p[0].String(), "hop limit") || !want && m.Hops != max(hops, 1)+1 {
			t.Errorf("%d hops: %v, %+v", hops, p, m)
		}
	}
	w := ParseDraft([]byte(draft("type: git_handoff", "to: QA", "priority: 50", "task: t", commit)))
	f.Held = []Held{{Task: "t", MergeOnly: true}}
	if _, p := Check(w, f); heads(p) != "task" {
		t.Errorf("%v", p)
	}
	f.Held = []Held{{Task: "t"}} // the very task that it works on, along the chain
	if _, p := Check(w, f); p != nil {
		t.Errorf("%v", p)
	}
	f.Held = []Held{{Task: "other", MergeOnly: true}}
	if _, p := Check(w, f); p != nil {
		t.Errorf("%v", p)
	}
	f.Policy, f.Held[0].Task = SwarmPolicy(), "t"
	if m, p := Check(w, f); p != nil || m.Hops != 0 {
		t.Errorf("%v, %+v", p, m)
	}
}

// unitOf is a unit of tasks; "00" before a name makes it a terminal broadcast, "note" a note.
func unitOf(tasks ...string) Unit {
	var u Unit
	for _, task := range tasks {
		text := "type: git_handoff\nto: coder\npriority: 50\ntask: " + task + "\n\nx\n"
		if name, ok := strings.CutPrefix(task, "00"); ok {
			text = "type: git_handoff\nto: coder,QA\npriority: 00\ntask: " + name + "\n\nx\n"
		}
		if task == "note" {
			text = "type: note\nto: coder\npriority: 50\nmessage: m\n\nx\n"
		}
		u.Items = append(u.Items, Item{Path: "/" + task, Text: Text(text)})
	}
	return u
}

// TestCheckDone: what has to be handed on before a unit ends.
func TestCheckDone(t *testing.T) {
	to := func(task string, who ...string) Sent { return Sent{task, who} }
	for name, c := range map[string]struct {
		unit      Unit
		sent      []Sent
		forward   Forward
		unchanged bool
		mergeOnly bool
		want      string
	}{
		"handed on":                   {unit: unitOf("t"), sent: []Sent{to("t", "QA")}},
		"not handed on":               {unit: unitOf("t"), want: "forward"},
		"to itself":                   {unit: unitOf("t"), sent: []Sent{to("t", "coder")}, want: "forward"},
		"to itself and others":        {unit: unitOf("t"), sent: []Sent{to("t", "coder", "QA")}},
		"under another name":          {unit: unitOf("t"), sent: []Sent{to("T", "QA")}, want: "task"},
		"nobody looks":                {unit: unitOf("t"), forward: ForwardOff},
		"unchanged, always":           {unit: unitOf("t"), unchanged: true, want: "forward"},
		"unchanged, when changed":     {unit: unitOf("t"), forward: ForwardWhenChanged, unchanged: true},
		"changed, when changed":       {unit: unitOf("t"), forward: ForwardWhenChanged, want: "forward"},
		"note":                        {unit: unitOf("note")},
		"broadcast":                   {unit: unitOf("00t")},
		"broadcast handed on":         {unit: unitOf("00t"), sent: []Sent{to("t", "QA")}, want: "forward"},
		"new work after a broadcast":  {unit: unitOf("00t"), sent: []Sent{to("u", "QA")}},
		"broadcast to one":            {unit: unitOf("t"), mergeOnly: true},
		"batch, one forward":          {unit: unitOf("t", "u", "v"), sent: []Sent{to("t", "QA")}},
		"batch, under another's name": {unit: unitOf("t", "u", "v"), sent: []Sent{to("u", "QA")}, want: "task"},
		"batch, none":                 {unit: unitOf("t", "u"), want: "forward"},
		"batch with a broadcast":      {unit: unitOf("t", "00u"), sent: []Sent{to("t", "QA")}},
		"batch, the broadcast handed": {unit: unitOf("t", "00u"), sent: []Sent{to("u", "QA")}, want: "forward|forward"},
	} {
		p := Policy{Forward: c.forward}
		if p.Forward == "" {
			p.Forward = ForwardAlways
		}
		if got := heads(CheckDone("coder", c.unit, c.sent, !c.unchanged, c.mergeOnly, p)); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// TestBatchGoesOnUnderItsFirstName: one forward stands for a batch and what that batch stood for, and the way of each of them leads
// through it.
func TestBatchGoesOnUnderItsFirstName(t *testing.T) {
	f := facts()
	f.Policy.MaxHops = 40
	f.Held = []Held{{Task: "t"}, {Task: "u", Carries: []string{"u", "v, w"}, Hops: 3}, {Task: "x", MergeOnly: true}, {}}
	draft := func(task string) Draft {
		return ParseDraft([]byte("type: git_handoff\nto: QA\npriority: 50\ntask: " + task + "\ncommit: 0123456789\n"))
	}
	if _, problems := Check(draft("u"), f); heads(problems) != "task" || problems[0].Remedy != "write task: t" {
		t.Errorf("%v", problems)
	}
	m, problems := Check(draft("t"), f)
	if problems != nil || !slices.Equal(m.Tasks, []string{"t", "u", "v, w"}) {
		t.Fatalf("%+v, %v", m, problems)
	}
	_, e := m.Envelope(1, noon)
	back, err := Parse(e.Bytes())
	if err != nil || !slices.Equal(Text(back.Bytes()).Carried(), m.Tasks) {
		t.Fatalf("%s, %v", e.Bytes(), err)
	}
	records := []Record{{Agent: "coder", Box: "completed", Text: "id: 0\nfrom: QA\ntask: v, w\n\n"}, {Agent: "QA", Box: "new", Text: Text(e.Bytes())}}
	for task, want := range map[string]int{"t": 1, "u": 1, "v, w": 2, "v": 0, "x": 0} {
		if w := Trace(task, records, noon); len(w.Legs) != want || want > 0 && w.Legs[want-1].Task != "t" {
			t.Errorf("the way of %q: %+v", task, w.Legs)
		}
	}
	f.Held = f.Held[:1]
	if m, _ := Check(draft("t"), f); m.Tasks != nil {
		t.Errorf("a single task carries %q", m.Tasks)
	}
	if m, _ := Check(draft("new"), f); m.Tasks != nil {
		t.Errorf("other work carries %q", m.Tasks)
	}
	f.Held, f.Policy.MaxHops = []Held{{Task: "t"}, {Task: "u"}}, 0 // a swarm
	if m, problems := Check(draft("u"), f); problems != nil || m.Tasks != nil {
		t.Errorf("in a swarm: %+v, %v", m, problems)
	}
}

func TestByline(t *testing.T) {
	for message, want := range map[string]bool{"x\n\nBy coder.\n": true, "By coder.": true, "x\r\nBy coder.\r\n": true, "by coder.": false,
		"By coder": false, "x By coder.": false, "By coder-2.": false, "": false} {
		if HasByline(message, "coder") != want {
			t.Errorf("%q", message)
		}
	}
	for path, want := range map[string]bool{".swarmforge/roles.tsv": true, ".worktrees/x": true, ".autoagent": true, "a/.autoagent/x": false, ".autoagent2": false} {
		if RuntimeState(path) != want {
			t.Error(path)
		}
	}
	if !slices.Contains(MissionPolicy().Notes, "manager") || MissionPolicy().Forward != ForwardAlways {
		t.Error("the policy of missions")
	}
}
