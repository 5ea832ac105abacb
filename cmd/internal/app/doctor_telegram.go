package app

import (
	"context"
	"errors"
	"fmt"
	"time"

	"example.com/AutoAgentProject/core/journal"
	"example.com/AutoAgentProject/core/notify"
	"example.com/AutoAgentProject/core/preflight"
	"example.com/AutoAgentProject/core/telegram"
	"example.com/AutoAgentProject/core/usererr"
)

// examineTelegram checks the bot, the chat and who is listened to, and says who wrote to the bot last, for pairing. With
// test it sends a message. It confirms nothing to Telegram: what waits there still waits.
func (c *cli) examineTelegram(ctx context.Context, test bool) []preflight.Finding {
	var list []preflight.Finding
	add := func(name string, state preflight.State, remedy, format string, args ...any) {
		list = append(list, preflight.Finding{Name: name, State: state, Text: clean(fmt.Sprintf(format, args...)), Remedy: remedy})
	}
	failed := func(name string, err error) []preflight.Finding {
		remedy := ""
		if u, ok := errors.AsType[*usererr.Error](err); ok {
			remedy = u.Hint
		}
		add(name, preflight.Fail, remedy, "%v", err)
		return list
	}
	cfg, err := c.config()
	if err != nil {
		return failed("config", err)
	}
	root, err := c.store()
	if err != nil {
		return failed("root", err)
	}
	path, err := c.tokenFile(cfg)
	if err != nil {
		return failed("token", err)
	}
	token, err := telegram.ReadToken(path)
	if err != nil {
		return failed("token", err)
	}
	add("token", preflight.OK, "", "in %s, readable by its owner alone", path)
	client, err := telegram.New(token, cfg.TelegramEndpoint)
	if err != nil {
		return failed("token", err)
	}
	name, err := client.Me(ctx)
	if err != nil {
		return failed("bot", err)
	}
	add("bot", preflight.OK, "", "@%s answers", name)

	dir := telegram.Folder(c.channelsFolder(root), token)
	state, err := telegram.ReadState(dir)
	if err != nil {
		return failed("poller", err)
	}
	last := state.Last
	if unlock, lerr := telegram.Lock(telegram.LockFolder(), telegram.Hash(token)); lerr == nil {
		updates, uerr := client.Updates(ctx, state.Offset, 0)
		unlock()
		switch e, _ := errors.AsType[*telegram.Error](uerr); {
		case uerr == nil:
			add("poller", preflight.Warn, "AutoAgentProject poller, or a mission, brings messages", "nobody polls the bot now")
		case e != nil && e.Class == telegram.Taken:
			add("poller", preflight.Fail, "end the other program that polls this bot, or use a bot of its own", "%v", uerr)
		default:
			add("poller", preflight.Fail, "", "%v", uerr)
		}
		for _, u := range updates {
			if _, from, ok := telegram.Read(u, telegram.Who{User: cfg.TelegramUser, Chat: cfg.TelegramChat}, func(string) bool { return false }, time.Now()); !ok && from != 0 {
				last = telegram.Stranger{User: from}
				if u.Message != nil && u.Message.Chat != nil {
					last.Chat = u.Message.Chat.ID
				}
			}
		}
	} else if errors.Is(lerr, telegram.ErrTaken) {
		add("poller", preflight.OK, "", "a poller of this host has the bot")
	} else {
		add("poller", preflight.Fail, "", "%v", lerr)
	}
	if last.User != 0 {
		add("wrote", preflight.OK, "", "telegram_user: %d and telegram_chat: %d is who wrote last and is not listened to; %d updates were ignored", last.User, last.Chat, state.Ignored)
	}
	if cfg.carrier() != byTelegram {
		add("pairing", preflight.Fail, "write to the bot, run doctor again, and put the two ids that it shows into the configuration", "telegram_chat and telegram_user are not configured")
		return list
	}
	chat := cfg.TelegramChat
	if state.From == chat && state.Chat != 0 {
		chat = state.Chat
	}
	kind, err := client.Chat(ctx, chat)
	if err != nil {
		add("chat", preflight.Fail, "write to the bot once; in a group, add it", "%v", err)
		return list
	}
	add("chat", preflight.OK, "", "%d, a %s chat; user %d is listened to", chat, kind, cfg.TelegramUser)
	if h := notify.ReadHealth(dir); h.Failures > 0 {
		add("sending", preflight.Warn, "", "the last %d tries failed: %s", h.Failures, h.Trouble)
	}
	if test {
		s := telegram.Sender{Client: client, Chat: func() int64 { return chat }, Moved: func(id int64) error { chat = id; return nil }}
		m := notify.Message{Level: journal.Milestone, Parts: []notify.Part{{Title: "AutoAgentProject", Text: "This is a test message. Missions reach you here."}}}
		if _, err := s.Send(ctx, m, func() error { return nil }); err != nil {
			return failed("message", err)
		}
		add("message", preflight.OK, "", "a test message arrived")
	}
	return list
}
