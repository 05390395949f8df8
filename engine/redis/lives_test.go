package redis_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
	"github.com/forebayhq/forebay/engine/redis"
	"github.com/forebayhq/forebay/internal/redistest"
)

// The server drops keys by its own clock, which goes on while that of a bubble stands
// still. On a busy machine a lease or a rate of a test would end before its time.
func TestNoKeyGoesBeforeTheTimeOfABubble(t *testing.T) {
	s := redistest.Start(t, redistest.Config{})
	synctest.Test(t, func(t *testing.T) {
		e, err := redis.OpenInBubble(t.Context(), redis.Config{URL: s.URL(0)})
		if err != nil {
			t.Fatal(err)
		}
		must := func(errs []error, err error) {
			t.Helper()
			if err != nil || len(errs) != 1 || errs[0] != nil {
				t.Fatal(errs, err)
			}
		}
		take := func(queue, id string) forebay.Receipt {
			t.Helper()
			m := jobOf(id, func(m *forebay.Message) { m.Queue, m.DedupWindow = queue, 5*time.Second })
			if _, err := e.Send(t.Context(), []forebay.Message{m}); err != nil {
				t.Fatal(err)
			}
			ds, err := e.Receive(t.Context(), engine.Receive{Queue: queue, Max: 1, Lease: time.Second})
			if err != nil || len(ds) != 1 {
				t.Fatal(ds, err)
			}
			return ds[0].Receipt
		}
		take("plain", "a")
		must(e.Extend(t.Context(), []forebay.Receipt{take("plain", "b")}, time.Second))
		if err := e.SetLimits(t.Context(), "ruled", engine.QueueLimits{Rate: engine.Rate{Count: 1, Burst: 2}}); err != nil {
			t.Fatal(err)
		}
		take("ruled", "c")
		must(e.Settle(t.Context(), []forebay.Settlement{{Receipt: take("ruled", "d"), Verdict: forebay.Ack}}))
		must(e.Remove(t.Context(), []string{"d"})) // its dedup record fades

		c, seen := client(t, s), 0
		for _, key := range c.Keys(t.Context(), "bull:*").Val() {
			left := c.PTTL(t.Context(), key).Val()
			if left < 0 || strings.HasSuffix(key, ":limiter") || strings.HasSuffix(key, ":stalled-check") {
				continue // it stays, or is there for BullMQ
			}
			if seen++; left < 5*time.Minute {
				t.Errorf("%s goes in %v of the server's time", key, left)
			}
		}
		if seen != 5 {
			t.Errorf("%d keys have an end; want three locks, a rate and a record", seen)
		}
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
}
