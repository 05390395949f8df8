package jpeg_test

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
)

// fixture is a picture of random coefficients, as a file and as they are.
type fixture struct {
	file   []byte
	blocks [3][][64]int // by component, in the order of the scan, line by line, with their quantities
}

type shape struct{ w, h, across, down, restart int }

// maker writes a scan.
type maker struct {
	bytes.Buffer
	acc, n int
}

func (m *maker) put(bits, n int) {
	for i := n - 1; i >= 0; i-- {
		m.acc, m.n = m.acc<<1|bits>>i&1, m.n+1
		if m.n == 8 {
			m.WriteByte(byte(m.acc))
			if m.acc == 0xff {
				m.WriteByte(0)
			}
			m.acc, m.n = 0, 0
		}
	}
}

func (m *maker) align() {
	for m.n > 0 {
		m.put(1, 1)
	}
}

func (m *maker) segment(mark byte, body ...byte) {
	m.Write([]byte{0xff, mark})
	m.Write(binary.BigEndian.AppendUint16(nil, uint16(len(body)+2)))
	m.Write(body)
}

// table is a Huffman table of which the first symbols have short codes, and the last
// ones codes of 13 bits.
type table struct {
	symbols []byte
	counts  [16]byte
	code    map[byte][2]int
}

func newTable(symbols ...byte) *table {
	t := &table{symbols: symbols, code: map[byte][2]int{}}
	code, length := 0, 1
	for i, s := range symbols {
		want := 5
		if i >= 8 {
			want = 9
		}
		if i >= 48 {
			want = 13
		}
		for ; length < want; length++ {
			code <<= 1
		}
		t.code[s] = [2]int{code, length}
		t.counts[length-1]++
		code++
	}
	return t
}

func (m *maker) symbol(t *table, s int) { m.put(t.code[byte(s)][0], t.code[byte(s)][1]) }

func (m *maker) number(v, size int) {
	if v < 0 {
		v += 1<<size - 1
	}
	m.put(v, size)
}

func size(v int) (n int) {
	for v = max(v, -v); v > 0; v >>= 1 {
		n++
	}
	return n
}

func tables() (dc, ac *table) {
	symbols := []byte{0x00, 0xf0}
	for i := range 160 {
		symbols = append(symbols, byte(i%16<<4|i/16+1))
	}
	return newTable(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11), newTable(symbols...)
}

func newFixture(r *rand.Rand, s shape) *fixture {
	f, m := &fixture{}, &maker{}
	m.Write([]byte{0xff, 0xd8})
	m.segment(0xe0, []byte("JFIF\x00\x01\x01\x00\x00\x01\x00\x01\x00\x00")...)
	steps := make([]byte, 65)
	for i := range 64 {
		steps[1+i] = byte(2 + r.IntN(4))
	}
	m.segment(0xdb, steps...)
	m.segment(0xc0, 8, byte(s.h>>8), byte(s.h), byte(s.w>>8), byte(s.w), 3, 1, byte(s.across<<4|s.down), 0, 2, 0x11, 0, 3, 0x11, 0)
	dc, ac := tables()
	m.segment(0xc4, append(append([]byte{0}, dc.counts[:]...), dc.symbols...)...)
	m.segment(0xc4, append(append([]byte{0x10}, ac.counts[:]...), ac.symbols...)...)
	if s.restart > 0 {
		m.segment(0xdd, byte(s.restart>>8), byte(s.restart))
	}
	m.segment(0xda, 3, 1, 0, 2, 0, 3, 0, 0, 63, 0)
	var last [3]int
	mcus := (s.w + 8*s.across - 1) / (8 * s.across) * ((s.h + 8*s.down - 1) / (8 * s.down))
	for i := range mcus {
		if s.restart > 0 && i > 0 && i%s.restart == 0 {
			m.align()
			m.Write([]byte{0xff, byte(0xd0 + (i/s.restart-1)%8)})
			last = [3]int{}
		}
		for c, n := range []int{s.across * s.down, 1, 1} {
			for range n {
				f.blocks[c] = append(f.blocks[c], m.block(r, dc, ac, &last[c], steps[1:]))
			}
		}
	}
	m.align()
	m.Write([]byte{0xff, 0xd9})
	f.file = m.Bytes()
	return f
}

var order = [64]int{0, 1, 8, 16, 9, 2, 3, 10, 17, 24, 32, 25, 18, 11, 4, 5, 12, 19, 26, 33, 40, 48, 41, 34, 27, 20, 13, 6, 7, 14, 21, 28,
	35, 42, 49, 56, 57, 50, 43, 36, 29, 22, 15, 23, 30, 37, 44, 51, 58, 59, 52, 45, 38, 31, 39, 46, 53, 60, 61, 54, 47, 55, 62, 63}

// block is flat, or has a few frequencies, or all.
func (m *maker) block(r *rand.Rand, dc, ac *table, last *int, steps []byte) (b [64]int) {
	mean := r.IntN(300) - 150
	n := size(mean - *last)
	m.symbol(dc, n)
	m.number(mean-*last, n)
	*last, b[0] = mean, mean*int(steps[0])
	share := []int{0, 3, 12, 100}[r.IntN(4)]
	run := 0
	for k := 1; k < 64; k++ {
		v := r.IntN(9) - 4
		if r.IntN(100) >= share || v == 0 {
			run++
			continue
		}
		for ; run > 15; run -= 16 {
			m.symbol(ac, 0xf0)
		}
		m.symbol(ac, run<<4|size(v))
		m.number(v, size(v))
		b[order[k]], run = v*int(steps[k]), 0
	}
	if run > 0 {
		m.symbol(ac, 0)
	}
	return b
}
