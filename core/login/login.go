// Package login is the file with the credential that runs are paid with: a token of a subscription plan or an API key,
// readable by its owner alone. Only ticks read it; it is never printed.
package login

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"example.com/AutoAgentProject/core/files"
	"example.com/AutoAgentProject/core/runner"
	"example.com/AutoAgentProject/core/usererr"
)

// The kinds of credentials.
const (
	APIKey    = "api-key"
	PlanToken = "plan-token"
)

// File is the content of the credentials file.
type File struct {
	Version int    `json:"version"`
	Kind    string `json:"kind"`
	Plan    string `json:"plan,omitempty"` // pro, max5, max20; of a plan token
	Secret  string `json:"secret"`
}

const hint = "AutoAgentProject login reads a token of `claude setup-token` or an API key from standard input"

// Kind tells a plan token from an API key by its beginning; "" is neither.
func Kind(secret string) string {
	switch {
	case strings.HasPrefix(secret, "sk-ant-oat"):
		return PlanToken
	case strings.HasPrefix(secret, "sk-ant-api"):
		return APIKey
	}
	return ""
}

// Read reads the credentials file. One that others can read is refused.
func Read(path string) (File, error) {
	var f File
	st, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return f, usererr.New(usererr.Environment, hint, "there is no login yet")
	}
	if err != nil {
		return f, usererr.Wrap(err, usererr.Environment, hint, "the login cannot be read")
	}
	if st.Mode().Perm()&0o077 != 0 {
		return f, usererr.New(usererr.Environment, "chmod 600 "+path, "the login file %s can be read by others", path)
	}
	b, err := files.Read(path, 1<<16)
	if err != nil {
		return f, usererr.Wrap(err, usererr.Environment, hint, "the login cannot be read")
	}
	if err := json.Unmarshal(b, &f); err != nil || f.Secret == "" || (f.Kind != APIKey && f.Kind != PlanToken) {
		return File{}, usererr.New(usererr.Environment, hint, "the login file %s is damaged", path) // its content stays unsaid
	}
	return f, nil
}

// Write replaces the credentials file.
func Write(path string, f File) error {
	f.Version = 1
	b, err := json.Marshal(f)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("folder of the login: %w", err)
	}
	return files.Replace(path, append(b, '\n'), 0o600)
}

// Credential is what a run gets.
func (f File) Credential() runner.Credential {
	return runner.Credential{Kind: f.Kind, Secret: f.Secret}
}
