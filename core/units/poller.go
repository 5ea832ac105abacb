package units

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"example.com/AutoAgentProject/core/usererr"
)

// pollers is how the names of pollers begin; behind it stands the hash of the bot's token, or of another channel.
const pollers = "forge-autoagent-poller@"

var pollerHash = regexp.MustCompile(`^[0-9a-f]{16}$`)

// IsPoller says whether a name is that of a poller's unit. No mission can have one: no id holds an @.
func IsPoller(name string) bool {
	hash, ok := strings.CutPrefix(name, pollers)
	hash, service := strings.CutSuffix(hash, ".service")
	return ok && service && pollerHash.MatchString(hash)
}

// Poller returns the unit of the host that carries the messages of a user's roots over one channel; hash names the channel. It
// ends by itself when nothing is live and nothing is left to send.
func Poller(s Settings, hash string) (File, error) {
	if !pollerHash.MatchString(hash) {
		return File{}, fmt.Errorf("%q names no channel", hash)
	}
	if err := errors.Join(s.checkHost(), checkPath("the root", s.Root)); err != nil {
		return File{}, err
	}
	if s.Manager == System && (!userName.MatchString(s.User) || s.User == "root" || s.User == "0") {
		return File{}, usererr.New(usererr.Environment, "give the root to an ordinary user", "a poller of the system's manager is its owner's, never root's")
	}
	for _, v := range s.environment() {
		if strings.ContainsFunc(v, func(r rune) bool { return r < ' ' || r == 0x7f }) {
			return File{}, errors.New("settings of units: a variable holds a control character")
		}
	}
	t, err := s.parse()
	if err != nil {
		return File{}, err
	}
	f := fields{Header: header(), System: s.Manager == System, User: s.User, Root: s.Root, Bin: s.Bin, Environment: s.environment(), Grace: seconds(grace),
		Memory: guardMemory, Tasks: guardTasks}.program(s, "AutoAgentProject", hostLimit)
	var b strings.Builder
	if err := t.ExecuteTemplate(&b, "poller.service", f); err != nil {
		return File{}, fmt.Errorf("render the poller's unit: %w", err)
	}
	return File{pollers + hash + ".service", []byte(b.String())}, nil
}
