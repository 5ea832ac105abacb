package app

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"os/user"
	"strconv"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"example.com/AutoAgentProject/core/engine"
	"example.com/AutoAgentProject/core/mission"
	"example.com/AutoAgentProject/core/store"
	"example.com/AutoAgentProject/core/usererr"
)

// ownersHand lets the owner of a root write into it for root. Root itself makes no file there: whoever owns a folder can
// lead who writes in it elsewhere, and what root makes the owner's ticks could not replace.
type ownersHand struct {
	root  store.Root
	owner *user.User
}

// What it can write.
const (
	writeRecord    = "record"    // how far a stop is: an engine.Record
	writeEnd       = "end"       // the end of a mission: its mission.Stop
	writeTombstone = "tombstone" // a mission.Stop
	writeResumed   = "resumed"   // that a halt is over: its mission.Stop
)

// write lets a process of the owner's write what v says.
func (h ownersHand) write(ctx context.Context, what, id string, v any) error {
	body, err := json.Marshal(v)
	if err != nil {
		return err
	}
	cmd, err := asUser(ctx, h.owner, "write-as-owner", what, id, "--root", string(h.root))
	if err != nil {
		return err
	}
	var said bytes.Buffer
	cmd.Stdin, cmd.Stderr, cmd.Dir = bytes.NewReader(body), &said, "/"
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s writes the %s of %s: %w: %s", h.owner.Username, what, id, err, strings.TrimSpace(said.String()))
	}
	return nil
}

// letOwnerWrite is write for the owner of a root.
func (c *cli) letOwnerWrite(ctx context.Context, root store.Root, what, id string, v any) error {
	owner, err := ownerOf(root)
	if err != nil {
		return err
	}
	return ownersHand{root: root, owner: owner}.write(ctx, what, id, v)
}

// asUser is this program, to be run by root as somebody else, with that one's groups and nothing of root's environment.
func asUser(ctx context.Context, u *user.User, args ...string) (*exec.Cmd, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cred, err := credentialOf(u)
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, self, args...)
	cmd.Env = []string{"PATH=" + systemPath, "HOME=" + u.HomeDir, "USER=" + u.Username, "LOGNAME=" + u.Username}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: cred}
	cmd.Cancel = func() error { return cmd.Process.Signal(termSignal) }
	return cmd, nil
}

// credentialOf is a user's ids. Root's own are refused.
func credentialOf(u *user.User) (*syscall.Credential, error) {
	groups, err := u.GroupIds()
	if err != nil {
		return nil, err
	}
	ids := make([]uint32, 0, len(groups)+2)
	for _, text := range append([]string{u.Uid, u.Gid}, groups...) {
		n, err := strconv.ParseUint(text, 10, 32)
		if err != nil {
			return nil, fmt.Errorf("ids of %s: %w", u.Username, err)
		}
		ids = append(ids, uint32(n))
	}
	if ids[0] == 0 {
		return nil, usererr.New(usererr.Environment, "give the root to an ordinary user", "what belongs to root is not ticked by the system's manager")
	}
	return &syscall.Credential{Uid: ids[0], Gid: ids[1], Groups: ids[2:]}, nil
}

// writeAsOwnerCommand is what ownersHand runs.
func (c *cli) writeAsOwnerCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "write-as-owner record|end|tombstone|resumed <id>",
		Short:   "Write down a part of a mission's stop for root",
		Long:    "Write down, from standard input, a part of the stop of a mission for the system's manager. People use abort.",
		Example: "  AutoAgentProject write-as-owner tombstone my-site < stop.json",
		Hidden:  true,
		Args:    exactly(2, "what to write and the mission's id"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if os.Geteuid() == 0 {
				return usererr.New(usererr.Usage, "run it as the owner", "root writes nothing into a root")
			}
			_, st, m, err := c.mission(args[1])
			if err != nil && (args[0] == writeEnd || usererr.CodeOf(err) != usererr.Unreadable) {
				return err
			}
			in := json.NewDecoder(io.LimitReader(c.env.Stdin, 1<<20))
			switch args[0] {
			case writeRecord:
				var r engine.Record
				if err := in.Decode(&r); err != nil {
					return usererr.Wrap(err, usererr.Usage, "", "this is no record of a stop")
				}
				return st.Save("stopping.json", r)
			case writeEnd, writeTombstone, writeResumed:
				var stop mission.Stop
				if err := in.Decode(&stop); err != nil {
					return usererr.Wrap(err, usererr.Usage, "", "this is no tombstone")
				}
				switch args[0] {
				case writeEnd:
					return finish(cmd.Context(), st, m, stop, slog.New(slog.NewTextHandler(c.env.Stderr, nil)))
				case writeResumed:
					return lift(cmd.Context(), st, stop)
				}
				_, err := st.Stop(stop)
				return err
			}
			return usererr.New(usererr.Usage, "write record, end, tombstone or resumed", "there is no %q to write", args[0])
		},
	}
}
