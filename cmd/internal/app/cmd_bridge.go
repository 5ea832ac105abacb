package app

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/coreos/go-systemd/v22/activation"
	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"example.com/AutoAgentProject/bridge"
	"example.com/AutoAgentProject/core/cell"
	"example.com/AutoAgentProject/core/engine"
	"example.com/AutoAgentProject/core/flow"
	"example.com/AutoAgentProject/core/mission"
	"example.com/AutoAgentProject/core/runner"
	"example.com/AutoAgentProject/core/store"
	"example.com/AutoAgentProject/core/units"
	"example.com/AutoAgentProject/core/usererr"
	"example.com/AutoAgentProject/core/view"
)

// bridgeOptions are how the dashboard is served.
type bridgeOptions struct {
	listen    string
	hosts     []string
	tokenFile string
	idle      time.Duration
}

func (c *cli) bridgeCommand() *cobra.Command {
	o := bridgeOptions{}
	cmd := &cobra.Command{
		Use:   "bridge",
		Short: "Show all missions in a browser, read-only",
		Long: "Serve the dashboard in the foreground until Ctrl-C: all missions, what they cost, what waits for you, and why something\n" +
			"stopped. It changes nothing and answers this machine only. Any other address needs a token, which a browser asks for\n" +
			"as a password; put something that encrypts in front of it.",
		Example: "  AutoAgentProject bridge\n  AutoAgentProject bridge --listen 127.0.0.1:8080\n  AutoAgentProject bridge install",
		Args:    exactly(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGTERM)
			defer stop()
			root, err := c.store()
			if err != nil {
				return err
			}
			return c.serveBridge(ctx, root, o, func(l net.Listener) {
				c.say("http://%s shows the missions below %s. Ctrl-C ends it.", l.Addr(), root)
			})
		},
	}
	flags := func(cmd *cobra.Command) {
		cmd.Flags().StringVar(&o.listen, "listen", bridge.DefaultListen, "`address` and port to answer on")
		cmd.Flags().StringArrayVar(&o.hosts, "host", nil, "`name` under which it is asked for besides localhost; may be repeated")
		cmd.Flags().StringVar(&o.tokenFile, "token-file", "", "`file` of mode 0600 with the token that who asks must bring")
	}
	flags(cmd)
	install := &cobra.Command{
		Use:   "install",
		Short: "Start the dashboard by systemd when somebody looks",
		Long: "Put forge-autoagent-bridge.socket and .service into the user manager of whoever runs this, or as root into the\n" +
			"system's, and let the socket listen. The dashboard runs while somebody looks, and ends by itself.",
		Example: "  AutoAgentProject bridge install --listen 127.0.0.1:7777",
		Args:    exactly(0, "no arguments"),
		RunE:    func(cmd *cobra.Command, _ []string) error { return c.installBridge(cmd.Context(), o) },
	}
	flags(install)
	cmd.AddCommand(install, &cobra.Command{
		Use:     "uninstall",
		Short:   "Take the units of the dashboard away",
		Long:    "Stop the dashboard that systemd starts and take its units away. No mission is touched.",
		Example: "  AutoAgentProject bridge uninstall",
		Args:    exactly(0, "no arguments"),
		RunE:    func(cmd *cobra.Command, _ []string) error { return c.uninstallBridge(cmd.Context()) },
	})
	return cmd
}

// BridgeMain is the main of autoagent-bridge, the dashboard that systemd starts: it takes over the socket that it is handed, and
// ends when nobody looks. Without one it listens by itself.
func BridgeMain(env Env) (status int) {
	const name = "autoagent-bridge"
	defer catch(env, name, &status)
	f := flag.NewFlagSet(name, flag.ContinueOnError)
	f.SetOutput(io.Discard)
	c := &cli{env: env}
	o := bridgeOptions{}
	f.StringVar(&c.rootFlag, "root", "", "folder of all missions")
	f.StringVar(&o.listen, "listen", bridge.DefaultListen, "address and port")
	f.StringVar(&o.tokenFile, "token-file", "", "file with the token")
	f.DurationVar(&o.idle, "idle", 10*time.Minute, "end when nobody looked for so long; 0: never")
	hosts := f.String("hosts", "", "names under which it is asked for, with commas")
	version := f.Bool("version", false, "print the version")
	err := f.Parse(env.Args)
	switch {
	case err != nil || f.NArg() > 0:
		return sayError(env.Stderr, name, usererr.New(usererr.Usage, "AutoAgentProject bridge --help tells how the dashboard is served", "the arguments are wrong"))
	case *version:
		fmt.Fprintln(env.Stdout, name+" "+Version())
		return int(usererr.OK)
	}
	if *hosts != "" {
		o.hosts = strings.Split(*hosts, ",")
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	root, err := c.store()
	if err == nil {
		err = c.serveBridge(ctx, root, o, func(net.Listener) {})
	}
	return sayError(env.Stderr, name, err)
}

// serveBridge serves the dashboard until ctx ends.
func (c *cli) serveBridge(ctx context.Context, root store.Root, o bridgeOptions, ready func(net.Listener)) error {
	token, err := c.bridgeToken(o.tokenFile)
	if err != nil {
		return err
	}
	r, err := c.reader(root)
	if err != nil {
		return err
	}
	s, err := bridge.New(bridge.Config{View: r, Hosts: lower(o.hosts), Token: token, Idle: o.idle, Version: Version(), Log: slog.New(slog.NewTextHandler(c.env.Stderr, nil))})
	if err != nil {
		return err
	}
	l, err := bridgeListener(o.listen, token)
	if err != nil {
		return err
	}
	if err := bridge.Check(l, token); err != nil {
		return errors.Join(err, l.Close())
	}
	ready(l)
	return s.Serve(ctx, l)
}

// bridgeListener is the socket that systemd hands over, else a new one.
func bridgeListener(listen, token string) (net.Listener, error) {
	handed, err := activation.Listeners()
	if err != nil {
		return nil, err
	}
	for _, l := range handed {
		if l != nil {
			return l, nil
		}
	}
	if err := checkListen(listen, token); err != nil {
		return nil, err
	}
	l, err := net.Listen("tcp", listen)
	if err != nil {
		return nil, usererr.Wrap(err, usererr.Environment, "give another address in --listen", "nobody can listen on %s", listen)
	}
	return l, nil
}

// checkListen refuses what is no address with a port, and one that others can reach without a token.
func checkListen(listen, token string) error {
	host, port, err := net.SplitHostPort(listen)
	if err == nil && host != "localhost" && net.ParseIP(host) == nil {
		err = errors.New("no number of an address")
	}
	if err == nil && (port == "" || strings.Trim(port, "0123456789") != "") {
		err = errors.New("no port")
	}
	if err != nil {
		return usererr.New(usererr.Usage, "write --listen "+bridge.DefaultListen, "%q is no address and port to listen on", listen)
	}
	if host != "localhost" && !net.ParseIP(host).IsLoopback() && token == "" {
		return usererr.New(usererr.Usage, "give --token-file FILE, a file of mode 0600 with 16 characters or more, or listen on "+bridge.DefaultListen, "others can reach %s, and there is no token", listen)
	}
	return nil
}

// bridgeToken reads the token: from the file, else from the credential bridge-token that systemd hands over; empty without.
func (c *cli) bridgeToken(file string) (string, error) {
	named := file != ""
	if dir := c.env.Getenv("CREDENTIALS_DIRECTORY"); !named && dir != "" {
		file = filepath.Join(dir, "bridge-token")
	}
	if file == "" {
		return "", nil
	}
	f, err := os.OpenFile(file, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) && !named {
		return "", nil
	}
	if err != nil {
		return "", usererr.Wrap(err, usererr.Usage, "make it: (umask 077; openssl rand -hex 24 > FILE)", "the token cannot be read")
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return "", err
	}
	if !st.Mode().IsRegular() || named && st.Mode().Perm()&0o077 != 0 {
		return "", usererr.New(usererr.Usage, "chmod 600 "+file, "others may read the file of the token, %s", file)
	}
	b, err := io.ReadAll(io.LimitReader(f, 4097))
	token := strings.TrimSpace(string(b))
	if err != nil || len(token) < 16 || len(b) > 4096 || strings.ContainsAny(token, " \t\r\n\x00") {
		return "", usererr.New(usererr.Usage, "make it: (umask 077; openssl rand -hex 24 > FILE)", "%s holds no token of 16 characters or more on one line", file)
	}
	return token, nil
}

func lower(list []string) []string {
	var out []string
	for _, s := range list {
		out = append(out, strings.ToLower(strings.TrimSuffix(strings.TrimSpace(s), ".")))
	}
	return out
}

// flowOf is the flow that a mission follows, as it was at its start.
func flowOf(st *store.Store, m mission.Mission) (*flow.Flow, error) {
	have, err := missionCraft(st)
	if err != nil {
		return nil, err
	}
	return have.missionFlow(m)
}

// reader wires what reads missions for many requests.
func (c *cli) reader(root store.Root) (*view.Reader, error) {
	profs, err := professions()
	if err != nil {
		return nil, err
	}
	return &view.Reader{Root: root, Professions: profs, Hint: c.rootHint(root), Flow: flowOf,
		Live: func(ctx context.Context, st *store.Store) (engine.Live, error) {
			ctx, done := context.WithTimeout(ctx, 3*time.Second)
			defer done()
			return c.live(ctx, root, st)
		},
		Describe: func(r io.Reader, each func(runner.Event)) error {
			return newRunner("", "", cell.Launcher{}).Describe(r, each)
		}}, nil
}

// installBridge puts the host's units of the dashboard in place.
func (c *cli) installBridge(ctx context.Context, o bridgeOptions) error {
	root, err := c.store()
	if err != nil {
		return err
	}
	if o.tokenFile != "" {
		if o.tokenFile, err = filepath.Abs(o.tokenFile); err != nil {
			return err
		}
	}
	token, err := c.bridgeToken(o.tokenFile)
	if err != nil {
		return err
	}
	if err := checkListen(o.listen, token); err != nil {
		return err
	}
	e, err := c.newSystemd(root, ownManager(), discard())
	if err != nil {
		return err
	}
	if err := e.EnsureBridge(ctx, units.BridgeSettings{Listen: o.listen, Hosts: lower(o.hosts), TokenFile: o.tokenFile}); err != nil {
		return err
	}
	if c.json {
		return c.printJSON(map[string]string{"url": "http://" + o.listen + "/"})
	}
	c.say("http://%s/ shows the missions below %s. AutoAgentProject bridge uninstall takes it away.", o.listen, root)
	return nil
}

func (c *cli) uninstallBridge(ctx context.Context) error {
	root, err := c.store()
	if err != nil {
		return err
	}
	e, err := c.newSystemd(root, ownManager(), discard())
	if err != nil {
		return err
	}
	return e.RemoveBridge(ctx)
}
