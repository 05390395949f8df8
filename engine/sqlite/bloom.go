package sqlite

import "encoding/binary"

// A bloom filter says of a term that it is not there, or that it may be: with 12
// bits a term, one in 300 that are not there seems to be.
const (
	bloomBits   = 12
	bloomProbes = 8
)

// makeBloom makes the filter of some terms.
func makeBloom(set map[uint64]struct{}) []byte {
	b := make([]byte, 8*max((len(set)*bloomBits+63)/64, 1))
	for h := range set {
		addBloom(b, h)
	}
	return b
}

func addBloom(b []byte, h uint64) {
	step := h>>32 | 1
	for range bloomProbes {
		bit := h % uint64(8*len(b))
		b[bit/8] |= 1 << (bit % 8)
		h += step * 0x9e3779b97f4a7c15
	}
}

func inBloom(b []byte, h uint64) bool {
	step := h>>32 | 1
	for range bloomProbes {
		bit := h % uint64(8*len(b))
		if b[bit/8]&(1<<(bit%8)) == 0 {
			return false
		}
		h += step * 0x9e3779b97f4a7c15
	}
	return true
}

// appendSpan and readSpan are how the places of a lane are stored.
func appendSpan(b []byte, s span) []byte {
	b = binary.AppendVarint(b, s.lane)
	b = binary.AppendVarint(b, s.first)
	return binary.AppendVarint(b, s.last-s.first)
}

func (r *reader) span() span {
	s := span{lane: r.varint(), first: r.varint()}
	s.last = s.first + r.varint()
	return s
}

// span is the blocks of a lane from one seq to another.
type span struct{ lane, first, last int64 }
