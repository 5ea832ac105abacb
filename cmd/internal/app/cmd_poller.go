package app

import (
	"context"
	"io"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"
)

func (c *cli) pollerCommand() *cobra.Command {
	leave, eof := false, false
	cmd := &cobra.Command{
		Use:   "poller",
		Short: "Bring messages to the person and answers back",
		Long: "Carry the messages of all missions over the configured channel, in the foreground, until it is ended. It serves this\n" +
			"root and all others of this user that had missions with this channel. With Telegram it also brings back what the\n" +
			"person says. There is one for a bot on a host; missions do not need it.",
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
			if eof {
				return c.pollUntilEOF(cmd.Context(), p)
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
				done = p.nothingLive
			}
			return p.run(ctx, done)
		},
	}
	cmd.Flags().BoolVar(&leave, "until-idle", false, "end when no mission is live and no message is left to send")
	cmd.Flags().BoolVar(&eof, "until-eof", false, "end when standard input does: for the process that ticks a mission")
	_ = cmd.Flags().MarkHidden("until-eof")
	return cmd
}

// pollUntilEOF carries messages beside a process that ticks a mission, until that has ended and its last message is out.
func (c *cli) pollUntilEOF(ctx context.Context, p *poller) error {
	// What the person's program leaves behind is this process's, so that nobody takes it for the mission's.
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	last := make(chan struct{})
	go func() {
		_, _ = io.Copy(io.Discard, c.env.Stdin)
		close(last)
		time.AfterFunc(lastWords, cancel)
	}()
	p.along(ctx, last)
	return nil
}
