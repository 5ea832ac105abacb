package money

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"
)

//go:embed prices.json
var defaultPrices []byte

// Rates are the prices of one token of each class.
type Rates struct {
	Input        Nano `json:"input"`
	Output       Nano `json:"output"`
	CacheWrite5m Nano `json:"cache_write_5m"`
	CacheWrite1h Nano `json:"cache_write_1h"`
	CacheRead    Nano `json:"cache_read"`
}

// Table is a price list. Its zero value is not usable; Default and Load make one. It is never changed.
type Table struct {
	checked   time.Time
	note      string
	fallback  Rates // for models it does not know: at least the dearest of every class
	fast      int64 // multiplier for fast mode where the row has none
	regional  int64 // percent of the list price for a model bound to one region
	webSearch Nano  // one search
	rows      map[string]row
}

// row is the price of one model.
type row struct {
	Rates
	Until []period `json:"until,omitempty"` // earlier prices, oldest first
	Long  *long    `json:"long_prompt,omitempty"`
	Fast  int64    `json:"fast,omitempty"` // multiplier for fast mode; 0: not known
}

// period holds the rates that were others through the given day, UTC.
type period struct {
	Date         string `json:"date"`
	Input        *Nano  `json:"input,omitempty"`
	Output       *Nano  `json:"output,omitempty"`
	CacheWrite5m *Nano  `json:"cache_write_5m,omitempty"`
	CacheWrite1h *Nano  `json:"cache_write_1h,omitempty"`
	CacheRead    *Nano  `json:"cache_read,omitempty"`
}

// long holds the rates of all tokens of a response whose prompt has more tokens than the threshold.
type long struct {
	Threshold int64 `json:"threshold_tokens"`
	Rates
}

// priceFile is the form of a price list on disk.
type priceFile struct {
	Unit         string         `json:"unit"`
	Checked      string         `json:"checked"`
	Note         string         `json:"note,omitempty"`
	Fallback     Rates          `json:"fallback_nano_usd_per_token"`
	FallbackFast int64          `json:"fallback_fast_multiplier"`
	Regional     int64          `json:"regional_percent"`
	WebSearch    Nano           `json:"web_search_nano_usd"`
	Models       map[string]row `json:"models"`
}

// priceUnit is what the numbers of a price list count.
const priceUnit = "nano-USD per token"

// maxTimes bounds the multipliers, so that products of them fit.
const maxTimes = 1000

// Default is the price list that the program carries.
func Default() Table {
	t, err := Load(bytes.NewReader(defaultPrices))
	if err != nil {
		panic("BUG: the built-in price list: " + err.Error())
	}
	return t
}

// Load reads a whole price list. It is strict: unknown fields, missing or zero prices, dates out of order and names
// that no look-up would ever find are errors, because a wrong price is worse than none.
func Load(r io.Reader) (Table, error) {
	f, err := readPrices(r)
	if err != nil {
		return Table{}, err
	}
	t := Table{note: f.Note, fallback: f.Fallback, fast: f.FallbackFast, regional: f.Regional, webSearch: f.WebSearch, rows: f.Models}
	if t.checked, err = time.Parse(time.DateOnly, f.Checked); err != nil {
		return Table{}, fmt.Errorf("price list: checked: %w", err)
	}
	if err := f.Fallback.check(); err != nil {
		return Table{}, fmt.Errorf("price list: fallback: %w", err)
	}
	if f.FallbackFast < 1 || f.FallbackFast > maxTimes || f.Regional < 100 || f.Regional > 100*maxTimes || f.WebSearch < 1 {
		return Table{}, fmt.Errorf("price list: fallback_fast_multiplier, regional_percent or web_search_nano_usd is missing or out of range")
	}
	t.raiseFallback()
	return t, nil
}

// Override returns the table with the rows of a second list put over it. Of that list only unit and models are needed,
// in the same form; what else it says is not used. The price of an unknown model rises if a new row is dearer.
func (t Table) Override(r io.Reader) (Table, error) {
	f, err := readPrices(r)
	if err != nil {
		return Table{}, err
	}
	t.rows = maps.Clone(t.rows)
	maps.Copy(t.rows, f.Models)
	t.raiseFallback()
	return t, nil
}

// Age is how long ago the prices were compared with the vendor's, never negative.
func (t Table) Age(now time.Time) time.Duration { return max(now.Sub(t.checked), 0) }

// Checked is the day on which the prices were compared with the vendor's.
func (t Table) Checked() time.Time { return t.checked }

// Models are the names in the table, sorted.
func (t Table) Models() []string { return slices.Sorted(maps.Keys(t.rows)) }

func readPrices(r io.Reader) (priceFile, error) {
	var f priceFile
	d := json.NewDecoder(r)
	d.DisallowUnknownFields()
	if err := d.Decode(&f); err != nil {
		return f, fmt.Errorf("price list: %w", err)
	}
	if _, err := d.Token(); err != io.EOF {
		return f, fmt.Errorf("price list: something follows its end")
	}
	if f.Unit != priceUnit {
		return f, fmt.Errorf("price list: unit is %.40q, not %q", f.Unit, priceUnit)
	}
	if len(f.Models) == 0 {
		return f, fmt.Errorf("price list: no models")
	}
	for name, m := range f.Models {
		if name == "" || name != canonical(name) {
			return f, fmt.Errorf("price list: %.60q is not a plain model name", name)
		}
		if err := m.check(); err != nil {
			return f, fmt.Errorf("price list: %s: %w", name, err)
		}
	}
	return f, nil
}

func (r Rates) check() error {
	if min(r.Input, r.Output, r.CacheWrite5m, r.CacheWrite1h, r.CacheRead) < 1 {
		return fmt.Errorf("a price is missing or less than 1")
	}
	return nil
}

func (m row) check() error {
	if err := m.Rates.check(); err != nil {
		return err
	}
	if m.Fast < 0 || m.Fast > maxTimes {
		return fmt.Errorf("fast is out of range")
	}
	if m.Long != nil {
		if m.Long.Threshold < 1 {
			return fmt.Errorf("long_prompt has no threshold")
		}
		if err := m.Long.check(); err != nil {
			return fmt.Errorf("long_prompt: %w", err)
		}
	}
	last := ""
	for _, p := range m.Until {
		if _, err := time.Parse(time.DateOnly, p.Date); err != nil {
			return fmt.Errorf("until: %w", err)
		}
		if p.Date <= last {
			return fmt.Errorf("until: %s is not in order", p.Date)
		}
		last = p.Date
		if err := p.over(m.Rates).check(); err != nil {
			return fmt.Errorf("until %s: %w", p.Date, err)
		}
	}
	return nil
}

// raiseFallback makes the price of unknown models at least the dearest of the table in every class.
func (t *Table) raiseFallback() {
	for _, m := range t.rows {
		t.fallback = t.fallback.dearer(m.dearest())
		t.fast = max(t.fast, m.Fast)
	}
}
