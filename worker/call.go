package worker

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/forebayhq/forebay"
)

// handle calls the handler for a work and returns one error per item, and what a
// job handler gave.
func (w *Worker) handle(k *work) (errs []error, data []byte) {
	ds := make([]forebay.Delivery, len(k.items))
	for i, it := range k.items {
		ds[i] = it.d
	}
	switch {
	case w.cfg.Handler != nil:
		errs = []error{guard(func() error { return w.cfg.Handler.Handle(k.ctx, ds[0]) })}
	case w.cfg.Jobs != nil:
		j := &Job{Delivery: ds[0], tell: k.items[0].voice.tell, follow: &k.follow, effect: w.b.Effect}
		errs = []error{guard(func() (err error) {
			data, err = w.cfg.Jobs.HandleJob(k.ctx, j)
			return err
		})}
	default:
		errs = w.handleBatch(k, ds)
	}
	for i, err := range errs {
		errs[i] = interrupted(k.ctx, err)
	}
	return errs, data
}

func (w *Worker) handleBatch(k *work, ds []forebay.Delivery) []error {
	errs, err := w.callBatch(k.ctx, ds)
	if err == nil {
		return errs
	}
	if len(ds) == 1 {
		return []error{err}
	}
	return w.oneByOne(k, ds)
}

// oneByOne finds whom a panic, or a wrong answer, belongs to. Here the handler
// cannot fail what stands behind a failed message of its group, so that is
// released unseen.
func (w *Worker) oneByOne(k *work, ds []forebay.Delivery) []error {
	errs := make([]error, len(ds))
	failed := make(map[string]bool)
	for i := range ds {
		group := ds[i].Group
		switch {
		case k.ctx.Err() != nil:
			errs[i] = context.Cause(k.ctx)
		case group != "" && failed[group]:
			errs[i] = forebay.Snooze(0)
		default:
			one, err := w.callBatch(k.ctx, ds[i:i+1:i+1])
			if err == nil {
				err = one[0]
			}
			errs[i] = err
			failed[group] = failed[group] || err != nil && !forebay.IsPermanent(err)
		}
	}
	return errs
}

// callBatch answers with as many errors as deliveries, or with one of the call.
func (w *Worker) callBatch(ctx context.Context, ds []forebay.Delivery) (errs []error, err error) {
	err = guard(func() error {
		errs = w.cfg.Batch.HandleBatch(ctx, ds)
		if errs != nil && len(errs) != len(ds) {
			return fmt.Errorf("the batch handler gave %d answers for %d messages", len(errs), len(ds))
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if errs == nil {
		errs = make([]error, len(ds))
	}
	return errs, nil
}

const maxStack = 4000 // bytes kept of a panic's stack

// guard turns a panic into an error.
func guard(call func() error) (err error) {
	defer func() {
		r := recover()
		if r == nil {
			return
		}
		stack := debug.Stack()
		err = forebay.Because(forebay.Cause{
			Code:   "panic",
			Detail: map[string]string{"stack": string(stack[:min(len(stack), maxStack)])},
		}, fmt.Errorf("panic: %v", r))
	}()
	return call()
}

// interrupted marks the error of a handler whose context was ended by us. The
// handler may call it by another name ("query cancelled"), but it did not fail.
// What it says expressly stands, unless its job was ended.
func interrupted(ctx context.Context, err error) error {
	cause := context.Cause(ctx)
	switch {
	case ends(cause) && (err == nil || errors.Is(err, cause) || errors.Is(err, context.Canceled)):
		return cause
	case ends(cause):
		return fmt.Errorf("%w; its handler said: %v", cause, err) // of its kind nothing remains
	case err == nil || cause == nil || errors.Is(err, cause):
		return err
	}
	_, snoozed := forebay.SnoozeDelay(err)
	_, retry := forebay.RetryDelay(err)
	if snoozed || retry || forebay.IsPermanent(err) {
		return err
	}
	return fmt.Errorf("%w: %w", cause, err)
}
