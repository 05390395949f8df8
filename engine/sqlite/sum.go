package sqlite

import (
	"encoding/binary"
	"hash/crc32"

	"zombiezen.com/go/sqlite"

	"github.com/forebayhq/forebay"
)

// What decides whether and when a message comes carries a checksum, as records do:
// a changed bit would be valid to SQLite. A start that meets a wrong one recovers
// the file without that row; so the message comes again, or at once, and is not lost.

// seal adds the checksum of a row's key and value to the value.
func seal(key int64, value []byte) []byte {
	return binary.LittleEndian.AppendUint32(value, sealSum(key, value))
}

// unseal takes it off again, and tells whether it is right.
func unseal(key int64, sealed []byte) (value []byte, ok bool) {
	at := len(sealed) - 4
	if at < 0 {
		return nil, false
	}
	value = sealed[:at:at]
	return value, binary.LittleEndian.Uint32(sealed[at:]) == sealSum(key, value)
}

func sealSum(key int64, value []byte) uint32 {
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], uint64(key))
	return crc32.Update(crc32.Checksum(b[:], castagnoli()), castagnoli(), value)
}

// marksOf reads a value of the table part.
func marksOf(key int64, sealed []byte) (bitmap, error) {
	value, ok := unseal(key, sealed)
	if !ok {
		return bitmap{}, errSum("what is settled of block", key)
	}
	return readBitmap(value), nil
}

func errSum(what string, key int64) error {
	return forebay.Errorf(forebay.CodeDamaged, "sqlite: store", "%s %d has a wrong checksum", what, key)
}

// againColumns are the numbers of a row of again, in the order of its checksum. Its
// failures have none: they are shown, and decide nothing.
const againColumns = "key, idx, queue, due, ord, sent_at, attempts, deliveries, grp, lim"

func againSum(numbers [10]int64) int64 {
	var b [80]byte
	for i, n := range numbers {
		binary.LittleEndian.PutUint64(b[i*8:], uint64(n))
	}
	return int64(crc32.Checksum(b[:], castagnoli()))
}

// checkAgain compares all rows of again with their checksums, and with what its
// indexes have, by which they are found when they are due.
func (l *loop) checkAgain(*tx) error {
	var rows, indexed [2]struct{ n, sum int64 } // without a group, and with one
	err := l.db.each("SELECT "+againColumns+", sum FROM again NOT INDEXED", func(s *sqlite.Stmt) error {
		var n [10]int64
		for i := range n {
			n[i] = s.ColumnInt64(i)
		}
		if s.ColumnInt64(10) != againSum(n) {
			return errSum("a place in again of block", n[0])
		}
		of := &rows[min(uint64(n[8]), 1)]
		of.n++
		of.sum += againSum([10]int64{n[0], n[1], n[2], n[3]})
		return nil
	})
	if err != nil {
		return err
	}
	for i, index := range []string{"again_due WHERE grp = 0", "again_grp WHERE grp <> 0"} {
		err := l.db.each("SELECT key, idx, queue, due FROM again INDEXED BY "+index, func(s *sqlite.Stmt) error {
			indexed[i].n++
			indexed[i].sum += againSum([10]int64{s.ColumnInt64(0), s.ColumnInt64(1), s.ColumnInt64(2), s.ColumnInt64(3)})
			return nil
		})
		if err != nil {
			return err
		}
	}
	if rows != indexed {
		return forebay.Errorf(forebay.CodeDamaged, "sqlite: store", "an index of again differs from its table")
	}
	return nil
}
