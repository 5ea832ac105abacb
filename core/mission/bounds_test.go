package mission

import "testing"

func TestParseMemory(t *testing.T) {
	for s, want := range map[string]int64{
		"": 0, "4GiB": 4 << 30, "4G": 4 << 30, "1.5GiB": 3 << 29, "2 TiB": 2 << 40, "1024MiB": 1 << 30, "1K": 1 << 10,
		"4": -1, "GiB": -1, "-1GiB": -1, "4GB4": -1, "4XiB": -1, "4GiBx": -1, "NaNG": -1, "InfG": -1, "1e300G": -1, "4KM": -1, " ": -1, "0G": -1, "4iB": -1, "4B": -1, "9999999TiB": -1,
	} {
		got, err := ParseMemory(s)
		if (err != nil) != (want < 0) || err == nil && got != want {
			t.Errorf("%q: %d, %v; want %d", s, got, err, want)
		}
	}
}

func TestBoundsWrong(t *testing.T) {
	for _, c := range []struct {
		b  Bounds
		ok bool
	}{
		{Bounds{}, true}, {Bounds{1 << 30, 128, 1}, true}, {Bounds{Memory: 1<<30 - 1}, false}, {Bounds{Memory: -1}, false},
		{Bounds{Tasks: 127}, false}, {Bounds{Tasks: -1}, false}, {Bounds{Tasks: 1<<22 + 1}, false}, {Bounds{CPUWeight: -1}, false}, {Bounds{CPUWeight: 10001}, false},
	} {
		if (c.b.Wrong() == "") != c.ok {
			t.Errorf("%+v: %q", c.b, c.b.Wrong())
		}
	}
}
