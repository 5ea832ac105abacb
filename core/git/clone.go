package git

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
	"time"
)

// Command is a program to be run in a clone, behind the walls.
type Command struct {
	Argv     []string
	Dir      string    // the clone, the only folder that may be written
	Env      []string  // what must be set besides PATH and HOME
	ReadOnly []string  // folders that may be read besides
	Stdin    []byte    // nil: empty
	Stdout   io.Writer // takes the standard output
}

// Output is what became of a Command: its exit status and the text that it printed besides the standard output.
type Output struct {
	Exit int
	Text string
}

// Exec runs a Command in a cell. An error means that it could not be run.
type Exec func(ctx context.Context, c Command) (Output, error)

// Clone is an agent's clone. The agent controls everything in it, so git is only run there through Exec, and nothing it
// says is believed: what counts is checked again when our repository takes the work over. Nobody else may be running in
// the clone during a call.
type Clone struct {
	Dir  string
	Exec Exec
	Who  Who // author of the agent's commits
}

// LayoutError says that a clone is not in a state that a commit could be made of. Its reason, about "it", is written for the
// agent, who may be able to repair it.
type LayoutError struct{ Reason string }

func (e *LayoutError) Error() string { return e.Reason }

// Out is the ref that a Bundle carries.
const Out = "refs/autoagent/out"

// errEndless stops a script that answers too much.
var errEndless = errors.New("a command in the clone answered too much")

// maxAnswer bounds what a script may answer, in bytes.
const maxAnswer = 4 << 20

// run runs a script in the clone. Its arguments are the script's positional parameters.
func (c Clone) run(ctx context.Context, script string, cmd Command, args ...string) (string, error) {
	st, err := os.Lstat(c.Dir)
	if err != nil || !st.IsDir() {
		return "", errors.Join(&LayoutError{"the folder is not there"}, err)
	}
	if st.Mode()&0o700 != 0o700 { // the agent may have shut us out
		if err := os.Chmod(c.Dir, st.Mode().Perm()|0o700); err != nil {
			return "", err
		}
	}
	answer := &bounded{left: maxAnswer}
	if cmd.Stdout == nil {
		cmd.Stdout = answer
	}
	cmd.Argv = append([]string{"/bin/sh", "-c", prelude() + script, "git", c.config()}, args...)
	cmd.Dir = c.Dir
	cmd.Env = append(append(settled(), "GIT_OPTIONAL_LOCKS=0"), cmd.Env...)
	out, err := c.Exec(ctx, cmd)
	if err != nil {
		return "", err
	}
	switch {
	case out.Exit == refused:
		_, reason, _ := strings.Cut(out.Text, "refused: ")
		return "", &LayoutError{clean(reason)}
	case out.Exit != 0:
		return "", &failure{what: "in the clone", exit: out.Exit, text: out.Text}
	}
	return answer.buf.String(), nil
}

// refusal says whether a git in the clone refused what it found there. A full disk, a missing program and a script that was
// killed are not the clone's doing.
func refusal(err error) bool {
	var f *failure
	return errors.As(err, &f) && f.exit > 0 && f.exit != 126 && f.exit != 127 && !errors.Is(err, syscall.ENOSPC) && !errors.Is(err, syscall.EDQUOT)
}

// identity is the environment for commits that the scripts make by themselves.
func (c Clone) identity(at time.Time) []string { return c.Who.env(at) }

// config is the clone's whole configuration. It is written anew before every call, so that nothing planted survives; the
// agent's own commits get its name from it.
func (c Clone) config() string {
	quote := func(s string) string {
		return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", " ", "\x00", "").Replace(s) + `"`
	}
	return "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = false\n\tlogallrefupdates = true\n" +
		"[user]\n\tname = " + quote(c.Who.Name) + "\n\temail = " + quote(c.Who.Email) + "\n" +
		"[gc]\n\tauto = 0\n[commit]\n\tgpgsign = false\n"
}

// Bundle writes what commit holds and base does not as a bundle, for Repo.FetchBundle.
func (c Clone) Bundle(ctx context.Context, base, commit string, w io.Writer) error {
	if err := valid(base, commit); err != nil {
		return fmt.Errorf("bundle: %w", err)
	}
	if _, err := c.run(ctx, bundleScript, Command{Stdout: w}, base, commit); err != nil {
		return fmt.Errorf("bundle: %w", err)
	}
	return nil
}

// Status says whether the tree differs from HEAD, and what HEAD is: empty if there is no commit. It changes nothing but
// permissions, and removes what git would wait at: FIFOs, sockets, devices, links inside a .git.
func (c Clone) Status(ctx context.Context) (dirty bool, head string, err error) {
	out, err := c.run(ctx, statusScript, Command{})
	if err != nil {
		return false, "", err
	}
	n, head, _ := strings.Cut(strings.TrimSpace(out), " ")
	if head != "" {
		if err := valid(head); err != nil {
			return false, "", err
		}
	}
	return n != "0", head, nil
}

// bounded keeps what is written to it and breaks when it is too much.
type bounded struct {
	buf  bytes.Buffer
	left int
}

func (b *bounded) Write(p []byte) (int, error) {
	if len(p) > b.left {
		return 0, errEndless
	}
	b.left -= len(p)
	return b.buf.Write(p)
}
