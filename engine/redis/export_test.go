package redis

import "context"

// Nudge makes an engine look at its clock again, which a test has moved.
func (e *Engine) Nudge() {
	e.keeper.sooner(0)
	e.waits.wakeAll()
}

// Sweep does what the keeper does from time to time for queues in use.
func (e *Engine) Sweep(ctx context.Context, queue string) error {
	_, err := e.run(ctx, "sweep", sweepMost, 1, queue)
	return err
}
