package gateway

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"syscall"
	"time"
)

// parseUpstream checks an address: the credential is sent there.
func parseUpstream(s string) (*url.URL, error) {
	u, err := url.Parse(s)
	switch {
	case err != nil || u.Host == "" || u.Hostname() == "":
		return nil, fmt.Errorf("gateway: the upstream is no address")
	case u.User != nil || u.RawQuery != "" || u.Fragment != "" || u.ForceQuery:
		return nil, fmt.Errorf("gateway: the upstream may have no user, query or fragment")
	case u.Scheme == "https":
	case u.Scheme != "http":
		return nil, fmt.Errorf("gateway: the upstream must be https, or http on this machine")
	case u.Hostname() != "localhost" && !loopback(u.Hostname()):
		return nil, fmt.Errorf("gateway: http is for an upstream on this machine only")
	}
	return u, nil
}

func loopback(host string) bool {
	a, err := netip.ParseAddr(host)
	return err == nil && a.Unmap().IsLoopback()
}

// transport reaches the upstream and nothing else: no proxy of the environment, no redirect, no compression.
func transport(u *url.URL) *http.Transport {
	dialer := &net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second}
	if u.Scheme == "http" {
		dialer.Control = func(_, address string, _ syscall.RawConn) error {
			if host, _, err := net.SplitHostPort(address); err != nil || !loopback(host) {
				return fmt.Errorf("%s is not on this machine", address) // whatever a name resolves to
			}
			return nil
		}
	}
	return &http.Transport{
		DialContext: dialer.DialContext, TLSHandshakeTimeout: 10 * time.Second, ExpectContinueTimeout: time.Second,
		ResponseHeaderTimeout: 10 * time.Minute, // an answer that is no stream comes after all of it was written
		ForceAttemptHTTP2:     true, DisableCompression: true, MaxIdleConnsPerHost: 16, IdleConnTimeout: 90 * time.Second,
		MaxResponseHeaderBytes: 1 << 20, HTTP2: &http.HTTP2Config{SendPingTimeout: 30 * time.Second, PingTimeout: 15 * time.Second},
	}
}

// passing are the beginnings of the names of headers that a request keeps. No credential is among them.
var passing = []string{"Accept", "Content-Type", "User-Agent", "Anthropic-", "X-Stainless-", "X-App", "X-Claude-", "X-Client-"}

// planBeta is the feature without which the service takes no plan token.
const planBeta = "oauth-2025-04-20"

// headers are those of the request to the service.
func (g *Gateway) headers(from http.Header) http.Header {
	h := http.Header{}
	for name, values := range from {
		for _, p := range passing {
			if strings.HasPrefix(name, p) {
				h[name] = values
				break
			}
		}
	}
	h["Anthropic-Beta"] = betas(h["Anthropic-Beta"], g.cfg.Kind)
	h.Set("Accept-Encoding", "identity") // what is compressed comes late and must be unpacked to be counted
	if g.cfg.Kind == APIKey {
		h.Set("X-Api-Key", g.cfg.Credential.reveal())
		return h
	}
	h.Set("Authorization", "Bearer "+g.cfg.Credential.reveal())
	return h
}

// betas are the features that a request asks for, without the one that lets long prompts of older models in at prices
// that the price list does not have, and with the one that a plan token needs.
func betas(asked []string, kind string) []string {
	var keep []string
	for b := range strings.SplitSeq(strings.Join(asked, ","), ",") {
		if b = strings.TrimSpace(b); b != "" && !strings.HasPrefix(b, "context-1m") && !slices.Contains(keep, b) {
			keep = append(keep, b)
		}
	}
	if kind == PlanToken && !slices.Contains(keep, planBeta) {
		keep = append(keep, planBeta)
	}
	if keep == nil {
		return nil
	}
	return []string{strings.Join(keep, ",")}
}
