package sqlite

import (
	"encoding/binary"
	"math/bits"
)

// Nearly all ids that are sent are new, and to find that out each generation would have to
// be asked: a place in memory that no cache holds, for each of them. So large generations
// share a Bloom filter in which one line of the cache tells of all of them which may know a
// digest.
//
// A line has 64 bits for each of eight generations: byte r of it has bit r of all eight. Of the
// digests that a generation does not know, one in 70 seems to be there.
const (
	filterLines = 1 << 17 // six digests a line, of a generation that is full
	filterWords = 8       // of a line
	filterRows  = 4       // bytes of it that a digest is noted in
)

// dedupFilter is one for up to eight generations. Each has a bit of its own, in all bytes.
type dedupFilter struct{ words []uint64 }

func newDedupFilter() *dedupFilter {
	return &dedupFilter{words: make([]uint64, filterLines*filterWords)}
}

// place gives the line of a digest, and what chooses four of its bytes. Both are of other
// bits than those that choose a slot.
func (f *dedupFilter) place(d *digest) (line *[filterWords]uint64, rows uint64) {
	at := binary.LittleEndian.Uint64(d[:]) >> 32 & (filterLines - 1) * filterWords
	return (*[filterWords]uint64)(f.words[at:]), binary.LittleEndian.Uint64(d[8:]) >> 40
}

// add notes a digest for the generation that has the bit.
func (f *dedupFilter) add(d *digest, bit byte) {
	line, rows := f.place(d)
	for range filterRows {
		line[rows>>3%filterWords] |= uint64(bit) << (rows % 8 * 8)
		rows >>= 6
	}
}

// has tells whether a generation may know a digest.
func (f *dedupFilter) has(d *digest, bit byte) bool {
	line, rows := f.place(d)
	for range filterRows {
		if line[rows>>3%filterWords]>>(rows%8*8)&uint64(bit) == 0 {
			return false
		}
		rows >>= 6
	}
	return true
}

// clear frees the bit of a generation that has gone.
func (f *dedupFilter) clear(bit byte) {
	mask := uint64(bit) * 0x0101010101010101
	for i := range f.words {
		f.words[i] &^= mask
	}
}

// filtered gives a generation its bit, in the filter of the newest ones while it has one.
func (d *dedup) filtered(g *generation) {
	used := byte(0xff)
	for i := len(d.gens) - 1; i >= 0 && d.gens[i].filter != nil; i-- {
		switch f := d.gens[i].filter; {
		case g.filter == nil:
			g.filter, used = f, d.gens[i].bit
		case g.filter == f:
			used |= d.gens[i].bit
		}
	}
	if used == 0xff {
		g.filter, used = newDedupFilter(), 0
	}
	g.bit = 1 << bits.TrailingZeros8(^used)
}

// fetch reads what lookups of some digests are about to read, and adding them. Those wait for
// memory one after the other; these reads do not depend on each other, so that the processor does
// many at once.
func (d *dedup) fetch(ids []digest) {
	all, last := uint64(0), len(d.gens)-1
	for i, g := range d.gens {
		if i == last || g.filter == nil {
			for k := range ids {
				at, _ := slotOf(ids[k], len(g.slots))
				all |= g.slots[at]
			}
		}
		if i == last && g.filter != nil {
			for k := range ids {
				line, _ := g.filter.place(&ids[k])
				all |= line[0]
			}
		}
	}
	d.fetched = all
}

// fetchSent does that for messages that are about to be sent.
func (d *dedup) fetchSent(msgs []encoded) {
	ids := d.ids[:0]
	for i := range msgs {
		ids = append(ids, msgs[i].id)
	}
	d.fetch(ids)
	d.ids = ids
}
