package specialist

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"example.com/AutoAgentProject/core/files"
	"example.com/AutoAgentProject/core/handoff"
)

// ReadDocument reads the document that an agent left in its clone and judges it. No link in the clone is followed. written is false
// if it left none; an error is none of the agent's.
func ReadDocument(clone string) (d handoff.Document, written bool, problems []handoff.Problem, err error) {
	data, problems, err := readLeft(clone, handoff.DocumentFile, handoff.MaxDocument, "name files instead of copying them, and sum up what commands printed")
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return d, false, nil, nil
	case err != nil || problems != nil:
		return d, problems != nil, problems, err
	case handoff.Untouched(data):
		return d, false, nil, nil
	}
	d, problems = handoff.CheckDocument(data)
	return d, true, problems, nil
}

// Draft is one that the gate has nothing against.
type Draft struct {
	File    string // below the clone
	Message handoff.Message
}

// ReadDrafts reads the drafts that an agent left in its clone and judges them, by name. No link in the clone is followed; an error is
// none of the agent's.
func ReadDrafts(clone string, f handoff.Facts) (good []Draft, bad []handoff.Refused, err error) {
	refuse := func(file string, problems ...handoff.Problem) {
		bad = append(bad, handoff.Refused{File: file, Problems: problems})
	}
	names, err := files.ListBeneath(clone, handoff.DraftsFolder, 1000)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil, nil
	case errors.Is(err, files.ErrNotRegular), errors.Is(err, files.ErrTooBig), errors.Is(err, fs.ErrPermission):
		refuse(handoff.DraftsFolder, handoff.Problem{Header: "folder", Text: "it is a link or no folder, holds too much, or cannot be read", Remedy: "make it a plain folder with nothing but drafts in it"})
		return nil, bad, nil
	case err != nil:
		return nil, nil, err
	}
	for _, name := range names {
		file := handoff.DraftsFolder + "/" + name
		switch m, problems, err := readDraft(clone, file, f); {
		case strings.HasPrefix(name, "."):
		case errors.Is(err, fs.ErrNotExist): // who calls this runs beside others in the cell
		case err != nil:
			return nil, nil, err
		case problems == nil && len(good) == handoff.MaxDrafts:
			refuse(file, handoff.Problem{Header: "draft", Text: fmt.Sprintf("there are more than %d drafts", handoff.MaxDrafts), Remedy: "keep those that others cannot do without"})
		case problems != nil:
			refuse(file, problems...)
		default:
			good = append(good, Draft{file, m})
		}
	}
	return good, bad, nil
}

func readDraft(clone, file string, f handoff.Facts) (handoff.Message, []handoff.Problem, error) {
	data, problems, err := readLeft(clone, file, handoff.MaxDraft, "a draft holds a few headers and nothing else")
	if err != nil || problems != nil {
		return handoff.Message{}, problems, err
	}
	m, problems := handoff.Check(handoff.ParseDraft(data), f)
	return m, problems, nil
}

// readLeft reads a file that an agent left. What is wrong with the file itself is told as a problem.
func readLeft(clone, file string, max int64, smaller string) ([]byte, []handoff.Problem, error) {
	header := "draft"
	if file == handoff.DocumentFile {
		header = "document"
	}
	bad := func(text, remedy string) []handoff.Problem {
		return []handoff.Problem{{Header: header, Text: text, Remedy: remedy}}
	}
	data, err := files.ReadBeneath(clone, file, max)
	switch {
	case errors.Is(err, files.ErrNotRegular):
		return nil, bad("it is a link, or no plain file, and was not read", "remove what stands there and write a plain file"), nil
	case errors.Is(err, files.ErrTooBig):
		return nil, bad(fmt.Sprintf("the file has more than %d bytes", max), smaller), nil
	case errors.Is(err, fs.ErrPermission):
		return nil, bad("it cannot be read", "give it ordinary permissions"), nil
	case errors.Is(err, fs.ErrInvalid):
		return nil, bad("its name cannot be used", "name it with plain letters"), nil
	}
	return data, nil, err
}
