package app

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"example.com/AutoAgentProject/core/files"
	"example.com/AutoAgentProject/core/handoff"
	"example.com/AutoAgentProject/core/specialist"
	"example.com/AutoAgentProject/core/tick"
	"example.com/AutoAgentProject/core/usererr"
)

// checkInCell is the gate as an agent has it in its cell, in the root of its clone: it judges what the tick will judge after the run,
// by the same code, and changes nothing. All that it knows of the mission stands in tick.CheckFacts.
func checkInCell(env Env, args []string) error {
	c := &cli{env: env}
	if len(args) > 1 {
		return usererr.New(usererr.Failed, "without a file it judges all that you leave", "usage: %s check [<draft or document>]", tick.CheckProgram)
	}
	b, err := files.Read(tick.CheckFacts, 1<<20)
	var f handoff.Facts
	if err == nil {
		err = json.Unmarshal(b, &f)
	}
	if err != nil {
		return usererr.Wrap(err, usererr.Failed, "outside of a cell it is AutoAgentProject handoff check", "there is nothing to judge by here")
	}
	dir, err := os.Getwd()
	if err != nil {
		return environment(err)
	}
	if len(args) == 1 {
		return c.checkOne(dir, args[0], f)
	}
	return c.checkAll(dir, f)
}

// checkOne judges one file; where it will have to lie does not matter.
func (c *cli) checkOne(dir, arg string, f handoff.Facts) error {
	if strings.HasSuffix(arg, ".md") {
		return c.checkDocument(arg)
	}
	if !filepath.IsAbs(arg) {
		arg = filepath.Join(dir, arg)
	}
	data, err := files.Read(arg, 4*handoff.MaxDraft)
	if err != nil {
		return usererr.Wrap(err, usererr.Failed, "give the path of a plain file", "the draft %s cannot be read", arg)
	}
	if _, problems := handoff.Check(handoff.ParseDraft(data), f); problems != nil {
		return c.refuse("HANDOFF INVALID", arg, problems, draftUsage)
	}
	c.say("HANDOFF VALID: %s", arg)
	return nil
}

// checkAll judges the document and every draft.
func (c *cli) checkAll(dir string, f handoff.Facts) error {
	_, written, problems, err := specialist.ReadDocument(dir)
	good, bad, derr := specialist.ReadDrafts(dir, f)
	if err := errors.Join(err, derr); err != nil {
		return environment(err)
	}
	if !written {
		problems = []handoff.Problem{{Header: "document", Text: "it is not written yet", Remedy: "fill in every section"}}
	}
	if problems != nil {
		err = c.refuse("DOCUMENT INVALID", handoff.DocumentFile, problems, "")
	} else {
		c.say("DOCUMENT VALID: %s", handoff.DocumentFile)
	}
	for _, d := range good {
		c.say("HANDOFF VALID: %s", d.File)
	}
	for _, r := range bad {
		if err != nil {
			fmt.Fprintln(c.env.Stderr)
		}
		err = c.refuse("HANDOFF INVALID", r.File, r.Problems, "")
	}
	return err
}
