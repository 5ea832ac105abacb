package claude

import (
	"testing"
	"time"
)

func TestParseReset(t *testing.T) {
	at := func(s string) time.Time {
		t.Helper()
		v, err := time.Parse(time.RFC3339, s)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	for _, c := range []struct{ text, now, want string }{
		{"You've hit your 5-hour limit · resets 1:53pm (UTC)", "2026-11-30T12:34:48Z", "2026-11-30T13:53:00Z"},
		{"resets 1:53pm (UTC)", "2026-11-30T14:00:00Z", "2026-12-01T13:53:00Z"},
		{"resets 1:53pm (UTC)", "2026-11-30T13:53:20Z", "2026-11-30T13:54:00Z"}, // within that very minute
		{"You've hit your limit · resets 2:30am (America/New_York)", "2026-11-30T04:00:00Z", "2026-11-30T07:30:00Z"},
		{"resets 2:30am (America/New_York)", "2026-12-01T04:00:00Z", "2026-12-01T07:30:00Z"}, // 23:00 there
		{"resets 9am (Europe/Berlin)", "2026-03-28T12:00:00Z", "2026-03-29T07:00:00Z"},       // summer time begins in between
		{"resets 12am (Asia/Kolkata)", "2026-11-30T12:00:00Z", "2026-11-30T18:30:00Z"},       // midnight
		{"resets 12:05pm (UTC)", "2026-11-30T12:00:00Z", "2026-11-30T12:05:00Z"},             // noon
		{"…weekly limit · resets Dec 3, 11:54pm (UTC)", "2026-11-30T12:34:48Z", "2026-12-03T23:54:00Z"},
		{"resets Dec 3 at 11pm (UTC)", "2026-11-30T12:34:48Z", "2026-12-03T23:00:00Z"},
		{"resets Jan 2, 1am (UTC)", "2026-12-30T12:00:00Z", "2027-01-02T01:00:00Z"},
		{"Claude AI usage limit reached|1796046834", "2026-11-30T12:34:48Z", "2026-11-30T13:53:54Z"},
		// in doubt: not told
		{"Claude AI usage limit reached|1760000000", "2026-11-30T12:34:48Z", ""}, // long past
		{"limit reached|99999999999", "2026-11-30T12:34:48Z", ""},
		{"resets 1:53pm", "2026-11-30T12:34:48Z", ""},
		{"resets 1:53pm (Mars/Base)", "2026-11-30T12:34:48Z", ""},
		{"resets 1:53pm (Local)", "2026-11-30T12:34:48Z", ""},
		{"resets 1:53pm (../../etc/passwd)", "2026-11-30T12:34:48Z", ""},
		{"resets 13:53pm (UTC)", "2026-11-30T12:34:48Z", ""},
		{"resets 1:73pm (UTC)", "2026-11-30T12:34:48Z", ""},
		{"resets Foo 3, 1pm (UTC)", "2026-11-30T12:34:48Z", ""},
		{"resets Nov 3, 1pm (UTC)", "2026-11-30T12:34:48Z", ""}, // in eleven months
		{"resets Dec 33, 1pm (UTC)", "2026-11-30T12:34:48Z", ""},
		{"presets 1pm (UTC)", "2026-11-30T12:34:48Z", ""},
		{"resets soon", "2026-11-30T12:34:48Z", ""},
		{"", "2026-11-30T12:34:48Z", ""},
	} {
		var want time.Time
		if c.want != "" {
			want = at(c.want)
		}
		if got := parseReset(c.text, at(c.now)); !got.Equal(want) {
			t.Errorf("parseReset(%q) at %s = %v, want %v", c.text, c.now, got, want)
		}
	}
}

func TestResetOfLimit(t *testing.T) {
	now := time.Unix(1_796_000_000, 0)
	for _, c := range []struct {
		l    *limit
		want int64
	}{
		{nil, 0},
		{&limit{ResetsAt: 1_796_046_834}, 1_796_046_834},
		{&limit{ResetsAt: 1_796_046_834, Windows: map[string]window{"seven_day": {rejected, 1_796_339_634}, "five_hour": {"allowed", 1_797_000_000}}}, 1_796_339_634},
		{&limit{}, 0},
		{&limit{ResetsAt: 1_795_000_000}, 0},        // past
		{&limit{ResetsAt: 1_796_046_834_000}, 0},    // not seconds
		{&limit{ResetsAt: 1_796_000_000 + 90e5}, 0}, // in a hundred days
	} {
		want := time.Time{}
		if c.want != 0 {
			want = time.Unix(c.want, 0)
		}
		if got := c.l.resetOf(now); !got.Equal(want) {
			t.Errorf("%+v: %v, want %v", c.l, got, want)
		}
	}
}

func FuzzParseReset(f *testing.F) {
	f.Add("resets Dec 3, 11:54pm (UTC)", int64(1_796_000_000))
	f.Add("limit reached|1796046834", int64(0))
	f.Fuzz(func(t *testing.T, text string, unix int64) {
		now := time.Unix(unix%4e9, 0)
		if got := parseReset(text, now); !got.IsZero() && (!got.After(now) || got.Sub(now) > farthest) {
			t.Errorf("parseReset(%q) at %v = %v", text, now, got)
		}
	})
}
