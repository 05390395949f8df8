package worker_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/worker"
)

// The next of a group begins when the verdict of the one before is stored. Where that takes
// until its lease has ended, it runs again, and still before the next one.
func TestOrderOverAVerdictThatIsNotStored(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		away time.Duration // of the store, for verdicts and renewals
		want string
	}{
		{"a while", 10 * time.Second, "[g1 g2 g3]"},
		{"longer than the lease", 40 * time.Second, "[g1 g1 g2 g3]"},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(s *stand) {
				var begun journal
				var away atomic.Bool
				refused := forebay.Errorf(forebay.CodeUnavailable, "test", "the store is away")
				s.hooks.settle = func(ctx context.Context, all []forebay.Settlement) ([]error, error) {
					if away.Load() {
						return nil, refused
					}
					return s.hooks.Engine.Settle(ctx, all)
				}
				s.hooks.extend = func(ctx context.Context, rs []forebay.Receipt, lease time.Duration) ([]error, error) {
					if away.Load() {
						return nil, refused
					}
					return s.hooks.Engine.Extend(ctx, rs, lease)
				}
				s.send(named("g", 3, "g")...)
				away.Store(true)
				s.run(worker.Config{Concurrency: 3, Lease: 30 * time.Second, Handler: worker.HandlerFunc(func(_ context.Context, d forebay.Delivery) error {
					begun.add("%s", d.ID)
					return nil
				})})
				pass(c.away)
				away.Store(false)
				pass(time.Minute)
				s.want("begun", begun.all(), c.want)
				s.finish()
			})
		})
	}
}
