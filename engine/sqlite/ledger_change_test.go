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

func TestDedupModes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := open(t, sqlite.Config{Path: filepath.Join(t.TempDir(), "forebay.db")})
		n := 0
		job := func(queue string, mode forebay.DedupMode, payload string, delay time.Duration) forebay.SendResult {
			n++
			m := forebay.Message{ID: fmt.Sprint("d", n), Queue: queue, Kind: "k", DedupKey: "key", DedupWindow: time.Hour,
				Payload: []byte(payload), Job: &forebay.JobOptions{Dedup: mode}}
			if delay > 0 {
				m.NotBefore = time.Now().Add(delay)
			}
			return sendOf(t, e, m)
		}
		take := func(queue string, want ...string) []forebay.Delivery {
			t.Helper()
			ds, err := e.Receive(context.Background(), engine.Receive{Queue: queue, Max: 10, Lease: 10 * time.Hour})
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, d := range ds {
				got = append(got, string(d.Payload))
			}
			if !slices.Equal(got, want) {
				t.Errorf("%s: handed out %q, want %q", queue, got, want)
			}
			return ds
		}
		is := func(r forebay.SendResult, duplicate, replaced bool) {
			t.Helper()
			if r.Duplicate != duplicate || r.Replaced != replaced || r.Conflict && replaced {
				t.Errorf("%+v, want duplicate %v, replaced %v", r, duplicate, replaced)
			}
		}

		is(job("until", forebay.DedupUntilFinished, "1", 0), false, false)
		is(job("until", forebay.DedupUntilFinished, "2", 0), true, false)
		settle(t, e, forebay.Ack, take("until", "1")...)
		is(job("until", forebay.DedupUntilFinished, "3", 0), false, false)

		is(job("throttle", forebay.DedupThrottle, "1", 0), false, false)
		settle(t, e, forebay.Ack, take("throttle", "1")...)
		is(job("throttle", forebay.DedupThrottle, "2", 0), true, false)
		time.Sleep(time.Hour)
		is(job("throttle", forebay.DedupThrottle, "3", 0), false, false)
		time.Sleep(time.Hour)
		is(job("throttle", forebay.DedupThrottle, "4", 0), false, false) // the third is still there

		is(job("debounce", forebay.DedupDebounce, "1", time.Minute), false, false)
		time.Sleep(50 * time.Second)
		is(job("debounce", forebay.DedupDebounce, "2", time.Minute), true, true)
		is(job("debounce", forebay.DedupDebounce, "3", time.Minute), true, true)
		time.Sleep(50 * time.Second)
		take("debounce")
		time.Sleep(10 * time.Second)
		ds := take("debounce", "3")
		is(job("debounce", forebay.DedupDebounce, "4", 0), false, false) // the first has begun
		take("debounce", "4")
		if got := story(t, e, ds[0].ID); !slices.Equal(got, []forebay.HistoryType{"added", "replaced", "replaced", "started"}) {
			t.Errorf("story %v", got)
		}

		is(job("last", forebay.DedupKeepLast, "1", 0), false, false)
		is(job("last", forebay.DedupKeepLast, "2", 0), true, true)
		ds = take("last", "2")
		is(job("last", forebay.DedupKeepLast, "3", 0), false, false)
		is(job("last", forebay.DedupKeepLast, "4", 0), true, true)
		is(job("last", forebay.DedupKeepLast, "5", 0), true, true)
		take("last") // one is active
		settle(t, e, forebay.Ack, ds...)
		take("last", "5")
		if is := jobOf(t, e, ds[0].ID); is.Group != "" {
			t.Errorf("its group shows: %+v", is)
		}

		// In one commit.
		both := []forebay.Message{}
		for i := range 3 {
			both = append(both, forebay.Message{ID: fmt.Sprint("b", i), Queue: "both", Kind: "k", DedupKey: "key",
				NotBefore: time.Now().Add(time.Duration(i+1) * time.Minute), Payload: []byte(fmt.Sprint("longer and longer"[:5+i*5])), Job: &forebay.JobOptions{Dedup: forebay.DedupDebounce}})
		}
		send(t, e, both...)
		time.Sleep(3*time.Minute - time.Second)
		take("both")
		time.Sleep(time.Second)
		take("both", "longer and long")
	})
}

func TestRetentionOfJobs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "forebay.db")
		e := open(t, sqlite.Config{Path: path, HistoryMax: 1200})
		keep := func(prefix string, n int, r forebay.Retention, v forebay.Verdict) {
			all := jobs(n, prefix)
			for i := range all {
				all[i].Queue, all[i].Job.Keep = prefix, r
			}
			send(t, e, all...)
			for range n { // in commits of their own
				ds, err := e.Receive(context.Background(), engine.Receive{Queue: prefix, Max: 1})
				if err != nil || len(ds) != 1 {
					t.Fatal(ds, err)
				}
				settle(t, e, v, ds...)
			}
		}
		finished := func(k forebay.Keep) forebay.Retention { return forebay.Retention{Finished: k} }
		keep("age", 20, finished(forebay.Keep{Age: time.Minute}), forebay.Ack)
		keep("count", 30, finished(forebay.Keep{Count: 10}), forebay.Ack)
		keep("none", 3, finished(forebay.Keep{None: true}), forebay.Ack)
		keep("ever", 3, finished(forebay.Keep{}), forebay.Cancelled)
		keep("deadage", 20, forebay.Retention{Dead: forebay.Keep{Age: time.Minute}}, forebay.Dead)
		keep("deadcount", 30, forebay.Retention{Dead: forebay.Keep{Count: 10}}, forebay.Dead)
		kept := func(prefix string, n int) (kept int) {
			for i := range n {
				_, err := e.Job(context.Background(), fmt.Sprint(prefix, i))
				switch forebay.CodeOf(err) {
				case "":
					kept++
				case forebay.CodeNotFound:
				default:
					t.Error(err)
				}
			}
			return kept
		}
		if n := kept("count", 30); n != 10 {
			t.Errorf("%d by count, at once", n)
		}
		time.Sleep(10 * time.Second)
		for name, want := range map[string]int{"age": 20, "count": 10, "none": 0, "ever": 3, "deadage": 20, "deadcount": 10} {
			if n := kept(name, 30); n != want {
				t.Errorf("%s: %d, want %d", name, n, want)
			}
		}
		e.Close()
		e = open(t, sqlite.Config{Path: path, HistoryMax: 100, HistoryAge: time.Hour})
		time.Sleep(time.Minute)
		for name, want := range map[string]int{"age": 0, "count": 10, "none": 0, "ever": 3, "deadage": 0, "deadcount": 10} {
			if n := kept(name, 30); n != want {
				t.Errorf("%s: %d, want %d", name, n, want)
			}
		}
		stats, err := e.Stats(context.Background(), "deadage", "deadcount")
		if err != nil || stats[0].Dead != 0 || stats[1].Dead != 10 {
			t.Errorf("%+v, %v", stats, err)
		}
		if rows := e.Count("SELECT count(*) FROM finished"); rows != 13 {
			t.Errorf("%d rows of finished jobs", rows)
		}
		if rows := e.Count("SELECT count(*) FROM finished_id"); rows != 13 {
			t.Errorf("%d ids", rows)
		}
		page, err := e.History(context.Background(), engine.HistoryQuery{})
		if err != nil || len(page.Events) > 100 || len(page.Events) == 0 || page.Oldest == 0 || page.Events[0].Seq <= page.Oldest {
			t.Errorf("%d events, oldest %d, %v", len(page.Events), page.Oldest, err)
		}
		time.Sleep(time.Hour)
		page, err = e.History(context.Background(), engine.HistoryQuery{})
		if err != nil || len(page.Events) != 0 || page.Oldest != page.Next {
			t.Errorf("%d events after an hour, %d, %d", len(page.Events), page.Oldest, page.Next)
		}
	})
}

func TestRemoveJobs(t *testing.T) {
	e := open(t, sqlite.Config{Path: filepath.Join(t.TempDir(), "forebay.db")})
	send(t, e, jobs(5, "r")...)
	ds := receive(t, e, 4)
	settle(t, e, forebay.Ack, ds[:3]...)
	settle(t, e, forebay.Dead, ds[3])
	errs, err := e.Remove(context.Background(), []string{"r0", "r3", "r4", "nobody", "r0"})
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []forebay.Code{"", "", forebay.CodeConflict, forebay.CodeNotFound, forebay.CodeNotFound} {
		if forebay.CodeOf(errs[i]) != want {
			t.Errorf("%d: %v, want %q", i, errs[i], want)
		}
	}
	for i, want := range []forebay.Code{forebay.CodeNotFound, "", "", forebay.CodeNotFound, ""} {
		if _, err := e.Job(context.Background(), fmt.Sprint("r", i)); forebay.CodeOf(err) != want {
			t.Errorf("%d: %v, want %q", i, err, want)
		}
	}
	if n := e.Count("SELECT completed FROM ledger"); n != 2 {
		t.Errorf("%d are counted", n)
	}
}
