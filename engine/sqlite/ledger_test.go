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

// jobs makes n jobs of queue q.
func jobs(n int, prefix string) []forebay.Message {
	msgs := messages(n, prefix)
	for i := range msgs {
		msgs[i].Kind = "kind"
		msgs[i].Job = &forebay.JobOptions{}
	}
	return msgs
}

func jobOf(t *testing.T, e *sqlite.Engine, id string) forebay.Job {
	t.Helper()
	j, err := e.Job(context.Background(), id)
	if err != nil {
		t.Fatalf("job %s: %v", id, err)
	}
	return j
}

// story is the types of a job's events.
func story(t *testing.T, e *sqlite.Engine, id string) (types []forebay.HistoryType) {
	t.Helper()
	page, err := e.History(context.Background(), engine.HistoryQuery{Job: id})
	if err != nil || page.More {
		t.Fatalf("history of %s: %v, more %v", id, err, page.More)
	}
	for _, ev := range page.Events {
		types = append(types, ev.Type)
	}
	return types
}

func reopen(t *testing.T, e *sqlite.Engine, path string) *sqlite.Engine {
	t.Helper()
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	return open(t, sqlite.Config{Path: path})
}

func settleOne(t *testing.T, e *sqlite.Engine, s forebay.Settlement) {
	t.Helper()
	errs, err := e.Settle(context.Background(), []forebay.Settlement{s})
	if err != nil || errs[0] != nil {
		t.Fatalf("settle: %v, %v", err, errs)
	}
}

func TestJobLife(t *testing.T) {
	path := filepath.Join(t.TempDir(), "forebay.db")
	e := open(t, sqlite.Config{Path: path})
	all := jobs(5, "j")
	all[0].Job = &forebay.JobOptions{
		Timeout: time.Second, Deadline: time.Now().Add(time.Hour).UTC(), Expires: time.Now().Add(time.Minute).UTC(),
		Backoff: forebay.Backoff{Kind: forebay.BackoffFixed, Base: time.Second, Cap: time.Hour, Jitter: 0.5},
		Tenant:  "acme", Owner: "me", Tags: []string{"a", "b"}, Parent: "p",
		Keep: forebay.Retention{Finished: forebay.Keep{Age: time.Hour, Count: 5}, Dead: forebay.Keep{Age: time.Hour}},
	}
	all[4].NotBefore = time.Now().Add(time.Hour)
	send(t, e, all...)
	want := all[0].Job
	if got := jobOf(t, e, all[0].ID); got.State != forebay.StateWaiting || fmt.Sprint(got.Job) != fmt.Sprint(want) {
		t.Errorf("waiting: %+v\n%+v", got, got.Job)
	}
	ds := receive(t, e, 10)
	if len(ds) != 4 {
		t.Fatalf("%d deliveries", len(ds))
	}
	errs, err := e.Progress(context.Background(), []forebay.ProgressUpdate{{Receipt: ds[0].Receipt,
		Progress: &forebay.Progress{Stage: "s", Percent: 40, Data: []byte(`{"a":1}`)}, Log: []forebay.LogLine{{Text: "one"}, {Text: "two"}}}})
	if err != nil || errs[0] != nil {
		t.Fatal(err, errs)
	}
	if got := jobOf(t, e, ds[0].ID); got.State != forebay.StateActive || got.Progress.Percent != 40 || string(got.Progress.Data) != `{"a":1}` || got.StartedAt.IsZero() {
		t.Errorf("active: %+v", got)
	}
	settleOne(t, e, forebay.Settlement{Receipt: ds[0].Receipt, Verdict: forebay.Ack, Result: []byte(`{"ok":true}`)})
	settleOne(t, e, forebay.Settlement{Receipt: ds[1].Receipt, Verdict: forebay.Retry, After: time.Hour, Cause: forebay.Cause{Code: "x"}})
	settleOne(t, e, forebay.Settlement{Receipt: ds[2].Receipt, Verdict: forebay.Dead, Cause: forebay.Cause{Code: "y"}})
	settleOne(t, e, forebay.Settlement{Receipt: ds[3].Receipt, Verdict: forebay.Expired, Cause: forebay.Cause{Code: "z"}})
	for range 2 {
		done := jobOf(t, e, ds[0].ID)
		if done.State != forebay.StateCompleted || string(done.Result) != `{"ok":true}` || done.Progress.Percent != 40 ||
			done.FinishedAt.IsZero() || string(done.Payload) != "payload of "+done.ID || fmt.Sprint(done.Job) != fmt.Sprint(want) {
			t.Errorf("completed: %+v", done)
		}
		retry := jobOf(t, e, ds[1].ID)
		if retry.State != forebay.StateDelayed || retry.Attempts != 1 || retry.Due.IsZero() || retry.Failures[0].Attempt != 1 || retry.Failures[0].Started.IsZero() {
			t.Errorf("retry: %+v", retry)
		}
		dead := jobOf(t, e, ds[2].ID)
		if dead.State != forebay.StateDead || dead.Cause.Code != "y" || dead.DeadSeq == 0 || dead.Cause.Attempt != 1 || dead.StartedAt.IsZero() {
			t.Errorf("dead: %+v", dead)
		}
		if expired := jobOf(t, e, ds[3].ID); expired.State != forebay.StateExpired || expired.Cause.Code != "z" {
			t.Errorf("expired: %+v", expired)
		}
		if late := jobOf(t, e, all[4].ID); late.State != forebay.StateDelayed {
			t.Errorf("delayed: %+v", late)
		}
		if _, err := e.Job(context.Background(), "nobody"); forebay.CodeOf(err) != forebay.CodeNotFound {
			t.Errorf("nobody: %v", err)
		}
		got := story(t, e, ds[0].ID)
		if !slices.Equal(got, []forebay.HistoryType{"added", "started", "progress", "log", "log", "completed"}) {
			t.Errorf("story %v", got)
		}
		e = reopen(t, e, path)
	}
}

func TestCancelWaitingJobs(t *testing.T) {
	e := open(t, sqlite.Config{})
	all := jobs(4, "c")
	all[1].NotBefore = time.Now().Add(time.Hour)
	all[2].Group, all[3].Group = "g", "g"
	all[2].NotBefore = time.Now().Add(time.Hour)
	send(t, e, all...)
	res, err := e.Cancel(context.Background(), []string{all[0].ID, all[1].ID, all[2].ID, "nobody", all[0].ID}, "why not")
	if err != nil {
		t.Fatal(err)
	}
	for i, r := range res[:3] {
		if r.Err != nil || r.State != forebay.StateCancelled {
			t.Errorf("%d: %+v", i, r)
		}
		j := jobOf(t, e, all[i].ID)
		if j.State != forebay.StateCancelled || j.Cause.Message != "why not" || j.Cause.Code != "cancelled" {
			t.Errorf("%d: %+v", i, j)
		}
	}
	if forebay.CodeOf(res[3].Err) != forebay.CodeNotFound || forebay.CodeOf(res[4].Err) != forebay.CodeConflict {
		t.Errorf("%v, %v", res[3].Err, res[4].Err)
	}
	if ds := receive(t, e, 10); len(ds) != 1 || ds[0].ID != all[3].ID {
		t.Errorf("what is left: %+v", ds)
	}
	stats, err := e.Stats(context.Background(), "q")
	if s := stats[0]; err != nil || s.Waiting != 0 || s.Delayed != 0 || s.Active != 1 || s.Cancelled != 3 {
		t.Errorf("%+v, %v", s, err)
	}
}

// A job that was asked to stop is cancelled when its lease ends without a verdict:
// by time, by a release, or with its process.
func TestCancelActiveJobs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "forebay.db")
		e := open(t, sqlite.Config{Path: path})
		send(t, e, jobs(3, "a")...)
		ds := receive(t, e, 3)
		ids := []string{ds[0].ID, ds[1].ID, ds[2].ID}
		for range 2 { // the second asks for what is asked already
			res, err := e.Cancel(context.Background(), ids[:2], "stop it")
			if err != nil || res[0].State != forebay.StateActive || res[1].State != forebay.StateActive {
				t.Fatalf("%+v, %v", res, err)
			}
		}
		if !jobOf(t, e, ids[0]).CancelRequested {
			t.Error("not seen")
		}
		errs, err := e.Extend(context.Background(), []forebay.Receipt{ds[0].Receipt, ds[2].Receipt}, time.Minute)
		if err != nil || forebay.CodeOf(errs[0]) != forebay.CodeCancelled || errs[1] != nil {
			t.Fatalf("%v, %v", errs, err)
		}
		settleOne(t, e, forebay.Settlement{Receipt: ds[1].Receipt, Verdict: forebay.Release})
		if j := jobOf(t, e, ids[1]); j.State != forebay.StateCancelled {
			t.Errorf("released: %+v", j)
		}
		time.Sleep(59 * time.Second)
		if j := jobOf(t, e, ids[0]); j.State != forebay.StateActive {
			t.Errorf("extended: %+v", j)
		}
		time.Sleep(2 * time.Second)
		if j := jobOf(t, e, ids[0]); j.State != forebay.StateCancelled || j.Cause.Message != "stop it" {
			t.Errorf("run out: %+v", j)
		}
		if j := jobOf(t, e, ids[2]); j.State != forebay.StateWaiting {
			t.Errorf("not asked: %+v", j)
		}
		if _, err := e.Cancel(context.Background(), []string{receive(t, e, 1)[0].ID}, "again"); err != nil {
			t.Fatal(err)
		}
		e = reopen(t, e, path)
		if j := jobOf(t, e, ids[2]); j.State != forebay.StateCancelled || j.Cause.Message != "again" {
			t.Errorf("after a restart: %+v", j)
		}
		want := []forebay.HistoryType{"added", "started", "cancel_requested", "cancelled"}
		if got := story(t, e, ids[0]); !slices.Equal(got, want) {
			t.Errorf("story %v", got)
		}
		want = []forebay.HistoryType{"added", "started", "lease_lost", "started", "cancel_requested", "cancelled"}
		if got := story(t, e, ids[2]); !slices.Equal(got, want) {
			t.Errorf("story %v", got)
		}
		if ds := receive(t, e, 1); len(ds) != 0 {
			t.Errorf("handed out: %+v", ds)
		}
	})
}

func TestHistoryPages(t *testing.T) {
	path := filepath.Join(t.TempDir(), "forebay.db")
	e := open(t, sqlite.Config{Path: path})
	const n = 5000
	for i := 0; i < n; i += 1000 {
		send(t, e, jobs(1000, fmt.Sprintf("h%d-", i))...)
	}
	read := func() (seqs []int64, epoch string) {
		after := int64(0)
		for more := true; more; {
			page, err := e.History(context.Background(), engine.HistoryQuery{After: after, Limit: 700})
			if err != nil {
				t.Fatal(err)
			}
			for _, ev := range page.Events {
				seqs = append(seqs, ev.Seq)
			}
			after, more, epoch = page.Next, page.More, page.Epoch
		}
		return seqs, epoch
	}
	seqs, epoch := read()
	if len(seqs) != n || !slices.IsSorted(seqs) || len(slices.Compact(slices.Clone(seqs))) != n {
		t.Fatalf("%d events, sorted %v", len(seqs), slices.IsSorted(seqs))
	}
	e = reopen(t, e, path) // now from the store
	again, after := read()
	if !slices.Equal(seqs, again) || epoch != after {
		t.Errorf("%d events after a restart, epoch %s and %s", len(again), epoch, after)
	}
}

func TestHistoryWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := open(t, sqlite.Config{})
		send(t, e, jobs(1, "before")...)
		got := make(chan engine.HistoryPage, 1)
		go func() {
			page, err := e.History(context.Background(), engine.HistoryQuery{After: -1, Wait: time.Minute, Types: []forebay.HistoryType{forebay.HistoryStarted}})
			if err != nil {
				t.Error(err)
			}
			got <- page
		}()
		synctest.Wait()
		send(t, e, jobs(1, "x")...)
		ds := receive(t, e, 1)
		synctest.Wait()
		page := <-got
		if len(page.Events) != 1 || page.Events[0].Type != forebay.HistoryStarted || page.Events[0].Attempt != 1 {
			t.Errorf("%+v", page)
		}
		settle(t, e, forebay.Ack, ds...)
		page, err := e.History(context.Background(), engine.HistoryQuery{After: page.Next})
		if err != nil || len(page.Events) != 1 || page.Events[0].Type != forebay.HistoryCompleted {
			t.Errorf("%+v, %v", page, err)
		}
		start := time.Now()
		page, err = e.History(context.Background(), engine.HistoryQuery{After: page.Next, Wait: time.Minute})
		if err != nil || len(page.Events) != 0 || time.Since(start) != time.Minute {
			t.Errorf("%+v, %v, %s", page, err, time.Since(start))
		}
	})
}
