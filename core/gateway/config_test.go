package gateway

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"example.com/AutoAgentProject/core/money"
)

func TestConfigIsChecked(t *testing.T) {
	good := Config{Kind: APIKey, Credential: Hide("x"), Models: []string{"m"}, Price: money.Default().Cost, Cap: money.Amount{Unit: money.NanoUSD, N: 1}}
	if _, err := New(good); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*Config){
		"no kind":               func(c *Config) { c.Kind = "" },
		"no credential":         func(c *Config) { c.Credential = Secret{} },
		"a line end in it":      func(c *Config) { c.Credential = Hide("a\nb") },
		"no models":             func(c *Config) { c.Models = nil },
		"a nameless model":      func(c *Config) { c.Models = []string{""} },
		"cap 0":                 func(c *Config) { c.Cap.N = 0 },
		"negative cap":          func(c *Config) { c.Cap.N = -1 },
		"no unit":               func(c *Config) { c.Cap.Unit = "" },
		"no prices":             func(c *Config) { c.Price = nil },
		"http elsewhere":        func(c *Config) { c.Upstream = "http://example.com" },
		"http, looks like here": func(c *Config) { c.Upstream = "http://127.0.0.1.example.com" },
		"user in the address":   func(c *Config) { c.Upstream = "https://a:b@example.com" },
		"query in the address":  func(c *Config) { c.Upstream = "https://example.com?x" },
		"no address":            func(c *Config) { c.Upstream = "example.com" },
		"a file":                func(c *Config) { c.Upstream = "file:///x" },
	} {
		c := good
		change(&c)
		if _, err := New(c); err == nil {
			t.Errorf("%s: taken", name)
		}
	}
}

// TestNoPrintTellsTheSecret: not of the configuration, the gateway, its parts or a log.
func TestNoPrintTellsTheSecret(t *testing.T) {
	secret := Hide(testSecret)
	c := Config{Kind: APIKey, Credential: secret, Models: []string{"m"}, Price: money.Default().Cost, Cap: money.Amount{Unit: money.NanoUSD, N: 1}}
	g, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	for _, h := range []slog.Handler{slog.NewTextHandler(&log, nil), slog.NewJSONHandler(&log, nil)} {
		slog.New(h).Info("x", "secret", secret, "config", c.Credential, "struct", struct{ S Secret }{secret})
	}
	inner := struct{ s Secret }{secret}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
		for _, v := range []any{secret, &secret, c, &c, g, &g.account, inner, &inner, []Secret{secret}, map[string]Secret{"a": secret}} {
			fmt.Fprintf(&log, verb, v)
		}
	}
	b, err := json.Marshal([]any{secret, struct{ S Secret }{secret}})
	if err != nil {
		t.Fatal(err)
	}
	log.Write(b)
	noSecret(t, "a print", log.String())
	if strings.Contains(log.String(), fmt.Sprintf("%x", testSecret)) || strings.Contains(log.String(), g.Token()) {
		t.Error("the credential or the token is in a print")
	}
	if secret.reveal() != testSecret || secret.strike("a "+testSecret+" b") != "a [credential] b" {
		t.Error("the secret is lost")
	}
}
