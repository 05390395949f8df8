package sqlite_test

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
	"github.com/forebayhq/forebay/engine/sqlite"
)

func change(t *testing.T, e *sqlite.Engine, c engine.JobChange) error {
	t.Helper()
	errs, err := e.Change(context.Background(), []engine.JobChange{c})
	if err != nil {
		t.Fatal(err)
	}
	return errs[0]
}

func mustChange(t *testing.T, e *sqlite.Engine, c engine.JobChange) {
	t.Helper()
	if err := change(t, e, c); err != nil {
		t.Fatal(err)
	}
}

func ids(ds []forebay.Delivery) (ids []string) {
	for _, d := range ds {
		ids = append(ids, d.ID)
	}
	return ids
}

// sendOf sends one job and gives its result.
func sendOf(t *testing.T, e *sqlite.Engine, m forebay.Message) forebay.SendResult {
	t.Helper()
	res, err := e.Send(context.Background(), []forebay.Message{m})
	if err != nil || res[0].Err != nil {
		t.Fatalf("%v, %v", err, res)
	}
	return res[0]
}

func TestChangeJobs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "forebay.db")
		e := open(t, sqlite.Config{Path: path})
		all := jobs(5, "c")
		for i := range all {
			all[i].DedupKey = fmt.Sprint("key", i)
		}
		all[3].NotBefore = time.Now().Add(time.Hour)
		send(t, e, all...)
		sent := jobOf(t, e, "c0").SentAt
		time.Sleep(time.Second)
		high, later, now := forebay.At(0), time.Now().Add(time.Minute), time.Time{}
		mustChange(t, e, engine.JobChange{ID: "c4", Priority: &high})
		mustChange(t, e, engine.JobChange{ID: "c1", Due: &later})
		mustChange(t, e, engine.JobChange{ID: "c2", Payload: []byte("fresh and longer than before")})
		mustChange(t, e, engine.JobChange{ID: "c3", Due: &now})
		if err := change(t, e, engine.JobChange{ID: "nobody", Due: &now}); forebay.CodeOf(err) != forebay.CodeNotFound {
			t.Error(err)
		}
		for range 2 {
			if j := jobOf(t, e, "c4"); j.Priority != high || !j.SentAt.Equal(sent) || j.State != forebay.StateWaiting {
				t.Errorf("moved: %+v", j)
			}
			if j := jobOf(t, e, "c1"); j.State != forebay.StateDelayed || !j.Due.Equal(later) {
				t.Errorf("delayed: %+v", j)
			}
			if j := jobOf(t, e, "c2"); string(j.Payload) != "fresh and longer than before" {
				t.Errorf("rewritten: %+v", j)
			}
			stats, err := e.Stats(context.Background(), "q")
			if s := stats[0]; err != nil || s.Waiting != 4 || s.Delayed != 1 {
				t.Errorf("%+v, %v", s, err)
			}
			e = reopen(t, e, path)
		}
		if res := sendOf(t, e, forebay.Message{ID: "again", Queue: "q", Kind: "kind", DedupKey: "key4", Payload: all[4].Payload, Job: &forebay.JobOptions{}}); !res.Duplicate || res.ID != "c4" || res.Conflict {
			t.Errorf("dedup of a moved job: %+v", res)
		}
		ds := receive(t, e, 10)
		if got := ids(ds); len(got) != 4 || got[0] != "c4" || slices.Contains(got, "c1") {
			t.Errorf("handed out %v", got)
		}
		if !ds[0].SentAt.Equal(sent) {
			t.Errorf("sent at %s, want %s", ds[0].SentAt, sent)
		}
		if err := change(t, e, engine.JobChange{ID: "c4", Due: &now}); forebay.CodeOf(err) != forebay.CodeConflict {
			t.Error(err)
		}
		settle(t, e, forebay.Ack, ds...)
		time.Sleep(time.Minute)
		if got := ids(receive(t, e, 10)); !slices.Equal(got, []string{"c1"}) {
			t.Errorf("handed out %v", got)
		}
		if got := story(t, e, "c4"); !slices.Equal(got, []forebay.HistoryType{"added", "changed", "started", "completed"}) {
			t.Errorf("story %v", got)
		}
	})
}

// A job that was changed to be due sooner may die before the time it was sent for.
// Its replay does not wait for that time.
func TestReplayOfAPromotedJob(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "forebay.db")
		e := open(t, sqlite.Config{Path: path})
		all := jobs(2, "p")
		all[0].NotBefore, all[1].NotBefore = time.Now().Add(time.Hour), time.Now().Add(time.Hour)
		all[1].Group = "g"
		send(t, e, all...)
		for _, m := range all {
			mustChange(t, e, engine.JobChange{ID: m.ID, Due: new(time.Time)})
		}
		settle(t, e, forebay.Dead, receive(t, e, 10)...)
		for _, m := range all {
			if errs, err := e.Replay(context.Background(), []int64{jobOf(t, e, m.ID).DeadSeq}); err != nil || errs[0] != nil {
				t.Fatal(err, errs)
			}
		}
		for range 2 {
			stats, err := e.Stats(context.Background(), "q")
			if s := stats[0]; err != nil || s.Waiting != 2 || s.Delayed != 0 || s.Dead != 0 {
				t.Errorf("%+v, %v", s, err)
			}
			e = reopen(t, e, path)
		}
		page, err := e.History(context.Background(), engine.HistoryQuery{Types: []forebay.HistoryType{forebay.HistoryReplayed}})
		if err != nil || len(page.Events) != 2 {
			t.Fatalf("%+v, %v", page, err)
		}
		for _, ev := range page.Events {
			if ev.State != forebay.StateWaiting || !ev.Due.IsZero() {
				t.Errorf("replayed: %+v", ev)
			}
		}
		if got := ids(receive(t, e, 10)); len(got) != 2 {
			t.Errorf("handed out %v", got)
		}
	})
}

// The order of a group outlasts what is changed of its jobs.
func TestChangeKeepsGroupOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, met := range []bool{false, true} { // the lane's cursor has met them, or not yet
			e := open(t, sqlite.Config{})
			all := jobs(4, "g")
			for i := range all {
				all[i].Group = "g"
			}
			all[1].NotBefore = time.Now().Add(time.Hour)
			send(t, e, all...)
			var first []forebay.Delivery
			if met {
				first = receive(t, e, 10)
				if got := ids(first); !slices.Equal(got, []string{"g0"}) {
					t.Fatalf("handed out %v", got)
				}
			}
			high, now := forebay.At(0), time.Time{}
			if err := change(t, e, engine.JobChange{ID: "g2", Priority: &high}); forebay.CodeOf(err) != forebay.CodeInvalid {
				t.Error(err)
			}
			mustChange(t, e, engine.JobChange{ID: "g2", Due: &now, Payload: []byte("x")})
			if got := ids(receive(t, e, 10)); met && len(got) != 0 {
				t.Errorf("handed out %v", got)
			} else if !met && !slices.Equal(got, []string{"g0"}) {
				t.Errorf("handed out %v", got)
			}
			mustChange(t, e, engine.JobChange{ID: "g1", Due: &now})
			if !met {
				time.Sleep(time.Minute) // the lease ends
				if got := ids(receive(t, e, 10)); !slices.Equal(got, []string{"g0", "g1", "g2", "g3"}) {
					t.Errorf("handed out %v", got)
				}
				continue
			}
			settle(t, e, forebay.Ack, first...)
			if got := ids(receive(t, e, 10)); !slices.Equal(got, []string{"g1", "g2", "g3"}) {
				t.Errorf("handed out %v", got)
			}
		}
	})
}

func TestExpiryAndDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "forebay.db")
		e := open(t, sqlite.Config{Path: path})
		at := func(d time.Duration) time.Time { return time.Now().Add(d) }
		all := jobs(6, "e")
		all[0].Job.Expires = at(time.Minute) // waits
		all[1].Job.Deadline = at(time.Minute)
		all[2].Queue, all[2].Job.Expires = "active", at(time.Minute) // begun in time
		all[3].Queue, all[3].Job.Deadline = "active", at(time.Minute)
		all[4].Job.Expires = at(time.Hour)
		all[5].Job.Deadline, all[5].Queue = at(time.Minute), "retried"
		send(t, e, all...)
		ds, err := e.Receive(context.Background(), engine.Receive{Queue: "active", Max: 2, Lease: 90 * time.Second})
		if err != nil || len(ds) != 2 {
			t.Fatal(ds, err)
		}
		retried, err := e.Receive(context.Background(), engine.Receive{Queue: "retried", Max: 1})
		if err != nil {
			t.Fatal(err)
		}
		settleOne(t, e, forebay.Settlement{Receipt: retried[0].Receipt, Verdict: forebay.Retry, After: time.Hour, Cause: forebay.Cause{Code: "x"}})
		time.Sleep(time.Minute - time.Millisecond)
		if j := jobOf(t, e, "e0"); j.State != forebay.StateWaiting {
			t.Errorf("too early: %+v", j)
		}
		time.Sleep(time.Millisecond)
		synctest.Wait()
		want := []forebay.State{"expired", "dead", "active", "active", "waiting", "dead"}
		for i, state := range want {
			if j := jobOf(t, e, all[i].ID); j.State != state {
				t.Errorf("%d: %+v", i, j)
			}
		}
		if j := jobOf(t, e, "e1"); j.Cause.Code != "deadline" {
			t.Errorf("%+v", j.Cause)
		}
		time.Sleep(31 * time.Second) // the leases have ended
		if j := jobOf(t, e, "e2"); j.State != forebay.StateWaiting {
			t.Errorf("begun in time: %+v", j)
		}
		if j := jobOf(t, e, "e3"); j.State != forebay.StateDead || j.Cause.Code != "deadline" {
			t.Errorf("past its deadline: %+v", j)
		}
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		e = open(t, sqlite.Config{Path: path})
		if ds := receive(t, e, 10); len(ds) != 0 {
			t.Errorf("expired while nobody ran, and handed out: %v", ids(ds))
		}
		if j := jobOf(t, e, "e4"); j.State != forebay.StateExpired {
			t.Errorf("%+v", j)
		}
		stats, err := e.Stats(context.Background(), "q", "retried")
		if s := stats[0]; err != nil || s.Waiting != 0 || s.Delayed != 0 || s.Dead != 1 {
			t.Errorf("%+v, %v", s, err)
		}
		if s := stats[1]; s.Waiting != 0 || s.Delayed != 0 || s.Dead != 1 {
			t.Errorf("%+v, %v", s, err)
		}
	})
}

// dedupCase sends to and takes from queues of their own.
type dedupCase struct {
	t *testing.T
	e *sqlite.Engine
	n int
}

// send sends a job with the one key, and looks what became of it.
func (c *dedupCase) send(queue string, mode forebay.DedupMode, payload string, delay time.Duration, duplicate, replaced bool) {
	c.t.Helper()
	c.n++
	m := forebay.Message{ID: fmt.Sprint("d", c.n), Queue: queue, Kind: "k", DedupKey: "key", DedupWindow: time.Hour,
		Payload: []byte(payload), Job: &forebay.JobOptions{Dedup: mode}}
	if delay > 0 {
		m.NotBefore = time.Now().Add(delay)
	}
	if r := sendOf(c.t, c.e, m); r.Duplicate != duplicate || r.Replaced != replaced || r.Conflict && replaced {
		c.t.Errorf("%s: %+v, want duplicate %v, replaced %v", payload, r, duplicate, replaced)
	}
}

// take takes all there is, which must be as said.
func (c *dedupCase) take(queue string, want ...string) []forebay.Delivery {
	c.t.Helper()
	ds, err := c.e.Receive(context.Background(), engine.Receive{Queue: queue, Max: 10, Lease: 10 * time.Hour})
	if err != nil {
		c.t.Fatal(err)
	}
	var got []string
	for _, d := range ds {
		got = append(got, string(d.Payload))
	}
	if !slices.Equal(got, want) {
		c.t.Errorf("%s: handed out %q, want %q", queue, got, want)
	}
	return ds
}

// dedupCases runs f in memory and on a file.
func dedupCases(t *testing.T, f func(t *testing.T, c *dedupCase)) {
	for _, path := range []string{"", "forebay.db"} {
		synctest.Test(t, func(t *testing.T) {
			if path != "" {
				path = filepath.Join(t.TempDir(), path)
			}
			f(t, &dedupCase{t: t, e: open(t, sqlite.Config{Path: path})})
		})
	}
}

func TestDedupUntilFinishedAndThrottle(t *testing.T) {
	dedupCases(t, func(t *testing.T, c *dedupCase) {
		const until, throttle = forebay.DedupUntilFinished, forebay.DedupThrottle
		c.send("until", until, "1", 0, false, false)
		c.send("until", until, "2", 0, true, false)
		c.send("other", until, "1", 0, false, false) // a key is one of its queue
		settle(t, c.e, forebay.Ack, c.take("until", "1")...)
		c.send("until", until, "3", 0, false, false)

		c.send("throttle", throttle, "1", 0, false, false)
		settle(t, c.e, forebay.Ack, c.take("throttle", "1")...)
		c.send("throttle", throttle, "2", 0, true, false)
		time.Sleep(time.Hour)
		c.send("throttle", throttle, "3", 0, false, false)
		time.Sleep(time.Hour)
		c.send("throttle", throttle, "4", 0, false, false) // the third is still there
	})
}

func TestDedupDebounce(t *testing.T) {
	dedupCases(t, func(t *testing.T, c *dedupCase) {
		const debounce = forebay.DedupDebounce
		c.send("q", debounce, "1", time.Minute, false, false)
		time.Sleep(50 * time.Second)
		c.send("q", debounce, "2", time.Minute, true, true)
		c.send("q", debounce, "3", time.Minute, true, true)
		time.Sleep(50 * time.Second)
		c.take("q")
		time.Sleep(10 * time.Second)
		ds := c.take("q", "3")
		c.send("q", debounce, "4", 0, false, false) // the first has begun
		c.take("q", "4")
		if got := story(t, c.e, ds[0].ID); !slices.Equal(got, []forebay.HistoryType{"added", "replaced", "replaced", "started"}) {
			t.Errorf("story %v", got)
		}
		var both []forebay.Message // of one commit
		for i := range 3 {
			both = append(both, forebay.Message{ID: fmt.Sprint("b", i), Queue: "both", Kind: "k", DedupKey: "key",
				NotBefore: time.Now().Add(time.Duration(i+1) * time.Minute), Payload: []byte("longer and longer"[:5+i*5]),
				Job: &forebay.JobOptions{Dedup: debounce}})
		}
		send(t, c.e, both...)
		time.Sleep(3*time.Minute - time.Second)
		c.take("both")
		time.Sleep(time.Second)
		c.take("both", "longer and long")
	})
}

func TestDedupKeepLast(t *testing.T) {
	dedupCases(t, func(t *testing.T, c *dedupCase) {
		const last = forebay.DedupKeepLast
		c.send("q", last, "1", 0, false, false)
		c.send("q", last, "2", 0, true, true)
		ds := c.take("q", "2")
		c.send("q", last, "3", 0, false, false)
		c.send("q", last, "4", 0, true, true)
		c.send("q", last, "5", 0, true, true)
		c.take("q") // one is active
		settle(t, c.e, forebay.Retry, ds...)
		ds = c.take("q", "2") // it goes before what waits behind it
		settle(t, c.e, forebay.Ack, ds...)
		ds = c.take("q", "5")
		if j := jobOf(t, c.e, ds[0].ID); j.Group != "" {
			t.Errorf("its group shows: %+v", j)
		}
	})
}

// A job with a time by which it must begin, which was begun and given back, has begun.
func TestExpiryOfAReleasedJob(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "forebay.db")
		e := open(t, sqlite.Config{Path: path})
		all := jobs(1, "r")
		all[0].Job.Expires = time.Now().Add(time.Minute)
		send(t, e, all...)
		settle(t, e, forebay.Release, receive(t, e, 1)...)
		e = reopen(t, e, path)
		time.Sleep(2 * time.Minute)
		if got := ids(receive(t, e, 1)); !slices.Equal(got, []string{"r0"}) {
			t.Errorf("handed out %v", got)
		}
	})
}

func TestPurgeOfJobs(t *testing.T) {
	e := open(t, sqlite.Config{Path: filepath.Join(t.TempDir(), "forebay.db")})
	for i := range 10 {
		send(t, e, jobs(1000, fmt.Sprint("p", i, "-"))...)
	}
	ds := receive(t, e, 1)
	if n, err := e.Purge(context.Background(), "q"); n != 9999 || err != nil {
		t.Errorf("%d dropped, %v", n, err)
	}
	for _, id := range []string{"p0-1", "p9-999"} {
		if _, err := e.Job(context.Background(), id); forebay.CodeOf(err) != forebay.CodeNotFound {
			t.Errorf("%s: %v", id, err)
		}
		if got := story(t, e, id); !slices.Equal(got, []forebay.HistoryType{"added", "discarded"}) {
			t.Errorf("story %v", got)
		}
	}
	if j := jobOf(t, e, ds[0].ID); j.State != forebay.StateActive {
		t.Errorf("%+v", j)
	}
}

// A job that waits is found by its id also when more ids were sent after it than are
// remembered; so is one that was moved on twice.
func TestJobsThatWaitAreNotForgotten(t *testing.T) {
	e := open(t, sqlite.Config{DedupMax: 1000})
	late := jobs(10, "late")
	for i := range late {
		late[i].NotBefore = time.Now().Add(time.Hour)
	}
	send(t, e, late...)
	for i := range 40 {
		msgs := jobs(10_000, fmt.Sprint("m", i, "-"))
		for j := range msgs {
			msgs[j].Queue, msgs[j].Job = "other", nil
		}
		send(t, e, msgs...)
		if _, err := e.Purge(context.Background(), "other"); err != nil {
			t.Fatal(err)
		}
	}
	if n := e.Count("SELECT count(*) FROM dedup WHERE seq < (SELECT max(seq) FROM dedup) - 200"); n != 1 {
		t.Errorf("%d old rows are remembered", n)
	}
	for i := range late {
		if j := jobOf(t, e, late[i].ID); j.State != forebay.StateDelayed {
			t.Errorf("%+v", j)
		}
	}
	if res := sendOf(t, e, late[0]); !res.Duplicate {
		t.Errorf("%+v", res)
	}
	res, err := e.Cancel(context.Background(), []string{"late3"}, "")
	if err != nil || res[0].State != forebay.StateCancelled {
		t.Errorf("%+v, %v", res, err)
	}
}
