// Package app is the programs: the command line of AutoAgentProject and the entry points of the role binaries. It chooses
// the implementations, prints, and turns errors into a sentence, a hint and an exit status. Only main exits.
package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"example.com/AutoAgentProject/core/usererr"
)

// Program is the name of the command line.
const Program = "AutoAgentProject"

// Env is the world a command runs in.
type Env struct {
	Args   []string // without the program's name
	Stdin  io.Reader
	Stdout io.Writer
	Stderr io.Writer
	Getenv func(string) string
}

// OSEnv is the real world.
func OSEnv() Env {
	return Env{Args: os.Args[1:], Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Getenv: os.Getenv}
}

// Main runs the command line and returns its exit status.
func Main(env Env) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	return Run(ctx, env)
}

// Run is Main with a context of the caller's.
func Run(ctx context.Context, env Env) int {
	c := &cli{env: env}
	root := c.root()
	root.SetArgs(env.Args)
	root.SetIn(env.Stdin)
	root.SetOut(env.Stdout)
	root.SetErr(env.Stderr)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return int(usererr.OK)
	}
	return c.fail(err)
}

// cli holds what all commands share: the world and the global flags.
type cli struct {
	env      Env
	rootFlag string
	json     bool
}

func (c *cli) root() *cobra.Command {
	cmd := &cobra.Command{
		Use:   Program,
		Short: "Run bounded missions of coding agents that stop for certain",
		Long: "AutoAgentProject runs missions: a goal, a budget and a time limit, worked on by a manager and specialists, each\n" +
			"walled into one folder. It stops, provably, when the goal is reached or the money or the time is used up.",
		SilenceUsage: true, SilenceErrors: true,
		Version: Version(),
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.SetVersionTemplate("{{.Name}} {{.Version}}\n")
	cmd.PersistentFlags().StringVar(&c.rootFlag, "root", "", "folder of all missions (default $AUTOAGENT_ROOT, the config, or ~/.local/share/autoagent)")
	cmd.PersistentFlags().BoolVar(&c.json, "json", false, "answer in JSON, errors too")
	cmd.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		hint := "see " + cmd.CommandPath() + " --help; words that begin with - go behind --"
		return usererr.New(usererr.Usage, hint, "%s", err)
	})
	cmd.AddCommand(c.startCommand(), c.runCommand(), c.statusCommand(), c.listCommand(), c.abortCommand(), c.logsCommand(),
		c.transcriptCommand(), c.tickCommand(), c.deliverCommand(), c.loginCommand(), c.doctorCommand(), c.demoCommand())
	exitTable := exitStatusHelp()
	for _, sub := range append(cmd.Commands(), cmd) {
		if sub.Long == "" {
			sub.Long = sub.Short + "."
		}
		sub.Long += "\n\n" + exitTable
	}
	return cmd
}

func exitStatusHelp() string {
	var b strings.Builder
	b.WriteString("EXIT STATUS\n")
	for _, r := range usererr.Codes() {
		fmt.Fprintf(&b, "  %3d  %s\n", r.Code, r.Meaning)
	}
	return strings.TrimRight(b.String(), "\n")
}

// fail prints an error as a sentence and a hint and returns its exit status.
func (c *cli) fail(err error) int {
	code := usererr.CodeOf(err)
	var u *usererr.Error
	known := errors.As(err, &u)
	if !known && (strings.HasPrefix(err.Error(), "unknown command") || strings.Contains(err.Error(), "arg(s)")) {
		code, known = usererr.Usage, true
		u = usererr.New(usererr.Usage, "AutoAgentProject --help shows the commands", "%s", err)
	}
	hint := ""
	if known {
		hint = u.Hint
	}
	if c.json {
		_ = json.NewEncoder(c.env.Stderr).Encode(map[string]any{"error": clean(err.Error()), "hint": hint, "exit": int(code)})
		return int(code)
	}
	if errors.Is(err, errQuiet) {
		return int(code)
	}
	fmt.Fprintf(c.env.Stderr, "autoagent: error: %s\n", clean(err.Error()))
	if hint != "" {
		fmt.Fprintf(c.env.Stderr, "autoagent: hint: %s\n", hint)
	}
	return int(code)
}

// errQuiet marks an end that was told already; only its exit status is left.
var errQuiet = errors.New("told already")

// quiet ends a command with an exit status and nothing more to say.
func quiet(code usererr.Code) error {
	if code == usererr.OK {
		return nil
	}
	return usererr.Wrap(errQuiet, code, "", "ended")
}

// clean makes text safe for a terminal: control characters that an agent or a file name could bring are shown, not sent.
func clean(s string) string {
	return strings.Map(func(r rune) rune {
		if (r < ' ' && r != '\n' && r != '\t') || (r >= 0x7f && r < 0xa0) || (r >= 0x202a && r <= 0x202e) || (r >= 0x2066 && r <= 0x2069) {
			return '\uFFFD'
		}
		return r
	}, strings.ToValidUTF8(s, "\uFFFD"))
}

// printJSON answers in JSON.
func (c *cli) printJSON(v any) error {
	e := json.NewEncoder(c.env.Stdout)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

func (c *cli) say(format string, args ...any) {
	fmt.Fprintln(c.env.Stdout, clean(fmt.Sprintf(format, args...)))
}

// Version is the version of this build, with the commit where the build knows it.
func Version() string {
	v := version
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" && len(s.Value) >= 10 {
				v += " (" + s.Value[:10] + ")"
			}
		}
	}
	return v
}

// version is set by the linker: -X example.com/AutoAgentProject/cmd/internal/app.version=1.2.3
var version = "0.1.0-dev"
