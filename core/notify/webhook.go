package notify

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// Webhook posts each message as JSON to an address. Its path and query may hold a secret, so no error shows them.
type Webhook struct {
	URL     string
	Timeout time.Duration // 0: 30 s
}

func (w Webhook) Name() string {
	if u, err := url.Parse(w.URL); err == nil {
		return "webhook " + u.Scheme + "://" + u.Host
	}
	return "webhook"
}

func (w Webhook) Gap() time.Duration { return time.Second }

// Send posts once. 2xx means that it arrived, 408, 425, 429 and 5xx that it should be tried again, the rest that it was
// refused for good.
func (w Webhook) Send(ctx context.Context, m Message, before func() error) (Receipt, error) {
	b, err := payload(m)
	if err != nil {
		return Receipt{}, err
	}
	timeout := w.Timeout
	if timeout == 0 {
		timeout = execTimeout
	}
	ctx, done := context.WithTimeout(ctx, timeout)
	defer done()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, w.URL, bytes.NewReader(b))
	if err != nil {
		return Receipt{}, errors.New("the webhook is no address")
	}
	req.Header.Set("Content-Type", "application/json")
	gate := &Gate{Body: req.Body, Before: before}
	req.Body, req.GetBody = gate, nil
	client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := client.Do(req)
	left := gate.Shut()
	if err != nil {
		if u, ok := errors.AsType[*url.Error](err); ok {
			err = u.Err // the rest of it is the address
		}
		err = fmt.Errorf("post to the webhook: %w", err)
		if left {
			return Receipt{}, &Uncertain{err}
		}
		return Receipt{}, &Refused{Err: err}
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, 1<<20))
	switch code := resp.StatusCode; {
	case code/100 == 2:
		return Receipt{}, nil
	case code == http.StatusGatewayTimeout:
		return Receipt{}, &Uncertain{fmt.Errorf("the webhook answers %d", code)}
	case code == 408 || code == 425 || code == 429 || code/100 == 5:
		after := 0
		if n, err := strconv.Atoi(resp.Header.Get("Retry-After")); err == nil && n > 0 {
			after = n
		}
		return Receipt{}, &Refused{After: time.Duration(after) * time.Second, Err: fmt.Errorf("the webhook answers %d", code)}
	default:
		return Receipt{}, fmt.Errorf("the webhook answers %d", code)
	}
}
