package stream_test

import (
	"context"
	"strconv"
	"testing"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/broker"
	"github.com/forebayhq/forebay/engine"
	"github.com/forebayhq/forebay/engine/sqlite"
)

// A client that drops its stream again and again, while lines are written without a
// pause, gets each of them once and in order.
func TestNothingIsMissedOrDoubled(t *testing.T) {
	t.Parallel()
	const lines = 400
	s := start(t, open(t, ""), nil)
	s.add("j1")
	d := s.begin()
	r := s.get("j1", "")
	last := r.want("snapshot:active")[0]
	written := make(chan struct{})
	go func() {
		defer close(written)
		for i := range lines {
			s.log(d, strconv.Itoa(i))
		}
	}()
	for n, streams := 0, 0; n < lines; streams++ {
		if streams > 0 {
			r = s.get("j1", last)
		}
		for range 1 + streams%7 {
			if n == lines {
				break
			}
			e, ok := r.next()
			if !ok || e.name != "log" || e.data.Text != strconv.Itoa(n) {
				t.Fatalf("stream %d: got %+v, want line %d", streams, e, n)
			}
			last = e.id
			n++
		}
		r.conn.Close()
	}
	<-written
}

// bent is an engine in whose calls something happens at a moment of the test's choice.
type bent struct {
	*sqlite.Engine
	job  func()        // while a job is read
	gate chan struct{} // nil: open; what waits for the history gets it when it is closed
}

func (b *bent) Job(ctx context.Context, id string) (forebay.Job, error) {
	j, err := b.Engine.Job(ctx, id)
	if b.job != nil {
		b.job()
	}
	return j, err
}

func (b *bent) History(ctx context.Context, q engine.HistoryQuery) (engine.HistoryPage, error) {
	if b.gate != nil && q.Wait > 0 {
		select {
		case <-b.gate:
		case <-ctx.Done():
			return engine.HistoryPage{}, ctx.Err()
		}
	}
	return b.Engine.History(ctx, q)
}

func startBent(t *testing.T, b *bent) *stand {
	t.Helper()
	e, err := sqlite.Open(sqlite.Config{})
	if err != nil {
		t.Fatal(err)
	}
	b.Engine = e
	br, err := broker.New(b, broker.Config{})
	if err != nil {
		t.Fatal(err)
	}
	return start(t, br, nil)
}

// What happens while a stream begins is in the history and in the subscription: it is
// told once.
func TestWhatHappensWhileAStreamBeginsIsToldOnce(t *testing.T) {
	t.Parallel()
	e := &bent{}
	s := startBent(t, e)
	s.add("j1")
	d := s.begin()
	e.job = func() {
		s.log(d, "within")
		seen := func() bool {
			events, _ := s.broker.Watcher().Since(0, "j1")
			return len(events) > 0 && events[len(events)-1].Text == "within"
		}
		for !seen() {
			<-tick()
		}
		e.job = nil
	}
	r := s.get("j1", "")
	id := r.want("snapshot:active", "log:within")[0]
	s.log(d, "after")
	r.want("log:after")
	e.job = func() {
		e.job = nil
		n := func() int { events, _ := s.broker.Watcher().Since(0, "j1"); return len(events) }
		was := n()
		s.log(d, "again")
		for n() == was {
			<-tick()
		}
	}
	r = s.get("j1", id)
	r.want("log:within", "log:after", "log:again")
	s.log(d, "last")
	r.want("log:last")
}

// A job whose end the watcher has not seen yet: whoever resumes gets the end, not 204.
func TestAnEndThatTheWatcherHasNotSeen(t *testing.T) {
	t.Parallel()
	e := &bent{gate: make(chan struct{})}
	defer close(e.gate)
	s := startBent(t, e)
	s.add("j1")
	r := s.get("j1", "")
	id := r.want("snapshot:waiting")[0]
	r.conn.Close()
	s.settle(s.begin(), forebay.Ack)
	r = s.get("j1", id)
	r.want("state:active", "state:completed", "done:completed")
	r.end()
}
