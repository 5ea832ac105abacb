package app

import (
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"example.com/AutoAgentProject/core/files"
	"example.com/AutoAgentProject/core/flow"
	"example.com/AutoAgentProject/core/mission"
	"example.com/AutoAgentProject/core/profession"
	"example.com/AutoAgentProject/core/store"
	"example.com/AutoAgentProject/core/usererr"
	"example.com/AutoAgentProject/prompts"
)

// craft is what there is to work with: professions with their souls, and flows.
type craft struct {
	profs profession.Set
	flows flow.Set
}

// loadCraft reads what comes with the program and what lies above it.
func loadCraft(above ...profession.Layer) (c craft, err error) {
	if c.profs, err = profession.Load(prompts.Files(), above...); err != nil {
		return c, err
	}
	c.flows, err = flow.Load(c.profs, append([]profession.Layer{{Name: profession.BuiltIn, Files: prompts.Files()}}, above...)...)
	return c, err
}

// layer is a folder as a layer; nothing if it is not there.
func layer(name, dir string) []profession.Layer {
	if st, err := os.Stat(dir); err != nil || !st.IsDir() {
		return nil
	}
	return []profession.Layer{{Name: name, Place: dir, Files: os.DirFS(dir)}}
}

// projectCraft is where a project has professions, souls and flows of its own.
const projectCraft = ".autoagent"

// layers are those above the program's own, from below: the person's beside the configuration, the project's, and with, a folder
// given for one mission.
func (c *cli) layers(project, with string) ([]profession.Layer, error) {
	var all []profession.Layer
	if dir, err := c.configDir(); err == nil {
		all = append(all, layer("user", dir)...)
	}
	if project != "" {
		all = append(all, layer("project", filepath.Join(project, projectCraft))...)
	}
	if with != "" {
		abs, err := filepath.Abs(with)
		if err != nil {
			return nil, err
		}
		l := layer("mission", abs)
		if l == nil {
			return nil, usererr.New(usererr.Usage, "give a folder that holds professions, souls or flows", "--with %s is no folder", with)
		}
		all = append(all, l...)
	}
	return all, nil
}

// craftDir is where a mission keeps what it was started with.
func craftDir(st *store.Store) string { return filepath.Join(st.Dir(), "craft") }

// missionCraft is what a mission works with: what it was started with over what comes with the program.
func missionCraft(st *store.Store) (craft, error) {
	return loadCraft(layer("mission", craftDir(st))...)
}

// missionFlow is the flow of a mission that has one.
func (c craft) missionFlow(m mission.Mission) (*flow.Flow, error) {
	if m.Flow == "" {
		return nil, nil
	}
	f, ok := c.flows.Get(m.Flow)
	if !ok {
		return nil, usererr.Wrap(fs.ErrNotExist, usererr.Environment, "", "the flow %s of the mission", m.Flow)
	}
	return &f, nil
}

// flowRoster is who works on a flow: one agent for each of its professions.
func flowRoster(f flow.Flow) []mission.Agent {
	roster := []mission.Agent{{Name: "manager", Role: mission.Manager, Profession: "manager"}}
	for _, p := range f.Professions() {
		roster = append(roster, mission.Agent{Name: p + "-1", Role: mission.Specialist, Profession: p})
	}
	return append(roster, mission.Agent{Name: "reporter", Role: mission.Reporter}, mission.Agent{Name: "quota", Role: mission.Quota})
}

// foreign lists the professions of a roster that do not come with the program, with where they come from.
func (c craft) foreign(roster []mission.Agent) []string {
	var out []string
	for _, a := range roster {
		p, ok := c.profs.Get(a.Profession)
		if s := p.Name + " from " + p.Source; ok && p.Origin != profession.BuiltIn && !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return out
}

// professions are those that come with the program.
func professions() (profession.Set, error) { return profession.Load(prompts.Files()) }

// fixCraft decides who works and by which flow.
func (c *cli) fixCraft(d *draft, o startOptions, cfg config) error {
	project, err := d.projectCraft(o, cfg)
	if err != nil {
		return err
	}
	layers, err := c.layers(project, o.with)
	if err != nil {
		return err
	}
	if d.craft, err = loadCraft(layers...); err != nil {
		return err
	}
	m := &d.mission
	if o.flow == "" {
		if o.mode != "" {
			return usererr.New(usererr.Usage, "give --flow as well", "--mode is nothing without --flow")
		}
		m.Roster, err = mission.ParseRoster(first(o.specialists, defaultSpecialists), d.craft.profs.Names())
	} else {
		err = d.fixFlow(o)
	}
	if err != nil {
		return err
	}
	if f := d.craft.foreign(m.Roster); len(f) > 0 {
		d.warnings = append(d.warnings, "not of this program: "+strings.Join(f, ", "))
	}
	return nil
}

// projectCraft is the project whose professions, souls and flows count: they say what agents may do and are told, so a person
// allows them, like everything else that a repository says.
func (d *draft) projectCraft(o startOptions, cfg config) (string, error) {
	words := o.fromRepo
	if len(words) == 0 && o.from != "" {
		words = cfg.FromRepo
	}
	allowed, err := mission.ParseFromRepo(words)
	if err != nil || o.from == "" || slices.Contains(allowed, mission.FromCraft) {
		return o.from, err
	}
	for _, kind := range []string{"professions", "souls", "flows"} {
		if st, err := os.Stat(filepath.Join(o.from, projectCraft, kind)); err == nil && st.IsDir() {
			d.warnings = append(d.warnings, "the "+kind+" in "+projectCraft+" of --from do not count; --allow-from-repo craft lets them")
		}
	}
	return "", nil
}

const defaultSpecialists = "codebuilder:1"

func (d *draft) fixFlow(o startOptions) error {
	f, ok := d.craft.flows.Get(o.flow)
	switch {
	case o.specialists != "":
		return usererr.New(usererr.Usage, "leave it out", "--specialists and --flow exclude each other: a flow names who works")
	case !ok:
		return usererr.New(usererr.Usage, "there are "+strings.Join(d.craft.flows.IDs(), ", "), "there is no flow %q", o.flow)
	case o.mode != "" && o.mode != flow.GSD && o.mode != flow.Check:
		return usererr.New(usererr.Usage, "write --mode gsd or check", "--mode %q is neither", o.mode)
	case f.NeedsVerify() && strings.TrimSpace(o.verify) == "":
		return usererr.New(usererr.Usage, "give --verify, a command that exits 0 only if the tests of the project pass", "the flow %s needs the mission's verify command", f.ID)
	}
	m := &d.mission
	m.Flow, m.Mode = f.ID, first(o.mode, f.Mode)
	m.Roster = flowRoster(f)
	if n := len(mission.Specialists(m.Roster)); n > mission.MaxSpecialists {
		return usererr.New(usererr.Usage, "use fewer professions", "the flow %s has %d professions, at most %d are possible", f.ID, n, mission.MaxSpecialists)
	}
	return nil
}

// fitsUnits refuses professions whose runs last longer than a unit lets a tick live.
func (c craft) fitsUnits(roster []mission.Agent) error {
	longest, err := longestRun()
	if err != nil {
		return err
	}
	for _, a := range roster {
		if p, ok := c.profs.Get(a.Profession); ok && p.Wall > longest {
			return usererr.New(usererr.Usage, "shorten it, or use --engine embedded", "%s: a wall of %s is longer than systemd lets a tick live, %s", p.Source, p.Wall, longest)
		}
	}
	return nil
}

// keepCraft keeps in a mission what it was started with, so that it stays the same whatever becomes of the files it came from.
func (d *draft) keepCraft(st *store.Store) error {
	texts := d.craft.profs.Texts()
	if f, ok := d.craft.flows.Get(d.mission.Flow); ok {
		texts["flows/"+f.ID+".md"] = f.Markdown()
	}
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		path := filepath.Join(craftDir(st), filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return err
		}
		if err := files.Publish(path, []byte(texts[name]), 0o600); err != nil {
			return err
		}
	}
	return nil
}
