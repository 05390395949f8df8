package redis_test

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
	"github.com/forebayhq/forebay/engine/redis"
	"github.com/forebayhq/forebay/internal/redistest"
)

// What has completed leaves at its age, whichever ages others of its queue have, and those
// that are kept for longer lie before it. Only of ages beyond the usual ones is it noted when
// each leaves; and nobody but BullMQ's own set knows of the others.
func TestCompletedLeaveAtTheirAge(t *testing.T) {
	s := redistest.Start(t, redistest.Config{})
	var passed atomic.Int64
	start := time.Now()
	e := opens(t, redis.Config{URL: s.URL(0), Now: func() time.Time { return start.Add(time.Duration(passed.Load())) }})
	const ages, each = 6, 3
	var msgs []forebay.Message
	for i := range each {
		for minutes := ages; minutes >= 0; minutes-- { // 0: for ever
			msgs = append(msgs, jobOf(fmt.Sprint("m", minutes, "-", i), func(m *forebay.Message) {
				m.Job.Keep.Finished.Age = time.Duration(minutes) * time.Minute
			}))
		}
	}
	if _, err := e.Send(t.Context(), msgs); err != nil {
		t.Fatal(err)
	}
	for part := range 3 { // the last by the long scripts, since something is sent with it
		ds, err := e.Receive(t.Context(), engine.Receive{Queue: "q", Max: len(msgs) / 3})
		if err != nil || len(ds) != len(msgs)/3 {
			t.Fatal(len(ds), err)
		}
		ss := make([]forebay.Settlement, len(ds))
		for i, d := range ds {
			ss[i] = forebay.Settlement{Receipt: d.Receipt, Verdict: forebay.Ack}
		}
		if part == 2 {
			ss[0].Next = []forebay.Message{jobOf("next", nil)}
		}
		if errs, err := e.Settle(t.Context(), ss); err != nil || errs[0] != nil {
			t.Fatal(errs, err)
		}
	}
	c := client(t, s)
	if n := c.ZCard(t.Context(), "bull:q:fb:x").Val(); n != (ages-4)*each {
		t.Errorf("when they leave is noted of %d, want only %d", n, (ages-4)*each)
	}
	for gone := range ages + 1 {
		passed.Store(int64(time.Duration(gone) * time.Minute))
		for minutes := range ages + 1 {
			for i := range each {
				id := fmt.Sprint("m", minutes, "-", i)
				_, err := e.Job(t.Context(), id)
				if there := minutes == 0 || minutes > gone; (err == nil) != there {
					t.Errorf("after %d minutes, of a job that is kept for %d of them: %v", gone, minutes, err)
				}
			}
		}
	}
	if n := c.ZCard(t.Context(), "bull:q:completed").Val(); n != each {
		t.Errorf("%d are left as completed, want %d", n, each)
	}
}
