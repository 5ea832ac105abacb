package mission

import (
	"encoding/json"
	"testing"
	"time"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func TestClock(t *testing.T) {
	type reading struct {
		boot   string
		mono   time.Duration
		wall   time.Duration // after noon
		paused bool
	}
	const m = time.Minute
	for name, c := range map[string]struct {
		readings []reading
		used     time.Duration
	}{
		"the first reading counts nothing":    {[]reading{{"a", 900 * m, 0, false}}, 0},
		"minute by minute":                    {[]reading{{"a", 5 * m, 0, false}, {"a", 6 * m, m, false}, {"a", 7 * m, 2 * m, false}}, 2 * m},
		"seconds and nanoseconds":             {[]reading{{"a", 1, 0, false}, {"a", 2, 0, false}, {"a", 5_000_000_002, 0, false}}, 5*time.Second + 1},
		"suspend: the monotonic clock stood":  {[]reading{{"a", 5 * m, 0, false}, {"a", 6 * m, 9 * 60 * m, false}}, m},
		"wall clock six hours ahead":          {[]reading{{"a", 5 * m, 0, false}, {"a", 6 * m, 361 * m, false}, {"a", 7 * m, 2 * m, false}}, 2 * m},
		"wall clock six hours back":           {[]reading{{"a", 5 * m, 0, false}, {"a", 6 * m, -359 * m, false}, {"a", 7 * m, 2 * m, false}}, 2 * m},
		"another boot":                        {[]reading{{"a", 500 * m, 0, false}, {"b", m, m, false}, {"b", 2 * m, 2 * m, false}}, m},
		"another boot with a later clock":     {[]reading{{"a", m, 0, false}, {"b", 2 * m, m, false}}, 0},
		"back to a boot id seen before":       {[]reading{{"a", m, 0, false}, {"b", 2 * m, m, false}, {"a", 3 * m, 2 * m, false}}, 0},
		"a gap of exactly the longest":        {[]reading{{"a", 0, 0, false}, {"a", MaxGap, 3 * m, false}}, MaxGap},
		"a longer gap counts as the longest":  {[]reading{{"a", 0, 0, false}, {"a", MaxGap + 1, 3 * m, false}}, MaxGap},
		"nobody ticked for a day":             {[]reading{{"a", 0, 0, false}, {"a", 1440 * m, 1440 * m, false}, {"a", 1441 * m, 1441 * m, false}}, MaxGap + m},
		"always a little late: it still ends": {[]reading{{"a", 0, 0, false}, {"a", 4 * m, 0, false}, {"a", 8 * m, 0, false}, {"a", 12 * m, 0, false}}, 3 * MaxGap},
		"paused":                              {[]reading{{"a", 0, 0, false}, {"a", m, m, true}, {"a", 2 * m, 2 * m, true}, {"a", 3 * m, 3 * m, false}}, m},
		"monotonic clock that goes back":      {[]reading{{"a", 9 * m, 0, false}, {"a", 5 * m, m, false}, {"a", 6 * m, 2 * m, false}}, m},
		"the same reading twice":              {[]reading{{"a", m, 0, false}, {"a", 2 * m, m, false}, {"a", 2 * m, m, false}}, m},
	} {
		var k Clock
		for _, r := range c.readings {
			before := k.Used
			k = k.Advance(r.boot, r.mono, noon.Add(r.wall), r.paused)
			if k.Used < before {
				t.Errorf("%s: it runs backwards", name)
			}
			b, err := json.Marshal(k) // each reading is another process's
			k = Clock{}
			if err != nil || json.Unmarshal(b, &k) != nil {
				t.Fatal(err)
			}
		}
		if time.Duration(k.Used) != c.used || k.Version != Version {
			t.Errorf("%s: %v used, want %v", name, time.Duration(k.Used), c.used)
		}
	}
}

// TestGrant: what is added is left afterwards, whichever limit there was; an end that is past counts from now.
func TestGrant(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		name string
		m    Mission
		used time.Duration
		want time.Duration
	}{
		{"time to run", Mission{MaxRun: Duration(4 * time.Hour)}, 4 * time.Hour, 2 * time.Hour},
		{"time to run, some left", Mission{MaxRun: Duration(4 * time.Hour)}, time.Hour, 5 * time.Hour},
		{"an end in the past", Mission{Until: now.Add(-24 * time.Hour)}, 0, 2 * time.Hour},
		{"an end to come", Mission{Until: now.Add(time.Hour)}, 0, 3 * time.Hour},
	} {
		k := Clock{Used: Duration(c.used)}.Grant(c.m, 2*time.Hour, now)
		if got, limited := TimeLeft(c.m, k, now); !limited || got != c.want {
			t.Errorf("%s: %v left, limited %v; want %v", c.name, got, limited, c.want)
		}
		if got, _ := TimeLeft(c.m, k.Grant(c.m, time.Hour, now), now); got != c.want+time.Hour {
			t.Errorf("%s: %v left after another hour", c.name, got)
		}
	}
	if _, limited := TimeLeft(Mission{}, Clock{}.Grant(Mission{}, time.Hour, now), now); limited {
		t.Error("time was added to a mission that has no limit")
	}
}

func TestTimeLeft(t *testing.T) {
	const h = time.Hour
	until := func(d time.Duration) time.Time { return noon.Add(d) }
	for name, c := range map[string]struct {
		m       Mission
		used    time.Duration
		left    time.Duration
		limited bool
	}{
		"no limit":                       {Mission{}, 9 * h, 0, false},
		"hours":                          {Mission{MaxRun: Duration(4 * h)}, h, 3 * h, true},
		"hours used up":                  {Mission{MaxRun: Duration(4 * h)}, 4 * h, 0, true},
		"more than used up":              {Mission{MaxRun: Duration(4 * h)}, 9 * h, 0, true},
		"a negative limit is none left":  {Mission{MaxRun: Duration(-h)}, 0, 0, true},
		"until":                          {Mission{Until: until(2 * h)}, 9 * h, 2 * h, true},
		"until has passed":               {Mission{Until: until(-1)}, 0, 0, true},
		"until is now":                   {Mission{Until: until(0)}, 0, 0, true},
		"both, hours first":              {Mission{MaxRun: Duration(4 * h), Until: until(9 * h)}, 3 * h, h, true},
		"both, until first":              {Mission{MaxRun: Duration(4 * h), Until: until(h)}, 0, h, true},
		"both, until passed":             {Mission{MaxRun: Duration(4 * h), Until: until(-h)}, 0, 0, true},
		"until in another zone":          {Mission{Until: until(h).In(time.FixedZone("x", 5*3600))}, 0, h, true},
		"until at the end of all clocks": {Mission{Until: time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)}, 0, 1<<63 - 1, true},
	} {
		left, limited := TimeLeft(c.m, Clock{Used: Duration(c.used)}, noon)
		if left != c.left || limited != c.limited {
			t.Errorf("%s: %v %v, want %v %v", name, left, limited, c.left, c.limited)
		}
	}
}
