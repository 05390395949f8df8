package route

import (
	"context"
	"errors"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
)

// Abilities that go by the queue, or ask all engines. Those that are not here are
// found in the main engine, through Unwrap.

var (
	_ engine.Checker = (*Engine)(nil)
	_ engine.Limiter = (*Engine)(nil)
	_ engine.Delayer = (*Engine)(nil)
	_ engine.Peeker  = (*Engine)(nil)
	_ engine.Purger  = (*Engine)(nil)
)

// of finds an ability of the engine that keeps a queue.
func of[T any](e *Engine, queue, what string) (T, error) {
	able, ok := engine.As[T](e.all[e.queues[queue]])
	if !ok {
		return able, forebay.Errorf(forebay.CodeUnsupported, "", "the engine of queue %q cannot %s", queue, what)
	}
	return able, nil
}

// Check asks every engine that can tell.
func (e *Engine) Check(ctx context.Context) error {
	var errs []error
	for _, one := range e.all {
		if able, ok := engine.As[engine.Checker](one); ok {
			errs = append(errs, able.Check(ctx))
		}
	}
	return errors.Join(errs...)
}

// SetLimits asks the engine that keeps the queue.
func (e *Engine) SetLimits(ctx context.Context, queue string, l engine.QueueLimits) error {
	able, err := of[engine.Limiter](e, queue, "limit or pause it")
	if err != nil {
		return err
	}
	return able.SetLimits(ctx, queue, l)
}

// QueueLimits asks the engine that keeps the queue.
func (e *Engine) QueueLimits(ctx context.Context, queue string) (engine.QueueLimits, error) {
	able, err := of[engine.Limiter](e, queue, "limit or pause it")
	if err != nil {
		return engine.QueueLimits{}, err
	}
	return able.QueueLimits(ctx, queue)
}

// SetDelay asks the engine that keeps the queue.
func (e *Engine) SetDelay(ctx context.Context, queue string, d time.Duration) error {
	able, err := of[engine.Delayer](e, queue, "delay what it has")
	if err != nil {
		return err
	}
	return able.SetDelay(ctx, queue, d)
}

// Delay asks the engine that keeps the queue.
func (e *Engine) Delay(ctx context.Context, queue string) (time.Duration, error) {
	able, err := of[engine.Delayer](e, queue, "delay what it has")
	if err != nil {
		return 0, err
	}
	return able.Delay(ctx, queue)
}

// Purge asks the engine that keeps the queue.
func (e *Engine) Purge(ctx context.Context, queue string) (int64, error) {
	able, err := of[engine.Purger](e, queue, "purge it")
	if err != nil {
		return 0, err
	}
	return able.Purge(ctx, queue)
}

// Peek asks the engine that keeps the queue.
func (e *Engine) Peek(ctx context.Context, q engine.PeekQuery) (engine.PeekPage, error) {
	able, err := of[engine.Peeker](e, q.Queue, "show its messages without handing them out")
	if err != nil {
		return engine.PeekPage{}, err
	}
	return able.Peek(ctx, q)
}
