package sqlite

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"testing"
)

// What is known is found in every generation, and what has gone is passed over, nearly
// always, also where its bit belongs to another generation now.
func TestDedupFilter(t *testing.T) {
	t.Parallel()
	for _, alive := range []int{6, 9} { // generations; a filter is for eight
		t.Run(fmt.Sprint(alive), func(t *testing.T) {
			t.Parallel()
			dedupFilterCase(t, alive, rand.Uint64())
		})
	}
}

func dedupFilterCase(t *testing.T, alive int, seed uint64) {
	const many, each = 20, 200
	random := rand.New(rand.NewPCG(seed, 0))
	var d dedup
	var gone []digest
	sent := map[int64][]digest{}
	for seq := int64(1); seq <= many; seq++ {
		for range each {
			var id digest
			binary.LittleEndian.PutUint64(id[:], random.Uint64())
			binary.LittleEndian.PutUint64(id[8:], random.Uint64())
			sent[seq] = append(sent[seq], id)
		}
		d.fetch(sent[seq])
		d.add(seq, sent[seq], 0)
		newest := d.gens[len(d.gens)-1]
		newest.n = len(newest.slots) // it is full: the next is begun
		if len(d.gens) > alive {
			old := seq - int64(alive)
			gone = append(gone, sent[old]...)
			delete(sent, old)
			d.drop()
		}
	}
	filters := map[*dedupFilter]byte{}
	for _, g := range d.gens {
		if g.bit == 0 || filters[g.filter]&g.bit != 0 {
			t.Fatalf("a generation has the bits %08b, others of its filter %08b", g.bit, filters[g.filter])
		}
		filters[g.filter] |= g.bit
	}
	if len(filters) > alive/8+2 {
		t.Errorf("%d generations have %d filters", alive, len(filters))
	}
	for seq, ids := range sent {
		for _, id := range ids {
			found := false
			for _, g := range d.gens {
				g.find(id, func(in int64) { found = found || in == seq })
			}
			if !found {
				t.Fatalf("a digest of generation %d is not known (seed %d)", seq, seed)
			}
		}
	}
	seem := 0
	for _, id := range gone {
		for _, g := range d.gens {
			if g.filter.has(&id, g.bit) {
				seem++
			}
		}
	}
	if seem > len(gone)*alive/100 {
		t.Errorf("%d digests have gone, and seem to be in one of %d generations %d times (seed %d)", len(gone), alive, seem, seed)
	}
}
