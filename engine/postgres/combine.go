package postgres

import (
	"context"
	"slices"
	"sync"
)

// combiner gathers the items of many calls into few transactions: at once when nothing is
// under way, and while one is, what comes meanwhile is the next.
type combiner[T, A any] struct {
	e    *Engine
	most int // items of one transaction
	do   func(ctx context.Context, items []T) ([]A, error)

	mu      sync.Mutex // guards all below
	waiting []*part[T, A]
	flies   bool
}

const bytesAtOnce = 8 << 20 // of one transaction; the first item may go over it

// part is one call, or a part of one.
type part[T, A any] struct {
	items   []T
	bytes   int
	answers []A
	err     error
	done    chan struct{}
}

// submit does items in order, and gives an answer for each. All of a call are one part,
// unless they are too large for that: an error then means that the items from some place on
// were not done, or that it is not known.
func (c *combiner[T, A]) submit(ctx context.Context, items []T, size func(T) int) (answers []A, err error) {
	for len(items) > 0 {
		p := &part[T, A]{done: make(chan struct{})}
		n := 0
		for n < len(items) && (n == 0 || p.bytes+size(items[n]) <= 4*bytesAtOnce) {
			p.bytes += size(items[n])
			n++
		}
		p.items, items = items[:n], items[n:]
		c.add(p)
		select {
		case <-p.done:
		case <-ctx.Done():
			if c.drop(p) {
				return nil, ctx.Err()
			}
			<-p.done // its items are the caller's, so it is waited for: at most the time of one call
		}
		if p.err != nil {
			return nil, p.err
		}
		answers = append(answers, p.answers...)
	}
	return answers, nil
}

func (c *combiner[T, A]) add(p *part[T, A]) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.waiting = append(c.waiting, p)
	if !c.flies {
		c.flies = true
		c.e.running.Go(c.fly) // a call is running, so the engine waits for this too
	}
}

// drop takes a part away that no transaction has taken.
func (c *combiner[T, A]) drop(p *part[T, A]) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := len(c.waiting)
	c.waiting = slices.DeleteFunc(c.waiting, func(o *part[T, A]) bool { return o == p })
	return len(c.waiting) < n
}

// fly runs transactions until nothing waits.
func (c *combiner[T, A]) fly() {
	for load := c.next(); load != nil; load = c.next() {
		var items []T
		for _, p := range load {
			items = append(items, p.items...)
		}
		// The time of one call bounds it, whoever has gone away meanwhile.
		answers, err := c.do(context.Background(), items)
		for _, p := range load {
			if p.err = err; err == nil {
				p.answers, answers = answers[:len(p.items)], answers[len(p.items):]
			}
			close(p.done)
		}
	}
}

// next gives what one transaction takes; nil: nothing waits.
func (c *combiner[T, A]) next() (load []*part[T, A]) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n, bytes := 0, 0
	for len(c.waiting) > 0 {
		p := c.waiting[0]
		if len(load) > 0 && (n+len(p.items) > c.most || bytes+p.bytes > bytesAtOnce) {
			break
		}
		load, n, bytes = append(load, p), n+len(p.items), bytes+p.bytes
		c.waiting[0] = nil
		c.waiting = c.waiting[1:]
	}
	c.flies = load != nil
	return load
}
