package app

import (
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
)

func (c *cli) pollerCommand() *cobra.Command {
	leave := false
	cmd := &cobra.Command{
		Use:   "poller",
		Short: "Bring messages to the person and answers back",
		Long: "Carry the messages of all missions of a root over the configured channel, in the foreground, until it is ended.\n" +
			"With Telegram it also brings back what the person says. There is one for a bot on a host; missions do not need it.",
		Example: "  AutoAgentProject poller --until-idle",
		Args:    exactly(0, "no arguments"),
		RunE: func(cmd *cobra.Command, args []string) error {
			root, err := c.store()
			if err != nil {
				return err
			}
			cfg, err := c.config()
			if err != nil {
				return err
			}
			p, err := c.poller(root, cfg, c.stderrLog("autoagent-poller", ""))
			if err != nil {
				return err
			}
			unlock, err := p.lock()
			if err != nil {
				return pollerTaken(err)
			}
			defer unlock()
			ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGTERM)
			defer stop()
			var done func() bool
			if leave {
				done = nothingLive(root)
			}
			return p.run(ctx, done)
		},
	}
	cmd.Flags().BoolVar(&leave, "until-idle", false, "end when no mission is live and no message is left to send")
	return cmd
}
