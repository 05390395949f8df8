package worker

import (
	"context"
	"sync"

	"github.com/forebayhq/forebay"
)

// UntilDraining gives a context that ends as soon as the worker drains, for handlers that
// can go on later where they were: one that is stuck, or waits for its turn, holds up no
// shutdown. stop frees what it holds, and must be called.
func UntilDraining(ctx context.Context) (working context.Context, stop func()) {
	working, cancel := context.WithCancelCause(ctx)
	var watching sync.WaitGroup
	watching.Go(func() {
		select {
		case <-forebay.Draining(ctx):
			cancel(forebay.ErrDraining)
		case <-working.Done():
		}
	})
	return working, func() {
		cancel(nil)
		watching.Wait()
	}
}
