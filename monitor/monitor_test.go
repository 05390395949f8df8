package monitor_test

import (
	"fmt"
	"io"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/badrow"
	"github.com/forebayhq/forebay/broker"
	"github.com/forebayhq/forebay/engine"
	"github.com/forebayhq/forebay/engine/sqlite"
	"github.com/forebayhq/forebay/ingest"
	"github.com/forebayhq/forebay/monitor"
	"github.com/forebayhq/forebay/sink"
	"github.com/forebayhq/forebay/worker"
)

func start(t *testing.T, now func() time.Time) (*monitor.Monitor, *broker.Broker, *badrow.Store) {
	t.Helper()
	e, err := sqlite.Open(sqlite.Config{})
	if err != nil {
		t.Fatal(err)
	}
	b, err := broker.New(e, broker.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	bad, err := badrow.Open(filepath.Join(t.TempDir(), "bad.db"), badrow.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { bad.Close() })
	m, err := monitor.New(monitor.Config{Broker: b, Bad: bad, Version: "test", Now: now})
	if err != nil {
		t.Fatal(err)
	}
	return m, b, bad
}

func scrape(t *testing.T, m *monitor.Monitor) string {
	t.Helper()
	w := httptest.NewRecorder()
	m.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	if w.Code != 200 {
		t.Fatalf("%d: %s", w.Code, w.Body)
	}
	return w.Body.String()
}

func wantLines(t *testing.T, text string, lines ...string) {
	t.Helper()
	for _, line := range lines {
		if !strings.Contains(text, "\n"+line+"\n") {
			t.Errorf("no line %q", line)
		}
	}
	if t.Failed() {
		for line := range strings.Lines(text) {
			if strings.Contains(line, "_bucket{") {
				continue
			}
			if strings.HasPrefix(line, "forebay_") || strings.HasPrefix(line, "queue_") {
				t.Log(strings.TrimSpace(line))
			}
		}
	}
}

// observe does one of everything.
func observe(m *monitor.Monitor) {
	edge := m.Edge()
	edge.Request("native", 202, 3*time.Millisecond)
	edge.Request("segment", 429, time.Hour)
	edge.Verdict("native", ingest.Accepted, "")
	edge.Verdict("native", ingest.Rejected, "missing")
	w := m.Worker()
	d := forebay.Delivery{Message: forebay.Message{Queue: "events"}, SentAt: time.Date(2026, 11, 29, 9, 59, 0, 0, time.UTC)}
	w.Settled(worker.Outcome{Delivery: d, Verdict: forebay.Ack, Started: true, Wait: time.Second, Run: time.Second, Batch: 1})
	w.Settled(worker.Outcome{Delivery: d, Verdict: forebay.Dead, Cause: forebay.Cause{Code: "22P02"}, Started: true})
	w.Settled(worker.Outcome{Delivery: d, Verdict: forebay.Release})
	w.LeaseLost(d)
	w.LeftBehind(d, forebay.ErrCancelled)
	w.SettleFailed(d, io.EOF)
	w.Batch(100, 1000, time.Second)
	w.Received("events", 3)
	w.Received("events", 0)
	w.Received("events", 0)
	m.Batch(sink.Batch{Rows: 10, Written: 7, Duplicates: 2, Refused: 1, Took: time.Second, Latency: []time.Duration{time.Second, 2 * time.Second}})
	m.SinkState(sink.State{Paused: true})
}

func TestEverythingIsCounted(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 29, 10, 0, 0, 0, time.UTC)
	m, b, bad := start(t, func() time.Time { return now })
	msgs := []forebay.Message{
		{ID: "a", Queue: "events", Kind: "k"}, {ID: "a", Queue: "events", Kind: "k"}, {ID: "b", Queue: "events", Kind: "k"},
		{ID: "c", Queue: "events", Kind: "k", NotBefore: time.Now().Add(time.Hour)},
	}
	if _, err := b.Send(t.Context(), msgs); err != nil {
		t.Fatal(err)
	}
	ds, err := b.Receive(t.Context(), engine.Receive{Queue: "events", Max: 1})
	if err != nil || len(ds) != 1 {
		t.Fatal(ds, err)
	}
	if err := bad.Put(t.Context(), []badrow.Row{{Code: "x"}}); err != nil {
		t.Fatal(err)
	}
	observe(m)
	wantLines(t, scrape(t, m),
		`forebay_build_info{version="test"} 1`,
		`forebay_up{part="queues"} 1`,
		`forebay_queue_waiting{queue="events"} 1`,
		`forebay_queue_active{queue="events"} 1`,
		`forebay_queue_delayed{queue="events"} 1`,
		`forebay_queue_sent_total{queue="events"} 3`,
		`forebay_queue_duplicates_total{queue="events"} 1`,
		`queue_waiting{queue="events"} 1`,
		`queue_active{queue="events"} 1`,
		`queue_delayed{queue="events"} 1`,
		`queue_completed{queue="events"} 0`,
		`queue_failed{queue="events"} 0`,
		`forebay_bad_rows 1`,
		`forebay_ingest_requests_total{dialect="native",status="202"} 1`,
		`forebay_ingest_requests_total{dialect="segment",status="429"} 1`,
		`forebay_ingest_events_total{code="",dialect="native",verdict="accepted"} 1`,
		`forebay_ingest_events_total{code="missing",dialect="native",verdict="rejected"} 1`,
		`forebay_accept_seconds_count 1`,
		`forebay_worker_deliveries_total{queue="events",verdict="ack"} 1`,
		`forebay_worker_deliveries_total{queue="events",verdict="dead"} 1`,
		`forebay_worker_deliveries_total{queue="events",verdict="release"} 1`,
		`forebay_worker_failures_total{code="22P02",queue="events"} 1`,
		`forebay_worker_lease_lost_total{queue="events"} 1`,
		`forebay_worker_left_behind_total{queue="events"} 1`,
		`forebay_worker_settle_failures_total{queue="events"} 1`,
		`forebay_worker_receives_total{queue="events",result="empty"} 2`,
		`forebay_worker_receives_total{queue="events",result="messages"} 1`,
		`forebay_worker_wait_seconds_sum{queue="events"} 1`,
		`forebay_worker_run_seconds_count{queue="events"} 2`,
		`forebay_worker_end_to_end_seconds_count{queue="events"} 2`,
		`forebay_worker_end_to_end_seconds_sum{queue="events"} 120`,
		`forebay_queue_drain_seconds{queue="events"} +Inf`,
		`forebay_desired_workers{queue="events"} 1`,
		`forebay_worker_batch_messages_count 1`,
		`forebay_sink_rows_total{result="written"} 7`,
		`forebay_sink_rows_total{result="duplicate"} 2`,
		`forebay_sink_rows_total{result="refused"} 1`,
		`forebay_sink_batch_rows_sum 10`,
		`forebay_event_latency_seconds_count 2`,
		`forebay_event_latency_seconds_sum 3`,
		`forebay_sink_paused 1`,
	)
	m.SinkState(sink.State{})
	wantLines(t, scrape(t, m), `forebay_sink_paused 0`)
}

func TestNamesAreAsPrometheusWantsThem(t *testing.T) {
	t.Parallel()
	m, b, _ := start(t, nil)
	if _, err := b.Send(t.Context(), []forebay.Message{{Queue: "events", Kind: "k"}}); err != nil {
		t.Fatal(err)
	}
	observe(m)
	problems, err := promlint.New(strings.NewReader(scrape(t, m))).Lint()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
}

// The code of a handler's error may be any text; a metric's label may not.
func TestACodeThatIsNoTextIsCounted(t *testing.T) {
	t.Parallel()
	m, _, _ := start(t, nil)
	d := forebay.Delivery{Message: forebay.Message{Queue: "q"}}
	m.Worker().Settled(worker.Outcome{Delivery: d, Verdict: forebay.Dead, Cause: forebay.Cause{Code: "a\xffb"}})
	wantLines(t, scrape(t, m), "forebay_worker_failures_total{code=\"a\ufffdb\",queue=\"q\"} 1")
}

// Whatever comes from outside, the number of series stays bounded.
func TestSeriesAreBounded(t *testing.T) {
	m, b, _ := start(t, nil)
	edge, w := m.Edge(), m.Worker()
	var msgs []forebay.Message
	for i := range 1000 {
		name := fmt.Sprint("x", i)
		edge.Request(name, 202, 0)
		edge.Verdict("native", ingest.Rejected, name)
		w.Settled(worker.Outcome{Delivery: forebay.Delivery{Message: forebay.Message{Queue: "q"}}, Verdict: forebay.Dead, Cause: forebay.Cause{Code: name}})
		w.LeaseLost(forebay.Delivery{Message: forebay.Message{Queue: name}})
		if i < 150 {
			msgs = append(msgs, forebay.Message{Queue: name, Kind: "k"})
		}
	}
	if _, err := b.Send(t.Context(), msgs); err != nil {
		t.Fatal(err)
	}
	if n := testing.AllocsPerRun(100, func() { edge.Verdict("native", ingest.Rejected, "one more") }); n > 0 {
		t.Errorf("counting what is too many takes %v allocations", n)
	}
	text := scrape(t, m)
	series := map[string]int{}
	for line := range strings.Lines(text) {
		name, _, _ := strings.Cut(line, "{")
		series[name]++
	}
	for name, n := range series {
		if n > 201 {
			t.Errorf("%s has %d series", name, n)
		}
	}
	if n := series["forebay_queue_waiting"]; n != 101 {
		t.Errorf("%d series of queues, want 101", n)
	}
	wantLines(t, text,
		`forebay_ingest_events_total{code="other",dialect="other",verdict="other"} 901`,
		`forebay_worker_lease_lost_total{queue="other"} 800`,
		`forebay_queue_waiting{queue="(other)"} 50`)
}

func TestAPartThatFailsCostsOnlyItself(t *testing.T) {
	t.Parallel()
	m, b, bad := start(t, nil)
	b.Close()
	observe(m)
	wantLines(t, scrape(t, m), `forebay_up{part="queues"} 0`, `forebay_up{part="bad rows"} 1`, `forebay_bad_rows 0`, `forebay_accept_seconds_count 1`)
	bad.Close()
	wantLines(t, scrape(t, m), `forebay_up{part="bad rows"} 0`, `forebay_accept_seconds_count 1`)
}

func TestQuantilesOfTheLastMinute(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 29, 10, 0, 5, 0, time.UTC)
	m, _, _ := start(t, func() time.Time { return now })
	edge := m.Edge()
	near := func(got, want float64) bool { return got > want*0.94 && got < want*1.06 }
	if l := m.Accepted(); l != (monitor.Latency{}) {
		t.Errorf("before any: %+v", l)
	}
	for i := range 1000 {
		edge.Request("native", 202, time.Duration(i+1)*100*time.Microsecond)
	}
	edge.Request("native", 503, time.Hour)
	if l := m.Accepted(); l.Count != 1000 || !near(l.P50ms, 50) || !near(l.P99ms, 99) {
		t.Errorf("1 to 100 ms: %+v", l)
	}
	now = now.Add(50 * time.Second)
	edge.Request("native", 202, 0)
	edge.Request("native", 202, 24*time.Hour)
	if l := m.Accepted(); l.Count != 1002 {
		t.Errorf("50 s later: %+v", l)
	}
	now = now.Add(20 * time.Second)
	if l := m.Accepted(); l.Count != 2 || l.P50ms > 0.011 || l.P99ms < 600_000 {
		t.Errorf("70 s later: %+v", l)
	}
	now = now.Add(time.Hour)
	edge.Request("native", 202, 7*time.Millisecond)
	if l := m.Accepted(); l.Count != 1 || !near(l.P99ms, 7) {
		t.Errorf("an hour later: %+v", l)
	}
	m.Batch(sink.Batch{Latency: []time.Duration{time.Second}})
	if l := m.Written(); l.Count != 1 || !near(l.P50ms, 1000) {
		t.Errorf("written: %+v", l)
	}
}

func TestConcurrentUse(t *testing.T) {
	t.Parallel()
	m, _, _ := start(t, nil)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 250 {
				observe(m)
			}
		})
	}
	wg.Go(func() {
		for range 5 {
			scrape(t, m)
			m.Accepted()
		}
	})
	wg.Wait()
	wantLines(t, scrape(t, m), `forebay_accept_seconds_count 1000`, `forebay_ingest_events_total{code="",dialect="native",verdict="accepted"} 1000`)
}

func BenchmarkVerdict(b *testing.B) {
	m, err := monitor.New(monitor.Config{})
	if err != nil {
		b.Fatal(err)
	}
	edge := m.Edge()
	b.ReportAllocs()
	for b.Loop() {
		edge.Verdict("native", ingest.Accepted, "")
	}
}

func BenchmarkRequest(b *testing.B) {
	m, err := monitor.New(monitor.Config{})
	if err != nil {
		b.Fatal(err)
	}
	edge := m.Edge()
	b.ReportAllocs()
	for b.Loop() {
		edge.Request("native", 202, 3*time.Millisecond)
	}
}
