package redis_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
	"github.com/forebayhq/forebay/engine/redis"
	"github.com/forebayhq/forebay/internal/redistest"
)

// ran gives which of some commands the server has run since the last time.
func ran(t *testing.T, s *redistest.Server, commands ...string) (out []string) {
	t.Helper()
	c := client(t, s)
	info, err := c.Info(t.Context(), "commandstats").Result()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range commands {
		if strings.Contains(info, "cmdstat_"+name+":") {
			out = append(out, name)
		}
	}
	if err := c.Do(t.Context(), "config", "resetstat").Err(); err != nil {
		t.Fatal(err)
	}
	return out
}

// Plain jobs are added, handed out and completed by the short scripts alone. What those
// cannot do, they leave to the others without having done a part of it.
func TestPlainJobs(t *testing.T) {
	s := redistest.Start(t, redistest.Config{})
	e := opens(t, redis.Config{URL: s.URL(0)})
	long := []string{"hgetall", "zmscore", "get"} // commands of the long scripts
	jobs := func(from, to int) (msgs []forebay.Message) {
		for i := from; i < to; i++ {
			msgs = append(msgs, jobOf(fmt.Sprint("job-", i), func(m *forebay.Message) { m.Job.Keep.Finished.Count = 5 }))
		}
		return msgs
	}
	work := func(n int) {
		ds, err := e.Receive(t.Context(), engine.Receive{Queue: "q", Max: 100})
		if err != nil || len(ds) != n {
			t.Fatalf("%d came, want %d: %v", len(ds), n, err)
		}
		var ss []forebay.Settlement
		for i, d := range ds {
			ss = append(ss, forebay.Settlement{Receipt: d.Receipt, Verdict: forebay.Ack, Result: []byte(fmt.Sprint(i))})
		}
		for range 2 { // the second time they are void
			errs, err := e.Settle(t.Context(), ss)
			if err != nil || errs[0] != nil && forebay.CodeOf(errs[0]) != forebay.CodeLeaseLost {
				t.Fatal(errs, err)
			}
		}
	}
	send := func(msgs []forebay.Message, again int) {
		res, err := e.Send(t.Context(), msgs)
		if err != nil {
			t.Fatal(err)
		}
		for i, r := range res {
			if r.Err != nil || r.Duplicate != (i < again) {
				t.Fatalf("%d of a Send of which %d came again: %+v", i, again, r)
			}
		}
	}
	ran(t, s)
	send(jobs(0, 4), 0)
	work(4)
	if out := ran(t, s, long...); len(out) > 0 {
		t.Errorf("the long scripts ran: %v", out)
	}
	send(jobs(2, 10), 2) // two are done, six are new
	work(6)
	if out := ran(t, s, long...); len(out) == 0 {
		t.Error("nothing tells the long scripts from the short ones")
	}
	for i := range 10 {
		if _, err := e.Job(t.Context(), fmt.Sprint("job-", i)); (err == nil) != (i >= 5) {
			t.Errorf("job-%d, where the newest 5 of 10 are kept: %v", i, err)
		}
	}
}

// A queue that has never had anything costs a sweep nearly nothing. It once was taken for
// one that was obliterated, for which all keys are looked through.
func TestUnusedQueuesAreLeftAlone(t *testing.T) {
	s := redistest.Start(t, redistest.Config{})
	e := opens(t, redis.Config{URL: s.URL(0)})
	if ds, err := e.Receive(context.Background(), engine.Receive{Queue: "unused", Max: 1}); err != nil || len(ds) > 0 {
		t.Fatal(ds, err)
	}
	ran(t, s)
	if err := e.Sweep(t.Context(), "unused"); err != nil {
		t.Fatal(err)
	}
	if out := ran(t, s, "scan", "srandmember", "zrangebyscore", "xadd"); len(out) > 0 {
		t.Errorf("a sweep of an unused queue ran %v", out)
	}
}
