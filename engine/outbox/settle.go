package outbox

import (
	"context"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
)

// Settle ends deliveries of the remote engine. What it has no place for when it is dead
// becomes a local dead letter first, and is then acked there.
func (e *Engine) Settle(ctx context.Context, ss []forebay.Settlement) ([]error, error) {
	errs, err := e.remote.Settle(ctx, ss)
	if err != nil {
		return nil, err
	}
	var acks []forebay.Settlement
	var at []int
	for i, s := range ss {
		if s.Verdict != forebay.Dead || forebay.CodeOf(errs[i]) != forebay.CodeUnsupported {
			continue
		}
		if err := e.bury(ctx, s); err != nil {
			errs[i] = err
			continue
		}
		s.Verdict, s.Cause = forebay.Ack, forebay.Cause{}
		acks, at = append(acks, s), append(at, i)
	}
	if len(acks) > 0 {
		told, err := e.remote.Settle(ctx, acks)
		if err != nil {
			return nil, err
		}
		for n, i := range at {
			errs[i] = told[n]
		}
	}
	e.mu.Lock()
	e.held.drop(ss, errs)
	e.mu.Unlock()
	return errs, nil
}

// bury makes a local dead letter of a delivery.
func (e *Engine) bury(ctx context.Context, s forebay.Settlement) error {
	e.mu.Lock()
	d, ok := e.held.all[s.Receipt]
	e.mu.Unlock()
	if !ok {
		return forebay.Errorf(forebay.CodeLeaseLost, "outbox", "the receipt is void here")
	}
	if known, err := e.buried(ctx, d.Message.ID); known || err != nil {
		return err // by an earlier try, whose ack failed
	}
	m := e.forLocal(&d.Message, true)
	m.Group, m.NotBefore, m.DedupKey, m.Fingerprint = "", time.Time{}, "", 0
	select {
	case e.burying <- struct{}{}: // until the verdict nobody may forward it
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-e.burying }()
	res, err := e.local.Send(ctx, []forebay.Message{m})
	if err == nil {
		err = res[0].Err
	}
	if err != nil {
		return err
	}
	return e.verdict(ctx, m, s.Cause)
}

// verdict finds the message that was just stored, and ends it as dead. Others in its
// queue were replayed; they go back.
func (e *Engine) verdict(ctx context.Context, m forebay.Message, cause forebay.Cause) error {
	ds, err := e.local.Receive(ctx, engine.Receive{Queue: m.Queue, Max: engine.MaxReceive, Lease: forwardLease})
	if err != nil {
		return err
	}
	found := false
	ss := make([]forebay.Settlement, len(ds))
	for i, d := range ds {
		ss[i] = forebay.Settlement{Receipt: d.Receipt, Queue: d.Queue, Verdict: forebay.Release}
		if d.ID == m.ID && !found {
			found = true
			ss[i].Verdict, ss[i].Cause = forebay.Dead, cause
		}
	}
	errs, err := e.local.Settle(ctx, ss)
	if err != nil {
		return err
	}
	for i, err := range errs {
		if err != nil && ss[i].Verdict == forebay.Dead {
			return err
		}
	}
	if !found {
		return forebay.Errorf(forebay.CodeUnavailable, "outbox", "the dead letter is being forwarded after a replay; it dies when it comes again")
	}
	return nil
}

// takeDead takes replayed dead letters, when nobody buries.
func (e *Engine) takeDead(ctx context.Context, queue string) ([]forebay.Delivery, error) {
	select {
	case e.burying <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	defer func() { <-e.burying }()
	return e.local.Receive(ctx, engine.Receive{Queue: queue, Max: forwardBatch, Lease: forwardLease})
}

// held are deliveries that may become local dead letters, until their lease ends.
type held struct {
	all   map[forebay.Receipt]*heldOne
	swept time.Time
}

type heldOne struct {
	Message forebay.Message
	until   time.Time
}

func newHeld() held { return held{all: make(map[forebay.Receipt]*heldOne)} }

func (h *held) add(ds []forebay.Delivery, now time.Time) {
	if now.Sub(h.swept) > time.Second {
		h.swept = now
		for r, one := range h.all {
			if one.until.Before(now) {
				delete(h.all, r)
			}
		}
	}
	for _, d := range ds {
		h.all[d.Receipt] = &heldOne{d.Message, d.LeaseUntil}
	}
}

func (h *held) extend(receipts []forebay.Receipt, errs []error, until time.Time) {
	for i, r := range receipts {
		if one := h.all[r]; one != nil && errs[i] == nil {
			one.until = until
		}
	}
}

func (h *held) drop(ss []forebay.Settlement, errs []error) {
	for i, s := range ss {
		if errs[i] == nil || forebay.CodeOf(errs[i]) == forebay.CodeLeaseLost {
			delete(h.all, s.Receipt)
		}
	}
}
