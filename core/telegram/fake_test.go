package telegram

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf16"
	"unicode/utf8"

	tgbotapi "github.com/go-telegram-bot-api/telegram-bot-api/v5"
)

const (
	testToken = "123456:AAAbbbCCC-ddd_eee"
	testUser  = int64(4000000001)
	testChat  = int64(4000000001)
)

// message is one that the fake shows in the chat.
type message struct {
	ID       int
	Chat     int64
	Text     string
	Bold     []string // what is shown in bold
	Keyboard tgbotapi.InlineKeyboardMarkup
	Document string // its content
	Edited   int
}

// fault is what the fake does with a send instead of taking it.
type fault struct {
	code    int           // status
	body    string        // of the answer; JSON or not
	deliver bool          // it is shown in the chat all the same
	cut     bool          // the connection breaks before the answer
	hang    time.Duration // before the answer
}

// fake is a Telegram that takes nothing which the real one would refuse, and counts every request.
type fake struct {
	t      testing.TB
	server *httptest.Server

	mu       sync.Mutex
	requests []string // method of each request
	messages []message
	updates  []map[string]any
	offset   int
	nextUp   int
	nextMsg  int
	polling  bool
	answered []string
	faults   []fault // of the next sends
	edits    []fault // of the next edits
	chat     int64
	news     chan struct{}
}

func newFake(t testing.TB) *fake {
	f := &fake{t: t, nextUp: 1000, nextMsg: 1, chat: testChat, news: make(chan struct{}, 1)}
	f.server = httptest.NewServer(f)
	t.Cleanup(func() { f.server.CloseClientConnections(); f.server.Close() })
	return f
}

func (f *fake) client() *Client {
	c, err := New(testToken, f.server.URL)
	if err != nil {
		f.t.Fatal(err)
	}
	return c
}

// count is how many requests of a method there were.
func (f *fake) count(method string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := 0
	for _, m := range f.requests {
		if m == method || method == "send" && (m == "sendMessage" || m == "sendDocument") {
			n++
		}
	}
	return n
}

func (f *fake) shown() []message {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.messages)
}

func (f *fake) breaks(list ...fault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.faults = append(f.faults, list...)
}

// update puts something into the queue of updates and returns its id.
func (f *fake) update(u map[string]any) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	id := f.nextUp
	f.nextUp++
	u["update_id"] = id
	f.updates = append(f.updates, u)
	select {
	case f.news <- struct{}{}:
	default:
	}
	return id
}

func person(id int64) map[string]any {
	return map[string]any{"id": id, "is_bot": false, "first_name": "P"}
}

func chatOf(id int64) map[string]any { return map[string]any{"id": id, "type": "private"} }

// writes lets the person write a text.
func (f *fake) writes(text string) int {
	return f.update(map[string]any{"message": map[string]any{"message_id": 1, "date": 1, "from": person(testUser), "chat": chatOf(testChat), "text": text}})
}

// presses lets a user press a button of a message.
func (f *fake) presses(user int64, data string) int {
	return f.update(map[string]any{"callback_query": map[string]any{"id": fmt.Sprint("q", len(f.updates)), "from": person(user), "data": data,
		"message": map[string]any{"message_id": 1, "date": 0, "chat": chatOf(testChat)}}})
}

func (f *fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path, ok := strings.CutPrefix(r.URL.Path, "/bot"+testToken+"/")
	if !ok {
		reply(w, 401, map[string]any{"ok": false, "error_code": 401, "description": "Unauthorized"})
		return
	}
	if r.Method != http.MethodPost {
		f.t.Errorf("%s %s", r.Method, path)
	}
	if err := r.ParseMultipartForm(1 << 20); err != nil && err != http.ErrNotMultipart {
		f.t.Error(err)
	}
	f.mu.Lock()
	f.requests = append(f.requests, path)
	f.mu.Unlock()
	switch path {
	case "getMe":
		good(w, map[string]any{"id": 123456, "is_bot": true, "first_name": "B", "username": "example_bot"})
	case "getChat":
		good(w, chatOf(f.chat))
	case "getUpdates":
		f.getUpdates(w, r)
	case "sendMessage", "sendDocument":
		f.send(w, r, path)
	case "editMessageText":
		f.edit(w, r)
	case "answerCallbackQuery":
		if text := r.Form.Get("text"); units(text) > 200 {
			bad(w, "Bad Request: MESSAGE_TOO_LONG")
			return
		}
		f.mu.Lock()
		f.answered = append(f.answered, r.Form.Get("text"))
		f.mu.Unlock()
		good(w, true)
	default:
		bad(w, "Not Found: method "+path)
	}
}

func units(s string) int { return len(utf16.Encode([]rune(s))) }

// getUpdates confirms what is before the offset, and waits for what comes. Two at the same time are a conflict.
func (f *fake) getUpdates(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	if f.polling {
		f.mu.Unlock()
		reply(w, 409, map[string]any{"ok": false, "error_code": 409, "description": "Conflict: terminated by other getUpdates request; make sure that only one bot instance is running"})
		return
	}
	f.polling = true
	offset, _ := strconv.Atoi(r.Form.Get("offset"))
	if offset < 0 {
		f.t.Error("a negative offset forgets updates")
	}
	f.offset = max(f.offset, offset)
	f.mu.Unlock()
	defer func() { f.mu.Lock(); f.polling = false; f.mu.Unlock() }()
	wait, _ := strconv.Atoi(r.Form.Get("timeout"))
	deadline := time.After(time.Duration(wait)*time.Second + 20*time.Millisecond)
	for {
		f.mu.Lock()
		f.updates = slices.DeleteFunc(f.updates, func(u map[string]any) bool { return u["update_id"].(int) < f.offset })
		list := slices.Clone(f.updates[:min(len(f.updates), 100)])
		f.mu.Unlock()
		if len(list) > 0 {
			good(w, list)
			return
		}
		select {
		case <-f.news:
		case <-deadline:
			good(w, []any{})
			return
		case <-r.Context().Done():
			return
		}
	}
}

func (f *fake) send(w http.ResponseWriter, r *http.Request, method string) {
	f.mu.Lock()
	var do *fault
	if len(f.faults) > 0 {
		do = &f.faults[0]
		f.faults = f.faults[1:]
	}
	f.mu.Unlock()
	m := message{Text: r.Form.Get("text")}
	m.Chat, _ = strconv.ParseInt(r.Form.Get("chat_id"), 10, 64)
	limit, ents := MaxText, r.Form.Get("entities")
	if method == "sendDocument" {
		limit, ents, m.Text = MaxCaption, r.Form.Get("caption_entities"), r.Form.Get("caption")
		file, _, err := r.FormFile("document")
		if err != nil {
			f.t.Error(err)
			return
		}
		b, _ := io.ReadAll(file)
		m.Document = string(b)
	}
	var why string
	if m.Bold, why = bold(m.Text, ents); why != "" {
		bad(w, why)
		return
	}
	if k := r.Form.Get("reply_markup"); k != "" {
		if err := json.Unmarshal([]byte(k), &m.Keyboard); err != nil {
			f.t.Error(err)
		}
		for _, row := range m.Keyboard.InlineKeyboard {
			for _, b := range row {
				if b.CallbackData == nil || len(*b.CallbackData) < 1 || len(*b.CallbackData) > 64 || b.Text == "" {
					bad(w, "Bad Request: BUTTON_DATA_INVALID")
					return
				}
			}
		}
	}
	switch {
	case r.Form.Get("parse_mode") != "":
		f.t.Error("a parse mode")
	case !utf8.ValidString(m.Text) || !utf8.ValidString(m.Document):
		bad(w, "Bad Request: strings must be encoded in UTF-8")
		return
	case units(m.Text) > limit:
		bad(w, "Bad Request: message is too long")
		return
	case strings.TrimSpace(m.Text) == "":
		bad(w, "Bad Request: message text is empty")
		return
	}
	if do == nil && m.Chat != f.chat {
		bad(w, "Bad Request: chat not found")
		return
	}
	if do == nil || do.deliver {
		f.mu.Lock()
		m.ID = f.nextMsg
		f.nextMsg++
		f.messages = append(f.messages, m)
		f.mu.Unlock()
	}
	if do == nil {
		good(w, map[string]any{"message_id": m.ID, "date": 1, "chat": chatOf(m.Chat), "text": m.Text})
		return
	}
	answer(w, r, *do)
}

func answer(w http.ResponseWriter, r *http.Request, do fault) {
	if do.hang > 0 {
		select {
		case <-time.After(do.hang):
		case <-r.Context().Done():
		}
	}
	if do.cut {
		if c, _, err := w.(http.Hijacker).Hijack(); err == nil {
			if tc, ok := c.(*net.TCPConn); ok {
				_ = tc.SetLinger(0)
			}
			c.Close()
		}
		return
	}
	w.WriteHeader(do.code)
	_, _ = io.WriteString(w, do.body)
}

func (f *fake) edit(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	id, _ := strconv.Atoi(r.Form.Get("message_id"))
	if len(f.edits) > 0 {
		do := f.edits[0]
		f.edits = f.edits[1:]
		answer(w, r, do)
		return
	}
	for i := range f.messages {
		if m := &f.messages[i]; m.ID == id {
			if m.Text == r.Form.Get("text") && r.Form.Get("reply_markup") == "" && len(m.Keyboard.InlineKeyboard) == 0 {
				bad(w, "Bad Request: message is not modified")
				return
			}
			var why string
			if m.Bold, why = bold(r.Form.Get("text"), r.Form.Get("entities")); why != "" || units(r.Form.Get("text")) > MaxText {
				bad(w, "Bad Request: "+why)
				return
			}
			m.Text, m.Keyboard = r.Form.Get("text"), tgbotapi.InlineKeyboardMarkup{}
			m.Edited++
			good(w, map[string]any{"message_id": id, "date": 1, "chat": chatOf(m.Chat), "text": m.Text})
			return
		}
	}
	bad(w, "Bad Request: message to edit not found")
}

// bold checks entities and returns what they cover.
func bold(text, ents string) (out []string, why string) {
	if ents == "" || ents == "null" {
		return nil, ""
	}
	var list []tgbotapi.MessageEntity
	if err := json.Unmarshal([]byte(ents), &list); err != nil {
		return nil, "Bad Request: can't parse entities"
	}
	u := utf16.Encode([]rune(text))
	if len(list) > 100 {
		return nil, "Bad Request: too many entities"
	}
	for _, e := range list {
		if e.Type != "bold" || e.Offset < 0 || e.Length < 1 || e.Offset+e.Length > len(u) {
			return nil, "Bad Request: can't parse entities"
		}
		out = append(out, string(utf16.Decode(u[e.Offset:e.Offset+e.Length])))
	}
	return out, ""
}

func reply(w http.ResponseWriter, code int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(v)
}

func good(w http.ResponseWriter, result any) {
	reply(w, 200, map[string]any{"ok": true, "result": result})
}

func bad(w http.ResponseWriter, why string) {
	reply(w, 400, map[string]any{"ok": false, "error_code": 400, "description": why})
}

// The faults that Telegram is known for.
func slow(seconds int) fault {
	return fault{code: 429, body: fmt.Sprintf(`{"ok":false,"error_code":429,"description":"Too Many Requests: retry after %d","parameters":{"retry_after":%d}}`, seconds, seconds)}
}

func moved(id int64) fault {
	return fault{code: 400, body: fmt.Sprintf(`{"ok":false,"error_code":400,"description":"Bad Request: group chat was upgraded to a supergroup chat","parameters":{"migrate_to_chat_id":%d}}`, id)}
}

func refused(code int, why string) fault {
	return fault{code: code, body: fmt.Sprintf(`{"ok":false,"error_code":%d,"description":%q}`, code, why)}
}

var (
	lost     = fault{deliver: true, cut: true} // it arrived, its answer did not
	html502  = fault{code: 502, body: "<html>Bad Gateway</html>"}
	empty500 = fault{code: 500}
)

// closedPort is an address where nobody is.
func closedPort(t testing.TB) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return (&url.URL{Scheme: "http", Host: l.Addr().String()}).String()
}
