package telegram

import (
	"context"
	"errors"
	"strings"
	"time"

	tgbotapi "github.com/go-telegram-bot-api/telegram-bot-api/v5"

	"example.com/AutoAgentProject/core/notify"
)

// longText is how many units are still sent as messages; what is longer goes as a file.
const longText = 3 * MaxText

// Sender is the channel of one chat.
type Sender struct {
	Client *Client
	// Chat is where it goes; Moved keeps the new id of a group that was upgraded.
	Chat  func() int64
	Moved func(id int64) error
	// Every is the pause between two messages; 0 is what Telegram asks for.
	Every time.Duration
}

// Name names the channel in words.
func (s Sender) Name() string { return "Telegram" }

// Gap keeps to one message in a second, in a group to 20 in a minute.
func (s Sender) Gap() time.Duration {
	if s.Every > 0 {
		return s.Every
	}
	if s.Chat() < 0 {
		return 3 * time.Second
	}
	return time.Second
}

// troubled is the pause while the bot or the chat takes nothing: a person has to do something first.
const troubled = time.Minute

// Send sends the next piece of a message. Text is sent without any markup, with ranges that are bold; where Telegram does
// not like those the same text goes once more without.
func (s Sender) Send(ctx context.Context, m notify.Message, before func() error) (notify.Receipt, error) {
	got, err := s.try(ctx, m, before, true)
	if e, ok := errors.AsType[*Error](err); ok && e.Class == Moved {
		if merr := s.Moved(e.Chat); merr != nil {
			return got, &notify.Refused{Err: merr}
		}
		got, err = s.try(ctx, m, before, true)
	}
	if e, ok := errors.AsType[*Error](err); ok && e.Class == Bad {
		got, err = s.try(ctx, m, before, false)
	}
	e, ok := errors.AsType[*Error](err)
	if !ok {
		return got, err
	}
	switch e.Class {
	case Unknown:
		return got, &notify.Uncertain{Err: e}
	case Slow:
		return got, &notify.Refused{After: e.After, Err: e}
	case Passing, Taken, Moved:
		return got, &notify.Refused{Err: e}
	case NotOurs, Unreachable:
		return got, &notify.Refused{After: troubled, Err: e}
	}
	return got, err
}

// try makes one delivery: a file with all of a long text, or the next piece of it.
func (s Sender) try(ctx context.Context, m notify.Message, before func() error, bold bool) (notify.Receipt, error) {
	text, spans := m.Text()
	if !bold {
		spans = nil
	}
	var got notify.Receipt
	var c tgbotapi.Chattable
	if m.Done == 0 && notify.Units(text) > longText {
		name := "messages.txt"
		if m.Mission != "" {
			name = m.Mission + ".txt"
		}
		d := tgbotapi.NewDocument(s.Chat(), tgbotapi.FileBytes{Name: name, Bytes: []byte(text)})
		caption := Piece(text, MaxCaption-60)
		d.Caption = caption + "…"
		d.CaptionEntities = Clip(spans, 0, notify.Units(caption))
		if m.Again {
			d.Caption += notify.AgainMark
		}
		if k := keyboard(m.Buttons); k != nil {
			d.ReplyMarkup = k
		}
		c = d
	} else {
		limit := MaxText
		if m.Again {
			limit -= notify.Units(notify.AgainMark)
		}
		rest := After(text, m.Done)
		piece := rest
		if notify.Units(rest) > limit {
			piece = Piece(rest, limit)
		}
		got.Done = notify.Units(piece)
		got.More = len(piece) < len(rest)
		if strings.TrimSpace(piece) == "" { // Telegram takes no empty text
			return got, nil
		}
		msg := tgbotapi.NewMessage(s.Chat(), piece)
		msg.Entities = Clip(spans, m.Done, got.Done)
		msg.DisableWebPagePreview = true
		if m.Again {
			msg.Text += notify.AgainMark
		}
		if k := keyboard(m.Buttons); k != nil && !got.More {
			msg.ReplyMarkup = k
		}
		c = msg
	}
	err := s.Client.doAfter(ctx, sendTimeout, before, func(b *tgbotapi.BotAPI) error {
		sent, err := b.Send(c)
		got.ID = sent.MessageID
		return err
	})
	return got, err
}

func keyboard(buttons []notify.Button) *tgbotapi.InlineKeyboardMarkup {
	if len(buttons) == 0 {
		return nil
	}
	var row []tgbotapi.InlineKeyboardButton
	for _, b := range buttons {
		row = append(row, tgbotapi.NewInlineKeyboardButtonData(b.Text, b.Data))
	}
	k := tgbotapi.NewInlineKeyboardMarkup(row)
	return &k
}
