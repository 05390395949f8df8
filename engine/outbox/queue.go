package outbox

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/forebayhq/forebay"
)

// queue is what is known of one remote queue. Engine.mu guards it.
type queue struct {
	name    string
	waiting int64 // messages of it in the local engine, at least while they are forwarded
	known   bool  // waiting was read from the local engine
	busy    bool  // a goroutine of Run forwards it

	failures int       // of the remote engine in a row
	openTill time.Time // the circuit is open until then
	probing  bool      // one call tries whether it may be closed
}

// queue gives the state of a queue, and reads at its first use what a former process
// has left in the local engine.
func (e *Engine) queue(ctx context.Context, name string) (*queue, error) {
	e.mu.Lock()
	q := e.queues[name]
	if q == nil {
		q = &queue{name: name}
		e.queues[name] = q
	}
	known := q.known
	e.mu.Unlock()
	if known {
		return q, nil
	}
	n, bytes, err := e.left(ctx, name)
	if err != nil {
		return nil, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if !q.known {
		q.known = true
		q.waiting += n
		e.bytes += bytes
	}
	if q.waiting > 0 {
		e.ring()
	}
	return q, nil
}

// left counts what the local engine has of a queue.
func (e *Engine) left(ctx context.Context, name string) (n, bytes int64, err error) {
	waiting, _ := e.localName(name, false)
	dead, _ := e.localName(name, true)
	all, err := e.local.Stats(ctx, waiting, dead)
	for _, s := range all {
		n += s.Waiting + s.Active + s.Delayed
		bytes += s.Bytes
	}
	return n, bytes, err
}

// ring wakes Run. It never blocks.
func (e *Engine) ring() {
	select {
	case e.wake <- struct{}{}:
	default:
	}
}

// mayTry tells whether the remote engine is to be asked for a Send now: nothing of the
// queue waits here, and the circuit is closed, or this call is the one that tries.
func (e *Engine) mayTry(q *queue, now time.Time) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case q.waiting > 0:
		return false
	case q.failures == 0:
		return true
	case q.probing || now.Before(q.openTill):
		return false
	}
	q.probing = true
	return true
}

// worked closes the circuit.
func (e *Engine) worked(q *queue) {
	e.mu.Lock()
	was := q.failures
	q.failures, q.probing = 0, false
	e.mu.Unlock()
	if was > 0 {
		e.log.Info("the remote engine takes messages again", "queue", q.name)
	}
}

// failed opens the circuit, for longer each time. Calls that had begun before it
// opened count as one failure.
func (e *Engine) failed(q *queue, began time.Time, err error) {
	const first, most = 500 * time.Millisecond, 30 * time.Second
	e.mu.Lock()
	now := time.Now()
	isFirst := q.failures == 0
	if isFirst || !began.Before(q.openTill) || q.probing {
		q.failures++
		d := min(most, first<<min(q.failures-1, 10))
		q.openTill = now.Add(d/2 + rand.N(d/2))
	}
	q.probing = false
	e.mu.Unlock()
	if isFirst {
		e.log.Warn("the remote engine is away; messages are kept here", "queue", q.name, "code", forebay.CodeOf(err), "error", err)
	}
}

// away tells whether an error means that the remote engine may take the same later.
func away(err error) bool {
	switch forebay.CodeOf(err) {
	case forebay.CodeUnavailable, forebay.CodeLimited, forebay.CodeUnauthorized, forebay.CodeFull:
		return true
	case forebay.CodeNotFound: // a queue that is not there may be made
		return true
	case forebay.CodeInternal: // an ended deadline of ours has no code
		return true
	}
	return false
}

// sizeOf is about what a message takes.
func sizeOf(m *forebay.Message) int64 {
	n := len(m.Payload) + len(m.ID) + len(m.Kind) + len(m.Group) + 100
	for name, value := range m.Headers {
		n += len(name) + len(value)
	}
	return int64(n)
}
