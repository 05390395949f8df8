package sink

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/event"
)

const (
	unsureTries  = 4 // of a batch refused with an unknown error, before its rows are suspected
	timeoutTries = 2 // of a batch that takes too long, before it is halved
)

// errTooSlow asks for a smaller piece.
var errTooSlow = errors.New("sink: the database takes too long for a batch of this size")

// write writes the events and gives the error of each, and how many are new.
func (w *Writer) write(ctx context.Context, events []event.Event) (errs []error, written int) {
	suspect := false
	errs = Isolate(len(events), splits, func(lo, hi int) error {
		n, err := w.insist(ctx, events[lo:hi], &suspect)
		written += n
		return err
	})
	return errs, written
}

// splits tells whether an error may go away with a smaller piece.
func splits(err error) bool {
	var refused *Refused
	return errors.As(err, &refused) || errors.Is(err, errTooSlow)
}

// insist tries until the piece is written or refused, or ctx ends. suspect is
// shared by the pieces of a batch: the doubt about its rows is settled once.
func (w *Writer) insist(ctx context.Context, piece []event.Event, suspect *bool) (int, error) {
	timeouts := 0
	for tries := 1; ; tries++ {
		n, err := w.db.Write(ctx, piece)
		if err == nil {
			w.resume()
			return n, nil
		}
		if ctx.Err() != nil {
			return 0, context.Cause(ctx)
		}
		var refused *Refused
		if errors.As(err, &refused) {
			if !refused.Sure && !*suspect && tries >= unsureTries {
				*suspect = w.db.Check(ctx) == nil
			}
			if refused.Sure || *suspect {
				w.resume()
				return 0, err
			}
		}
		if errors.Is(err, context.DeadlineExceeded) {
			timeouts++
		}
		w.pause(err)
		if timeouts >= timeoutTries && len(piece) > 1 {
			return 0, errTooSlow
		}
		if err := wait(ctx, backoff(tries, w.cfg.PauseMin, w.cfg.PauseMax)); err != nil {
			return 0, err
		}
	}
}

// backoff is the wait after so many tries: doubled each time, capped, and cut by
// up to a half at random, so that several sinks do not return in step.
func backoff(tries int, least, most time.Duration) time.Duration {
	d := most
	if shift := tries - 1; shift < 30 && least<<shift < most {
		d = least << shift
	}
	return d/2 + rand.N(d/2+1)
}

// wait lets the time go by, unless ctx ends or its worker drains: a batch that
// only waits for its database must not hold up a shutdown.
func wait(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-forebay.Draining(ctx):
		return forebay.ErrDraining
	}
}
