package sqs

import (
	"context"
	"sync"
	"time"
)

// Limits of one request to SQS.
const (
	maxBatch = 10
	maxBytes = 1 << 20
)

// item is one thing that a caller wants done.
type item interface {
	lane() string // items of one lane are done one after the other; empty: as they come
	bytes() int
	skip() bool // nobody wants it done any more
	finish()    // it was done, refused, or skipped
}

// tens gathers what many callers want of one queue into requests of ten. A request
// starts at once when none runs; another one beside it when ten wait, up to a bound.
// So an idle queue answers without delay, and a busy one fills its requests, without
// a timer. No request has two items of one lane: what fails of a group must not be
// overtaken.
type tens[T item] struct {
	call    func(ctx context.Context, batch []T)
	width   int
	base    context.Context
	timeout time.Duration
	done    sync.WaitGroup

	mu      sync.Mutex // guards those below
	lanes   map[string]*lane[T]
	ready   []*lane[T] // whose first item may go
	running int
}

// lane is a line of items; while its first one is on the way, the others wait.
type lane[T item] struct {
	name  string
	items []T
}

// add queues items, and starts what may start. Each gets its finish.
func (t *tens[T]) add(items ...T) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, it := range items {
		name := it.lane()
		if name == "" {
			t.ready = append(t.ready, &lane[T]{items: []T{it}})
			continue
		}
		l := t.lanes[name]
		if l == nil {
			l = &lane[T]{name: name}
			t.lanes[name] = l
			t.ready = append(t.ready, l)
		}
		l.items = append(l.items, it)
	}
	t.start()
}

// start runs requests as long as the rule of tens allows. The lock must be held.
func (t *tens[T]) start() {
	for len(t.ready) > 0 && t.running < t.width && (t.running == 0 || t.full()) {
		taken, batch := t.take()
		if len(taken) == 0 {
			continue // all of them were skipped
		}
		t.running++
		t.done.Go(func() { t.run(taken, batch) })
	}
}

// full tells whether what may go fills a request.
func (t *tens[T]) full() bool {
	if len(t.ready) >= maxBatch {
		return true
	}
	size := 0
	for _, l := range t.ready {
		size += l.items[0].bytes()
	}
	return size >= maxBytes
}

// take removes what one request has room for. The lock must be held.
func (t *tens[T]) take() (taken []*lane[T], batch []T) {
	size := 0
	for len(t.ready) > 0 && len(taken) < maxBatch {
		l := t.ready[0]
		if first := l.items[0]; first.skip() {
			first.finish()
			if t.next(l) {
				continue // the same lane, its next item
			}
		} else if size+first.bytes() > maxBytes && len(taken) > 0 {
			break
		} else {
			size += first.bytes()
			taken, batch = append(taken, l), append(batch, first)
		}
		t.ready[0] = nil
		t.ready = t.ready[1:]
	}
	return taken, batch
}

// next drops the first item of a lane, and tells whether there is another one.
func (t *tens[T]) next(l *lane[T]) bool {
	l.items = l.items[1:]
	if len(l.items) == 0 && l.name != "" {
		delete(t.lanes, l.name)
	}
	return len(l.items) > 0
}

func (t *tens[T]) run(taken []*lane[T], batch []T) {
	ctx, cancel := context.WithTimeout(t.base, t.timeout)
	t.call(ctx, batch)
	cancel()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.running--
	for i, l := range taken {
		batch[i].finish()
		if t.next(l) {
			t.ready = append(t.ready, l)
		}
	}
	t.start()
}

// wait returns when nothing runs; nobody may add any more.
func (t *tens[T]) wait() { t.done.Wait() }
