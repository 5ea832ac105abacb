package app

import (
	"strings"

	"github.com/spf13/cobra"

	"example.com/AutoAgentProject/core/usererr"
)

func (c *cli) completionCommand() *cobra.Command {
	shells := []string{"bash", "zsh", "fish"}
	return &cobra.Command{
		Use:   "completion bash|zsh|fish",
		Short: "Print a script that completes commands, flags and ids in your shell",
		Long: "Print a script that completes commands, flags and the ids of missions in your shell. Load it in the shell's own\n" +
			"configuration.",
		Example: `  source <(AutoAgentProject completion bash)
  AutoAgentProject completion zsh > "${fpath[1]}/_AutoAgentProject"
  AutoAgentProject completion fish > ~/.config/fish/completions/AutoAgentProject.fish`,
		Args:      exactly(1, "a shell: "+strings.Join(shells, ", ")),
		ValidArgs: shells,
		RunE: func(cmd *cobra.Command, args []string) error {
			switch args[0] {
			case "bash":
				return cmd.Root().GenBashCompletionV2(c.env.Stdout, true)
			case "zsh":
				return cmd.Root().GenZshCompletion(c.env.Stdout)
			case "fish":
				return cmd.Root().GenFishCompletion(c.env.Stdout, true)
			}
			return usererr.New(usererr.Usage, "there are "+strings.Join(shells, ", "), "there is no completion for %q", args[0])
		},
	}
}

// completeID completes the id of a mission.
func (c *cli) completeID(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	root, err := c.store()
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	ids, err := root.IDs()
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	return ids, cobra.ShellCompDirectiveNoFileComp
}

func (c *cli) helpCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "help [command]",
		Short:   "Show the help of a command",
		Long:    "Show the help of a command, as its --help does.",
		Example: "  AutoAgentProject help start",
		RunE: func(cmd *cobra.Command, args []string) error {
			about, rest, err := cmd.Root().Find(args)
			if err != nil || len(rest) > 0 {
				return unknownCommand(cmd.Root(), strings.Join(args, " "))
			}
			about.InitDefaultHelpFlag()
			about.InitDefaultVersionFlag()
			return about.Help()
		},
	}
}
