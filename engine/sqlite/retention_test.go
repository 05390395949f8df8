package sqlite_test

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
	"github.com/forebayhq/forebay/engine/sqlite"
)

// finishKept sends n jobs to a queue of their own, and ends them, so many in a commit.
func finishKept(t *testing.T, e *sqlite.Engine, prefix string, n, each int, r forebay.Retention, v forebay.Verdict) {
	t.Helper()
	all := jobs(n, prefix)
	for i := range all {
		all[i].Queue, all[i].Job.Keep = prefix, r
	}
	send(t, e, all...)
	for range n / each {
		ds, err := e.Receive(context.Background(), engine.Receive{Queue: prefix, Max: each})
		if err != nil || len(ds) != each {
			t.Fatal(ds, err)
		}
		settle(t, e, v, ds...)
	}
}

// keptOf counts how many of the first n the ledger still has.
func keptOf(t *testing.T, e *sqlite.Engine, prefix string, n int) (kept int) {
	t.Helper()
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

// Of those that finish in one commit, too, only the newest stay.
func TestRetentionByCountWithinARow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := open(t, sqlite.Config{})
		r := forebay.Retention{Finished: forebay.Keep{Count: 10}}
		for i, each := range []int{100, 4, 7} {
			finishKept(t, e, fmt.Sprint("r", i, "-"), each, each, r, forebay.Ack)
		}
		all := jobs(107, "q")
		for i := range all {
			all[i].Job.Keep = r
		}
		send(t, e, all...)
		for _, each := range []int{100, 4, 3} {
			settle(t, e, forebay.Ack, receive(t, e, each)...)
		}
		time.Sleep(5 * time.Second)
		for i, want := range []int{10, 4, 7} {
			if n := keptOf(t, e, fmt.Sprint("r", i, "-"), 100); n != want {
				t.Errorf("%d kept of queue %d, want %d", n, i, want)
			}
		}
		for i := range 107 {
			_, err := e.Job(context.Background(), fmt.Sprint("q", i))
			if is := err == nil; is != (i >= 97) {
				t.Errorf("job %d: kept %v", i, is)
			}
		}
		if n, ids := e.Count("SELECT sum(completed) FROM ledger"), e.Count("SELECT count(*) FROM finished_id"); n != 31 || ids != 31 {
			t.Errorf("%d are counted, %d ids", n, ids)
		}
	})
}

func TestRetentionOfJobs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "forebay.db")
		e := open(t, sqlite.Config{Path: path, HistoryMax: 1200})
		keep := func(prefix string, n int, r forebay.Retention, v forebay.Verdict) {
			t.Helper()
			finishKept(t, e, prefix, n, 1, r, v)
		}
		finished := func(k forebay.Keep) forebay.Retention { return forebay.Retention{Finished: k} }
		keep("age", 20, finished(forebay.Keep{Age: time.Minute}), forebay.Ack)
		keep("count", 30, finished(forebay.Keep{Count: 10}), forebay.Ack)
		keep("none", 3, finished(forebay.Keep{None: true}), forebay.Ack)
		keep("ever", 3, finished(forebay.Keep{}), forebay.Cancelled)
		keep("deadage", 20, forebay.Retention{Dead: forebay.Keep{Age: time.Minute}}, forebay.Dead)
		keep("deadcount", 30, forebay.Retention{Dead: forebay.Keep{Count: 10}}, forebay.Dead)
		kept := func(prefix string, n int) int { return keptOf(t, e, prefix, n) }
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
