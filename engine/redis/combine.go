package redis

import (
	"context"
	"sync"
)

// combiner gathers the items of many calls into few scripts: at once when nothing is
// under way, and while one is, what comes meanwhile is the next. Two may be under way,
// so that the server works while the answers of the one before are read.
type combiner[T, A any] struct {
	e    *Engine
	most int // items of one script
	do   func(ctx context.Context, items []T) ([]A, error)

	mu      sync.Mutex // guards all below
	waiting []*combined[T, A]
	count   int // items of those
	flights int
	carried int // items of the flight that began last
}

const (
	flightsAtOnce = 2
	bytesAtOnce   = 8 << 20 // of one script; the first item may go over it
)

// combined is one call, or a part of one.
type combined[T, A any] struct {
	items   []T
	bytes   int
	answers []A
	err     error
	done    chan struct{}
}

// submit does items in order, and gives an answer for each. ready gives them part by
// part, none at the end: the next while those before are done. An error means that the
// items from some place on were not done, or that it is not known.
func (c *combiner[T, A]) submit(ctx context.Context, ready func() []T, size func(T) int) (answers []A, err error) {
	var before *combined[T, A]
	for items := ready(); len(items) > 0; {
		n, bytes := 0, 0
		for n < min(len(items), c.most) && (n == 0 || bytes+size(items[n]) <= bytesAtOnce) {
			bytes += size(items[n])
			n++
		}
		p := &combined[T, A]{items: items[:n], bytes: bytes, done: make(chan struct{})}
		if items = items[n:]; before != nil {
			if answers, err = before.wait(ctx, answers); err != nil {
				return nil, err
			}
		}
		c.add(p)
		if before = p; len(items) == 0 {
			items = ready()
		}
	}
	if before == nil {
		return nil, nil
	}
	return before.wait(ctx, answers)
}

// wait adds the answers to those before.
func (p *combined[T, A]) wait(ctx context.Context, answers []A) ([]A, error) {
	select {
	case <-p.done:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if p.err != nil {
		return nil, p.err
	}
	return append(answers, p.answers...), nil
}

// once gives items as submit takes them.
func once[T any](items []T) func() []T {
	return func() []T {
		defer func() { items = nil }()
		return items
	}
}

func (c *combiner[T, A]) add(p *combined[T, A]) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.waiting, c.count = append(c.waiting, p), c.count+len(p.items)
	// Another flight waits for as many as are under way: two small ones would cost the
	// server twice what a script costs that does nothing.
	if c.flights == 0 || c.flights < flightsAtOnce && c.count >= c.carried {
		c.flights++
		c.e.running.Go(c.fly) // a call is running, so the engine waits for this too
	}
}

// fly runs scripts until nothing waits.
func (c *combiner[T, A]) fly() {
	for load := c.next(); load != nil; load = c.next() {
		c.carry(load)
	}
}

// next gives what one script takes; nil: nothing waits, and this flight is over.
func (c *combiner[T, A]) next() (load []*combined[T, A]) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.flights > 1 && c.count < c.carried {
		c.flights-- // what waits goes when the other flight has landed, or is as much as that carries
		return nil
	}
	n, bytes := 0, 0
	for len(c.waiting) > 0 {
		p := c.waiting[0]
		if n > 0 && (n+len(p.items) > c.most || bytes+p.bytes > bytesAtOnce) {
			break
		}
		load, n, bytes = append(load, p), n+len(p.items), bytes+p.bytes
		c.waiting[0] = nil
		c.waiting = c.waiting[1:]
	}
	if c.count -= n; load == nil {
		c.flights--
	} else {
		c.carried = n
	}
	return load
}

func (c *combiner[T, A]) carry(load []*combined[T, A]) {
	items := load[0].items
	if len(load) > 1 {
		items = nil
		for _, p := range load {
			items = append(items, p.items...)
		}
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
