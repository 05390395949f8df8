package sqlite

import "container/heap"

// ages counts messages by the time at which they were sent, to tell the oldest of
// many without looking at each. Messages of one block share a time.
type ages struct {
	counts map[int64]int
	times  times // a heap of all that are counted, and some that no longer are
}

type times []int64

func (h times) Len() int           { return len(h) }
func (h times) Less(i, j int) bool { return h[i] < h[j] }
func (h times) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *times) Push(x any)        { *h = append(*h, x.(int64)) }
func (h *times) Pop() any {
	old := *h
	at := old[len(old)-1]
	*h = old[:len(old)-1]
	return at
}

func (a *ages) add(at int64) {
	if a.counts == nil {
		a.counts = map[int64]int{}
	}
	a.counts[at]++
	if a.counts[at] > 1 {
		return
	}
	if len(a.times) < 2*len(a.counts)+64 {
		heap.Push(&a.times, at)
		return
	}
	a.times = a.times[:0]
	for at := range a.counts {
		a.times = append(a.times, at)
	}
	heap.Init(&a.times)
}

func (a *ages) remove(at int64) {
	if a.counts[at]--; a.counts[at] <= 0 {
		delete(a.counts, at)
	}
}

// oldest gives the first time; 0: there is none.
func (a *ages) oldest() int64 {
	for len(a.times) > 0 {
		if a.counts[a.times[0]] > 0 {
			return a.times[0]
		}
		heap.Pop(&a.times)
	}
	return 0
}
