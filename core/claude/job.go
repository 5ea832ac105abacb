package claude

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/google/uuid"

	"example.com/AutoAgentProject/core/runner"
)

const (
	maxPrompt = 8 << 20  // bytes; far above what a model reads, below what the program takes
	maxSchema = 96 << 10 // bytes; one argument holds 128 KiB at most
)

var (
	modelName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._:@/\[\]-]*$`)
	toolName  = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_]*$`)
)

// check says what is wrong with a job. What it lets pass cannot be read as an option, a second argument or no limit.
func check(j runner.Job) error {
	if id, err := uuid.Parse(j.Run); err != nil || id.String() != j.Run {
		return fmt.Errorf("job: the run's id %q is not a UUID in its usual form", j.Run)
	}
	var err error
	switch {
	case !modelName.MatchString(j.Model):
		err = fmt.Errorf("model %q is not an exact id", j.Model)
	case j.MaxTurns <= 0:
		err = fmt.Errorf("%d turns: a run needs a limit above 0", j.MaxTurns)
	case j.Wall <= 0 || j.Silence <= 0:
		err = errors.New("wall time and silence need limits above 0")
	case j.MaxOutput < 0 || j.Cap < 0 || j.CapTokens < 0:
		err = errors.New("a limit below 0")
	case j.Credential.Kind != apiKey && j.Credential.Kind != planToken:
		err = fmt.Errorf("credential of the unknown kind %q", j.Credential.Kind)
	case j.Credential.Secret == "" || strings.ContainsAny(j.Credential.Secret, " \t\r\n\x00"):
		err = errors.New("the credential's secret is empty or has white space")
	case strings.ContainsAny(j.BaseURL, " \t\r\n\x00"):
		err = errors.New("the base URL has white space")
	case len(j.Schema) > maxSchema || j.Schema != nil && !json.Valid(j.Schema):
		err = fmt.Errorf("the schema is not JSON of at most %d bytes", maxSchema)
	default:
		err = errors.Join(checkText("system prompt", j.SystemPrompt), checkText("prompt", j.Prompt), checkPaths(j), checkTools(j.Tools))
	}
	if err != nil {
		return fmt.Errorf("job %s: %w", j.Run, err)
	}
	return nil
}

func checkText(what, s string) error {
	switch {
	case strings.TrimSpace(s) == "":
		return fmt.Errorf("the %s is blank", what)
	case len(s) > maxPrompt:
		return fmt.Errorf("the %s has %d bytes, at most %d are possible", what, len(s), maxPrompt)
	case strings.ContainsRune(s, 0):
		return fmt.Errorf("the %s holds a NUL", what)
	case !utf8.ValidString(s):
		return fmt.Errorf("the %s is not UTF-8", what)
	}
	return nil
}

func checkPaths(j runner.Job) error {
	for _, p := range append([]string{j.Dir, j.Scratch}, j.Inputs...) {
		if !filepath.IsAbs(p) || filepath.Clean(p) != p || p == "/" || strings.ContainsAny(p, "\n\x00") {
			return fmt.Errorf("%q is not a clean absolute path", p)
		}
	}
	return nil
}

func checkTools(tools []string) error {
	for i, t := range tools {
		if !toolName.MatchString(t) || slices.Contains(tools[:i], t) {
			return fmt.Errorf("tool %q is no name, or stands there twice", t)
		}
	}
	return nil
}
