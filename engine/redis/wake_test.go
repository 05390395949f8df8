package redis_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
	"github.com/forebayhq/forebay/engine/redis"
	"github.com/forebayhq/forebay/internal/redistest"
)

// The readers that block in the server, which bubbles cannot show.

// waiting begins a receive, and returns when the engine blocks in the server for it.
func waiting(t testing.TB, s *redistest.Server, e *redis.Engine, queue string) <-chan []forebay.Delivery {
	t.Helper()
	got := make(chan []forebay.Delivery, 1)
	go func() {
		// Ends before it, or its reader, would look by itself, and without a last look.
		ctx, cancel := context.WithTimeout(context.Background(), 8*time.Second)
		defer cancel()
		ds, err := e.Receive(ctx, engine.Receive{Queue: queue, Max: 1, Wait: time.Minute})
		if err != nil {
			t.Errorf("receive of %s: %v", queue, err)
		}
		got <- ds
	}()
	blocked(t, s, 1, func() bool { return e.Waits(queue) })
	return got
}

// blocked waits until so many clients block in BZPOPMIN, and something else holds.
func blocked(t testing.TB, s *redistest.Server, n int, and func() bool) {
	t.Helper()
	c := client(t, s)
	end := time.Now().Add(time.Minute)
	for tick := time.NewTicker(5 * time.Millisecond); ; <-tick.C {
		if time.Now().After(end) {
			t.Fatal("no reader blocks in the server")
		}
		list, err := c.Do(t.Context(), "client", "list", "type", "normal").Text()
		if err != nil {
			t.Fatal(err)
		}
		n := n
		for line := range strings.Lines(list) {
			if strings.Contains(line, " flags=b ") && strings.Contains(line, " cmd=bzpopmin") {
				n--
			}
		}
		if and() && n <= 0 {
			return
		}
	}
}

func came(t testing.TB, got <-chan []forebay.Delivery, what string) forebay.Delivery {
	t.Helper()
	ds := <-got
	if len(ds) != 1 {
		t.Fatalf("%s woke nobody: %v came", what, ds)
	}
	return ds[0]
}

func TestWaitsAreWokenByOthers(t *testing.T) {
	versions(t, func(p *pair) {
		other := mustOpen(p.t, redis.Config{URL: p.s.URL(0)})
		send := func(m forebay.Message) {
			if res, err := other.Send(p.t.Context(), []forebay.Message{m}); err != nil || res[0].Err != nil {
				p.t.Fatalf("send: %v, %v", res, err)
			}
		}
		got := waiting(p.t, p.s, p.e, "q")
		p.add("x", args{}, nil)
		p.settle(came(p.t, got, "a job that Node added"), forebay.Ack, "")
		got = waiting(p.t, p.s, p.e, "q")
		p.add("x", args{}, args{"delay": 300})
		p.settle(came(p.t, got, "a delayed job that Node added"), forebay.Ack, "")
		got = waiting(p.t, p.s, p.e, "q")
		send(jobOf("a", nil))
		p.settle(came(p.t, got, "a job of another process"), forebay.Ack, "")
		got = waiting(p.t, p.s, p.e, "q")
		send(jobOf("b", func(m *forebay.Message) { m.Group = "g" }))
		d := came(p.t, got, "a job of a group")
		send(jobOf("c", func(m *forebay.Message) { m.Group = "g" }))
		got = waiting(p.t, p.s, other, "q")
		p.settle(d, forebay.Ack, "")
		came(p.t, got, "the end of the one before in its group")
		// A second queue joins the one reader while it blocks for the first.
		first, second := waiting(p.t, p.s, p.e, "q"), waiting(p.t, p.s, p.e, "r")
		send(jobOf("d", func(m *forebay.Message) { m.Queue = "r" }))
		came(p.t, second, "a job of the second queue")
		send(jobOf("e", nil))
		came(p.t, first, "a job of the first queue")
	})
}

// Who pops a marker and has no use for it sets it again for the others.
func TestMarkerIsHandedOn(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, redistest.Config{})
	a, b := mustOpen(t, redis.Config{URL: s.URL(0)}), mustOpen(t, redis.Config{URL: s.URL(0)})
	ctx, leave := context.WithCancel(t.Context())
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		if _, err := a.Receive(ctx, engine.Receive{Queue: "q", Max: 1, Wait: 20 * time.Second}); err == nil {
			t.Error("a receive whose context ended gave no error")
		}
	}()
	blocked(t, s, 1, func() bool { return a.Waits("q") })
	leave()
	<-gone // its reader still blocks for the queue, and pops first
	got := waiting(t, s, b, "q")
	blocked(t, s, 2, func() bool { return true })
	if _, err := a.Send(t.Context(), []forebay.Message{jobOf("a", nil)}); err != nil {
		t.Fatal(err)
	}
	came(t, got, "a marker that somebody else popped")
}

// A rate that a Node client has set holds here.
func TestNodeRate(t *testing.T) {
	versions(t, func(p *pair) {
		for range 5 {
			p.add("x", args{}, nil)
		}
		p.n.do("rate", args{"queue": "q", "max": 2, "duration": 1500})
		begin := time.Now()
		if ds := p.take(10); len(ds) != 2 {
			p.t.Fatalf("%d came, the limiter allows 2", len(ds))
		}
		if ds := p.take(10); len(ds) != 2 || time.Since(begin) < 1400*time.Millisecond {
			p.t.Fatalf("after %v %d came, want 2 after the window of 1.5 s", time.Since(begin), len(ds))
		}
	})
}
