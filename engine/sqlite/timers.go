package sqlite

import "container/heap"

// timer calls fire in the engine's loop once its time has come.
type timer struct {
	at   int64
	fire func(now int64)
	i    int // place in the heap, plus one; 0: not set
}

// timers is a heap of timers, so that the loop sleeps until the earliest.
type timers []*timer

func (h timers) Len() int           { return len(h) }
func (h timers) Less(i, j int) bool { return h[i].at < h[j].at }
func (h timers) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].i, h[j].i = i+1, j+1
}

func (h *timers) Push(x any) {
	t := x.(*timer)
	*h = append(*h, t)
	t.i = len(*h)
}

func (h *timers) Pop() any {
	old := *h
	t := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	t.i = 0
	return t
}

// set moves a timer to a new time, or starts it.
func (h *timers) set(t *timer, at int64) {
	t.at = at
	if t.i > 0 {
		heap.Fix(h, t.i-1)
		return
	}
	heap.Push(h, t)
}

// sooner is set, unless the timer fires earlier already.
func (h *timers) sooner(t *timer, at int64) {
	if t.i == 0 || at < t.at {
		h.set(t, at)
	}
}

// shift moves a timer that runs by a span.
func (h *timers) shift(t *timer, by int64) {
	if t.i > 0 {
		h.set(t, t.at+by)
	}
}

func (h *timers) stop(t *timer) {
	if t.i > 0 {
		heap.Remove(h, t.i-1)
	}
}

// run fires all whose time has come.
func (h *timers) run(now int64) {
	for len(*h) > 0 && (*h)[0].at <= now {
		t := heap.Pop(h).(*timer)
		t.fire(now)
	}
}
