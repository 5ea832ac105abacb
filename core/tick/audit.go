package tick

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"example.com/AutoAgentProject/core/audit"
	"example.com/AutoAgentProject/core/journal"
	"example.com/AutoAgentProject/core/mission"
	"example.com/AutoAgentProject/core/store"
)

// What is looked at before and after each run is what no tick, no other mission and no command of ours changes while a
// mission lives. docs/walls.md tells it to people; what is left out there is left out here so that nothing honest halts a
// mission.

// lookAround looks at everything outside of the cell that a run must leave alone. The returned function looks again and
// says what changed.
func (t *Tick) lookAround(ctx context.Context, run string) func() []audit.Change {
	ctx = context.WithoutCancel(ctx) // also after a run that was stopped
	set := t.around(run)
	before, err := audit.Take(ctx, set)
	return func() []audit.Change {
		after, err2 := audit.Take(ctx, set)
		if err := errors.Join(err, err2); err != nil {
			t.Log.Warn("no look at what changed outside of the walls", "err", err)
			return nil
		}
		return audit.Compare(before, after)
	}
}

// around is the set.
func (t *Tick) around(run string) []audit.Part {
	st := t.Store
	repo, record := st.Repo(), st.Run(t.Agent.Name, run)
	set := []audit.Part{
		// What was fixed at the start, and the instructions of this run.
		{Path: filepath.Join(st.Dir(), "mission.json")}, {Path: st.Goal()},
		{Path: filepath.Join(st.Dir(), store.FromRepoDocument)}, {Path: st.FromRepo(), Depth: 4},
		{Path: filepath.Join(record, "prompt.md")}, {Path: filepath.Join(record, "system.md")}, {Path: filepath.Join(record, "run.json")},
		// What would make git outside of a cell run or read something else.
		{Path: filepath.Join(repo, "config")}, {Path: filepath.Join(repo, "hooks"), Depth: 1}, {Path: filepath.Join(repo, "info"), Depth: 1},
		{Path: filepath.Join(repo, "objects", "info", "alternates")},
		// Names that belong to nobody.
		{Path: st.Work(), Depth: 1, Skip: t.known},
		{Path: filepath.Dir(filepath.Dir(st.Work())), Depth: 1, Skip: hidden},
	}
	if t.Home != "" {
		units := filepath.Join(t.Home, ".config", "systemd", "user")
		set = append(set, audit.Part{Path: t.Home, Depth: 2, Files: true, Skip: restless}, audit.Part{Path: units, Depth: 2, Files: true, Skip: t.others})
		for _, dir := range []string{"autostart", "environment.d", "git"} { // desktops write much else there
			set = append(set, audit.Part{Path: filepath.Join(t.Home, ".config", dir), Depth: 1, Files: true})
		}
	}
	for _, units := range t.UnitDirs {
		if unix.Access(units, unix.W_OK) == nil { // nobody who cannot write there escaped to there
			set = append(set, audit.Part{Path: units, Depth: 2, Files: true, Skip: t.others})
		}
	}
	return set
}

// known says whether a name in the mission's work is one that ticks make and change.
func (t *Tick) known(name string) bool {
	_, agent := t.Mission.Agent(name)
	return agent || name == "repo.git" || name == "result" || name == ".cells" || strings.HasPrefix(name, ".result-") || strings.HasPrefix(name, ".kept-")
}

// others says whether a unit belongs to another mission or to all: starts and ends of those come at any time. While one is
// written, by core/files or by systemd, it has a hidden name, which systemd loads nothing from.
func (t *Tick) others(name string) bool {
	unit := filepath.Base(name)
	if n, ok := strings.CutPrefix(unit, ".tmp-"); ok && n != "" && strings.Trim(n, "0123456789") == "" {
		return true
	}
	if strings.HasPrefix(unit, ".forge-autoagent") || strings.HasPrefix(unit, ".#forge-autoagent") {
		return true
	}
	return strings.HasPrefix(unit, "forge-autoagent") && !slices.Contains(mission.UnitNames(t.Mission.ID, t.Mission.Roster), unit)
}

func hidden(name string) bool { return strings.HasPrefix(name, ".") }

// restless says whether something in a home is no configuration, or one that programs write by themselves. Files of a home
// that are not hidden are the operator's work.
func restless(name string) bool {
	top, _, _ := strings.Cut(name, "/")
	return !hidden(name) || strings.HasSuffix(top, "_history") || slices.Contains(restlessNames(), name) || slices.Contains(restlessNames(), top)
}

func restlessNames() []string {
	return []string{
		".cache", ".config", ".local", ".claude", ".claude.json", ".lesshst", ".viminfo", ".wget-hsts", ".Xauthority", ".ICEauthority", ".xsession-errors",
		".xsession-errors.old", ".zcompdump", ".mozilla", ".thunderbird", ".npm", ".cargo", ".rustup", ".gradle", ".m2", ".java", ".pki", ".dbus",
		".vscode", ".vscode-server", ".cursor", ".docker", ".kube", ".gnupg", ".ssh/known_hosts", ".ssh/known_hosts.old", ".sudo_as_admin_successful",
	}
}

// mostTold is how many changes a message lists.
const mostTold = 5

// breached halts the mission: something outside of the walls is not as it was, and no tick changed it. The run is no
// attempt at the work.
func (t *Tick) breached(h *Hold, run string, changes []audit.Change) error {
	var told []string
	for _, c := range changes[:min(len(changes), mostTold)] {
		told = append(told, c.String())
	}
	if more := len(changes) - len(told); more > 0 {
		told = append(told, fmt.Sprintf("and %d more", more))
	}
	text := "outside of the walls something changed during a run of " + t.Agent.Name + ": " + strings.Join(told, ", ")
	t.Event(journal.Event{Kind: journal.WallFailed, Level: journal.Blocker, Run: run, Incident: incident("walls", t.Now()), Text: text})
	return errors.Join(t.Stop(mission.Walls, text), t.uncount(h))
}
