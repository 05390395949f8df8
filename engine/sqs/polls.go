package sqs

import (
	"crypto/rand"
	"errors"
	"sync"
	"time"
)

// polls is how one queue is polled.
type polls struct {
	most int

	mu       sync.Mutex // guards those below
	width    int        // polls side by side: 1 when idle
	attempts []attempt  // of a FIFO queue, whose answers were lost
	failures int        // in a row
}

// attempt names a poll of a FIFO queue, so that it can be asked for the same again:
// what its lost answer had is locked, with its group, until the lease ends.
type attempt struct {
	id    string
	since time.Time
}

// attemptLife is less than the five minutes for which SQS knows an attempt.
const attemptLife = 4 * time.Minute

func (p *polls) now() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return max(p.width, 1)
}

// adapt learns from n polls side by side.
func (p *polls) adapt(n, full, empty int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case empty > 0:
		p.width = max(1, min(p.width, n)/2)
	case full == n:
		p.width = min(p.most, max(2, 2*n))
	}
}

// attempt gives the id for the next poll: that of a lost one, or a new one.
func (p *polls) attempt(now time.Time) attempt {
	p.mu.Lock()
	defer p.mu.Unlock()
	for len(p.attempts) > 0 {
		a := p.attempts[0]
		p.attempts = p.attempts[1:]
		if now.Sub(a.since) < attemptLife {
			return a
		}
	}
	return attempt{rand.Text(), now}
}

// lost keeps the id of a poll that was not answered.
func (p *polls) lost(a attempt) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.attempts) < 4*p.most {
		p.attempts = append(p.attempts, a)
	}
}

// worked and failed count. They tell when the state changes.
func (p *polls) worked() (again bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	again = p.failures > 0
	p.failures = 0
	return again
}

func (p *polls) failed(err error) (wait time.Duration, isFirst bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.failures++
	p.width = 1
	if errors.Is(err, errDenied) {
		return backoff(p.failures, 2*time.Second, time.Minute), p.failures == 1
	}
	return backoff(p.failures, 200*time.Millisecond, 30*time.Second), p.failures == 1
}
