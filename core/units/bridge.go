package units

import (
	"errors"
	"fmt"
	"net"
	"regexp"
	"strings"

	"example.com/AutoAgentProject/core/usererr"
)

// Bridge is the base name of the units of the dashboard. No mission can have them: its units of that name have other endings.
const Bridge = "forge-autoagent-bridge"

// IsBridge says whether a name is that of a unit of the dashboard.
func IsBridge(name string) bool { return name == Bridge+".socket" || name == Bridge+".service" }

// BridgeSettings are how the dashboard of the host is reached.
type BridgeSettings struct {
	Listen    string   // address and port
	Hosts     []string // names under which it is asked for
	TokenFile string   // absolute; empty: it asks for none
}

var hostName = regexp.MustCompile(`^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$`)

// BridgeUnits returns the units of the host that start the dashboard of a root when somebody looks: a socket that listens, and
// the service behind it. The token stands in neither; systemd hands it over.
func BridgeUnits(s Settings, b BridgeSettings) ([]File, error) {
	if err := errors.Join(s.checkHost(), checkPath("the root", s.Root)); err != nil {
		return nil, err
	}
	if s.Manager == System && (!userName.MatchString(s.User) || s.User == "root" || s.User == "0") {
		return nil, usererr.New(usererr.Environment, "give the root to an ordinary user", "a dashboard of the system's manager is its owner's, never root's")
	}
	host, port, err := net.SplitHostPort(strings.Replace(b.Listen, "localhost:", "127.0.0.1:", 1))
	if err != nil || net.ParseIP(host) == nil || port == "" || strings.Trim(port, "0123456789") != "" {
		return nil, fmt.Errorf("%q is no address and port", b.Listen)
	}
	for _, h := range b.Hosts {
		if !hostName.MatchString(h) {
			return nil, usererr.New(usererr.Usage, "write it as it stands in the address, without a port", "%q is no name of a host", h)
		}
	}
	if b.TokenFile != "" {
		if err := checkPath("the file of the token", b.TokenFile); err != nil {
			return nil, err
		}
	}
	for _, v := range s.environment() {
		if strings.ContainsFunc(v, func(r rune) bool { return r < ' ' || r == 0x7f }) {
			return nil, errors.New("settings of units: a variable holds a control character")
		}
	}
	t, err := s.parse()
	if err != nil {
		return nil, err
	}
	f := fields{Header: header(), System: s.Manager == System, User: s.User, Root: s.Root, Bin: s.Bin, Environment: s.environment(), Grace: seconds(grace),
		Memory: guardMemory, Tasks: guardTasks, Listen: net.JoinHostPort(host, port), Hosts: strings.Join(b.Hosts, ","), Token: b.TokenFile}.program(s, "autoagent-bridge", hostLimit)
	var out []File
	for _, kind := range []string{".socket", ".service"} {
		var text strings.Builder
		if err := t.ExecuteTemplate(&text, "bridge"+kind, f); err != nil {
			return nil, fmt.Errorf("render %s%s: %w", Bridge, kind, err)
		}
		out = append(out, File{Bridge + kind, []byte(text.String())})
	}
	return out, nil
}
