package usage

import (
	"fmt"
	"testing"
	"time"

	"example.com/AutoAgentProject/core/money"
)

// TestLimitEvents follows an account through its events: what one does not tell is kept, and what is over is forgotten.
func TestLimitEvents(t *testing.T) {
	const five, seven = 1_796_040_000, 1_796_400_000
	now := time.Unix(five-3600, 0)
	line := func(info string) string {
		return `{"type":"rate_limit_event","rate_limit_info":{` + info + `},"uuid":"u","session_id":"s"}`
	}
	both := func(a, b string) string {
		return fmt.Sprintf(`"unifiedWindows":{"five_hour":{"utilization":%s,"resetsAt":%d},"seven_day":{"utilization":%s,"resetsAt":%d}}`, a, five, b, seven)
	}
	var l money.Limits
	for i, c := range []struct {
		info      string
		fiveHours int64
		sevenDays int64
		parked    int64
		want      money.LimitAction
	}{
		{`"status":"allowed","resetsAt":1796040000,"rateLimitType":"five_hour","isUsingOverage":false,` + both("0.41", "0.6"), 4100, 6000, 0, money.LimitNone},
		{`"status":"allowed","resetsAt":1796040000,"rateLimitType":"five_hour"`, 4100, 6000, 0, money.LimitNone},
		{`"status":"allowed_warning","resetsAt":1796400000,"rateLimitType":"seven_day","utilization":0.79`, 4100, 7900, 0, money.LimitNone},
		{`"status":"allowed","isUsingOverage":false`, 4100, 7900, 0, money.LimitNone},
		{`"status":"rejected","resetsAt":1796040000,"rateLimitType":"five_hour",` + both("1", `"0.9"`), 10_000, 7900, five, money.LimitPark},
		{`"status":"allowed","rateLimitType":"five_hour","utilization":null`, 10_000, 7900, five, money.LimitNone},
		{`"status":"rejected","isUsingOverage":true,"rateLimitType":"five_hour"`, 10_000, 7900, five, money.LimitHalt},
	} {
		e, ok := ParseLimit([]byte(line(c.info)))
		if !ok {
			t.Fatalf("event %d was not read", i)
		}
		var do money.LimitAction
		l, do, _ = l.Merge(e, now, 0)
		if do != c.want || l.Windows["five_hour"].Used != c.fiveHours || l.Windows["seven_day"].Used != c.sevenDays || l.Parked != c.parked {
			t.Errorf("after event %d: %q, %+v", i, do, l)
		}
	}
	if at := l.At(time.Unix(five-1, 0)); at.Parked != five || len(at.Windows) != 2 {
		t.Errorf("a second before it opens: %+v", at)
	}
	at := l.At(time.Unix(five, 0))
	if _, there := at.Windows["five_hour"]; there || at.Parked != 0 || at.Windows["seven_day"].Used != 7900 {
		t.Errorf("when it opens: %+v", at)
	}
	for _, other := range []string{``, `{`, `null`, `{"type":"result"}`, `{"type":"rate_limit_event"}`, `{"type":"rate_limit_event","rate_limit_info":{"status":7}}`} {
		if e, ok := ParseLimit([]byte(other)); ok {
			t.Errorf("%q was read as %+v", other, e)
		}
	}
	e, ok := ParseLimit([]byte(line(`"status":"rejected","unifiedWindows":{"five_hour":{"status":"rejected","resetsAt":5},"seven_day":{"status":"rejected","resetsAt":9},"other":{"status":"allowed","resetsAt":99}}`)))
	if !ok || e.Reset != 9 {
		t.Errorf("of two windows that refuse: %+v", e)
	}
}
