package cell

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"

	"golang.org/x/sys/unix"
)

// errNoAnswer means that the cell ended before its shim was heard; what bwrap printed tells why.
var errNoAnswer = errors.New("the cell did not come up")

// order is what the shim is told. It travels over a socket: arguments and environments can be read by others.
type order struct {
	Argv   []string `json:"argv"`
	Env    []string `json:"env"`
	Dir    string   `json:"dir"`
	Limits Limits   `json:"limits"`
	Write  []string `json:"write"`            // paths inside below which Landlock allows writing
	Closed []uint16 `json:"closed,omitempty"` // ports that cannot be connected to
	Listen uint16   `json:"listen,omitempty"` // port of the socket that the starter gets before the answer; 0: none
	Trials []trial  `json:"trials,omitempty"`
}

// answer is what the shim says just before it becomes the program.
type answer struct {
	Walls Walls  `json:"walls"`
	Error string `json:"error,omitempty"`
}

// channel is the starter's end of the socket to the shim: hello from it, the order to it, the answer from it.
type channel struct{ f *os.File }

func newChannel() (*channel, *os.File, error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, os.NewSyscallError("socketpair", err)
	}
	ch, theirs := &channel{os.NewFile(uintptr(fds[0]), "cell")}, os.NewFile(uintptr(fds[1]), "shim")
	// The kernel names the sender of hello in our PID namespace; the shim knows only its number inside.
	if err := unix.SetsockoptInt(fds[0], unix.SOL_SOCKET, unix.SO_PASSCRED, 1); err != nil {
		ch.Close()
		theirs.Close()
		return nil, nil, os.NewSyscallError("setsockopt", err)
	}
	return ch, theirs, nil
}

func (c *channel) Close() error { return c.f.Close() }

// hangUp ends the channel for both sides, also for who waits in it. It may come late: after Close it does nothing.
func (c *channel) hangUp() {
	if raw, err := c.f.SyscallConn(); err == nil {
		_ = raw.Control(func(fd uintptr) { _ = unix.Shutdown(int(fd), unix.SHUT_RDWR) })
	}
}

// hello waits for the shim and returns its process id.
func (c *channel) hello() (int, error) {
	buf, oob := make([]byte, 1), make([]byte, unix.CmsgSpace(unix.SizeofUcred))
	var n, oobn int
	var err error
	for {
		n, oobn, _, _, err = unix.Recvmsg(int(c.f.Fd()), buf, oob, 0)
		if !errors.Is(err, unix.EINTR) {
			break
		}
	}
	if err != nil || n == 0 {
		return 0, errors.Join(errNoAnswer, err)
	}
	messages, err := unix.ParseSocketControlMessage(oob[:oobn])
	if err != nil || len(messages) != 1 {
		return 0, errors.Join(errNoAnswer, err)
	}
	cred, err := unix.ParseUnixCredentials(&messages[0])
	if err != nil || cred.Pid <= 0 {
		return 0, errors.Join(errNoAnswer, err)
	}
	return int(cred.Pid), nil
}

// send gives the order, which the shim takes as its leave to go on, and returns the answer, with the socket that was asked
// for.
func (c *channel) send(o order) (Walls, net.Listener, error) {
	w, l, err := c.ask(o)
	if err != nil && l != nil {
		l.Close()
		l = nil
	}
	return w, l, err
}

func (c *channel) ask(o order) (w Walls, l net.Listener, err error) {
	b, err := json.Marshal(o)
	if err != nil {
		return Walls{}, nil, err
	}
	for len(b) > 0 {
		n, err := unix.SendmsgN(int(c.f.Fd()), b, nil, nil, unix.MSG_NOSIGNAL)
		if err != nil && !errors.Is(err, unix.EINTR) {
			return Walls{}, nil, errors.Join(errNoAnswer, err)
		}
		b = b[max(n, 0):]
	}
	if err := unix.Shutdown(int(c.f.Fd()), unix.SHUT_WR); err != nil {
		return Walls{}, nil, errors.Join(errNoAnswer, err)
	}
	rest := io.Reader(c.f)
	if o.Listen != 0 {
		var instead []byte
		if l, instead, err = c.takeListener(); err != nil {
			return Walls{}, l, err
		}
		rest = io.MultiReader(bytes.NewReader(instead), c.f)
	}
	var a answer
	if err := json.NewDecoder(rest).Decode(&a); errors.Is(err, io.EOF) {
		return Walls{}, l, errNoAnswer
	} else if err != nil {
		return Walls{}, l, errors.Join(errNoAnswer, err)
	}
	if a.Error != "" {
		return a.Walls, l, fmt.Errorf("shim: %s", a.Error)
	}
	if o.Listen != 0 && l == nil {
		return a.Walls, nil, fmt.Errorf("%w: it sent no socket", errNoAnswer)
	}
	return a.Walls, l, nil
}
