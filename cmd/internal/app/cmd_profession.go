package app

import (
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"example.com/AutoAgentProject/core/flow"
	"example.com/AutoAgentProject/core/profession"
	"example.com/AutoAgentProject/core/usererr"
)

// craftFlags are where the commands about professions, souls and flows look.
type craftFlags struct{ from, with string }

func (o *craftFlags) add(cmd *cobra.Command) *cobra.Command {
	cmd.Flags().StringVar(&o.from, "from", ".", "`folder` of the project, as start takes it")
	cmd.Flags().StringVar(&o.with, "with", "", "`folder` with professions, souls and flows above all others, as start takes it")
	return cmd
}

func (c *cli) craft(o craftFlags) (craft, error) {
	layers, err := c.layers(o.from, o.with)
	if err != nil {
		return craft{}, err
	}
	return loadCraft(layers...)
}

const craftOrder = "What comes with the program lies lowest; above it the folder of the configuration, then .autoagent in the project\n" +
	"(in a mission only with start --allow-from-repo craft), then --with. The same name higher up takes the place of the\n" +
	"one below."

func (c *cli) professionCommand() *cobra.Command {
	o := &craftFlags{}
	cmd := &cobra.Command{
		Use: "profession", Short: "Show or check the professions there are", Long: "Show or check professions: what an agent may do.\n" + craftOrder,
		Example: "  AutoAgentProject profession list",
	}
	list := o.add(&cobra.Command{
		Use: "list", Short: "List the professions", Long: "List the professions with their tools and where each comes from.\n" + craftOrder,
		Example: "  AutoAgentProject profession list --json", Args: exactly(0, "no arguments"),
		RunE: func(*cobra.Command, []string) error { return c.listProfessions(*o) },
	})
	show := o.add(&cobra.Command{
		Use: "show <name>", Short: "Show a profession as an agent gets it", Long: "Show what a profession may do, and the whole text that its agents are told: soul, profession, workplace.",
		Example: "  AutoAgentProject profession show coder", Args: exactly(1, "the profession's name"),
		RunE: func(_ *cobra.Command, args []string) error { return c.showProfession(*o, args[0]) },
	})
	check := o.add(&cobra.Command{
		Use: "check [file]", Short: "Check profession files", Long: "Check one file, or without one everything that a start would load. A fault is told with file, line and remedy.",
		Example: "  AutoAgentProject profession check ~/.config/autoagent/professions/welder.md", Args: oneFile,
		RunE: func(_ *cobra.Command, args []string) error {
			return c.checkFiles(*o, args, func(file string, data []byte) error { _, err := profession.Parse(file, data); return err })
		},
	})
	return group(cmd, list, show, check)
}

func (c *cli) soulCommand() *cobra.Command {
	o := &craftFlags{}
	cmd := &cobra.Command{
		Use: "soul", Short: "Show or check the souls there are", Long: "Show or check souls: who an agent is.\n" + craftOrder,
		Example: "  AutoAgentProject soul list",
	}
	list := o.add(&cobra.Command{
		Use: "list", Short: "List the souls", Long: "List the souls and where each comes from.\n" + craftOrder,
		Example: "  AutoAgentProject soul list", Args: exactly(0, "no arguments"),
		RunE: func(*cobra.Command, []string) error { return c.listSouls(*o) },
	})
	show := o.add(&cobra.Command{
		Use: "show <name>", Short: "Show a soul", Long: "Show the soul of a profession, whole.",
		Example: "  AutoAgentProject soul show coder", Args: exactly(1, "the profession's name"),
		RunE: func(_ *cobra.Command, args []string) error { return c.showSoul(*o, args[0]) },
	})
	check := o.add(&cobra.Command{
		Use: "check [file]", Short: "Check souls", Long: "Check one file, or without one everything that a start would load. A soul has the sections\n" + strings.Join(profession.SoulSections(), ", ") + ".",
		Example: "  AutoAgentProject soul check .autoagent/souls/coder.md", Args: oneFile,
		RunE: func(_ *cobra.Command, args []string) error {
			return c.checkFiles(*o, args, profession.CheckSoul)
		},
	})
	return group(cmd, list, show, check)
}

func (c *cli) flowCommand() *cobra.Command {
	o := &craftFlags{}
	format := ""
	cmd := &cobra.Command{
		Use: "flow", Short: "Show or check the flows there are", Long: "Show or check flows: the ordered steps that start --flow follows.\n" + craftOrder,
		Example: "  AutoAgentProject flow list",
	}
	list := o.add(&cobra.Command{
		Use: "list", Short: "List the flows", Long: "List the flows with their steps and where each comes from.\n" + craftOrder,
		Example: "  AutoAgentProject flow list", Args: exactly(0, "no arguments"),
		RunE: func(*cobra.Command, []string) error { return c.listFlows(*o) },
	})
	show := o.add(&cobra.Command{
		Use: "show <id>", Short: "Show a flow", Long: "Show a flow as Markdown (md), as a .flow.ad file (ad) or as a diagram (mermaid).",
		Example: "  AutoAgentProject flow show feature --format mermaid", Args: exactly(1, "the flow's id"),
		RunE: func(_ *cobra.Command, args []string) error { return c.showFlow(*o, args[0], format) },
	})
	show.Flags().StringVar(&format, "format", "md", "`form`: md, ad or mermaid")
	check := o.add(&cobra.Command{
		Use: "check [file]", Short: "Check flow files", Long: "Check one file, Markdown or .flow.ad, or without one everything that a start would load: ids, targets, what can\nbe reached, loops, professions and their tools.",
		Example: "  AutoAgentProject flow check release.flow.ad", Args: oneFile,
		RunE: func(_ *cobra.Command, args []string) error {
			return c.checkFiles(*o, args, func(file string, data []byte) error {
				f, err := flow.Parse(file, data)
				if err != nil {
					return err
				}
				have, err := c.craft(*o)
				if err != nil {
					return err
				}
				return f.Fit(have.profs.Get, have.profs.Names())
			})
		},
	})
	return group(cmd, list, show, check)
}

func oneFile(cmd *cobra.Command, args []string) error {
	if len(args) > 1 {
		return usererr.New(usererr.Usage, "see "+cmd.CommandPath()+" --help", "%s takes one file", cmd.Name())
	}
	return nil
}

// professionShown is a profession in JSON.
type professionShown struct {
	Name        string   `json:"name"`
	Display     string   `json:"display"`
	Description string   `json:"description"`
	Tools       []string `json:"tools"`
	Required    []string `json:"required_tools,omitempty"`
	Model       string   `json:"model,omitempty"`
	Effort      string   `json:"effort,omitempty"`
	MaxOutput   int      `json:"max_output,omitempty"`
	Fallback    []string `json:"fallback,omitempty"`
	Budget      string   `json:"budget,omitempty"`
	Owns        []string `json:"owns,omitempty"`
	Reads       []string `json:"reads,omitempty"`
	HandoffTo   []string `json:"handoff_to,omitempty"`
	Gates       []string `json:"gates,omitempty"`
	Verify      []string `json:"verify,omitempty"`
	MaxTurns    int      `json:"max_turns,omitempty"`
	Wall        string   `json:"wall,omitempty"`
	Silence     string   `json:"silence,omitempty"`
	Ignored     []string `json:"ignored,omitempty"`
	Origin      string   `json:"origin"`
	Source      string   `json:"source"`
	Soul        string   `json:"soul,omitempty"`
	Prompt      string   `json:"prompt,omitempty"`
}

func shownProfession(p profession.Profession) professionShown {
	span := func(d time.Duration) string {
		if d == 0 {
			return ""
		}
		return d.String()
	}
	return professionShown{p.Name, p.Display, p.Description, p.Tools, p.Required, p.Model, p.Effort, p.MaxOutput, p.Fallback, p.Budget, p.Owns, p.Reads,
		p.HandoffTo, p.Gates, p.Verify, p.MaxTurns, span(p.Wall), span(p.Silence), p.Ignored, p.Origin, p.Source, p.SoulSource, ""}
}

func (c *cli) listProfessions(o craftFlags) error {
	have, err := c.craft(o)
	if err != nil {
		return err
	}
	rows := []professionShown{}
	t := table{{"NAME", "FROM", "MODEL", "TOOLS", "WHAT IT IS FOR"}}
	for _, name := range have.profs.Names() {
		p, _ := have.profs.Get(name)
		rows = append(rows, shownProfession(p))
		t = append(t, []string{p.Name, p.Origin, dash(p.Model), dash(strings.Join(p.Tools, " ")), p.Description})
	}
	if c.json {
		return c.printJSON(rows)
	}
	c.printTable(t)
	return nil
}

func (c *cli) showProfession(o craftFlags, name string) error {
	have, err := c.craft(o)
	if err != nil {
		return err
	}
	p, ok := have.profs.Get(name)
	if !ok {
		return usererr.New(usererr.NotFound, "there are "+strings.Join(have.profs.Names(), ", "), "there is no profession %s", name)
	}
	s := shownProfession(p)
	if s.Prompt = p.SystemPrompt(); c.json {
		return c.printJSON(s)
	}
	t := table{}
	for _, row := range [][2]string{{"profession", p.Name + " (" + p.Display + ")"}, {"for", p.Description}, {"from", p.Origin + ": " + p.Source}, {"soul", dash(p.SoulSource)},
		{"tools", dash(strings.Join(p.Tools, " "))}, {"model", dash(p.Model)}, {"fallback", strings.Join(p.Fallback, ", ")}, {"effort", p.Effort}, {"budget", p.Budget},
		{"owns", strings.Join(p.Owns, " ")}, {"reads", strings.Join(p.Reads, " ")}, {"hands to", strings.Join(p.HandoffTo, " ")}, {"gates", strings.Join(p.Gates, " ")},
		{"verify", strings.Join(p.Verify, "; ")}, {"without effect", strings.Join(p.Ignored, " ")}} {
		if row[1] != "" {
			t = append(t, row[:])
		}
	}
	c.printTable(t)
	c.say("\n%s", strings.TrimRight(s.Prompt, "\n"))
	return nil
}

// soulShown is a soul in JSON.
type soulShown struct {
	Name   string `json:"name"`
	Origin string `json:"origin"`
	Source string `json:"source"`
	Bytes  int    `json:"bytes"`
	Text   string `json:"text,omitempty"`
}

func (c *cli) listSouls(o craftFlags) error {
	have, err := c.craft(o)
	if err != nil {
		return err
	}
	rows := []soulShown{}
	t := table{{"NAME", "FROM", "BYTES", "FILE"}}
	for _, s := range have.profs.Souls() {
		rows = append(rows, soulShown{s.Name, s.Origin, s.Source, len(s.Text), ""})
		t = append(t, []string{s.Name, s.Origin, strconv.Itoa(len(s.Text)), s.Source})
	}
	if c.json {
		return c.printJSON(rows)
	}
	c.printTable(t)
	return nil
}

func (c *cli) showSoul(o craftFlags, name string) error {
	have, err := c.craft(o)
	if err != nil {
		return err
	}
	for _, s := range have.profs.Souls() {
		if s.Name != name {
			continue
		}
		if c.json {
			return c.printJSON(soulShown{s.Name, s.Origin, s.Source, len(s.Text), s.Text})
		}
		c.say("%s", strings.TrimRight(s.Text, "\n"))
		return nil
	}
	return usererr.New(usererr.NotFound, "soul list shows what there is", "there is no soul %s", name)
}

// flowRow is a flow in flow list --json.
type flowRow struct {
	ID          string   `json:"id"`
	Version     int      `json:"version"`
	Description string   `json:"description"`
	Mode        string   `json:"mode"`
	Steps       []string `json:"steps"`
	Origin      string   `json:"origin"`
	Source      string   `json:"source"`
}

func (c *cli) listFlows(o craftFlags) error {
	have, err := c.craft(o)
	if err != nil {
		return err
	}
	rows := []flowRow{}
	t := table{{"FLOW", "FROM", "STEPS", "WHAT IT IS FOR"}}
	for _, id := range have.flows.IDs() {
		f, _ := have.flows.Get(id)
		r := flowRow{f.ID, f.Version, f.Description, f.Mode, nil, f.Origin, f.Source}
		for _, s := range f.Steps {
			r.Steps = append(r.Steps, s.ID)
		}
		rows = append(rows, r)
		t = append(t, []string{f.ID, f.Origin, strconv.Itoa(len(f.Steps)), f.Description})
	}
	if c.json {
		return c.printJSON(rows)
	}
	c.printTable(t)
	return nil
}

func (c *cli) showFlow(o craftFlags, id, format string) error {
	have, err := c.craft(o)
	if err != nil {
		return err
	}
	f, ok := have.flows.Get(id)
	if !ok {
		return usererr.New(usererr.NotFound, "there are "+strings.Join(have.flows.IDs(), ", "), "there is no flow %s", id)
	}
	if c.json {
		return c.printJSON(f)
	}
	text := ""
	switch format {
	case "md":
		text = f.Markdown()
	case "ad":
		text = f.AD()
	case "mermaid":
		text = f.Mermaid()
	default:
		return usererr.New(usererr.Usage, "write --format md, ad or mermaid", "there is no format %q", format)
	}
	c.say("%s", strings.TrimRight(text, "\n"))
	return nil
}

// checkFiles checks the file that was named, else all that a start would load.
func (c *cli) checkFiles(o craftFlags, args []string, check func(string, []byte) error) error {
	if len(args) == 0 {
		have, err := c.craft(o)
		if err != nil {
			return err
		}
		if c.json {
			return c.printJSON(map[string]int{"professions": len(have.profs.Names()), "souls": len(have.profs.Souls()), "flows": len(have.flows.IDs())})
		}
		c.say("%d professions, %d souls and %d flows are in order", len(have.profs.Names()), len(have.profs.Souls()), len(have.flows.IDs()))
		return nil
	}
	data, err := os.ReadFile(args[0])
	if err != nil {
		return usererr.Wrap(err, usererr.NotFound, "", "%s cannot be read", args[0])
	}
	if err := check(args[0], data); err != nil {
		return err
	}
	if c.json {
		return c.printJSON(map[string]string{"file": args[0], "check": "passed"})
	}
	c.say("%s is in order", args[0])
	return nil
}
