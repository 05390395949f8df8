package sqlite

import "slices"

// A block knows who holds some of it, so that the lease of a message is found without
// a look at all that is leased.

// heldBy notes that a lease has some of the block. Ended ones leave when they are many.
func (b *block) heldBy(ls *lease) {
	n := len(b.holders)
	if n > 0 && b.holders[n-1] == ls {
		return
	}
	if n >= 2*b.leased+8 {
		b.holders = slices.DeleteFunc(b.holders, func(ls *lease) bool { return ls.open == 0 })
	}
	b.holders = append(b.holders, ls)
}

// items gives what is leased of a block, what is about to end included.
func (b *block) items(yield func(*lease, *item) bool) {
	if b == nil || b.leased == 0 {
		return
	}
	for _, ls := range b.holders {
		if ls.open == 0 {
			continue
		}
		for i := range ls.items {
			if it := &ls.items[i]; it.key == b.key && it.state != itemEnded && !yield(ls, it) {
				return
			}
		}
	}
}

// holder finds a message among what is leased; nil: nobody holds it.
func (l *loop) holder(key int64, idx int) (*lease, *item) {
	for ls, it := range l.blocks.byKey[key].items {
		if it.idx == idx {
			return ls, it
		}
	}
	return nil, nil
}

// leasedOf gives the messages of a block that are leased.
func (l *loop) leasedOf(key int64) (m bitmap) {
	for _, it := range l.blocks.byKey[key].items {
		m.set(it.idx)
	}
	return m
}
