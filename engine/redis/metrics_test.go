package redis_test

import (
	"testing"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine/redis"
	"github.com/forebayhq/forebay/internal/redistest"
)

// BullMQ's metrics count what is worked here: where a Node worker has them on, or where the
// settings say so. Minutes are counted as Node counts them.
func TestNodeMetrics(t *testing.T) {
	t.Parallel()
	at := time.Date(2030, 1, 1, 12, 0, 30, 0, time.UTC)
	now := at
	s := redistest.Start(t, redistest.Config{})
	p := &pair{t: t, s: s, n: startNode(t, s.Addr(), "6", "bull")}
	p.e = mustOpen(t, redis.Config{URL: s.URL(0), Metrics: 3, Now: func() time.Time { return now }})
	off := mustOpen(t, redis.Config{URL: s.URL(0)})
	wants := func(kind, want string) {
		t.Helper()
		m := p.n.do("metrics", args{"queue": "q", "type": kind})
		if got := encode(t, args{"count": m["meta"].(args)["count"], "data": m["data"]}); got != want {
			t.Fatalf("getMetrics tells of %s %s, want %s", kind, got, want)
		}
	}
	works := func(e *redis.Engine, id string, v forebay.Verdict) {
		t.Helper()
		with := *p
		with.e = e
		with.send(jobOf(id, nil))
		with.settle(with.one(id), v, "")
	}
	works(off, "before", forebay.Ack)
	wants("completed", `{"count":0,"data":[]}`)

	for _, id := range []string{"a", "b", "c"} {
		works(p.e, id, forebay.Ack)
	}
	works(p.e, "d", forebay.Dead)
	wants("completed", `{"count":3,"data":[]}`)
	now = at.Add(time.Minute)
	works(p.e, "e", forebay.Ack)
	wants("completed", `{"count":4,"data":[3]}`)
	now = at.Add(3 * time.Minute)
	works(p.e, "f", forebay.Ack)
	wants("completed", `{"count":5,"data":[0,1,3]}`)
	now = at.Add(4 * time.Minute)
	works(p.e, "g", forebay.Ack)
	works(p.e, "h", forebay.Dead)
	wants("completed", `{"count":6,"data":[1,0,1]}`)
	wants("failed", `{"count":2,"data":[0,0,1]}`)
	works(off, "after", forebay.Ack) // they are on for this queue now
	wants("completed", `{"count":7,"data":[1,0,1]}`)
}
