package view

import (
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// secrets are what must not be shown wherever it comes from: an agent can print what it finds. The login of a run is struck
// out when its stream is written; this is for all others.
var secrets = sync.OnceValue(func() []*regexp.Regexp {
	var out []*regexp.Regexp
	for _, s := range []string{
		`sk-[A-Za-z]{2,8}[0-9]{0,2}-[A-Za-z0-9_-]{12,}`, // model providers
		`\bsk-[A-Za-z0-9_-]{20,}`,                       //
		`\b(?:gh[pousr]_[A-Za-z0-9]{20,}|github_pat_[A-Za-z0-9_]{20,}|glpat-[A-Za-z0-9_-]{16,})`, // forges
		`\b(?:AKIA|ASIA)[A-Z0-9]{16}\b`,                               // clouds
		`\bAIza[A-Za-z0-9_-]{30,}`,                                    //
		`\bxox[abprs]-[A-Za-z0-9-]{10,}`,                              // chats
		`\b[0-9]{6,12}:[A-Za-z0-9_-]{30,}`,                            // Telegram's bots
		`\beyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]*`, // JSON web tokens
		`(?s)-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|$)`,
		`(?i)\b(?:bearer|basic) [A-Za-z0-9._~+/=-]{16,}`,
		`(?i)\b(?:password|passwd|secret|api[_-]?key|access[_-]?token|auth[_-]?token|private[_-]?key)["']?\s*[:=]\s*["']?[^\s"',;]{6,}`,
		`(?i)\b[a-z][a-z0-9+.-]*://[^\s/:@]+:[^\s/@]+@`, // an address with a password in it
	} {
		out = append(out, regexp.MustCompile(s))
	}
	return out
})

// Hidden stands where a secret was.
const Hidden = "[hidden]"

// maybeSecret says whether a text has what every secret that is known of has some of: most are told apart by it at once.
func maybeSecret(s string) bool {
	s = strings.ToLower(s)
	for _, mark := range []string{"sk-", "gh", "glpat", "akia", "asia", "aiza", "xox", "eyj", "private", "bearer ", "basic ", "pass", "secret", "key", "token", "://"} {
		if strings.Contains(s, mark) {
			return true
		}
	}
	return botToken.MatchString(s)
}

var botToken = regexp.MustCompile(`[0-9]{6}:`)

// Shown makes text safe to be shown: valid UTF-8, no control characters but line break and tab, none that turn the direction of
// writing, and no secret.
func Shown(s string) string {
	s = strings.Map(func(r rune) rune {
		if (r < ' ' && r != '\n' && r != '\t') || (r >= 0x7f && r < 0xa0) || (r >= 0x202a && r <= 0x202e) || (r >= 0x2066 && r <= 0x2069) || r == 0x200e || r == 0x200f {
			return '\uFFFD'
		}
		return r
	}, strings.ToValidUTF8(s, "\uFFFD"))
	if !maybeSecret(s) {
		return s
	}
	for _, re := range secrets() {
		s = re.ReplaceAllString(s, Hidden)
	}
	return s
}

// Line is Shown on one line of at most n characters.
func Line(s string, n int) string {
	s = strings.Join(strings.Fields(Shown(s)), " ")
	if r := []rune(s); len(r) > n {
		s = string(r[:n-1]) + "…"
	}
	return s
}

// plain opens a plain file: no link on the last step, no FIFO, no device.
func plain(path string) (*os.File, int64, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, 0, err
	}
	st, err := f.Stat()
	if err == nil && !st.Mode().IsRegular() {
		err = errors.New("it is no plain file")
	}
	if err != nil {
		f.Close()
		return nil, 0, fmt.Errorf("%s: %w", path, err)
	}
	return f, st.Size(), nil
}

// Text is the beginning of a file, and how large all of it is, in bytes.
type Text struct {
	Text string `json:"text"`
	Size int64  `json:"size"`
	Cut  bool   `json:"cut,omitempty"` // there is more
}

// beginning reads at most max bytes of a plain file, however large it is.
func beginning(path string, max int64) (Text, error) {
	f, size, err := plain(path)
	if err != nil {
		return Text{}, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, max))
	return Text{Text: Shown(string(b)), Size: size, Cut: size > int64(len(b))}, err
}
