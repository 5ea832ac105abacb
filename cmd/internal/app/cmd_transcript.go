package app

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"example.com/AutoAgentProject/core/usererr"
)

func (c *cli) transcriptCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "transcript <id> <run>",
		Short: "Show what an agent was told and what it answered in one run",
		Long: "Show one run: the prompt, and the program's output line by line as it came. The beginning of a run's id is enough;\n" +
			"\"last\" is the latest run of the mission. With --json: the raw stream alone.",
		Example: "  AutoAgentProject transcript my-site last",
		Args:    exactly(2, "the mission's id and a run"),
		RunE: func(cmd *cobra.Command, args []string) error {
			_, st, m, err := c.mission(args[0])
			if err != nil {
				return err
			}
			var dirs []string
			for _, a := range m.Roster {
				entries, err := os.ReadDir(filepath.Join(st.Agent(a.Name), "runs"))
				if err != nil && !errors.Is(err, fs.ErrNotExist) {
					return err
				}
				for _, e := range entries {
					if args[1] == "last" || strings.HasPrefix(e.Name(), args[1]) {
						dirs = append(dirs, st.Run(a.Name, e.Name()))
					}
				}
			}
			dir, err := oneRun(dirs, args[1])
			if err != nil {
				return err
			}
			return c.printTranscript(dir)
		},
	}
}

// oneRun picks the run that was meant.
func oneRun(dirs []string, asked string) (string, error) {
	const hint = "AutoAgentProject logs shows the runs"
	switch {
	case len(dirs) == 0:
		return "", usererr.New(usererr.NotFound, hint, "there is no run %s", asked)
	case asked != "last" && len(dirs) > 1:
		return "", usererr.New(usererr.Usage, hint, "%d runs begin with %s", len(dirs), asked)
	}
	newest := dirs[0]
	for _, d := range dirs[1:] {
		a, aerr := os.Stat(filepath.Join(newest, "run.json"))
		b, berr := os.Stat(filepath.Join(d, "run.json"))
		if berr == nil && (aerr != nil || b.ModTime().After(a.ModTime())) {
			newest = d
		}
	}
	return newest, nil
}

func (c *cli) printTranscript(dir string) error {
	if !c.json {
		for _, name := range []string{"run.json", "prompt.md"} {
			b, err := os.ReadFile(filepath.Join(dir, name))
			if err != nil {
				return err
			}
			c.say("== %s", name)
			c.say("%s", strings.TrimRight(string(b), "\n"))
		}
		c.say("== stream.jsonl")
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
	return c.copyLines(f)
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
