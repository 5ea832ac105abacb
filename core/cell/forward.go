package cell

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// Forward is the one way out of a cell without a network: who connects to 127.0.0.1:Port inside is connected to what Dial
// returns. Dial is called in the starter's process, for each connection anew.
type Forward struct {
	Port uint16
	Dial func(context.Context) (net.Conn, error)
}

// ForwardTo leads to an address of the host: the absolute path of a Unix socket, or host:port.
func ForwardTo(port uint16, address string) *Forward {
	network := "tcp"
	if strings.HasPrefix(address, "/") {
		network = "unix"
	}
	return &Forward{Port: port, Dial: func(ctx context.Context) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, address)
	}}
}

// listenInside makes the socket in the shim, whose network is the cell's. A socket belongs to the network it was made in,
// whoever holds it: the starter accepts what arrives at it, and nothing of ours has to run inside.
func listenInside(port uint16) (int, error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return -1, os.NewSyscallError("socket", err)
	}
	if err := unix.Bind(fd, &unix.SockaddrInet4{Port: int(port), Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		unix.Close(fd)
		return -1, fmt.Errorf("listen on port %d inside: %w", port, os.NewSyscallError("bind", err))
	}
	if err := unix.Listen(fd, unix.SOMAXCONN); err != nil {
		unix.Close(fd)
		return -1, os.NewSyscallError("listen", err)
	}
	return fd, nil
}

// handOver sends the listening socket to the starter, before the answer.
func handOver(ch *os.File, fd int) error {
	err := unix.Sendmsg(int(ch.Fd()), []byte{listenerFollows}, unix.UnixRights(fd), nil, unix.MSG_NOSIGNAL)
	unix.Close(fd)
	return os.NewSyscallError("sendmsg", err)
}

// listenerFollows is the byte that carries the socket; an answer begins with another one.
const listenerFollows = 'L'

// takeListener receives it. What came instead is the beginning of the answer.
func (c *channel) takeListener() (l net.Listener, instead []byte, err error) {
	buf, oob := make([]byte, 1), make([]byte, unix.CmsgSpace(unix.SizeofUcred)+unix.CmsgSpace(4))
	var n, oobn int
	for {
		n, oobn, _, _, err = unix.Recvmsg(int(c.f.Fd()), buf, oob, unix.MSG_CMSG_CLOEXEC)
		if !errors.Is(err, unix.EINTR) {
			break
		}
	}
	if err != nil || n == 0 {
		return nil, nil, errors.Join(errNoAnswer, err)
	}
	messages, err := unix.ParseSocketControlMessage(oob[:oobn])
	if err != nil {
		return nil, nil, errors.Join(errNoAnswer, err)
	}
	for _, m := range messages {
		fds, err := unix.ParseUnixRights(&m)
		if err != nil || len(fds) != 1 {
			continue
		}
		f := os.NewFile(uintptr(fds[0]), "listener of the cell")
		defer f.Close()
		l, err = net.FileListener(f)
		return l, nil, err
	}
	if buf[0] == listenerFollows {
		return nil, nil, fmt.Errorf("%w: it sent no socket", errNoAnswer)
	}
	return nil, buf, nil
}

// serve connects until the listener closes; then it ends what is open.
func (f *Forward) serve(l net.Listener) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		go f.connect(ctx, c)
	}
}

func (f *Forward) connect(ctx context.Context, inside net.Conn) {
	defer inside.Close()
	outside, err := f.Dial(ctx)
	if err != nil {
		return
	}
	defer outside.Close()
	stop := context.AfterFunc(ctx, func() { inside.Close(); outside.Close() })
	defer stop()
	var both sync.WaitGroup
	for _, way := range [][2]net.Conn{{inside, outside}, {outside, inside}} {
		both.Go(func() {
			_, err := io.Copy(way[1], way[0])
			if half, ok := way[1].(interface{ CloseWrite() error }); ok && err == nil {
				_ = half.CloseWrite()
				return
			}
			inside.Close()
			outside.Close()
		})
	}
	both.Wait()
}
