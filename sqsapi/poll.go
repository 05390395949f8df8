package sqsapi

import (
	"context"
	"errors"
	"time"

	"github.com/forebayhq/forebay/sqsapi/queue"
)

// actionTime ends an action that hangs. The longest wait of a receive is 20 s.
const actionTime = time.Minute

// patience gives the context of an action, and what to call when it is over. That of
// a receive, which may wait, also ends when the front closes.
func (c *call) patience() (context.Context, func(), error) {
	ctx, cancel := context.WithTimeout(c.context(), actionTime)
	if !c.action.waits {
		return ctx, cancel, nil
	}
	f := c.front
	if f.polls.Add(1) > int64(f.cfg.MaxPolls) {
		f.polls.Add(-1)
		cancel()
		return nil, nil, fault("RequestThrottled", "There are %d receives waiting already.", f.cfg.MaxPolls)
	}
	stop := context.AfterFunc(f.closing, cancel)
	return ctx, func() {
		stop()
		cancel()
		f.polls.Add(-1)
	}, nil
}

// impatient turns the end of a wait that Close has cut into an empty answer.
func (c *call) impatient(err error) (any, error) {
	closed := c.action.waits && c.front.closing.Err() != nil && c.r.Context().Err() == nil
	if closed && errors.Is(err, context.Canceled) {
		return &queue.ReceiveOutput{}, nil
	}
	return nil, err
}
