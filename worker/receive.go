package worker

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/broker"
	"github.com/forebayhq/forebay/engine"
)

// receiver takes messages, through failures. One receive at a time.
type receiver struct {
	b       *broker.Broker
	queue   string
	lease   time.Duration
	observe func(queue string, n int) // nil: nobody is told
	health  health
}

// receive waits until it has messages, ctx ends, or an error cannot heal.
func (r *receiver) receive(ctx context.Context, most int) ([]forebay.Delivery, error) {
	for ctx.Err() == nil {
		ds, err := r.once(ctx, most)
		switch {
		case len(ds) > 0 || err == nil:
			r.health.worked()
			if len(ds) > 0 {
				return ds, nil
			}
		case ctx.Err() != nil:
			return nil, nil
		case hopeless(err):
			return nil, err
		default:
			r.health.failed(err)
			pause(ctx, backoff(r.health.failures))
		}
	}
	return nil, nil
}

// once is one call with a watchdog: an engine that has not answered well after
// the wait (a half-open connection) is called again.
func (r *receiver) once(ctx context.Context, most int) ([]forebay.Delivery, error) {
	ctx, cancel := context.WithTimeout(ctx, receiveWait+receiveSlack)
	defer cancel()
	ds, err := r.b.Receive(ctx, engine.Receive{Queue: r.queue, Max: most, Wait: receiveWait, Lease: r.lease})
	if err == nil && r.observe != nil {
		r.observe(r.queue, len(ds))
	}
	return ds, err
}

// hopeless errors stay however often the call is repeated.
func hopeless(err error) bool {
	switch forebay.CodeOf(err) {
	case forebay.CodeClosed, forebay.CodeInvalid, forebay.CodeUnsupported:
		return true
	}
	return false
}

// backoff grows from 0.2 s to 30 s; the upper half of it is random.
func backoff(failures int) time.Duration {
	const first, most = 200 * time.Millisecond, 30 * time.Second
	d := min(most, first<<min(failures-1, 10))
	return d/2 + rand.N(d/2)
}

func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
