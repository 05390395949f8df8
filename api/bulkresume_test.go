package api_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/api"
	"github.com/forebayhq/forebay/engine"
	"github.com/forebayhq/forebay/worker"
)

// An action on many jobs that is interrupted again and again tells what all its runs
// did, and does nothing twice.
func TestActionsTellAllTheirRuns(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	ctx := t.Context()
	const n = 2100 // three pages
	msgs := make([]forebay.Message, n)
	for i := range msgs {
		msgs[i] = forebay.Message{ID: fmt.Sprint("j", i), Queue: "q", Kind: "k", NotBefore: time.Now().Add(time.Hour), Job: &forebay.JobOptions{}}
	}
	must[[]forebay.SendResult](t)(s.broker.Send(ctx, msgs))
	for _, a := range []api.BulkAction{
		{Action: "cancel", Q: "queue:q"}, {Action: "retry", Q: "queue:q state:cancelled"},
	} {
		must[api.BulkStarted](t)(s.ActOnJobs(ctx, a))
		d := must[[]forebay.Delivery](t)(s.broker.Receive(ctx, engine.Receive{Queue: api.BulkQueue, Max: 1, Lease: time.Hour}))[0] // nobody extends it, however slow the machine is
		var result []byte
		runs := 0
		for result == nil && runs < 10 {
			runs++
			run, crash := context.WithCancel(ctx)
			pages := 0
			j := worker.NewJob(d, func(p *forebay.Progress, _ *forebay.LogLine) {
				if p.Stage == a.Action {
					pages++
				}
				if pages == 2 {
					crash() // its second page is done, and nothing says so yet
				}
			})
			result, _ = api.BulkHandler(s.broker).HandleJob(run, j)
			crash()
		}
		var out api.BulkOutcome
		if err := json.Unmarshal(result, &out); err != nil || out.Matched != n || out.Done != n || out.Failed != 0 || runs != 3 {
			t.Errorf("%s in %d runs: %+v", a.Action, runs, out)
		}
		again := must[[]byte](t)(api.BulkHandler(s.broker).HandleJob(ctx, worker.NewJob(d, func(*forebay.Progress, *forebay.LogLine) {})))
		if string(again) != string(result) {
			t.Errorf("%s once more: %s, then %s", a.Action, result, again)
		}
		errs := must[[]error](t)(s.broker.Settle(ctx, []forebay.Settlement{{Receipt: d.Receipt, Queue: d.Queue, Verdict: forebay.Ack, Result: result}}))
		if errs[0] != nil {
			t.Fatal(errs[0])
		}
	}
	if q := must[api.Queue](t)(s.Queue(ctx, "q")); q.Waiting != n {
		t.Errorf("%d are retried, want %d", q.Waiting, n)
	}
}
