package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"example.com/AutoAgentProject/core/journal"
	"example.com/AutoAgentProject/core/mission"
	"example.com/AutoAgentProject/core/notify"
	"example.com/AutoAgentProject/core/store"
	"example.com/AutoAgentProject/core/supervisor"
	"example.com/AutoAgentProject/core/systemdengine"
	"example.com/AutoAgentProject/core/telegram"
	"example.com/AutoAgentProject/core/units"
	"example.com/AutoAgentProject/core/usererr"
)

// The channels that carry messages to the person.
const (
	byTelegram = "telegram"
	byExec     = "exec"
	byWebhook  = "webhook"
	byNobody   = "none"
)

// channels are what channel of the configuration can be.
func channels() []string { return []string{byTelegram, byExec, byWebhook, byNobody} }

// carrier is who carries messages: channel of the configuration, else the one that is configured.
func (c config) carrier() string {
	switch {
	case c.Channel != "":
		return c.Channel
	case c.TelegramChat != 0:
		return byTelegram
	case c.NotifyExec != "":
		return byExec
	case c.NotifyWebhook != "":
		return byWebhook
	}
	return byNobody
}

// wrongChannel says what of the channels' configuration cannot be used.
func (c config) wrongChannel() string {
	set := 0
	for _, is := range []bool{c.TelegramChat != 0, c.NotifyExec != "", c.NotifyWebhook != ""} {
		if is {
			set++
		}
	}
	if c.NotifyWebhook != "" && !webhookAddress(c.NotifyWebhook) {
		return "notify_webhook is neither https nor on this machine"
	}
	if _, err := upstream(c.TelegramEndpoint); err != nil {
		return "telegram_endpoint is neither https nor on this machine"
	}
	if _, err := notify.ParseQuiet(c.QuietHours); err != nil {
		return err.Error()
	}
	if _, err := c.tellEvery(); err != nil {
		return err.Error()
	}
	if c.OnError != "" && c.OnError != "ask" && c.OnError != "fail" {
		return fmt.Sprintf("on_error %q is neither ask nor fail", c.OnError)
	}
	switch by := c.carrier(); {
	case c.Channel == "" && set > 1:
		return "more than one channel is configured: name one in channel"
	case c.TelegramTokenFile != "" && !filepath.IsAbs(c.TelegramTokenFile):
		return fmt.Sprintf("telegram_token_file %q is no absolute path", c.TelegramTokenFile)
	case c.NotifyExec != "" && !filepath.IsAbs(c.NotifyExec):
		return fmt.Sprintf("notify_exec %q is no absolute path", c.NotifyExec)
	case by == byTelegram && (c.TelegramChat == 0 || c.TelegramUser <= 0):
		return "Telegram needs telegram_chat and telegram_user"
	case by == byExec && c.NotifyExec == "":
		return "the channel exec needs notify_exec"
	case by == byWebhook && c.NotifyWebhook == "":
		return "the channel webhook needs notify_webhook"
	case by != byTelegram && by != byExec && by != byWebhook && by != byNobody:
		return fmt.Sprintf("there is no channel %q", by)
	}
	return ""
}

// webhookAddress says whether messages may be posted there: https, or this machine.
func webhookAddress(s string) bool {
	u, err := url.Parse(s)
	if err != nil || u.Host == "" || u.User != nil || u.Fragment != "" {
		return false
	}
	ip := net.ParseIP(u.Hostname())
	return u.Scheme == "https" || u.Scheme == "http" && (ip.IsLoopback() || u.Hostname() == "localhost")
}

// tellEvery is how often milestones are told at most; 0 is the default.
func (c config) tellEvery() (time.Duration, error) {
	if c.TellEvery == "" {
		return 0, nil
	}
	d, err := time.ParseDuration(c.TellEvery)
	if err != nil || d < time.Second || d > 7*24*time.Hour {
		return 0, usererr.New(usererr.Usage, "write for example 15m", "tell_every %q is no time from 1s to 168h", c.TellEvery)
	}
	return d, nil
}

// tokenFile is where the bot's token lies: $CREDENTIALS_DIRECTORY of systemd, the configuration, beside the configuration.
func (c *cli) tokenFile(cfg config) (string, error) {
	if d := c.env.Getenv("CREDENTIALS_DIRECTORY"); filepath.IsAbs(d) {
		if path := filepath.Join(d, "telegram"); exists(path) {
			return path, nil
		}
	}
	if cfg.TelegramTokenFile != "" {
		return cfg.TelegramTokenFile, nil
	}
	dir, err := c.configDir()
	return filepath.Join(dir, "telegram-token"), err
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// channelSentence says in a line how the person is told.
func (c *cli) channelSentence() string {
	cfg, err := c.config()
	if err != nil {
		return "no channel: the configuration cannot be read"
	}
	switch cfg.carrier() {
	case byTelegram:
		return "by Telegram"
	case byExec:
		return "by " + cfg.NotifyExec
	case byWebhook:
		return "by " + notify.Webhook{URL: cfg.NotifyWebhook}.Name()
	}
	return "no channel is set: messages stay in notify/ and the log"
}

// poller is what carries the messages of all roots of this user and, with Telegram, brings back what the person says.
type poller struct {
	hash  string // names the bot or the channel for the lock
	dir   string // its files
	roots telegram.Roots
	run   func(ctx context.Context, leave func() bool) error
}

// channelsFolder is where the files of this user's channels lie: with no root, since a channel serves all of them.
func (c *cli) channelsFolder(root store.Root) string {
	if home := c.env.Getenv("HOME"); filepath.IsAbs(home) && exists(home) {
		return filepath.Join(home, ".local", "state", "autoagent", "channels")
	}
	return filepath.Join(root.Host(), "channels")
}

// poller wires the configured channel, and lets it serve this root too. Without a channel it is an error.
func (c *cli) poller(root store.Root, cfg config, log *slog.Logger) (*poller, error) {
	host := c.channelsFolder(root)
	switch cfg.carrier() {
	case byTelegram:
		path, err := c.tokenFile(cfg)
		if err != nil {
			return nil, err
		}
		token, err := telegram.ReadToken(path)
		if err != nil {
			return nil, err
		}
		client, err := telegram.New(token, cfg.TelegramEndpoint)
		if err != nil {
			return nil, err
		}
		roots := telegram.Roots{Dir: telegram.Folder(host, token)}
		p := &telegram.Poller{Client: client, Who: telegram.Who{User: cfg.TelegramUser, Chat: cfg.TelegramChat}, Roots: roots.All,
			Dir: roots.Dir, Bot: telegram.Hash(token), Hands: hands{c}, Now: time.Now, Log: log}
		return &poller{telegram.Hash(token), p.Dir, roots, p.Run}, roots.Add(root)
	case byExec, byWebhook:
		var ch notify.Channel = notify.Exec{Program: cfg.NotifyExec, Env: tickEnvironment(c.env.Getenv)}
		if cfg.carrier() == byWebhook {
			ch = notify.Webhook{URL: cfg.NotifyWebhook}
		}
		name := cfg.carrier() + "-" + telegram.Hash(cfg.NotifyExec+cfg.NotifyWebhook)
		roots := telegram.Roots{Dir: filepath.Join(host, name)}
		courier := &notify.Courier{Channel: ch, Dir: roots.Dir, Now: time.Now, Log: log, Outboxes: func() ([]notify.Outbox, error) {
			all, err := roots.All()
			if err != nil {
				return nil, err
			}
			return telegram.Outboxes(all)
		}}
		// Only this user's: another one's program is another channel.
		return &poller{telegram.Hash(name + strconv.Itoa(os.Geteuid())), courier.Dir, roots, courier.Run}, roots.Add(root)
	}
	return nil, usererr.New(usererr.Usage, "see docs/reporter.md", "no channel is configured, so there is nothing to carry")
}

// lock takes the one lock of the channel on this host.
func (p *poller) lock() (unlock func(), err error) {
	return telegram.Lock(telegram.LockFolder(), p.hash)
}

// nothingLive says whether no mission that it serves is live.
func (p *poller) nothingLive() bool {
	roots, err := p.roots.All()
	if err != nil {
		return false
	}
	for _, root := range roots {
		ids, err := root.IDs()
		if err != nil {
			return false
		}
		for _, id := range ids {
			st := root.Mission(id)
			if stop, err := st.Stopped(); err != nil || stop == nil || !ended(st, *stop) {
				return false
			}
		}
	}
	return true
}

// ended says whether the last message of a mission that stopped was made.
func ended(st *store.Store, stop mission.Stop) bool {
	told, err := endTold(st, stop)
	if err != nil {
		return true // what cannot be read is waited for by nobody
	}
	if !told || time.Since(stop.At) > time.Hour { // a message that is not there by then never comes
		return told
	}
	// The event is there a moment before its message is.
	for _, box := range []notify.State{"new", notify.Sent, notify.Parked} {
		rows, err := (notify.Outbox{Dir: st.Notify()}).Done(box, "")
		if err != nil || slices.ContainsFunc(rows, func(r notify.Row) bool { return r.Level == journal.End && !r.At.Before(stop.At) }) {
			return true
		}
	}
	return false
}

// lastWords is how long the process that finished a mission tries to bring its last message out.
const lastWords = 10 * time.Second

// carryAlong lets messages be carried while a mission is ticked in this process, unless another poller does. What it returns
// ends that when the last message is out, or after lastWords; what is left stays in the outbox for whoever comes next.
//
// A program of the person's is started by a process of its own beside the supervisor, which takes every other child of this
// process for one of the mission's.
func (c *cli) carryAlong(ctx context.Context, s *supervisor.Supervisor, m mission.Mission) (end func()) {
	cfg, err := c.config()
	if err != nil || cfg.carrier() == byNobody || m.Scripted { // a play bothers nobody
		return func() {}
	}
	p, err := c.poller(s.Root, cfg, discard())
	if err != nil {
		c.progress("messages stay in notify/: %v", err)
		return func() {}
	}
	if cfg.carrier() == byExec {
		b := &beside{c: c, root: s.Root}
		s.Beside = b.start
		return b.end
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	last, done := make(chan struct{}), make(chan struct{})
	go func() { defer close(done); p.along(ctx, last) }()
	return func() {
		close(last)
		stop := time.AfterFunc(lastWords, cancel)
		<-done
		stop.Stop()
		cancel()
	}
}

// along carries messages until last is closed and the last message is out.
func (p *poller) along(ctx context.Context, last <-chan struct{}) {
	over := func() bool {
		select {
		case <-last:
			return true
		default:
			return false
		}
	}
	for {
		if unlock, err := p.lock(); err == nil {
			_ = p.run(ctx, over)
			unlock()
		}
		select {
		case <-ctx.Done():
			return
		case <-last:
			return
		case <-time.After(5 * time.Second): // another poller has it; it may go away
		}
	}
}

// pollerTaken is the error for a second poller of a channel.
func pollerTaken(err error) error {
	if errors.Is(err, telegram.ErrTaken) {
		return usererr.New(usererr.Conflict, "it serves all missions of its user; another user needs a bot of their own", "another poller on this host has this channel")
	}
	return err
}

// fixTelling fixes when the person is told.
func fixTelling(m *mission.Mission, o startOptions, cfg config) error {
	m.QuietHours = first(o.quietHours, cfg.QuietHours)
	if _, err := notify.ParseQuiet(m.QuietHours); err != nil {
		return err
	}
	m.Summaries = cfg.Summaries && cfg.carrier() != byNobody && !m.Scripted
	m.Reachable = cfg.carrier() != byNobody && !m.Scripted
	switch on := first(o.onError, cfg.OnError); on {
	case "ask", "fail":
		m.AskErrors, m.Reachable = on == "ask", m.Reachable || on == "ask"
	case "":
		m.AskErrors = m.Reachable // else nobody would see the question
	default:
		return usererr.New(usererr.Usage, "write ask or fail", "--on-error %q is neither ask nor fail", on)
	}
	every, err := cfg.tellEvery()
	m.TellEvery = mission.Duration(every)
	return err
}

// installPoller lets the user manager carry the messages of a root. A mission does without it, so that it is told and no
// more. For the system's manager root does it, when the owner asks.
func (c *cli) installPoller(ctx context.Context, root store.Root, e *systemdengine.Engine) {
	if e.Settings.Manager != units.User {
		return
	}
	hash := c.pollerHash(root)
	if hash == "" {
		return
	}
	if path := c.env.Getenv("AUTOAGENT_CONFIG"); path != "" {
		e.Settings.Env = map[string]string{"AUTOAGENT_CONFIG": path}
	}
	if err := e.EnsurePoller(ctx, hash); err != nil {
		c.progress("warning: messages stay in notify/: %v", err)
	}
}

// pollerHash names the configured channel; empty: there is none that could be used.
func (c *cli) pollerHash(root store.Root) string {
	cfg, err := c.config()
	if err != nil || cfg.carrier() == byNobody {
		return ""
	}
	p, err := c.poller(root, cfg, discard())
	if err != nil {
		c.progress("warning: messages stay in notify/: %v", err)
		return ""
	}
	return p.hash
}
