package queue

import (
	"context"
	"time"

	"github.com/forebayhq/forebay"
)

// A standard queue acts by any handle that it ever gave for a message. A FIFO queue
// acts by the live one only; what is asked with another is refused, but for what is
// true already.

// DeleteMessage removes a message.
func (s *Service) DeleteMessage(ctx context.Context, in HandleInput) error {
	q, err := s.find(ctx, in.QueueUrl)
	if err != nil {
		return err
	}
	return s.remove(ctx, q, []HandleInput{in})[0]
}

// DeleteMessageBatch removes several; each is told of by itself.
func (s *Service) DeleteMessageBatch(ctx context.Context, in HandleBatchInput) (HandleBatchOutput, error) {
	return s.handles(ctx, &in, "DeleteMessageBatchRequestEntry", s.remove)
}

// ChangeMessageVisibility sets for how long from now a message stays hidden.
func (s *Service) ChangeMessageVisibility(ctx context.Context, in HandleInput) error {
	q, err := s.find(ctx, in.QueueUrl)
	if err != nil {
		return err
	}
	return s.hide(ctx, q, []HandleInput{in})[0]
}

// ChangeMessageVisibilityBatch does so for several; each is told of by itself.
func (s *Service) ChangeMessageVisibilityBatch(ctx context.Context, in HandleBatchInput) (HandleBatchOutput, error) {
	return s.handles(ctx, &in, "ChangeMessageVisibilityBatchRequestEntry", s.hide)
}

// handles does something for the entries of a batch.
func (s *Service) handles(ctx context.Context, in *HandleBatchInput, kind string, do func(context.Context, *queue, []HandleInput) []error) (HandleBatchOutput, error) {
	var out HandleBatchOutput
	q, err := s.find(ctx, in.QueueUrl)
	if err != nil {
		return out, err
	}
	if err := s.checkEntries(kind, len(in.Entries), func(i int) string { return in.Entries[i].ID }); err != nil {
		return out, err
	}
	errs := do(ctx, q, in.Entries)
	if ctx.Err() != nil {
		return out, ctx.Err()
	}
	for i, err := range errs {
		if id := in.Entries[i].ID; err != nil {
			out.Failed = append(out.Failed, failedEntry(id, err))
		} else {
			out.Successful = append(out.Successful, Done{ID: id})
		}
	}
	return out, nil
}

// opened are the receipts of handles that are right so far, and whose they are.
type opened struct {
	receipts []forebay.Receipt
	at       []int // their entries
}

// each asks the engine about all receipts at once. f makes an answer of what it said
// of one; entries whose own call failed get that.
func (o *opened) each(errs, answers []error, failure error, f func(i int, err error) error) {
	for n, i := range o.at {
		if errs[i] = failure; failure == nil {
			errs[i] = f(i, answers[n])
		}
	}
}

func (s *Service) open(q *queue, entries []HandleInput, errs []error, fits func(e *HandleInput, at time.Time) error) (o opened) {
	sign := q.live.sign
	for i := range entries {
		e := &entries[i]
		if e.ReceiptHandle == "" {
			errs[i] = missing("ReceiptHandle")
			continue
		}
		r, at, err := sign.receipt(e.ReceiptHandle)
		if err == nil {
			err = fits(e, at)
		}
		if err != nil {
			errs[i] = err
			continue
		}
		o.receipts, o.at = append(o.receipts, r), append(o.at, i)
	}
	return o
}

func (s *Service) remove(ctx context.Context, q *queue, entries []HandleInput) []error {
	errs := make([]error, len(entries))
	o := s.open(q, entries, errs, func(*HandleInput, time.Time) error { return nil })
	if len(o.receipts) == 0 {
		return errs
	}
	if q.fifo {
		s.removeFifo(ctx, entries, &o, errs)
		return errs
	}
	answers, err := s.late.AckLate(ctx, o.receipts)
	if err != nil {
		err = s.failed(ctx, err)
	}
	o.each(errs, answers, err, func(_ int, err error) error { return s.lateError(ctx, err) })
	return errs
}

// lateError is what the engine says of a receipt, for the caller.
func (s *Service) lateError(ctx context.Context, err error) error {
	switch forebay.CodeOf(err) {
	case "", forebay.CodeCancelled:
		return nil
	case forebay.CodeInvalid:
		return fault("ReceiptHandleIsInvalid", "The input receipt handle is invalid.")
	case forebay.CodeConflict:
		return fault("UnsupportedOperation", "%s", forebay.TextOf(err))
	}
	return s.failed(ctx, err)
}

// removeFifo acknowledges by live receipts. One that is not live is right if the
// message is gone.
func (s *Service) removeFifo(ctx context.Context, entries []HandleInput, o *opened, errs []error) {
	acks := make([]forebay.Settlement, len(o.receipts))
	for i, r := range o.receipts {
		acks[i] = forebay.Settlement{Receipt: r, Verdict: forebay.Ack}
	}
	answers, err := s.engine.Settle(ctx, acks)
	if err != nil {
		err = s.failed(ctx, err)
	}
	o.each(errs, answers, err, func(i int, err error) error {
		if forebay.CodeOf(err) != forebay.CodeLeaseLost {
			return s.lateError(ctx, err)
		}
		if gone, err := s.isGone(ctx, q1(o, i)); err != nil || gone {
			return err
		}
		return expired(entries[i].ReceiptHandle)
	})
}

// q1 is the receipt of an entry.
func q1(o *opened, entry int) forebay.Receipt {
	for n, i := range o.at {
		if i == entry {
			return o.receipts[n]
		}
	}
	return ""
}

func expired(handle string) error {
	return badValue("ReceiptHandle", handle, "The receipt handle has expired.")
}

func notThere(handle string) error {
	return badValue("ReceiptHandle", handle, "Message does not exist or is not available for visibility timeout change.")
}

func (s *Service) isGone(ctx context.Context, r forebay.Receipt) (bool, error) {
	states, err := s.late.Late(ctx, []forebay.Receipt{r})
	if err != nil {
		return false, s.failed(ctx, err)
	}
	if err := states[0].Err; err != nil {
		return false, s.lateError(ctx, err)
	}
	return states[0].Where == "gone", nil
}

// hide changes visibility. Entries with the same timeout are one call.
func (s *Service) hide(ctx context.Context, q *queue, entries []HandleInput) []error {
	errs := make([]error, len(entries))
	now := s.cfg.Now()
	all := s.open(q, entries, errs, func(e *HandleInput, at time.Time) error { return checkHide(e, now.Sub(at)) })
	for len(all.receipts) > 0 {
		seconds := *entries[all.at[0]].VisibilityTimeout
		var same, rest opened
		for n, i := range all.at {
			to := &rest
			if *entries[i].VisibilityTimeout == seconds {
				to = &same
			}
			to.receipts, to.at = append(to.receipts, all.receipts[n]), append(to.at, i)
		}
		s.hideFor(ctx, q, entries, &same, time.Duration(seconds)*time.Second, errs)
		all = rest
	}
	return errs
}

// checkHide refuses what would hide a message for more than twelve hours in all.
func checkHide(e *HandleInput, hidden time.Duration) error {
	if e.VisibilityTimeout == nil {
		return missing("VisibilityTimeout")
	}
	n := *e.VisibilityTimeout
	if n < 0 || n > maxVisibility {
		return badVisibility(n)
	}
	if hidden < maxVisibility*time.Second && n+int(hidden/time.Second) > maxVisibility {
		return badValue("VisibilityTimeout", n, "Total VisibilityTimeout for the message is beyond the limit ["+itoa(maxVisibility)+" seconds]")
	}
	return nil
}

func (s *Service) hideFor(ctx context.Context, q *queue, entries []HandleInput, o *opened, d time.Duration, errs []error) {
	extend := s.late.ExtendLate
	if q.fifo {
		extend = s.engine.Extend
	}
	answers, err := extend(ctx, o.receipts, d)
	if err != nil {
		err = s.failed(ctx, err)
	}
	o.each(errs, answers, err, func(i int, err error) error {
		switch forebay.CodeOf(err) {
		case forebay.CodeNotFound, forebay.CodeLeaseLost:
			return notThere(entries[i].ReceiptHandle)
		}
		return s.lateError(ctx, err)
	})
}
