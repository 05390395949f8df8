package queue

import (
	"context"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
)

// Bounds of a mover.
const (
	moveSlices = 10               // slices a second, at most
	moveLease  = 30 * time.Second // of a slice
	moveRetry  = 5 * time.Second  // after the engine has failed
)

// runMove works a task until it has ended, or ctx has.
func (s *Service) runMove(ctx context.Context, key string) {
	for ctx.Err() == nil {
		m, err := s.move(ctx, key)
		if isShape(err, "ResourceNotFoundException") {
			return
		}
		wait := time.Duration(moveRetry)
		slice := 0
		if err == nil {
			if !m.active() {
				return
			}
			slice, wait = m.pace(s.limits.moves)
		}
		if m == nil || m.Status == moveRunning {
			if !pause(ctx, wait) {
				return
			}
		}
		if err == nil {
			err = s.moveOnce(ctx, key, slice)
		}
		if err != nil && ctx.Err() == nil {
			s.cfg.Logger.Warn("a move task has to wait for the engine", "task", key, "error", err)
		}
	}
}

// pace is how many messages are moved at once, and how long to wait before.
func (m *moveRecord) pace(most int) (slice int, wait time.Duration) {
	rate := m.Rate
	if rate == 0 {
		rate = most
	}
	slice = (rate + moveSlices - 1) / moveSlices
	return slice, time.Duration(slice) * time.Second / time.Duration(rate)
}

// pause waits; false: ctx has ended.
func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// moveOnce moves a slice and notes how far the task is.
func (s *Service) moveOnce(ctx context.Context, key string, slice int) error {
	m, err := s.move(ctx, key)
	if err != nil || !m.active() {
		return err
	}
	var done moved
	if m.Status == moveRunning {
		if done, err = s.moveSome(ctx, m, slice); err != nil {
			return err
		}
	}
	// What was moved is noted also when Run has to end.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), giveBackTimeout)
	defer cancel()
	_, err = s.changeMove(ctx, key, func(m *moveTask) error {
		m.Moved += done.n
		switch {
		case done.failure != "":
			m.Status, m.Reason = moveFailed, done.failure
		case done.all:
			m.Status = moveCompleted
		case m.Status == moveCancelling:
			m.Status = moveCancelled
		}
		return nil
	})
	return err
}

// moved is what became of a slice.
type moved struct {
	n       int64
	all     bool // nothing is left that was there when the task began
	failure string
}

const (
	failedNoQueue  = simple + "NonExistentQueue"
	failedNoSource = "CouldNotDetermineMessageSource"
)

// moveSome moves up to n messages: they leave the source and appear where they go in
// one step of the engine.
func (s *Service) moveSome(ctx context.Context, m *moveTask, n int) (done moved, err error) {
	source, err := s.byName(ctx, m.Source)
	if isShape(err, "QueueDoesNotExist") || err == nil && source.Life != m.Life {
		return moved{failure: failedNoQueue}, nil
	}
	if err != nil {
		return done, err
	}
	ds, err := s.engine.Receive(ctx, engine.Receive{Queue: m.Source, Max: n, Lease: moveLease})
	if err != nil {
		return done, err
	}
	out := make([]forebay.Settlement, len(ds))
	done.all = true
	now := s.cfg.Now()
	for i := range ds {
		d := &ds[i]
		out[i] = forebay.Settlement{Receipt: d.Receipt, Verdict: forebay.Release}
		switch {
		case d.Job != nil || d.SentAt.UnixMilli() > m.Started || done.failure != "": // it stays
			continue
		case source.over(d, now):
			out[i].Verdict = forebay.Expired
			done.all = false
			continue
		}
		next, failure, err := s.toMove(ctx, d, m)
		if err != nil {
			return moved{}, err
		}
		if done.failure = failure; failure != "" {
			continue
		}
		out[i].Verdict, out[i].Next = forebay.Ack, []forebay.Message{next}
		done.n++
		done.all = false
	}
	return done, s.settleMoves(ctx, out, &done)
}

func (s *Service) settleMoves(ctx context.Context, out []forebay.Settlement, done *moved) error {
	if len(out) == 0 {
		return nil
	}
	errs, err := s.engine.Settle(ctx, out)
	if err != nil {
		return err
	}
	for i, err := range errs {
		if err == nil || out[i].Verdict != forebay.Ack {
			continue
		}
		done.n--
		if forebay.CodeOf(err) != forebay.CodeLeaseLost { // that one is met again
			done.failure = forebay.TextOf(err)
		}
	}
	return nil
}

// toMove is a message as it goes back: a new one, with what its sender has given it.
func (s *Service) toMove(ctx context.Context, d *forebay.Delivery, m *moveTask) (next forebay.Message, failure string, err error) {
	name := m.To
	if name == "" {
		name = d.Headers[headFrom]
	}
	if name == "" {
		return next, failedNoSource, nil
	}
	to, err := s.byName(ctx, name)
	if isShape(err, "QueueDoesNotExist") {
		return next, failedNoQueue, nil
	}
	if err != nil {
		return next, "", err
	}
	next, err = s.moved(ctx, d, to, movedID(d.ID, to))
	for _, name := range []string{headID, headFrom, headSent, headCount} {
		delete(next.Headers, name)
	}
	return next, "", err
}
