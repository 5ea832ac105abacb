package app

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"

	"example.com/AutoAgentProject/core/caps"
	"example.com/AutoAgentProject/core/files"
	"example.com/AutoAgentProject/core/mission"
	"example.com/AutoAgentProject/core/money"
	"example.com/AutoAgentProject/core/profession"
	"example.com/AutoAgentProject/core/store"
	"example.com/AutoAgentProject/core/usererr"
)

// config is the configuration file, config.yaml. Every key may be left out; unknown ones are refused.
type config struct {
	Root          string            `yaml:"root"`           // folder of all missions
	Claude        string            `yaml:"claude"`         // the agent program
	Model         string            `yaml:"model"`          // exact model id
	CheapModel    string            `yaml:"cheap_model"`    // exact model id for runs from 85 % of the budget on
	Tiers         map[string]string `yaml:"tiers"`          // exact model id of cheap, standard and strong, for flows
	Plan          string            `yaml:"plan"`           // pro, max5, max20: what a budget in percent refers to
	Daily         string            `yaml:"daily"`          // daily allowance, for example 40usd; over the plan's
	Budget        string            `yaml:"budget"`         // default of --budget
	MaxHours      string            `yaml:"max_hours"`      // default of --max-hours
	DailyCap      string            `yaml:"daily_cap"`      // most that all missions may spend in a day
	MonthlyCap    string            `yaml:"monthly_cap"`    // most that all missions may spend in a month
	StepLimit     string            `yaml:"step_limit"`     // most that one run may use
	MinRun        string            `yaml:"min_run"`        // least that a run is started with
	Upstream      string            `yaml:"upstream"`       // address of a gateway of your own that answers for the model
	VerifyMinutes int               `yaml:"verify_minutes"` // wall clock of a verify command

	Channel           string `yaml:"channel"`             // telegram, exec, webhook, none: who carries messages
	TelegramChat      int64  `yaml:"telegram_chat"`       // id of the chat that messages go to
	TelegramUser      int64  `yaml:"telegram_user"`       // id of the one person that the bot listens to
	TelegramTokenFile string `yaml:"telegram_token_file"` // file with the bot's token
	TelegramEndpoint  string `yaml:"telegram_endpoint"`   // address of a Bot API server of your own
	NotifyExec        string `yaml:"notify_exec"`         // program that gets each message
	NotifyWebhook     string `yaml:"notify_webhook"`      // address that each message is posted to
	QuietHours        string `yaml:"quiet_hours"`         // default of --quiet-hours
	TellEvery         string `yaml:"tell_every"`          // milestones are told no more often
	Summaries         bool   `yaml:"summaries"`           // milestones begin with a sentence of the cheapest model
	OnError           string `yaml:"on_error"`            // default of --on-error

	Memory    string   `yaml:"memory"`     // that a mission may take as a whole, for example 8GiB
	Tasks     int      `yaml:"tasks"`      // processes and threads of a mission as a whole
	CPUWeight int      `yaml:"cpu_weight"` // of a mission against 100 of others
	Read      []string `yaml:"read"`       // files and folders that agents of all missions may read
	Network   string   `yaml:"network"`    // default of --network

	Caches   []string `yaml:"caches"`          // default of --caches
	FromRepo []string `yaml:"allow_from_repo"` // default of --allow-from-repo
}

const (
	defaultModel      = "claude-sonnet-5-5"
	defaultCheapModel = "claude-haiku-5-5"
)

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

// configPath is $AUTOAGENT_CONFIG or config.yaml in configDir; empty where there is no home.
func (c *cli) configPath() string {
	if path := c.env.Getenv("AUTOAGENT_CONFIG"); path != "" {
		return path
	}
	dir, err := c.configDir()
	if err != nil {
		return ""
	}
	return filepath.Join(dir, "config.yaml")
}

// config reads the configuration file; without one everything has its default.
func (c *cli) config() (config, error) {
	return readConfig(c.configPath(), c.env.Getenv("AUTOAGENT_CONFIG") != "")
}

// readConfig reads a configuration file. One that was not named and is not there is empty.
func readConfig(path string, named bool) (config, error) {
	cfg := config{}
	if path == "" {
		return cfg, nil // nothing is configured where there is no home
	}
	b, err := files.Read(path, 1<<20)
	if errors.Is(err, fs.ErrNotExist) && !named {
		return cfg, nil
	}
	if err != nil {
		return cfg, usererr.Wrap(err, usererr.Usage, "see docs/configuration.md", "the configuration cannot be read")
	}
	err = yaml.NewDecoder(bytes.NewReader(b), yaml.DisallowUnknownField()).Decode(&cfg)
	if errors.Is(err, io.EOF) { // empty, or comments alone
		return cfg, nil
	}
	if err != nil {
		return cfg, usererr.New(usererr.Usage, "see docs/configuration.md", "%s: %s", path, strings.TrimSpace(yaml.FormatError(err, false, false)))
	}
	if wrong := cfg.wrong(); wrong != "" {
		return cfg, usererr.New(usererr.Usage, "see docs/configuration.md", "%s: %s", path, wrong)
	}
	return cfg, nil
}

// wrong says what the configuration holds that no command could use; what a flag could say is checked where the flag is.
func (c config) wrong() string {
	switch {
	case c.Root != "" && !filepath.IsAbs(c.Root):
		return fmt.Sprintf("root %q is no absolute path", c.Root)
	case c.Claude != "" && !filepath.IsAbs(c.Claude):
		return fmt.Sprintf("claude %q is no absolute path", c.Claude)
	case c.Plan != "" && !slices.Contains(plans(), c.Plan):
		return fmt.Sprintf("there is no plan %q, write %s", c.Plan, strings.Join(plans(), ", "))
	case c.tiersWrong() != "":
		return c.tiersWrong()
	case c.DailyCap != "" && badAmount(c.DailyCap):
		return fmt.Sprintf("daily_cap %q is no amount of money, write for example 10usd", c.DailyCap)
	case c.MonthlyCap != "" && badAmount(c.MonthlyCap):
		return fmt.Sprintf("monthly_cap %q is no amount of money, write for example 200usd", c.MonthlyCap)
	case c.fromRepoWrong() != "":
		return c.fromRepoWrong()
	case c.boundsWrong() != "":
		return c.boundsWrong()
	case c.VerifyMinutes < 0 || c.VerifyMinutes > maxVerifyMinutes:
		return fmt.Sprintf("verify_minutes %d is not from 1 to %d", c.VerifyMinutes, maxVerifyMinutes)
	}
	return c.wrongChannel()
}

// tiersWrong says what is wrong with the models of the tiers.
func (c config) tiersWrong() string {
	for _, name := range slices.Sorted(maps.Keys(c.Tiers)) {
		if !slices.Contains(profession.Tiers(), name) {
			return fmt.Sprintf("there is no tier %q, there are %s", name, strings.Join(profession.Tiers(), ", "))
		}
		if err := checkModel(c.Tiers[name]); err != nil {
			return fmt.Sprintf("the model of the tier %s: %v", name, err)
		}
	}
	return ""
}

// tiers are the models of the tiers: what the configuration says, else the cheap model and the mission's own.
func (c config) tiers(m mission.Mission) map[string]string {
	return map[string]string{"cheap": first(c.Tiers["cheap"], m.CheapModel), "standard": first(c.Tiers["standard"], m.Model), "strong": first(c.Tiers["strong"], m.Model)}
}

func badAmount(s string) bool {
	n, err := money.ParseUSD(s)
	return err != nil || n <= 0
}

// caps are what all missions may spend together. The configuration was checked when it was read.
func (c config) caps() caps.Limits {
	var l caps.Limits
	if c.DailyCap != "" {
		l.Day, _ = money.ParseUSD(c.DailyCap)
	}
	if c.MonthlyCap != "" {
		l.Month, _ = money.ParseUSD(c.MonthlyCap)
	}
	return l
}

// bounds are those of missions, empty where nothing is said.
func (c config) bounds() mission.Bounds {
	n, _ := mission.ParseMemory(c.Memory) // checked when it was read
	return mission.Bounds{Memory: n, Tasks: c.Tasks, CPUWeight: c.CPUWeight}
}

func (c config) boundsWrong() string {
	if _, err := mission.ParseMemory(c.Memory); err != nil {
		return "memory " + err.Error()
	}
	return c.bounds().Wrong()
}

// plans are the subscriptions' plans that a budget in percent can refer to.
func plans() []string { return []string{"pro", "max5", "max20"} }

// maxVerifyMinutes is the longest that a verify command may be given: a day.
const maxVerifyMinutes = 24 * 60

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

// store is the root of all missions: --root, $AUTOAGENT_ROOT, the configuration, ~/.local/share/autoagent; if that is not
// there, the root of the system's manager, for its owner and for root.
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
		if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) && ownOrRoots(systemRoot) {
			dir = systemRoot
		}
	}
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	if real, err := filepath.EvalSymlinks(abs); err == nil { // the cells bind real folders
		abs = real
	}
	if strings.TrimSpace(abs) != abs || strings.ContainsAny(abs, "\n\x00") {
		return "", usererr.New(usererr.Usage, "give another --root", "the root folder's name has a line break, or a space at its end")
	}
	if st, err := os.Stat(abs); err == nil && !st.IsDir() {
		return "", usererr.New(usererr.Usage, "give another --root", "the root %s is no folder", abs)
	}
	return store.Root(abs), nil
}

// ownOrRoots says whether a folder is there and is one for whoever runs this to look into.
func ownOrRoots(dir string) bool {
	st, err := os.Stat(dir)
	return err == nil && st.IsDir() && (os.Geteuid() == 0 || fileOwner(st) == os.Geteuid())
}
