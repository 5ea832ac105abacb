package bridge

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"example.com/AutoAgentProject/core/money"
	"example.com/AutoAgentProject/core/view"
)

// measure sets up what /metrics tells: the missions at the moment in which it is asked, and this process.
func (s *Server) measure() {
	s.reg = prometheus.NewRegistry()
	s.answers = prometheus.NewCounterVec(prometheus.CounterOpts{Name: "autoagent_bridge_answers_total", Help: "Answers of the dashboard, by page and status."}, []string{"page", "code"})
	s.took = prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "autoagent_bridge_answer_seconds", Help: "Time to make an answer.", Buckets: []float64{.005, .02, .1, .5, 2, 10}}, []string{"page"})
	s.reg.MustRegister(s.answers, s.took, missions{s}, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	h := promhttp.HandlerFor(s.reg, promhttp.HandlerOpts{MaxRequestsInFlight: 2, Timeout: 20 * time.Second})
	s.metrics = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { h.ServeHTTP(w, r) })
}

// missions collects the missions that are not over; those that are, only as a number.
type missions struct{ s *Server }

var (
	inGroup = prometheus.NewDesc("autoagent_missions", "Missions, by what they do.", []string{"group"}, nil)
	used    = prometheus.NewDesc("autoagent_mission_used", "Used of the budget, in its unit: US dollars at list price or tokens.", []string{"mission", "unit"}, nil)
	budget  = prometheus.NewDesc("autoagent_mission_budget", "The budget, in its unit.", []string{"mission", "unit"}, nil)
	left    = prometheus.NewDesc("autoagent_mission_seconds_left", "Time left in which it can run.", []string{"mission"}, nil)
	steps   = prometheus.NewDesc("autoagent_mission_steps", "Steps of its plan, by state.", []string{"mission", "state"}, nil)
	needed  = prometheus.NewDesc("autoagent_mission_needs", "Things that wait for the person.", []string{"mission"}, nil)
	unread  = prometheus.NewDesc("autoagent_mission_unreadable", "1 if a file of it cannot be read.", []string{"mission"}, nil)
	ticking = prometheus.NewDesc("autoagent_mission_ticking", "1 if somebody ticks it.", []string{"mission"}, nil)
)

func (missions) Describe(c chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{inGroup, used, budget, left, steps, needed, unread, ticking} {
		c <- d
	}
}

func (m missions) Collect(c chan<- prometheus.Metric) {
	ctx, done := context.WithTimeout(context.Background(), 15*time.Second)
	defer done()
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		c <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	o, err := m.s.cfg.View.Overview(ctx, "", 1) // those that are not over come first; a page of them is told
	if err != nil {
		c <- prometheus.NewInvalidMetric(inGroup, err)
		return
	}
	gauge(inGroup, float64(o.Counts.Waiting), view.Waiting)
	gauge(inGroup, float64(o.Counts.Running), view.Running)
	gauge(inGroup, float64(o.Counts.Halted), view.Halted)
	gauge(inGroup, float64(o.Counts.Ended), view.Ended)
	for _, v := range o.Missions {
		if v.Group == view.Ended {
			continue
		}
		unit, div := strings.ReplaceAll(string(v.Budget.Unit), "nano_usd", "usd"), 1.0
		if v.Budget.Unit == money.NanoUSD {
			div = float64(money.USD)
		}
		gauge(used, float64(v.Budget.Used)/div, v.ID, unit)
		gauge(budget, float64(v.Budget.Total)/div, v.ID, unit)
		if v.Time.Limited {
			gauge(left, time.Duration(v.Time.Left).Seconds(), v.ID)
		}
		count := map[string]int{}
		for _, s := range v.Steps {
			count[string(s.State)]++
		}
		for state, n := range count {
			gauge(steps, float64(n), v.ID, state)
		}
		gauge(needed, float64(len(v.Needs)), v.ID)
		gauge(unread, one(v.Unreadable), v.ID)
		gauge(ticking, one(v.Live.Ticking), v.ID)
	}
}

func one(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
