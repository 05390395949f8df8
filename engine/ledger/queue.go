package ledger

import (
	"context"
	"crypto/rand"
	"errors"
	mrand "math/rand/v2"
	"sync"
	"time"

	"github.com/forebayhq/forebay"
)

// noticeKind tells a notice from what somebody else has sent.
const noticeKind = "forebay.notice"

// noticeText is what people see who look at the remote queue.
const noticeText = "A job of this queue can begin. Which one, Forebay's ledger says."

// Giving notice in numbers.
const (
	noticeBatch = 500              // of one Send
	sendTimeout = 10 * time.Second // of the remote engine
	firstWait   = 500 * time.Millisecond
	longestWait = 30 * time.Second
)

// queue is one that runs over the remote engine.
type queue struct {
	name    string
	wake    chan struct{} // has room for one: there may be something to give notice of
	filling chan struct{} // a token: who has it gives notice

	mu       sync.Mutex // guards those below
	out      int64      // notices that were sent and have not begun a job yet, nor gone
	sent     time.Time  // the last of them
	failures int        // of the remote engine in a row
	openTill time.Time  // it is not asked before
	first    time.Time  // when the first of what is delayed is due, as far as known; zero: not known
}

func newQueue(name string) *queue {
	return &queue{name: name, wake: make(chan struct{}, 1), filling: make(chan struct{}, 1)}
}

// ring wakes the giving of notice. It never blocks.
func (q *queue) ring() {
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// due rings for something that can begin at a time; zero: now.
func (q *queue) due(at time.Time) {
	if time.Until(at) > 0 {
		q.mu.Lock()
		if q.first.IsZero() || at.Before(q.first) {
			q.first = at
		}
		q.mu.Unlock()
	}
	q.ring()
}

// rest is how long nobody needs to look at the queue, if nobody rings.
func (q *queue) rest(next outlook, now time.Time) time.Duration {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.first.After(now) {
		q.first = time.Time{}
	}
	switch {
	case next.at.After(now):
		return max(next.at.Sub(now), firstWait/2)
	case !next.open:
		return lookSeldom
	case q.first.IsZero():
		return lookSoon
	}
	return min(lookSoon, q.first.Sub(now))
}

func (q *queue) away() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.failures > 0
}

// outlook says when a queue has to be looked at again, if nobody rings before.
type outlook struct {
	open bool      // it has something: waiting, delayed or active
	at   time.Time // not before that; zero: whenever
}

// fill gives notice of as many jobs as wait and are not on their way yet.
func (e *Engine) fill(ctx context.Context, q *queue) (outlook, error) {
	select {
	case q.filling <- struct{}{}:
	case <-ctx.Done():
		return outlook{}, ctx.Err()
	}
	defer func() { <-q.filling }()
	q.mu.Lock()
	closed := q.openTill
	q.mu.Unlock()
	if time.Now().Before(closed) {
		return outlook{true, closed}, nil
	}
	all, err := e.rows.Stats(ctx, q.name)
	if err != nil {
		return outlook{}, err
	}
	s := all[0]
	for n := q.missing(s.Waiting, e.window); n > 0; {
		sent, err := e.notify(ctx, q, min(n, noticeBatch))
		if n -= sent; err != nil {
			q.begun(n) // they were not sent, and do not count
			return outlook{true, e.failed(ctx, q, err)}, nil
		}
	}
	return outlook{open: s.Waiting+s.Delayed+s.Active > 0}, nil
}

// missing is how many notices are to be sent. They count as sent from then on, since
// the first may come before the last has gone.
func (q *queue) missing(waiting, window int64) int64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	n := max(0, min(waiting, window)-q.out)
	q.out += n
	return n
}

// notify sends n notices, and tells how many were taken.
func (e *Engine) notify(ctx context.Context, q *queue, n int64) (sent int64, err error) {
	msgs := make([]forebay.Message, n)
	for i := range msgs {
		msgs[i] = forebay.Message{ID: "notice-" + rand.Text(), Queue: q.name, Kind: noticeKind, Payload: []byte(noticeText)}
	}
	call, cancel := context.WithTimeout(ctx, sendTimeout)
	defer cancel()
	results, err := e.remote.Send(call, msgs)
	for _, r := range results {
		if err = errors.Join(err, r.Err); r.Err == nil {
			sent++
		}
	}
	q.mu.Lock()
	q.sent = time.Now()
	was := q.failures
	if err == nil {
		q.failures = 0
	}
	q.mu.Unlock()
	if err == nil && was > 0 {
		e.log.Info("notice of jobs is given again", "queue", q.name)
	}
	return sent, err
}

// failed notes that the remote engine is away, for longer each time.
func (e *Engine) failed(ctx context.Context, q *queue, err error) time.Time {
	q.mu.Lock()
	defer q.mu.Unlock()
	if ctx.Err() != nil { // it was not asked to the end
		return q.openTill
	}
	if q.failures == 0 {
		e.log.Warn("the remote engine is away; jobs are kept here and wait", "queue", q.name, "code", forebay.CodeOf(err), "error", err)
	}
	d := min(longestWait, firstWait<<min(q.failures, 10))
	q.failures++
	q.openTill = time.Now().Add(d/2 + mrand.N(d/2))
	return q.openTill
}

// begun counts notices that have begun a job, or gone.
func (q *queue) begun(n int64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.out = max(0, q.out-n)
}

// lost forgets the notices that were sent before a long poll began which has found none.
func (q *queue) lost(began time.Time) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.sent.Before(began) {
		q.out = 0
	}
}
