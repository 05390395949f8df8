package ingest_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/ingest"
)

const mixedBatch = `[{"eventType":"a","payload":{},"eventId":"1"},{"eventType":"b"}]`

func TestWithoutBadRowsNothingIsQueued(t *testing.T) {
	r := newRig(t, nil)
	if err := r.bad.Close(); err != nil {
		t.Fatal(err)
	}
	status, header, answer := r.do("POST", "/ingest/batch", mixedBatch)
	if status != 503 || header.Get("Retry-After") == "" || len(r.queue.msgs) != 0 {
		t.Errorf("got %d %s, %d queued", status, answer, len(r.queue.msgs))
	}
	if status, answer := r.post("/ingest/event", anEvent); status != 202 {
		t.Errorf("a good event needs no bad row: got %d %s", status, answer)
	}
}

func TestAQueueThatFailsIsTold503(t *testing.T) {
	for _, c := range []struct {
		err  error
		code string
	}{
		{forebay.Errorf(forebay.CodeFull, "engine: send", "the disk is full"), "full"},
		{forebay.Errorf(forebay.CodeClosed, "broker: send", "shutting down"), "closed"},
		{errors.New("a defect with inner words"), "unavailable"},
		{context.DeadlineExceeded, "unavailable"},
	} {
		r := newRig(t, nil)
		r.queue.err = c.err
		status, header, answer := r.do("POST", "/ingest/batch", mixedBatch)
		if status != 503 || header.Get("Retry-After") != "1" || !strings.Contains(answer, `"code":"`+c.code+`"`) || strings.Contains(answer, "inner words") {
			t.Errorf("%v: got %d %s", c.err, status, answer)
		}
	}
}

// What a store says of itself is for the log; an outage is a line for each kind of
// failure, and one for its end.
func TestAnOutageIsLoggedOnceAndToldInFewWords(t *testing.T) {
	var log strings.Builder
	r := newRig(t, func(c *ingest.Config) { c.Logger = slog.New(slog.NewTextHandler(&log, nil)) })
	lines := func(text string) int { return strings.Count(log.String(), text) }
	for _, code := range []forebay.Code{forebay.CodeFull, forebay.CodeUnavailable, forebay.CodeDamaged} {
		r.queue.err = forebay.Errorf(code, "engine: send", "/var/lib/forebay.db on db.internal fails")
		for range 20 {
			status, answer := r.post("/ingest/event", anEvent)
			if status != 503 || strings.Contains(answer, "forebay.db") || strings.Contains(answer, "internal") || strings.Contains(answer, "damaged") {
				t.Fatalf("got %d %s", status, answer)
			}
		}
	}
	r.queue.err = nil
	r.post("/ingest/event", anEvent)
	if lines("events cannot be stored") != 3 || lines("again") != 0 {
		t.Errorf("during the outage:\n%s", &log)
	}
	r.pass(5 * time.Second)
	r.post("/ingest/event", anEvent)
	r.post("/ingest/event", anEvent)
	if lines("events are stored again") != 1 || lines("refusedRequests=60") != 1 {
		t.Errorf("after it:\n%s", &log)
	}
	r.queue.err = forebay.Errorf(forebay.CodeFull, "engine: send", "full")
	r.post("/ingest/event", anEvent)
	if lines("events cannot be stored") != 4 {
		t.Errorf("the next one:\n%s", &log)
	}
}

// verdicts is a queue that answers each message as it is told.
type verdicts map[string]forebay.SendResult

func (v verdicts) Send(_ context.Context, msgs []forebay.Message) ([]forebay.SendResult, error) {
	results := make([]forebay.SendResult, len(msgs))
	for i, m := range msgs {
		results[i] = v[m.ID]
		if results[i].ID == "" {
			results[i].ID = m.ID
		}
	}
	return results, nil
}

func threeEvents() string {
	return `[{"eventType":"a","payload":{},"eventId":"1"},{"eventType":"a","payload":{},"eventId":"2","x":1},{"eventType":"a","payload":{},"eventId":"3"}]`
}

func TestTheQueuesVerdictsAreToldPerEvent(t *testing.T) {
	r := newRig(t, func(c *ingest.Config) {
		c.Sender = verdicts{
			"1": {Err: forebay.Errorf(forebay.CodeInvalid, "", "not this one")},
			"2": {ID: "first", Duplicate: true, Conflict: true},
		}
	})
	status, answer := r.post("/ingest/batch", threeEvents())
	want := `{"accepted":1,"duplicate":1,"rejected":1,"results":[` +
		`{"index":0,"id":"1","status":"rejected","code":"refused","message":"not this one"},` +
		`{"index":1,"id":"first","status":"duplicate","code":"conflict","message":"an earlier event has this id and another content; the first one is kept"}]}`
	if status != 202 || answer != want {
		t.Errorf("got %d %s\nwant %s", status, answer, want)
	}
	if rows := r.badRows(); len(rows) != 1 || rows[0].EventID != "1" || rows[0].Code != "refused" {
		t.Errorf("bad rows %+v", rows)
	}
	for what, n := range map[string]int{"native accepted ": 1, "native duplicate conflict": 1, "native rejected refused": 1, "native 202": 1} {
		if r.seen.counts[what] != n {
			t.Errorf("observed %q %d times, want %d: %v", what, r.seen.counts[what], n, r.seen.counts)
		}
	}
	r = newRig(t, func(c *ingest.Config) {
		c.Sender = verdicts{"2": {Err: forebay.Errorf(forebay.CodeUnavailable, "", "come again")}}
	})
	if status, answer := r.post("/ingest/batch", threeEvents()); status != 503 {
		t.Errorf("an event could not be stored for now: got %d %s", status, answer)
	}
}

// stuck is a queue that does not answer.
type stuck struct{}

func (stuck) Send(ctx context.Context, _ []forebay.Message) ([]forebay.SendResult, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

func TestAQueueThatDoesNotAnswerIsTold503InTime(t *testing.T) {
	r := newRig(t, func(c *ingest.Config) { c.Sender, c.Timeout = stuck{}, time.Millisecond })
	if status, answer := r.post("/ingest/event", anEvent); status != 503 {
		t.Errorf("got %d %s", status, answer)
	}
}

// load is what admission looks at, as the test says.
type load struct {
	mu      sync.Mutex
	waiting int64
	free    int64
	rate    float64
	err     error
	looks   int
}

func (l *load) set(waiting, free int64, rate float64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.waiting, l.free, l.rate = waiting, free, rate
}

func (l *load) Stats(_ context.Context, queues ...string) ([]forebay.QueueStats, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.looks++
	return []forebay.QueueStats{{Queue: queues[0], Waiting: l.waiting}}, l.err
}

func (l *load) Size(context.Context) (used, free int64, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.waiting * 1000, l.free, l.err
}

func (l *load) DrainRate(string) float64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.rate
}

func TestAdmissionClosesAndOpensWithSomeRoomBetween(t *testing.T) {
	l := &load{free: 1 << 40}
	r := newRig(t, func(c *ingest.Config) {
		c.Load, c.Admission = l, ingest.Admission{MaxBacklog: 1000, MinFreeBytes: 1_000_000}
	})
	const room = 1 << 40
	for i, c := range []struct {
		waiting, free int64
		rate          float64
		status        int
		code, retry   string
	}{
		{999, room, 10, 202, "", ""},
		{1000, room, 10, 503, "backlog_full", "10"}, // 100 too many, 10 a second
		{950, room, 10, 503, "backlog_full", "5"},
		{900, room, 10, 202, "", ""},
		{950, room, 10, 202, "", ""},
		{5000, room, 0, 503, "backlog_full", "30"}, // nothing drains
		{500_000, room, 1, 503, "backlog_full", "300"},
		{0, room, 1, 202, "", ""},
		{500, 999_999, 10, 503, "disk_full", "25"}, // 250,001 bytes at 1,000 each, 10 a second
		{500, 1_000_001, 10, 503, "disk_full", "25"},
		{500, 1_250_000, 10, 202, "", ""},
		{0, 1_000, 0, 503, "disk_full", "30"},
		{0, -1, 0, 202, "", ""}, // unknown
	} {
		l.set(c.waiting, c.free, c.rate)
		r.pass(time.Second)
		before := len(r.queue.msgs)
		status, header, answer := r.do("POST", "/ingest/event", anEvent)
		if status != c.status || header.Get("Retry-After") != c.retry || !strings.Contains(answer, c.code) {
			t.Errorf("step %d: got %d, Retry-After %q, %s; want %d, %q, %s", i, status, header.Get("Retry-After"), answer, c.status, c.retry, c.code)
		}
		if err := r.edge.Check(t.Context()); (err == nil) != (c.status == 202) {
			t.Errorf("step %d: readiness says %v", i, err)
		}
		if queued := len(r.queue.msgs) > before; queued != (c.status == 202) {
			t.Errorf("step %d: queued %v", i, queued)
		}
	}
	looks := l.looks
	for range 10 {
		r.post("/ingest/event", anEvent)
	}
	if l.looks != looks {
		t.Errorf("looked %d times within one moment", l.looks-looks)
	}
}

func TestAdmissionReadsNoBodyWhenClosed(t *testing.T) {
	r := newRig(t, func(c *ingest.Config) { c.Load = &load{waiting: 1 << 40, free: 1 << 40} })
	if status, answer := r.post("/ingest/event", "not even JSON"); status != 503 {
		t.Errorf("got %d %s", status, answer)
	}
}

func TestAdmissionThatCannotLookLetsEventsIn(t *testing.T) {
	r := newRig(t, func(c *ingest.Config) { c.Load = &load{err: errors.New("no answer")} })
	if status, answer := r.post("/ingest/event", anEvent); status != 202 {
		t.Errorf("got %d %s", status, answer)
	}
}

func TestNewNamesAllProblemsAtOnce(t *testing.T) {
	_, err := ingest.New(ingest.Config{Limits: ingest.Limits{WireBytes: 5, Depth: 5000}, Admission: ingest.Admission{MaxBacklog: -2}})
	for _, want := range []string{"limits.wireBytes", "limits.depth", "admission.maxBacklog", "Sender", "bad rows"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not name %s", err, want)
		}
	}
	if forebay.CodeOf(err) != forebay.CodeInvalid {
		t.Errorf("code %s", forebay.CodeOf(err))
	}
}
