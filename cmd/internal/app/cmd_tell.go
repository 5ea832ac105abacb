package app

import (
	"github.com/google/uuid"
	"github.com/spf13/cobra"
)

func (c *cli) tellCommand() *cobra.Command {
	return &cobra.Command{
		Use:   `tell <id> "<note>"`,
		Short: "Tell the manager of a mission something",
		Long: "Leave a note for the manager of a live mission. It looks at its plan again at once, with one run of the model; work\n" +
			"that is under way goes on. In a mission that follows a flow every later run reads it. A note approves nothing.",
		Example:           `  AutoAgentProject tell my-site "use the colours of the old page"`,
		Args:              exactly(2, "the mission's id and the note"),
		ValidArgsFunction: c.completeID,
		RunE: func(cmd *cobra.Command, args []string) error {
			_, st, _, err := c.mission(args[0])
			if err != nil {
				return err
			}
			said, err := tell(st, args[1], terminal, "terminal-"+uuid.NewString())
			return c.done(st.ID(), said, err)
		},
	}
}

// done tells that something was done.
func (c *cli) done(id, said string, err error) error {
	if err != nil {
		return err
	}
	if c.json {
		return c.printJSON(map[string]any{"id": id, "done": said})
	}
	c.say("%s", said)
	return nil
}
