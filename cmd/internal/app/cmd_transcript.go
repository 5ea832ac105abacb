package app

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"example.com/AutoAgentProject/core/cell"
	"example.com/AutoAgentProject/core/mission"
	"example.com/AutoAgentProject/core/runner"
	"example.com/AutoAgentProject/core/store"
	"example.com/AutoAgentProject/core/usererr"
)

func (c *cli) transcriptCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "transcript <id> [run]",
		Short: "Show what an agent was told and what it answered in one run",
		Long: "Show one run: the prompt, what the model said and did, and the document that it left. The beginning of a run's id is\n" +
			"enough; \"last\" is the latest run of the mission. With --json: the raw stream alone. Without a run: the list of them.",
		Example: "  AutoAgentProject transcript my-site\n  AutoAgentProject transcript my-site last",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) < 1 || len(args) > 2 {
				return usererr.New(usererr.Usage, "see AutoAgentProject transcript --help", "transcript takes the mission's id and perhaps a run")
			}
			return nil
		},
		ValidArgsFunction: c.completeID,
		RunE: func(cmd *cobra.Command, args []string) error {
			_, st, m, err := c.mission(args[0])
			if err != nil {
				return err
			}
			runs, err := runsOf(st, m)
			if err != nil {
				return err
			}
			if len(args) == 1 {
				return c.printRuns(m.ID, runs)
			}
			r, err := oneRun(m.ID, runs, args[1])
			if err != nil {
				return err
			}
			if err := c.printTranscript(m, r.dir); err != nil || c.json || r.Step == "" {
				return err
			}
			d, err := documentOfRun(cmd.Context(), st, r.Step, r.Run)
			if err != nil || d == nil {
				return err
			}
			c.say("== %s of %s", d.Path, d.Ref)
			c.say("%s", strings.TrimRight(d.text, "\n"))
			return nil
		},
	}
}

// runRecord is one run as the list shows it.
type runRecord struct {
	Run     string    `json:"run"`
	Agent   string    `json:"agent"`
	Step    string    `json:"step,omitempty"`
	Started time.Time `json:"started"`
	dir     string
}

// runsOf finds the runs of a mission, the latest one last.
func runsOf(st *store.Store, m mission.Mission) ([]runRecord, error) {
	runs := []runRecord{}
	for _, a := range m.Roster {
		entries, err := os.ReadDir(filepath.Join(st.Agent(a.Name), "runs"))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		for _, e := range entries {
			r := runRecord{}
			dir := st.Run(a.Name, e.Name())
			if b, err := os.ReadFile(filepath.Join(dir, "run.json")); err == nil {
				_ = json.Unmarshal(b, &r) // a damaged record hides no run
			}
			r.Run, r.Agent, r.dir = e.Name(), a.Name, dir
			runs = append(runs, r)
		}
	}
	slices.SortStableFunc(runs, func(a, b runRecord) int { return a.Started.Compare(b.Started) })
	return runs, nil
}

func (c *cli) printRuns(id string, runs []runRecord) error {
	if c.json {
		return c.printJSON(runs)
	}
	if len(runs) == 0 {
		c.say("mission %s has no run yet", id)
		return nil
	}
	t := table{{"RUN", "AGENT", "STEP", "STARTED"}}
	for _, r := range runs {
		t = append(t, []string{r.Run, r.Agent, dash(r.Step), ago(r.Started, time.Now())})
	}
	c.printTable(t)
	return nil
}

// oneRun picks the run that was meant.
func oneRun(id string, runs []runRecord, asked string) (runRecord, error) {
	hint := "AutoAgentProject transcript " + id + " lists the runs"
	if asked == "last" && len(runs) > 0 {
		return runs[len(runs)-1], nil
	}
	runs = slices.DeleteFunc(slices.Clone(runs), func(r runRecord) bool { return asked == "" || !strings.HasPrefix(r.Run, asked) })
	switch len(runs) {
	case 0:
		return runRecord{}, usererr.New(usererr.NotFound, hint, "mission %s has no run %q", id, asked)
	case 1:
		return runs[0], nil
	}
	return runRecord{}, usererr.New(usererr.Usage, hint, "%d runs begin with %s", len(runs), asked)
}

// maxToolOutput is how much of a tool's answer is shown, in characters.
const maxToolOutput = 2000

func (c *cli) printTranscript(m mission.Mission, dir string) error {
	if !c.json {
		for _, name := range []string{"run.json", "prompt.md"} {
			b, err := os.ReadFile(filepath.Join(dir, name))
			if err != nil {
				return err
			}
			c.say("== %s", name)
			c.say("%s", strings.TrimRight(string(b), "\n"))
		}
		c.say("== what happened")
	}
	f, err := os.Open(filepath.Join(dir, "stream.jsonl"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	if c.json {
		_, err := io.Copy(c.env.Stdout, f)
		return err
	}
	return newRunner(m.Program, m.Path, cell.Launcher{}).Describe(f, func(e runner.Event) {
		text := strings.TrimRight(e.Text, "\n")
		if e.Kind == "output" {
			text = cutRunes(text, maxToolOutput)
		}
		c.say("%-8s %s", e.Kind, strings.ReplaceAll(text, "\n", "\n         "))
	})
}

// printJSONLine answers with one JSON object on one line.
func (c *cli) printJSONLine(v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(c.env.Stdout, "%s\n", b)
	return err
}
