// Package telegram is the one place that talks to a Telegram bot: messages with buttons go out, commands and presses of
// the one person it listens to come in. There is one poller for a bot on a host.
package telegram

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"strings"
	"sync"
	"time"

	tgbotapi "github.com/go-telegram-bot-api/telegram-bot-api/v5"

	"example.com/AutoAgentProject/core/files"
	"example.com/AutoAgentProject/core/notify"
	"example.com/AutoAgentProject/core/usererr"
)

// Endpoint is where bots are, if nothing else is configured.
const Endpoint = "https://api.telegram.org"

const (
	sendTimeout = 30 * time.Second // a delivery that takes longer has an unknown outcome
	maxAnswer   = 8 << 20          // bytes of one answer
)

// Client calls a bot. The library builds the requests and reads the answers; what it does not do is done here: contexts,
// limits, the status of an answer that is no JSON, and errors without the token.
type Client struct {
	token    string
	endpoint string
	http     *http.Client
}

var tokenForm = regexp.MustCompile(`^[0-9]{1,20}:[A-Za-z0-9_-]{1,200}$`)

// silence takes the library's own log away: it would print what it sends.
var silence = sync.OnceFunc(func() { _ = tgbotapi.SetLogger(mute{}) })

type mute struct{}

func (mute) Println(...any)        {}
func (mute) Printf(string, ...any) {}

// New returns a client; it calls nothing. endpoint is empty for Telegram itself.
func New(token, endpoint string) (*Client, error) {
	silence()
	if !tokenForm.MatchString(token) {
		return nil, usererr.New(usererr.Environment, "@BotFather gives one, like 123456:ABC-DEF", "the bot's token has not the form of one")
	}
	if endpoint == "" {
		endpoint = Endpoint
	}
	return &Client{token: token, endpoint: strings.TrimRight(endpoint, "/"), http: &http.Client{
		Transport:     &http.Transport{Proxy: http.ProxyFromEnvironment, ForceAttemptHTTP2: true, TLSHandshakeTimeout: 15 * time.Second, IdleConnTimeout: 90 * time.Second, MaxIdleConnsPerHost: 4},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, nil
}

// ReadToken reads the file with the bot's token. One that others can read is refused; its content stays unsaid.
func ReadToken(path string) (string, error) {
	const hint = "put the token of @BotFather into that file and chmod 600 it"
	st, err := os.Lstat(path)
	if err != nil {
		return "", usererr.Wrap(err, usererr.Environment, hint, "the file with the bot's token cannot be read")
	}
	if st.Mode().Perm()&0o077 != 0 {
		return "", usererr.New(usererr.Environment, "chmod 600 "+path, "the bot's token %s can be read by others", path)
	}
	b, err := files.Read(path, 4096)
	if err != nil {
		return "", usererr.Wrap(err, usererr.Environment, hint, "the file with the bot's token cannot be read")
	}
	token := strings.TrimSpace(string(b))
	if !tokenForm.MatchString(token) {
		return "", usererr.New(usererr.Environment, hint, "%s holds no bot's token", path)
	}
	return token, nil
}

// Hash names a bot without its token: 16 characters.
func Hash(token string) string {
	sum := sha256.Sum256([]byte("autoagent telegram " + token))
	return hex.EncodeToString(sum[:8])
}

// redact takes the token, and its secret half, out of a text.
func (c *Client) redact(s string) string {
	_, secret, _ := strings.Cut(c.token, ":")
	for _, t := range []string{c.token, url.PathEscape(c.token), url.QueryEscape(c.token), secret} {
		s = strings.ReplaceAll(s, t, "[token]")
	}
	return s
}

// Class is what an error means for whoever called.
type Class int

const (
	Bad         Class = iota // 400: this request can never be done
	Passing                  // nothing was done; later it may be
	Unknown                  // it may have been done
	Slow                     // 429: not before After
	Moved                    // the chat has another id now: Chat
	Taken                    // 409: somebody else polls this bot, or it has a webhook
	NotOurs                  // 401, 404: the token is refused
	Unreachable              // 403, or 400 for the chat: the person's chat does not take messages
)

// Error is a call that failed. It holds no token.
type Error struct {
	Class Class
	After time.Duration
	Chat  int64
	Code  int // HTTP status; 0: no answer
	Text  string
}

func (e *Error) Error() string { return "Telegram: " + e.Text }

// call is one request: the library's HTTP client with a context, that notes what the library would lose.
type call struct {
	c      *Client
	ctx    context.Context
	before func() error // before anything leaves; nil: nothing to do
	left   bool         // the request may have arrived
	failed error        // what before said
	status int
}

// Do sends the request.
func (k *call) Do(req *http.Request) (*http.Response, error) {
	req = req.WithContext(k.ctx)
	if req.Body == nil || req.Body == http.NoBody {
		req.Body = io.NopCloser(strings.NewReader(""))
	}
	var failed error
	gate := &notify.Gate{Body: req.Body, Before: func() error {
		if k.before != nil {
			failed = k.before()
		}
		return failed
	}}
	req.Body, req.GetBody = gate, nil // a request is never made twice by the transport
	resp, err := k.c.http.Do(req)
	k.left = gate.Shut()
	k.failed = failed
	if err != nil {
		if u, ok := errors.AsType[*url.Error](err); ok {
			err = u.Err // the rest of it is the address, with the token
		}
		return nil, err
	}
	k.status = resp.StatusCode
	resp.Body = struct {
		io.Reader
		io.Closer
	}{io.LimitReader(resp.Body, maxAnswer), resp.Body}
	return resp, nil
}

// do lets the library make one request, within a time.
func (c *Client) do(ctx context.Context, timeout time.Duration, f func(*tgbotapi.BotAPI) error) error {
	return c.doAfter(ctx, timeout, nil, f)
}

// doAfter is do with something that has to be done before the request leaves.
func (c *Client) doAfter(ctx context.Context, timeout time.Duration, before func() error, f func(*tgbotapi.BotAPI) error) error {
	ctx, done := context.WithTimeout(ctx, timeout)
	defer done()
	k := &call{c: c, ctx: ctx, before: before}
	bot := &tgbotapi.BotAPI{Token: c.token, Client: k, Buffer: 100}
	bot.SetAPIEndpoint(strings.ReplaceAll(c.endpoint, "%", "%%") + "/bot%s/%s")
	err := f(bot)
	if err == nil {
		return nil
	}
	return c.classify(k, err)
}

// classify reads an error by everything that is known of the call: the status, Telegram's own words, and whether the
// request can have arrived.
func (c *Client) classify(k *call, err error) *Error {
	out := &Error{Class: Bad, Code: k.status, Text: c.redact(err.Error())}
	api, ours := errors.AsType[*tgbotapi.Error](err)
	if ours && api.RetryAfter > 0 { // an upload loses the code, not this
		out.Class, out.After = Slow, time.Duration(api.RetryAfter+1)*time.Second
		return out
	}
	if ours && api.MigrateToChatID != 0 {
		out.Class, out.Chat = Moved, api.MigrateToChatID
		return out
	}
	code := k.status
	if ours && api.Code != 0 {
		code = api.Code
	}
	text := strings.ToLower(err.Error())
	switch {
	case k.status == 0 && (!k.left || k.failed != nil):
		out.Class = Passing
	case k.status == 0:
		out.Class = Unknown
	case code == http.StatusTooManyRequests:
		out.Class, out.After = Slow, 5*time.Second
	case code == http.StatusConflict:
		out.Class = Taken
	case code == http.StatusUnauthorized || code == http.StatusNotFound:
		out.Class = NotOurs
	case code == http.StatusForbidden || code == http.StatusBadRequest && (strings.Contains(text, "chat not found") || strings.Contains(text, "not enough rights") || strings.Contains(text, "have no rights")):
		out.Class = Unreachable
	case code == http.StatusGatewayTimeout || code/100 == 2: // a good status with an answer that is cut off
		out.Class = Unknown
	case code/100 == 5 || code/100 == 3:
		out.Class = Passing
	case !ours && code/100 == 4:
		out.Class = Passing // not Telegram's own words: something on the way
	}
	if !ours {
		out.Text = c.redact(fmt.Sprintf("answer %d that is no JSON (%v)", k.status, err))
		if k.status == 0 {
			out.Text = c.redact(err.Error())
		}
	}
	return out
}

// Me is the bot itself.
func (c *Client) Me(ctx context.Context) (name string, err error) {
	err = c.do(ctx, sendTimeout, func(b *tgbotapi.BotAPI) error {
		u, err := b.GetMe()
		name = u.UserName
		return err
	})
	return name, err
}

// Chat says that the bot knows a chat, and what kind it is.
func (c *Client) Chat(ctx context.Context, id int64) (kind string, err error) {
	err = c.do(ctx, sendTimeout, func(b *tgbotapi.BotAPI) error {
		chat, err := b.GetChat(tgbotapi.ChatInfoConfig{ChatConfig: tgbotapi.ChatConfig{ChatID: id}})
		kind = chat.Type
		return err
	})
	return kind, err
}

// PollTime is how long a poll waits for something to come.
const PollTime = 50 * time.Second

// Updates waits up to wait for what came from offset on. An offset tells Telegram that everything before it is kept here.
// An update of a kind that this program does not know is passed over.
func (c *Client) Updates(ctx context.Context, offset int, wait time.Duration) ([]tgbotapi.Update, error) {
	var out []tgbotapi.Update
	err := c.do(ctx, wait+15*time.Second, func(b *tgbotapi.BotAPI) error {
		resp, err := b.Request(tgbotapi.UpdateConfig{Offset: offset, Limit: 100, Timeout: int(wait.Seconds()), AllowedUpdates: []string{"message", "callback_query"}})
		if err != nil {
			return err
		}
		out, err = updates(resp.Result)
		return err
	})
	return out, err
}

// updates reads a list of updates. One that is not as the library knows them must not hold up all that follow: of it only
// the id is kept, so that it is confirmed.
func updates(list []byte) ([]tgbotapi.Update, error) {
	var raw []json.RawMessage
	if err := json.Unmarshal(list, &raw); err != nil {
		return nil, err
	}
	var out []tgbotapi.Update
	for _, r := range raw {
		var u tgbotapi.Update
		if err := json.Unmarshal(r, &u); err != nil {
			var id struct {
				UpdateID int `json:"update_id"`
			}
			if json.Unmarshal(r, &id) != nil {
				continue
			}
			u = tgbotapi.Update{UpdateID: id.UpdateID}
		}
		out = append(out, u)
	}
	return out, nil
}

// Answer ends the waiting of a button that was pressed. It is a courtesy: old presses cannot be answered.
func (c *Client) Answer(ctx context.Context, query, text string) error {
	return c.do(ctx, sendTimeout, func(b *tgbotapi.BotAPI) error {
		_, err := b.Request(tgbotapi.CallbackConfig{CallbackQueryID: query, Text: Cut(text, maxToast)})
		return err
	})
}

// CloseButtons puts a text in place of a message and takes its buttons away. It is repeatable.
func (c *Client) CloseButtons(ctx context.Context, chat int64, message int, text string, bold []tgbotapi.MessageEntity) error {
	err := c.do(ctx, sendTimeout, func(b *tgbotapi.BotAPI) error {
		e := tgbotapi.NewEditMessageText(chat, message, text)
		e.Entities = bold
		e.DisableWebPagePreview = true
		_, err := b.Request(e)
		return err
	})
	if e, ok := errors.AsType[*Error](err); ok && strings.Contains(e.Text, "message is not modified") {
		return nil
	}
	return err
}
