package api_test

import (
	"context"
	"encoding/json"
	"errors"
	"sync/atomic"
	"testing"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/api"
	"github.com/forebayhq/forebay/engine"
	"github.com/forebayhq/forebay/engine/sqlite"
	"github.com/forebayhq/forebay/worker"
)

// crashing stores no documents while it is down, as a process that is killed would not.
type crashing struct {
	*sqlite.Engine
	down atomic.Bool
}

func (c *crashing) PutDocument(ctx context.Context, d engine.Document) (engine.Document, error) {
	if c.down.Load() {
		return d, errors.New("killed")
	}
	return c.Engine.PutDocument(ctx, d)
}

// A run that is killed between a step and the note of it: the next one knows what was done.
func TestActionOnDeadAfterACrash(t *testing.T) {
	t.Parallel()
	e := &crashing{Engine: must[*sqlite.Engine](t)(sqlite.Open(sqlite.Config{}))}
	s := startOn(t, e, nil)
	s.die(t, "q", "x", 500)
	w := must[api.DeadWork](t)(s.ActOnDead(t.Context(), api.DeadAction{Action: "discard", DeadFilter: api.DeadFilter{Queue: "q"}, Reason: "test traffic"}))
	d := must[[]forebay.Delivery](t)(s.broker.Receive(t.Context(), engine.Receive{Queue: api.BulkQueue, Max: 1}))[0]
	var result []byte
	runs := 0
	for ; result == nil && runs < 5; runs++ {
		e.down.Store(false)
		run, crash := context.WithCancel(t.Context())
		result, _ = api.DeadHandler(s.broker).HandleJob(run, worker.NewJob(d, func(*forebay.Progress, *forebay.LogLine) {
			if runs == 0 {
				e.down.Store(true)
				crash()
			}
		}))
		crash()
	}
	var out api.DeadWork
	if err := json.Unmarshal(result, &out); err != nil || out.State != api.DeadCompleted || out.Done != 500 || out.Failed != 0 || out.Runs != 2 || runs != 2 {
		t.Errorf("%v in %d runs: %+v", err, runs, out)
	}
	if at := must[api.DeadWork](t)(s.DeadAction(t.Context(), w.ID)); at.Done != 500 || at.Total != 500 {
		t.Errorf("%+v", at)
	}
}
