package broker_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/broker"
	"github.com/forebayhq/forebay/engine"
	"github.com/forebayhq/forebay/engine/enginetest"
)

func job(id string) forebay.Message {
	m := message(id)
	m.Job = &forebay.JobOptions{}
	return m
}

// run takes all that waits and ends it with err.
func run(t *testing.T, b *broker.Broker, err error) {
	t.Helper()
	var ss []forebay.Settlement
	for _, d := range receive(t, b, engine.Receive{Max: 100}) {
		ss = append(ss, b.DecideJob(d, nil, err))
	}
	if err := errors.Join(must[[]error](t)(b.Settle(t.Context(), ss))...); err != nil {
		t.Fatal(err)
	}
}

func TestWhatNeedsALedgerIsSaid(t *testing.T) {
	t.Parallel()
	b := open(t, plain{Engine: enginetest.NewModel()}, broker.Config{})
	ctx := t.Context()
	all := make(map[string]error)
	_, all["job"] = b.Job(ctx, "a")
	_, all["jobs"] = b.Jobs(ctx, engine.JobQuery{})
	_, all["cancel"] = b.Cancel(ctx, nil, "")
	_, all["change"] = b.Change(ctx, nil)
	_, all["progress"] = b.Progress(ctx, nil)
	_, all["remove"] = b.Remove(ctx, nil)
	_, all["finished"] = b.Finished(ctx)
	_, all["retry"] = b.Retry(ctx, nil)
	_, all["history"] = b.History(ctx, engine.HistoryQuery{})
	_, all["put"] = b.PutDocument(ctx, engine.Document{})
	_, all["get"] = b.Document(ctx, "a", "b")
	_, all["list"] = b.Documents(ctx, "a", "", 1)
	all["delete"] = b.DeleteDocument(ctx, "a", "b", 0)
	results := must[[]forebay.SendResult](t)(b.Send(ctx, []forebay.Message{job("a"), message("b")}))
	all["send"] = results[0].Err
	if results[1].Err != nil {
		t.Errorf("a message beside: %v", results[1].Err)
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if err := all[name]; forebay.CodeOf(err) != forebay.CodeUnsupported || !strings.Contains(err.Error(), "cannot") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// One bad item is told, and spoils no other.
func TestActsAnswerPerItem(t *testing.T) {
	t.Parallel()
	b := open(t, memory(t), broker.Config{})
	must[[]forebay.SendResult](t)(b.Send(t.Context(), []forebay.Message{job("a"), job("b")}))
	high, never := forebay.At(1), time.Now().Add(2*forebay.MaxDelay)
	errs := must[[]error](t)(b.Change(t.Context(), []engine.JobChange{
		{ID: "a", Priority: &high}, {ID: "b", Due: &never}, {ID: "c"}, {}, {ID: "b", Payload: []byte("[]")},
	}))
	var codes []forebay.Code
	for _, err := range errs {
		codes = append(codes, forebay.CodeOf(err))
	}
	want(t, "change", codes, []forebay.Code{"", forebay.CodeInvalid, forebay.CodeNotFound, forebay.CodeInvalid, ""})
	want(t, "priority", must[forebay.Job](t)(b.Job(t.Context(), "a")).Priority.Level(), 1)
	want(t, "payload", string(must[forebay.Job](t)(b.Job(t.Context(), "b")).Payload), "[]")

	ds := receive(t, b, engine.Receive{Max: 2})
	errs = must[[]error](t)(b.Progress(t.Context(), []forebay.ProgressUpdate{
		{Receipt: ds[0].Receipt, Progress: &forebay.Progress{Percent: 101}},
		{Receipt: ds[0].Receipt, Progress: &forebay.Progress{Percent: 50}},
		{Receipt: "nobody's", Progress: &forebay.Progress{}},
	}))
	want(t, "progress", fmt.Sprint(forebay.CodeOf(errs[0]), errs[1], forebay.CodeOf(errs[2])), "invalid<nil>lease_lost")
	errs = must[[]error](t)(b.Settle(t.Context(), []forebay.Settlement{
		{Receipt: ds[0].Receipt, Verdict: forebay.Ack, Result: []byte("{")},
		{Receipt: ds[1].Receipt, Verdict: forebay.Ack, Result: []byte("{}")},
	}))
	want(t, "results", fmt.Sprint(forebay.CodeOf(errs[0]), errs[1]), "invalid<nil>")

	_, err := b.Cancel(t.Context(), []string{"a"}, strings.Repeat("x", 2000))
	want(t, "a long reason", forebay.CodeOf(err), forebay.CodeInvalid)
	_, err = b.History(t.Context(), engine.HistoryQuery{Limit: engine.MaxHistory + 1})
	want(t, "a long page", forebay.CodeOf(err), forebay.CodeInvalid)
	_, err = b.History(t.Context(), engine.HistoryQuery{Wait: time.Hour})
	want(t, "a long wait", forebay.CodeOf(err), forebay.CodeInvalid)
}

// A queue's policy holds for its jobs: how long they are kept, and their timeout.
func TestJobsGetTheirQueuesPolicy(t *testing.T) {
	t.Parallel()
	e := memory(t)
	own := forebay.Keep{Count: 7}
	b := open(t, e, broker.Config{Queues: map[string]broker.Policy{"q": {
		Timeout: time.Minute, Keep: forebay.Retention{Finished: forebay.Keep{Age: time.Hour}, Dead: forebay.Keep{Count: 3}},
	}}})
	a, c := job("a"), job("c")
	c.Job.Keep.Finished, c.Job.Timeout = own, time.Second
	must[[]forebay.SendResult](t)(b.Send(t.Context(), []forebay.Message{a, c, message("m")}))
	want(t, "the caller's", a.Job.Keep, forebay.Retention{})
	for _, d := range receive(t, b, engine.Receive{Max: 3}) {
		timeout := b.Timeout(&d.Message)
		switch d.ID {
		case "a":
			want(t, "a", fmt.Sprint(d.Job.Keep.Finished, d.Job.Keep.Dead, timeout), fmt.Sprint(forebay.Keep{Age: time.Hour}, forebay.Keep{Count: 3}, time.Minute))
		case "c":
			want(t, "c", fmt.Sprint(d.Job.Keep.Finished, d.Job.Keep.Dead, timeout), fmt.Sprint(own, forebay.Keep{Count: 3}, time.Second))
		case "m":
			want(t, "m", fmt.Sprint(d.Job == nil, timeout), "true 0s")
		}
	}
}

func TestRetry(t *testing.T) {
	t.Parallel()
	b := open(t, memory(t), broker.Config{})
	ctx := t.Context()
	done := job("done")
	done.DedupKey, done.Job.Tags, done.Job.Deadline = "key", []string{"t"}, time.Now().Add(time.Hour)
	must[[]forebay.SendResult](t)(b.Send(ctx, []forebay.Message{done}))
	run(t, b, nil)
	must[[]forebay.SendResult](t)(b.Send(ctx, []forebay.Message{job("dead")}))
	run(t, b, broken)
	must[[]forebay.SendResult](t)(b.Send(ctx, []forebay.Message{job("waits"), job("cancelled")}))
	must[[]engine.CancelResult](t)(b.Cancel(ctx, []string{"cancelled"}, "no"))

	results := must[[]broker.RetryResult](t)(b.Retry(ctx, []string{"done", "dead", "nobody", "waits", "cancelled"}))
	var codes []forebay.Code
	for _, r := range results {
		codes = append(codes, forebay.CodeOf(r.Err))
	}
	want(t, "codes", codes, []forebay.Code{"", "", forebay.CodeNotFound, forebay.CodeConflict, ""})
	want(t, "dead", results[1].ID, "dead")
	again := must[forebay.Job](t)(b.Job(ctx, results[0].ID))
	want(t, "done", fmt.Sprint(again.ID != "done", again.Job.Parent, again.Job.Tags, again.DedupKey, again.State, string(again.Payload)),
		fmt.Sprint(true, "done", "[t]", "", "waiting", "payload of done"))
	want(t, "the old one", must[forebay.Job](t)(b.Job(ctx, "done")).State, forebay.StateCompleted)
	dead := must[forebay.Job](t)(b.Job(ctx, "dead"))
	want(t, "replayed", fmt.Sprint(dead.State, dead.Attempts), "waiting0")
	want(t, "parent", must[forebay.Job](t)(b.Job(ctx, results[4].ID)).Job.Parent, "cancelled")
}
