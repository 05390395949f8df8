package monitor

import (
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/forebayhq/forebay/ingest"
)

type request struct {
	dialect string
	status  int
}

type verdict struct {
	dialect string
	status  ingest.Status
	code    string
}

// edge is what is counted of package ingest.
type edge struct {
	requests *counters[request]
	verdicts *counters[verdict]
	seconds  prometheus.Histogram
}

func newEdge() edge {
	return edge{
		requests: newCounters("forebay_ingest_requests_total", "Requests answered, by dialect and HTTP status.",
			[]string{"dialect", "status"}, func(r request) []string { return []string{r.dialect, strconv.Itoa(r.status)} }, request{other, 0}),
		verdicts: newCounters("forebay_ingest_events_total", "Verdicts on events: accepted, duplicate or rejected, and the code that says why.",
			[]string{"dialect", "verdict", "code"}, func(v verdict) []string { return []string{v.dialect, string(v.status), v.code} }, verdict{other, other, other}),
		seconds: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "forebay_accept_seconds", Help: "Time to answer a request that was answered with success.", Buckets: buckets(),
		}),
	}
}

func (e *edge) collectors() []prometheus.Collector {
	return []prometheus.Collector{e.requests.vec, e.verdicts.vec, e.seconds}
}

// Edge is told what the edge does.
func (m *Monitor) Edge() ingest.Observer {
	return ingest.Observer{
		Request: func(dialect string, status int, took time.Duration) {
			m.edge.requests.add(request{dialect, status}, 1)
			if status < http.StatusMultipleChoices {
				m.edge.seconds.Observe(took.Seconds())
				m.accept.add(m.cfg.Now(), took)
			}
		},
		Verdict: func(dialect string, status ingest.Status, code string) {
			m.edge.verdicts.add(verdict{dialect, status, code}, 1)
		},
	}
}
