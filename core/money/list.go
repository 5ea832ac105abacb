package money

import "time"

// PriceList is a table as people and scripts read it. Rates are nano-USD per token.
type PriceList struct {
	Unit        string      `json:"unit"`
	Checked     string      `json:"checked"` // day on which it was compared with the vendor's
	Note        string      `json:"note,omitempty"`
	Models      []ModelRate `json:"models"` // by name
	Unknown     Rates       `json:"unknown_model"`
	UnknownFast int64       `json:"unknown_fast_multiplier"`
	Regional    int64       `json:"regional_percent"`
	WebSearch   Nano        `json:"web_search_nano_usd"`
}

// ModelRate is the price of one model.
type ModelRate struct {
	Model string `json:"model"`
	Rates
	Fast     int64         `json:"fast_multiplier,omitempty"`  // 0: not known
	LongOver int64         `json:"long_prompt_over,omitempty"` // tokens of a prompt above which Long holds
	Long     *Rates        `json:"long_prompt,omitempty"`      //
	Earlier  []EarlierRate `json:"earlier,omitempty"`          // oldest first
}

// EarlierRate is what a model cost through a day, UTC.
type EarlierRate struct {
	Through string `json:"through"`
	Rates
}

// List is the whole table.
func (t Table) List() PriceList {
	l := PriceList{Unit: priceUnit, Checked: t.checked.Format(time.DateOnly), Note: t.note, Unknown: t.fallback, UnknownFast: t.fast,
		Regional: t.regional, WebSearch: t.webSearch}
	for _, name := range t.Models() {
		r := t.rows[name]
		m := ModelRate{Model: name, Rates: r.Rates, Fast: r.Fast}
		if r.Long != nil {
			long := r.Long.Rates
			m.LongOver, m.Long = r.Long.Threshold, &long
		}
		for _, p := range r.Until {
			m.Earlier = append(m.Earlier, EarlierRate{p.Date, p.over(r.Rates)})
		}
		l.Models = append(l.Models, m)
	}
	return l
}
