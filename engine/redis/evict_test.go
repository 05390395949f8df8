package redis_test

import (
	"testing"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
	"github.com/forebayhq/forebay/engine/redis"
	"github.com/forebayhq/forebay/internal/redistest"
)

// A server with an eviction policy drops keys of its own choice. No job is stuck for it.

// evict lets a key go, as an eviction does.
func (p *pair) evict(key string) {
	p.t.Helper()
	if n, err := client(p.t, p.s).Del(p.t.Context(), key).Result(); err != nil || n != 1 {
		p.t.Fatalf("there was no %s: %v", key, err)
	}
}

// sweeps sweeps, whoever of BullMQ's workers has looked last.
func (p *pair) sweeps() {
	p.t.Helper()
	if err := client(p.t, p.s).Del(p.t.Context(), "bull:q:stalled-check").Err(); err != nil {
		p.t.Fatal(err)
	}
	if err := p.e.Sweep(p.t.Context(), "q"); err != nil {
		p.t.Fatal(err)
	}
}

func TestEvictedKeys(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, redistest.Config{})
	p := &pair{t: t, s: s, e: mustOpen(t, redis.Config{URL: s.URL(0)})}
	held := func(id string) forebay.Delivery {
		t.Helper()
		p.send(jobOf(id, nil))
		ds, err := p.e.Receive(t.Context(), engine.Receive{Queue: "q", Max: 1, Lease: time.Second})
		if err != nil || len(ds) != 1 || ds[0].ID != id {
			t.Fatalf("%v, %v came, want %s", ds, err, id)
		}
		return ds[0]
	}
	lost := func(d forebay.Delivery, what string) {
		t.Helper()
		errs, err := p.e.Settle(t.Context(), []forebay.Settlement{{Receipt: d.Receipt, Verdict: forebay.Ack}})
		if err != nil || forebay.CodeOf(errs[0]) != forebay.CodeLeaseLost {
			t.Fatalf("settle without %s gave %v, %v; want code lease_lost", what, errs, err)
		}
	}

	d := held("lock")
	p.evict("bull:q:lock:lock")
	lost(d, "its lock")
	p.settle(p.one("lock"), forebay.Ack, "") // when its lease is over

	d = held("lease")
	p.evict("bull:q:fb:l")
	lost(d, "its lease")
	p.sweeps()
	<-time.After(1100 * time.Millisecond) // until its lock ends by itself
	p.sweeps()
	p.settle(p.one("lease"), forebay.Ack, "")

	d = held("hash")
	p.evict("bull:q:hash")
	lost(d, "its record")
	st, err := p.e.Stats(t.Context(), "q")
	if err != nil || st[0].Active != 0 {
		t.Fatalf("a job without a record is still active: %+v, %v", st, err)
	}

	p.send(jobOf("gone", nil), jobOf("here", nil))
	p.evict("bull:q:gone")
	p.settle(p.one("here"), forebay.Ack, "")

	p.send(jobOf("a", nil), jobOf("b", func(m *forebay.Message) { m.Group = "g" }))
	for _, marker := range []string{"bull:q:marker", "bull:q:fb:marker"} {
		p.evict(marker)
		p.sweeps()
		if at, err := client(t, s).ZScore(t.Context(), marker, "0").Result(); err != nil || at != 0 {
			t.Fatalf("a sweep has not set %s again: %v, %v", marker, at, err)
		}
	}
}
