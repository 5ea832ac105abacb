package app

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/goccy/go-yaml"

	"example.com/AutoAgentProject/core/files"
	"example.com/AutoAgentProject/core/store"
	"example.com/AutoAgentProject/core/usererr"
)

// config is the configuration file, config.yaml. Every key may be left out; unknown ones are refused.
type config struct {
	Root          string `yaml:"root"`           // folder of all missions
	Claude        string `yaml:"claude"`         // the agent program
	Model         string `yaml:"model"`          // exact model id
	Plan          string `yaml:"plan"`           // pro, max5, max20: what a budget in percent refers to
	Daily         string `yaml:"daily"`          // daily allowance, for example 40usd; over the plan's
	Budget        string `yaml:"budget"`         // default of --budget
	MaxHours      string `yaml:"max_hours"`      // default of --max-hours
	StepLimit     string `yaml:"step_limit"`     // most that one run may use
	MinRun        string `yaml:"min_run"`        // least that a run is started with
	VerifyMinutes int    `yaml:"verify_minutes"` // wall clock of a verify command
}

const defaultModel = "claude-sonnet-5-5"

// configDir is $XDG_CONFIG_HOME/autoagent or ~/.config/autoagent.
func (c *cli) configDir() (string, error) {
	if d := c.env.Getenv("XDG_CONFIG_HOME"); filepath.IsAbs(d) {
		return filepath.Join(d, "autoagent"), nil
	}
	if h := c.env.Getenv("HOME"); filepath.IsAbs(h) {
		return filepath.Join(h, ".config", "autoagent"), nil
	}
	return "", usererr.New(usererr.Environment, "set HOME", "there is no home folder")
}

// config reads the configuration file; without one everything has its default.
func (c *cli) config() (config, error) {
	cfg := config{}
	path := c.env.Getenv("AUTOAGENT_CONFIG")
	if path == "" {
		dir, err := c.configDir()
		if err != nil {
			return cfg, nil // nothing is configured where there is no home
		}
		path = filepath.Join(dir, "config.yaml")
	}
	b, err := files.Read(path, 1<<20)
	if errors.Is(err, fs.ErrNotExist) && c.env.Getenv("AUTOAGENT_CONFIG") == "" {
		return cfg, nil
	}
	if err != nil {
		return cfg, usererr.Wrap(err, usererr.Usage, "see docs/configuration.md", "the configuration cannot be read")
	}
	if len(bytes.TrimSpace(b)) == 0 {
		return cfg, nil
	}
	if err := yaml.NewDecoder(bytes.NewReader(b), yaml.DisallowUnknownField()).Decode(&cfg); err != nil {
		return cfg, usererr.New(usererr.Usage, "see docs/configuration.md", "%s: %s", path, strings.TrimSpace(yaml.FormatError(err, false, false)))
	}
	return cfg, nil
}

// credentials is where the login lies: $CREDENTIALS_DIRECTORY of systemd, $AUTOAGENT_CREDENTIALS, else beside the
// configuration.
func (c *cli) credentials() (string, error) {
	if d := c.env.Getenv("CREDENTIALS_DIRECTORY"); filepath.IsAbs(d) {
		return filepath.Join(d, "autoagent"), nil
	}
	if f := c.env.Getenv("AUTOAGENT_CREDENTIALS"); f != "" {
		return filepath.Abs(f)
	}
	dir, err := c.configDir()
	return filepath.Join(dir, "credentials.json"), err
}

// store is the root of all missions: --root, $AUTOAGENT_ROOT, the configuration, ~/.local/share/autoagent.
func (c *cli) store() (store.Root, error) {
	dir := c.rootFlag
	if dir == "" {
		dir = c.env.Getenv("AUTOAGENT_ROOT")
	}
	if dir == "" {
		cfg, err := c.config()
		if err != nil {
			return "", err
		}
		dir = cfg.Root
	}
	if dir == "" {
		home := c.env.Getenv("HOME")
		if !filepath.IsAbs(home) {
			return "", usererr.New(usererr.Environment, "give --root or set HOME", "there is no home folder")
		}
		dir = filepath.Join(home, ".local", "share", "autoagent")
	}
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	if real, err := filepath.EvalSymlinks(abs); err == nil { // the cells bind real folders
		abs = real
	}
	if strings.ContainsAny(abs, "\n\x00") {
		return "", usererr.New(usererr.Usage, "", "the root folder's name has a line break")
	}
	if st, err := os.Stat(abs); err == nil && !st.IsDir() {
		return "", usererr.New(usererr.Usage, "", "the root %s is no folder", abs)
	}
	return store.Root(abs), nil
}
