package worker_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/worker"
)

func TestUntilDraining(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // which fails where something is left running
		signal := make(chan struct{})
		ctx := forebay.WithDraining(t.Context(), signal)
		working, stop := worker.UntilDraining(ctx)
		synctest.Wait()
		if working.Err() != nil {
			t.Error("it has ended before the worker drains")
		}
		close(signal)
		<-working.Done()
		if err := context.Cause(working); !errors.Is(err, forebay.ErrDraining) || ctx.Err() != nil {
			t.Errorf("it ended for %v, the handler's for %v", err, ctx.Err())
		}
		stop()
		_, stop = worker.UntilDraining(t.Context()) // outside of a worker
		stop()
	})
}
