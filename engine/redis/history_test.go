package redis_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
	"github.com/forebayhq/forebay/engine/redis"
	"github.com/forebayhq/forebay/internal/redistest"
)

// all reads the history page by page.
func all(t *testing.T, e *redis.Engine, limit int) (out []forebay.HistoryEvent) {
	t.Helper()
	for q := (engine.HistoryQuery{Limit: limit}); ; {
		page, err := e.History(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, page.Events...)
		if q.After = page.Next; !page.More {
			return out
		}
	}
}

func opens(t *testing.T, cfg redis.Config) *redis.Engine {
	t.Helper()
	e, err := redis.Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	return e
}

func sendAll(t *testing.T, e *redis.Engine, from, to int, id func(i int) string) {
	t.Helper()
	var msgs []forebay.Message
	for i := from; i < to; i++ {
		msgs = append(msgs, jobOf(id(i), nil))
	}
	res, err := e.Send(t.Context(), msgs)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range res {
		if r.Err != nil || r.Duplicate {
			t.Fatal(r)
		}
	}
}

// Events of one script are one entry. Pages of any size begin and end within entries,
// and places are never given twice.
func TestHistoryOfManyAtOnce(t *testing.T) {
	s := redistest.Start(t, redistest.Config{})
	e := opens(t, redis.Config{URL: s.URL(0)})
	// lengths for which the packing has three forms
	id := func(i int) string { return fmt.Sprintf("%0*d-x", []int{3, 40, 100}[i%3], i) }
	const jobs = 260
	sendAll(t, e, 0, 250, id)
	sendAll(t, e, 250, jobs, id)
	result := json.RawMessage(`"` + strings.Repeat("r", 16_000) + `"`)
	ds, err := e.Receive(t.Context(), engine.Receive{Queue: "q", Max: jobs})
	if err != nil || len(ds) != jobs {
		t.Fatal(len(ds), err)
	}
	var ss []forebay.Settlement
	for _, d := range ds {
		ss = append(ss, forebay.Settlement{Receipt: d.Receipt, Verdict: forebay.Ack, Result: result})
	}
	if errs, err := e.Settle(t.Context(), ss); err != nil || errs[0] != nil {
		t.Fatal(errs, err)
	}
	if n, err := client(t, s).XLen(t.Context(), "bull::fb:h").Result(); err != nil || n > 100 {
		t.Fatalf("%d entries (%v) for %d events", n, err, 3*jobs)
	}
	for _, limit := range []int{3, 99, 1000} {
		events := all(t, e, limit)
		if len(events) != 3*jobs {
			t.Fatalf("by pages of %d there are %d events; sent, started and completed were %d jobs", limit, len(events), jobs)
		}
		for i, ev := range events {
			typ := []forebay.HistoryType{forebay.HistoryAdded, forebay.HistoryStarted, forebay.HistoryCompleted}[i/jobs]
			if ev.Job != id(i%jobs) || ev.Type != typ || ev.Kind != "work" || ev.Queue != "q" || i > 0 && ev.Seq <= events[i-1].Seq {
				t.Fatalf("by pages of %d event %d is %+v", limit, i, ev)
			}
			if typ == forebay.HistoryCompleted && string(ev.Result) != string(result) {
				t.Fatalf("the result of %s has %d bytes", ev.Job, len(ev.Result))
			}
		}
	}
}

// The bound counts events, not entries.
func TestHistoryIsBounded(t *testing.T) {
	s := redistest.Start(t, redistest.Config{})
	const most = 1000
	e := opens(t, redis.Config{URL: s.URL(0), History: most})
	for n := 0; n < 3000; n += 250 {
		sendAll(t, e, n, n+250, func(i int) string { return fmt.Sprint("job-", i) })
	}
	for n := 3000; n < 3050; n++ {
		sendAll(t, e, n, n+1, func(i int) string { return fmt.Sprint("job-", i) })
	}
	events := all(t, e, 1000)
	if n := len(events); n < most || n > most+most/5 || events[n-1].Job != "job-3049" || events[0].Job != fmt.Sprint("job-", 3050-n) {
		t.Fatalf("%d events are left, from %s on", n, events[0].Job)
	}
	if n, err := client(t, s).LLen(t.Context(), "bull::fb:hx").Result(); err != nil || n > 70 {
		t.Fatalf("%d marks (%v)", n, err)
	}
}
