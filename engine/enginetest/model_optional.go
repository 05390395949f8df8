package enginetest

import (
	"context"
	"slices"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
)

func (e *Model) Dead(ctx context.Context, q engine.DeadQuery) ([]forebay.DeadLetter, error) {
	if q.Limit < 0 || q.Limit > 1000 {
		return nil, fail(forebay.CodeInvalid, "a limit of %d is out of bounds", q.Limit)
	}
	if q.Limit == 0 {
		q.Limit = 100
	}
	if _, err := e.enter(ctx); err != nil {
		return nil, err
	}
	defer e.mu.Unlock()
	var out []forebay.DeadLetter
	for _, l := range slices.Backward(e.o.letters) {
		if len(out) == q.Limit {
			break
		}
		if (q.Queue == "" || q.Queue == l.Message.Queue) && (q.ID == "" || q.ID == l.Message.ID) &&
			(q.Code == "" || q.Code == l.Cause.Code) && (q.Group == 0 || q.Group == l.Fingerprint) && (q.Before == 0 || l.Seq < q.Before) {
			out = append(out, l)
		}
	}
	return out, nil
}

func (e *Model) Replay(ctx context.Context, seqs []int64) ([]error, error) {
	now, err := e.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer e.mu.Unlock()
	// In the order of dying, whatever the order of asking.
	errs, order := make([]error, len(seqs)), make([]int, len(seqs))
	for i := range seqs {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return int(seqs[a] - seqs[b]) })
	for _, i := range order {
		if !e.o.replay(seqs[i], now) {
			errs[i] = fail(forebay.CodeNotFound, "no dead letter %d", seqs[i])
		}
	}
	e.wake()
	return errs, nil
}

func (e *Model) Discard(ctx context.Context, seqs []int64) ([]error, error) {
	now, err := e.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer e.mu.Unlock()
	errs := make([]error, len(seqs))
	for i, seq := range seqs {
		if !e.o.discard(seq, now) {
			errs[i] = fail(forebay.CodeNotFound, "no dead letter %d", seq)
		}
	}
	return errs, nil
}

func (e *Model) Locate(ctx context.Context, id string) (engine.Location, error) {
	now, err := e.enter(ctx)
	if err != nil {
		return engine.Location{}, err
	}
	defer e.mu.Unlock()
	return e.o.locate(id, now), nil
}

func (e *Model) SetLimits(ctx context.Context, queue string, l engine.QueueLimits) error {
	if queue == "" || min(l.Active, l.KeyActive, l.Rate.Count, l.Rate.Burst, l.KeyRate.Count, l.KeyRate.Burst) < 0 ||
		min(l.Rate.Per, l.KeyRate.Per) < 0 {
		return fail(forebay.CodeInvalid, "limits %+v of queue %q are out of bounds", l, queue)
	}
	if _, err := e.enter(ctx); err != nil {
		return err
	}
	defer e.mu.Unlock()
	e.o.limits[queue] = l
	e.wake()
	return nil
}

func (e *Model) QueueLimits(ctx context.Context, queue string) (engine.QueueLimits, error) {
	if _, err := e.enter(ctx); err != nil {
		return engine.QueueLimits{}, err
	}
	defer e.mu.Unlock()
	return e.o.limits[queue], nil
}

// SetDelay keeps the delay, and the moment until which it holds each message back.
func (e *Model) SetDelay(ctx context.Context, queue string, d time.Duration) error {
	if queue == "" || d < 0 || d > forebay.MaxDelay {
		return fail(forebay.CodeInvalid, "a delay of %v of queue %q is out of bounds", d, queue)
	}
	if _, err := e.enter(ctx); err != nil {
		return err
	}
	defer e.mu.Unlock()
	e.o.delay(queue, d)
	e.wake()
	return nil
}

func (e *Model) Delay(ctx context.Context, queue string) (time.Duration, error) {
	if _, err := e.enter(ctx); err != nil {
		return 0, err
	}
	defer e.mu.Unlock()
	return e.o.delays[queue], nil
}

func (e *Model) Purge(ctx context.Context, queue string) (int64, error) {
	now, err := e.enter(ctx)
	if err != nil {
		return 0, err
	}
	defer e.mu.Unlock()
	return e.o.purge(queue, now), nil
}

// Check tells whether it is open: memory can always store.
func (e *Model) Check(ctx context.Context) error {
	_, err := e.enter(ctx)
	if err != nil {
		return err
	}
	e.mu.Unlock()
	return nil
}

// Size tells that it uses nothing on disk.
func (e *Model) Size(ctx context.Context) (used, free int64, err error) {
	if _, err := e.enter(ctx); err != nil {
		return 0, 0, err
	}
	defer e.mu.Unlock()
	return 0, 1 << 40, nil
}
