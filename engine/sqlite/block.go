package sqlite

import (
	"container/list"
	"encoding/binary"
	"hash/crc32"
	"math/bits"
)

// Bounds of a block, so that reading one is a bounded piece of work.
const (
	blockMessages = 1024
	blockBytes    = 1 << 20 // a block of one larger message goes over it
	blockVersion  = 1
)

// bitmap has a bit for each message of a block.
type bitmap [blockMessages / 64]uint64

func (m *bitmap) has(i int) bool { return m[i/64]&(1<<(i%64)) != 0 }
func (m *bitmap) set(i int)      { m[i/64] |= 1 << (i % 64) }
func (m *bitmap) unset(i int)    { m[i/64] &^= 1 << (i % 64) }

func (m *bitmap) add(o *bitmap) {
	for i := range m {
		m[i] |= o[i]
	}
}

func (m *bitmap) count() int {
	n := 0
	for _, w := range m {
		n += bits.OnesCount64(w)
	}
	return n
}

// bytes is the stored form, for a block of n messages.
func (m *bitmap) bytes(n int) []byte {
	b := make([]byte, 0, blockMessages/8)
	for _, w := range m {
		b = binary.LittleEndian.AppendUint64(b, w)
	}
	return b[:(n+7)/8]
}

func readBitmap(b []byte) (m bitmap) {
	for i, v := range b[:min(len(b), blockMessages/8)] {
		m[i/8] |= uint64(v) << (i % 8 * 8)
	}
	return m
}

// block is a stored block that is in use: in a lane's window, in the cache, or
// with messages that are leased.
type block struct {
	key    int64 // lane and seq, see blockKey
	n      int
	sentAt int64
	bytes  int64
	jobs   int
	data   []byte     // nil: to be read again when needed
	recs   [][2]int32 // where each body lies in data; 0,0: damaged

	settled bitmap
	skip    bitmap // not for the lane's cursor: it has a row in again and no group, or a loaded lease has it
	noted   bitmap // of a group, so the cursor is to come to it, and it has a row in again
	leased  int
	holders []*lease      // that have some of it, ended ones among them
	pins    int           // transactions that are about to settle some of it
	window  bool          // held by its lane
	recent  *list.Element // held by the cache
}

// body is the encoded message i; nil if it is damaged.
func (b *block) body(i int) []byte {
	r := b.recs[i]
	if r[1] == 0 {
		return nil
	}
	return b.data[r[0]:r[1]:r[1]]
}

// remaining is the share of the block's bytes that is not settled.
func (b *block) remaining(settled int) int64 { return b.bytes * int64(b.n-settled) / int64(b.n) }

// A block's key holds its lane above its seq, so that the blocks of a lane lie
// together in the table without an index of their own.
const (
	seqBits = 40
	seqMask = 1<<seqBits - 1
	levels  = 10
)

func blockKey(lane, seq int64) int64 { return lane<<seqBits | seq }
func laneOf(key int64) int64         { return key >> seqBits }
func seqOf(key int64) int64          { return key & seqMask }
func laneID(queue int64, level int) int64 {
	return queue*levels + int64(level)
}
func levelOf(key int64) int { return int(laneOf(key) % levels) }

// appendRecord adds the record of message i to a block's data.
func appendRecord(data []byte, i int, body []byte) []byte {
	at := len(data)
	data = binary.LittleEndian.AppendUint32(data, uint32(len(body)))
	data = binary.LittleEndian.AppendUint32(data, 0)
	data = binary.LittleEndian.AppendUint16(data, uint16(i))
	data = append(data, body...)
	binary.LittleEndian.PutUint32(data[at+4:], crc32.Checksum(data[at+8:], castagnoli()))
	return data
}

// recordAt reads the record that starts at data[at:].
func recordAt(data []byte, at, n int, crc *crc32.Table) (i, from, to int, ok bool) {
	if len(data)-at < recordHeader {
		return 0, 0, 0, false
	}
	size := int64(binary.LittleEndian.Uint32(data[at:]))
	if size < 2 || size > int64(len(data)-at-recordHeader) {
		return 0, 0, 0, false
	}
	from = at + recordHeader
	to = from + int(size)
	i = int(binary.LittleEndian.Uint16(data[at+8:]))
	if i >= n || crc32.Checksum(data[at+8:to], crc) != binary.LittleEndian.Uint32(data[at+4:]) {
		return 0, 0, 0, false
	}
	return i, from, to, true
}

// records finds the n records of a block's data and checks them. A damaged one
// loses itself only: the next is looked for byte by byte. Entries of damaged
// ones are zero; bad counts them.
func records(data []byte, n int) (recs [][2]int32, bad int) {
	recs = make([][2]int32, n)
	crc := castagnoli()
	found := 0
	for at := 1; at < len(data); {
		i, from, to, ok := recordAt(data, at, n, crc)
		if !ok {
			at++
			continue
		}
		if recs[i][1] == 0 {
			found++
		}
		recs[i] = [2]int32{int32(from), int32(to)}
		at = to
	}
	return recs, n - found
}
