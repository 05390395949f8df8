package worker

import (
	"math/rand/v2"
	"slices"
	"time"
)

// batches gathers items and hands them out together.
type batches struct {
	concurrency int
	most, bytes int
	wait        time.Duration

	running int
	open    []*item         // gathered, in order
	size    int             // their bytes
	suspect int             // how many of them are suspect
	busy    map[string]bool // groups in work
}

func newBatches(c *Config) *batches {
	return &batches{
		concurrency: c.Concurrency, most: c.BatchMax, bytes: c.BatchBytes, wait: c.BatchWait,
		busy: make(map[string]bool),
	}
}

// room lets the next batch gather while others are handled, but no more, and
// brings nobody near a suspect.
func (b *batches) room() int {
	if b.size >= b.bytes || b.suspect > 0 {
		return 0
	}
	return b.most - len(b.open)
}

func (b *batches) take(items []*item) {
	b.open = append(b.open, items...)
	b.weigh(items, 1)
}

func (b *batches) next(now time.Time, settling bool) ([]*item, time.Time) {
	if b.running >= b.concurrency || len(b.open) == 0 {
		return nil, time.Time{}
	}
	if b.suspect > 0 && (b.running > 0 || settling) {
		return nil, time.Time{} // nothing done may be lost with the next one
	}
	full := len(b.open) >= b.most || b.size >= b.bytes || b.suspect > 0
	if due := b.open[0].at.Add(b.wait); !full && now.Before(due) {
		return nil, due
	}
	batch := b.cut()
	if len(batch) == 0 {
		return nil, time.Time{}
	}
	b.running++
	return batch, time.Time{}
}

// cut takes a batch from what is open: in order, without groups that another
// batch has in work, within the bounds.
func (b *batches) cut() []*item {
	if b.suspect > 0 {
		return b.cutOne()
	}
	var batch, rest []*item
	size := 0
	for i, it := range b.open {
		n := len(it.d.Payload)
		if len(batch) >= b.most || len(batch) > 0 && size+n > b.bytes {
			rest = append(rest, b.open[i:]...)
			break
		}
		if b.busy[it.d.Group] {
			rest = append(rest, it)
			continue
		}
		batch = append(batch, it)
		size += n
	}
	return b.cutOff(batch, rest)
}

// cutOne takes one item, by chance, because a suspect is at hand. A message that
// kills its process would otherwise, batch by batch, take its neighbours with it
// until all of them are poison. Alone and in a random order, half of those get
// away each time. The order within groups is kept.
func (b *batches) cutOne() []*item {
	var first []int // of each group; without a group: all
	seen := make(map[string]bool)
	for i, it := range b.open {
		group := it.d.Group
		if group == "" || !seen[group] && !b.busy[group] {
			first = append(first, i)
		}
		seen[group] = true
	}
	if len(first) == 0 {
		return nil
	}
	i := first[rand.IntN(len(first))]
	one := b.open[i]
	return b.cutOff([]*item{one}, slices.Delete(slices.Clone(b.open), i, i+1))
}

func (b *batches) cutOff(batch, rest []*item) []*item {
	b.open = rest
	b.weigh(batch, -1)
	for _, it := range batch { // also where one batch runs at a time: that may change meanwhile
		if it.d.Group != "" {
			b.busy[it.d.Group] = true
		}
	}
	return batch
}

// suspicious is how many hand-outs without a verdict make an item suspect of
// taking its process down.
const suspicious = 5

func (b *batches) weigh(items []*item, sign int) {
	for _, it := range items {
		b.size += sign * len(it.d.Payload)
		if it.d.Deliveries-it.d.Attempt >= suspicious {
			b.suspect += sign
		}
	}
}

func (b *batches) done(items []*item, _ time.Duration) (release []*item) {
	b.running--
	again := make(map[string]bool)
	for _, it := range items {
		delete(b.busy, it.d.Group)
		if it.again && it.d.Group != "" {
			again[it.d.Group] = true
		}
	}
	if len(again) == 0 || len(b.open) == 0 {
		return nil
	}
	var rest []*item
	for _, it := range b.open {
		if again[it.d.Group] {
			release = append(release, it)
		} else {
			rest = append(rest, it)
		}
	}
	b.open = rest
	b.weigh(release, -1)
	return release
}

// left: the next batch of a group does not wait for the verdicts of the one before. Who
// takes batches has to bear one again, and to store between two would halve the pace.
func (b *batches) left(departure) []*item { return nil }

func (b *batches) resize(n int) { b.concurrency = n }

func (b *batches) drop() []*item {
	all := b.open
	b.open, b.size, b.suspect = nil, 0, 0
	return all
}
