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
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"example.com/AutoAgentProject/core/logline"
	"example.com/AutoAgentProject/core/supervisor"
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
	ctx, stop := signal.NotifyContext(leavingContext(), os.Interrupt)
	defer stop()
	return Run(ctx, env)
}

// leavingContext ends when this process has to go: at SIGTERM, and where the terminal is closed (not under nohup).
func leavingContext() context.Context {
	signals := []os.Signal{syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) {
		signals = append(signals, syscall.SIGHUP)
	}
	came := make(chan os.Signal, 1)
	signal.Notify(came, signals...)
	ctx, cancel := context.WithCancelCause(context.Background())
	go func() {
		<-came
		cancel(supervisor.ErrLeave)
	}()
	return ctx
}

// Run is Main with a context of the caller's.
func Run(ctx context.Context, env Env) (status int) {
	c := &cli{env: env}
	defer catch(env, "autoagent", &status)
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

// catch turns a panic into the exit status of a fault; the runtime's own, 2, means a wrong argument.
func catch(env Env, program string, status *int) {
	if v := recover(); v != nil {
		fmt.Fprintf(env.Stderr, "%s\n%s: error: the program has a fault: %s\n", debug.Stack(), program, clean(fmt.Sprint(v)))
		fmt.Fprintf(env.Stderr, "%s: hint: please report it with the lines above\n", program)
		*status = int(usererr.Bug)
	}
}

// cli holds what all commands share: the world and the global flags.
type cli struct {
	env      Env
	rootFlag string
	json     bool
	// inJournal is where errors go when stderr is the journal; nil: stderr.
	inJournal *logline.Handler
	// movedHome says that --run-as changed the home folder, and with it the default of --root.
	movedHome bool
	// handOver says that root waits to put the units of the mission in place that this process starts as the owner.
	handOver bool
}

func (c *cli) root() *cobra.Command {
	cmd := &cobra.Command{
		Use:   Program,
		Short: "Run bounded missions of coding agents that stop for certain",
		Long: "AutoAgentProject runs missions: a goal, a budget and a time limit, worked on by a manager and specialists, each\n" +
			"walled into one folder. It stops, provably, when the goal is reached or the money or the time is used up.",
		SilenceUsage: true, SilenceErrors: true,
		Version: Version(),
		Example: "  AutoAgentProject doctor\n  AutoAgentProject demo",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return nil
			}
			return unknownCommand(cmd, args[0])
		},
		RunE:              func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
		PersistentPreRunE: noEmptyFlags,
	}
	cmd.SetVersionTemplate("{{.Name}} {{.Version}}\n")
	cmd.PersistentFlags().StringVar(&c.rootFlag, "root", "", "`folder` of all missions (default $AUTOAGENT_ROOT, the config, or ~/.local/share/autoagent)")
	cmd.PersistentFlags().BoolVar(&c.json, "json", false, "answer in JSON, errors too")
	cmd.PersistentFlags().BoolVar(&c.handOver, "hand-over", false, "")
	_ = cmd.PersistentFlags().MarkHidden("hand-over")
	cmd.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		hint := "see " + cmd.CommandPath() + " --help; words that begin with - go behind --"
		return usererr.New(usererr.Usage, hint, "%s", err)
	})
	cmd.AddCommand(c.startCommand(), c.runCommand(), c.statusCommand(), c.listCommand(), c.abortCommand(), c.logsCommand(),
		c.transcriptCommand(), c.tickCommand(), c.deliverCommand(), c.removeCommand(), c.loginCommand(), c.doctorCommand(), c.demoCommand(), c.stopMissionCommand(), c.writeAsOwnerCommand(), c.resumeCommand(), c.hoursCommand(), c.budgetCommand(), c.reconcileCommand(),
		c.pauseCommand(), c.approvalsCommand(), c.approveCommand(), c.rejectCommand(), c.tellCommand(), c.muteCommand(), c.unmuteCommand(), c.ackCommand(), c.pollerCommand(),
		c.completionCommand())
	cmd.AddCommand(c.usageCommand(), c.costsCommand(), c.gcCommand())
	cmd.AddCommand(c.handoffCommand())
	cmd.AddCommand(c.bridgeCommand(), c.watchCommand(), c.reportCommand())
	cmd.AddCommand(c.professionCommand(), c.soulCommand(), c.flowCommand(), c.checkpointCommand(), c.rollbackCommand())
	cmd.SetHelpCommand(c.helpCommand())
	cmd.SetHelpTemplate(cmd.HelpTemplate() + "\n" + exitStatusHelp() + "\n")
	return cmd
}

// unknownCommand says what could have been meant.
func unknownCommand(cmd *cobra.Command, name string) error {
	hint := Program + " --help shows the commands"
	cmd.SuggestionsMinimumDistance = 2
	if meant := cmd.SuggestionsFor(name); len(meant) > 0 {
		hint = "did you mean " + strings.Join(meant, " or ") + "? " + hint
	}
	return usererr.New(usererr.Usage, hint, "there is no command %q", name)
}

// noEmptyFlags refuses --budget "" and its like: what an unset variable of a script leaves behind must not turn into
// the default. A stop is never refused for want of a reason.
func noEmptyFlags(cmd *cobra.Command, _ []string) error {
	empty := ""
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if f.Value.String() == "" && f.Name != "reason" {
			empty = f.Name
		}
	})
	if empty != "" {
		return usererr.New(usererr.Usage, "give it a value or leave it out", "--%s is empty", empty)
	}
	return nil
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
	hint := ""
	if errors.As(err, &u) {
		hint = u.Hint
	}
	if errors.Is(err, errQuiet) {
		return int(code)
	}
	if c.inJournal != nil {
		failInJournal(c.inJournal, err)
		return int(code)
	}
	if c.json || asksForJSON(c.env.Args) {
		_ = json.NewEncoder(c.env.Stderr).Encode(map[string]any{"error": clean(err.Error()), "hint": hint, "exit": int(code)})
		return int(code)
	}
	fmt.Fprintf(c.env.Stderr, "autoagent: error: %s\n", clean(err.Error()))
	if hint != "" {
		fmt.Fprintf(c.env.Stderr, "autoagent: hint: %s\n", hint)
	}
	return int(code)
}

// asksForJSON looks for --json among arguments that could not be parsed to their end.
func asksForJSON(args []string) bool {
	if i := slices.Index(args, "--"); i >= 0 {
		args = args[:i]
	}
	return slices.Contains(args, "--json")
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

// say prints a line. What is put into it is made safe for a terminal, but for what colour made.
func (c *cli) say(format string, args ...any) {
	for i, a := range args {
		switch v := a.(type) {
		case styled, int, int64, uint64:
		case string:
			args[i] = clean(v)
		default:
			args[i] = clean(fmt.Sprint(v))
		}
	}
	fmt.Fprintf(c.env.Stdout, format+"\n", args...)
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
