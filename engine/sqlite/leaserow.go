package sqlite

import "encoding/binary"

// encodeLease says what a lease still holds: for each message its block, index and
// the number of this delivery.
func encodeLease(items []item) []byte {
	var b []byte
	last := int64(0)
	for i := range items {
		r := &items[i].ref
		if items[i].state != itemLeased {
			continue
		}
		b = binary.AppendVarint(b, r.key-last)
		b = binary.AppendUvarint(b, uint64(r.idx))
		b = binary.AppendUvarint(b, uint64(r.deliveries))
		last = r.key
	}
	return b
}

type leaseItem struct {
	key        int64
	idx        int
	deliveries int
	until      int64 // of a kept lease; 0: it is over
	started    int64 // not of the row's bytes
}

func decodeLease(b []byte) ([]leaseItem, bool) {
	r := reader{b: b}
	var items []leaseItem
	last := int64(0)
	for len(r.b) > 0 && !r.bad {
		last += r.varint()
		items = append(items, leaseItem{key: last, idx: int(r.uvarint()), deliveries: int(r.uvarint())})
	}
	return items, !r.bad
}

// encodeKept says all of a kept lease: who gave it, and of each item, in the order of
// their receipts, a byte that says whether it is held, and then its block, index, the
// number of the delivery and the end.
//
// A kept lease is sealed with the complement of its id, by which it is told from
// others: they hold no items that have ended, and nothing of who gave them.
func encodeKept(ls *lease) []byte {
	b := binary.AppendUvarint(nil, uint64(ls.start))
	var key, until int64
	for i := range ls.items {
		it := &ls.items[i]
		if it.state != itemLeased {
			b = append(b, 0)
			continue
		}
		b = binary.AppendVarint(append(b, 1), it.key-key)
		b = binary.AppendUvarint(b, uint64(it.idx))
		b = binary.AppendUvarint(b, uint64(it.deliveries))
		b = binary.AppendVarint(b, it.until-until)
		key, until = it.key, it.until
	}
	return b
}

func decodeKept(b []byte) (start int64, items []leaseItem, ok bool) {
	r := reader{b: b}
	start = int64(r.uvarint())
	var key, until int64
	for len(r.b) > 0 && !r.bad {
		if r.byte() == 0 {
			items = append(items, leaseItem{})
			continue
		}
		key += r.varint()
		it := leaseItem{key: key, idx: int(r.uvarint()), deliveries: int(r.uvarint())}
		until += r.varint()
		it.until = until
		items = append(items, it)
	}
	return start, items, !r.bad && len(items) > 0
}
