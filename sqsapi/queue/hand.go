package queue

import (
	"context"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
)

// hand gives a receive its messages, and tells when they were leased. One that waits
// ends with its queue.
func (s *Service) hand(ctx context.Context, q *queue, a *asked) ([]forebay.Delivery, time.Time, error) {
	if a.wait == 0 {
		return s.handNow(ctx, q, a)
	}
	call, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(q.live.gone, cancel)()
	ds, at, err := s.handNow(call, q, a)
	if err != nil && ctx.Err() == nil && q.live.gone.Err() != nil {
		err = noQueue()
	}
	return ds, at, err
}

func (s *Service) handNow(ctx context.Context, q *queue, a *asked) ([]forebay.Delivery, time.Time, error) {
	now := s.cfg.Now()
	if full, err := s.checkFlight(ctx, q, a); full || err != nil {
		return nil, now, err
	}
	take := func() ([]forebay.Delivery, time.Time, error) {
		ds, err := s.take(ctx, q, a)
		return ds, s.cfg.Now(), err
	}
	if a.attempt == "" {
		return take()
	}
	held := func(receipts []forebay.Receipt) bool { return s.stillHeld(ctx, receipts, a.visibility) }
	return s.attempts.once(ctx, q.Life+"\x00"+a.attempt, now, held, take)
}

// takeRounds is how many claims of which nothing was to be handed out one receive
// works off. The rest is there for the next one, and for the sweep.
const takeRounds = 50

// take leases messages that may be handed out. Those whose time is over, or that
// were received too often, are moved out of the way meanwhile.
func (s *Service) take(ctx context.Context, q *queue, a *asked) ([]forebay.Delivery, error) {
	end := s.cfg.Now().Add(a.wait)
	for range takeRounds {
		r := engine.Receive{Queue: q.name, Max: a.max, Wait: max(end.Sub(s.cfg.Now()), 0), Lease: max(a.visibility, engine.MinLease), Kept: true, Together: q.fifo}
		ds, err := s.engine.Receive(ctx, r)
		if err != nil {
			return nil, s.failed(ctx, err)
		}
		if len(ds) == 0 {
			return nil, nil
		}
		good, err := s.sift(ctx, q, ds)
		if err == nil && len(good) == 0 {
			continue
		}
		if q.fifo {
			good = sequenced(good)
		}
		if err == nil {
			err = s.hideNot(ctx, a, good)
		}
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			s.giveBack(ctx, ds)
			return nil, err
		}
		return good, nil
	}
	return nil, nil
}

// giveBackTimeout bounds what is done for a caller that has left.
const giveBackTimeout = 5 * time.Second

// giveBack lets messages wait again that the caller will not get. It did not see them:
// that they were handed out does not count.
func (s *Service) giveBack(ctx context.Context, ds []forebay.Delivery) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), giveBackTimeout)
	defer cancel()
	out := make([]forebay.Settlement, len(ds))
	for i := range ds {
		out[i] = forebay.Settlement{Receipt: ds[i].Receipt, Verdict: forebay.Release}
	}
	// What fails comes back when its lease ends.
	_, _ = s.engine.Settle(ctx, out)
}

// hideNot ends the leases of a receive that hides nothing.
func (s *Service) hideNot(ctx context.Context, a *asked, ds []forebay.Delivery) error {
	if a.visibility > 0 {
		return nil
	}
	_, err := s.engine.Extend(ctx, receiptsOf(ds), 0)
	if err != nil {
		return s.failed(ctx, err)
	}
	return nil
}

func receiptsOf(ds []forebay.Delivery) []forebay.Receipt {
	receipts := make([]forebay.Receipt, len(ds))
	for i := range ds {
		receipts[i] = ds[i].Receipt
	}
	return receipts
}

// sift takes out of a claim what is not to be handed out: what was purged, or is older
// than the queue keeps messages, is dropped; what was received too often goes to the
// dead letter queue. All of it is one step of the engine.
func (s *Service) sift(ctx context.Context, q *queue, ds []forebay.Delivery) ([]forebay.Delivery, error) {
	var out []forebay.Settlement
	var at []int
	for i := range ds {
		end, err := s.ending(ctx, q, &ds[i])
		if err != nil {
			return nil, s.failed(ctx, err)
		}
		if end != nil {
			out, at = append(out, *end), append(at, i)
		}
	}
	if len(out) == 0 {
		return ds, nil
	}
	errs, err := s.engine.Settle(ctx, out)
	if err != nil {
		return nil, s.failed(ctx, err)
	}
	good := make([]forebay.Delivery, 0, len(ds))
	for i := range ds {
		if len(at) == 0 || at[0] != i {
			good = append(good, ds[i])
			continue
		}
		// One that the engine does not take into the other queue is better handed out
		// than hidden for ever. One that has lost its lease is met again.
		if code := forebay.CodeOf(errs[0]); code == forebay.CodeInvalid || code == forebay.CodeTooLarge {
			good = append(good, ds[i])
		}
		at, errs = at[1:], errs[1:]
	}
	return good, nil
}

// ending is how a message ends that is not to be handed out; nil: it is.
func (s *Service) ending(ctx context.Context, q *queue, d *forebay.Delivery) (*forebay.Settlement, error) {
	switch {
	case d.Job != nil: // Forebay's own ledger decides about it
		return nil, nil
	case q.over(d, s.cfg.Now()):
		return &forebay.Settlement{Receipt: d.Receipt, Verdict: forebay.Expired}, nil
	case q.redrive == nil || d.Deliveries <= q.redrive.Max:
		return nil, nil
	}
	to := s.deadLetterQueue(ctx, q)
	if to == nil {
		return nil, nil
	}
	next, err := s.toDead(ctx, d, q, to)
	return &forebay.Settlement{Receipt: d.Receipt, Verdict: forebay.Ack, Next: []forebay.Message{next}}, err
}

// over tells whether a message is not to be seen any more: its time is over, or it was
// in flight when the queue was purged. What was in flight has been handed out before;
// so a message that never was is not lost where the clocks of engine and service differ.
func (q *queue) over(d *forebay.Delivery, now time.Time) bool {
	return d.Deliveries > 1 && d.SentAt.UnixNano() < q.Since || now.Sub(sentAt(d)) >= q.retention
}
