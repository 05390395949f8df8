package queue

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/forebayhq/forebay"
)

func TestFifoSendsAreBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		var refused, sent, most atomic.Int64
		f := funnel{do: func(_ context.Context, msgs []forebay.Message) ([]forebay.SendResult, error) {
			<-release
			sent.Add(int64(len(msgs)))
			most.Store(max(most.Load(), int64(len(msgs)))) // one call at a time
			return make([]forebay.SendResult, len(msgs)), nil
		}}
		payload := make([]byte, 1<<20)
		var all sync.WaitGroup
		for range 70 { // one is sent, 64 MiB wait
			all.Go(func() {
				_, err := f.send(t.Context(), []forebay.Message{{Payload: payload}})
				if isShape(err, "RequestThrottled") {
					refused.Add(1)
				} else if err != nil {
					t.Error(err)
				}
			})
		}
		synctest.Wait()
		if n := refused.Load(); n != 5 {
			t.Errorf("%d of 70 were refused", n)
		}
		close(release)
		all.Wait()
		if sent.Load() != 65 || most.Load() != 8 {
			t.Errorf("%d were sent, %d MiB in one call", sent.Load(), most.Load())
		}
		if f.busy || f.gathered != (load{}) {
			t.Errorf("it is left busy %v with %v", f.busy, f.gathered)
		}
	})
}
