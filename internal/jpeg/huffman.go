package jpeg

import "encoding/binary"

const lookBits = 10 // codes up to this long are looked up at once

// huffman is a table of codes.
type huffman struct {
	defined bool
	look    [1 << lookBits]uint16 // the value and, in the lower byte, the length of its code; 0: longer, or none
	values  [256]byte
	end     [17]int32 // of codes that long: the first number behind them
	offset  [17]int32 // what makes a place among the values of such a code
}

// define reads a table: how many codes there are of each length, then values.
func (t *huffman) define(counts, values []byte) (n int, ok bool) {
	*t = huffman{}
	var code int32
	for i, count := range counts {
		length := i + 1
		t.offset[length] = int32(n) - code
		for range count {
			if n == len(t.values) || n == len(values) || code >= 1<<length {
				return 0, false
			}
			t.values[n] = values[n]
			if spare := lookBits - length; spare >= 0 {
				for j := range t.look[code<<spare:][:1<<spare] {
					t.look[int(code)<<spare+j] = uint16(values[n])<<8 | uint16(length)
				}
			}
			n++
			code++
		}
		t.end[length] = code
		code <<= 1
	}
	t.defined = n > 0
	return n, t.defined
}

// long finds what is not looked up; 0: there is no such code.
func (t *huffman) long(acc uint64) uint16 {
	for length := lookBits + 1; length <= 16; length++ {
		if code := int32(acc >> (64 - length)); code < t.end[length] {
			if i := code + t.offset[length]; i >= 0 && i < 256 {
				return uint16(t.values[i])<<8 | uint16(length)
			}
		}
	}
	return 0
}

// bits are those of a scan. The next one is the highest of acc.
type bits struct {
	data []byte
	at   int
	acc  uint64
	have int // of acc
	void int // of those: beyond the end
}

// fill gives 32 bits at least: as much as a code and its value have at most. Behind
// the end come zeros, which are counted.
func (s *bits) fill(acc uint64, have int) (uint64, int) {
	if s.at+4 <= len(s.data) {
		x := binary.BigEndian.Uint32(s.data[s.at:])
		if y := ^x; (y-0x01010101)&^y&0x80808080 == 0 { // none of four bytes is 0xff
			s.at += 4
			return acc | uint64(x)<<(32-have), have + 32
		}
	}
	for have < 32 {
		var x byte
		switch {
		case s.at < len(s.data) && s.data[s.at] != 0xff:
			x = s.data[s.at]
			s.at++
		case s.at+1 < len(s.data) && s.data[s.at] == 0xff && s.data[s.at+1] == 0:
			x = 0xff
			s.at += 2
		default:
			s.void += 8
		}
		acc |= uint64(x) << (56 - have)
		have += 8
	}
	return acc, have
}

// block reads the coefficients of one block, and multiplies them by their quantities.
func (s *bits) block(c *component, b *block) bool {
	acc, have := s.acc, s.have
	if have < 32 {
		acc, have = s.fill(acc, have)
	}
	code := c.dc.look[acc>>(64-lookBits)]
	if code == 0 {
		code = c.dc.long(acc)
	}
	size := int(code >> 8)
	if code == 0 || size > 15 {
		return false
	}
	acc, have = acc<<(code&31), have-int(code&31)-size
	c.last += value(acc, size)
	acc <<= size
	b.v[0] = c.last * c.quantity[0]
	for k := 1; k < 64; k++ {
		if have < 32 {
			acc, have = s.fill(acc, have)
		}
		code := c.ac.look[acc>>(64-lookBits)]
		if code == 0 {
			if code = c.ac.long(acc); code == 0 {
				return false
			}
		}
		acc, have = acc<<(code&31), have-int(code&31)
		size := int(code >> 8 & 15)
		k += int(code >> 12)
		if size == 0 {
			if code>>8 == 0 { // the rest is zero
				break
			}
			if code>>8 != 0xf0 {
				return false
			}
			continue
		}
		if k > 63 {
			return false
		}
		at := zigzag[k&63] & 63
		b.v[at] = value(acc, size) * c.quantity[k&63]
		b.rows |= 1 << (at >> 3)
		acc, have = acc<<size, have-size
	}
	s.acc, s.have = acc, have
	return true
}

// value gives the next bits as a number: those that begin with 0 are negative.
func value(acc uint64, size int) int32 {
	negative := ^(int64(acc) >> 63)
	return int32(int64(acc>>(64-size)) + negative&(-1<<size+1))
}

// short tells whether more was taken than there is.
func (s *bits) short() bool { return s.void > s.have }

// mark goes behind one that has to stand here.
func (s *bits) mark(which byte) bool {
	if s.short() || s.have-s.void >= 8 || len(s.data)-s.at < 2 || s.data[s.at] != 0xff || s.data[s.at+1] != which {
		return false
	}
	s.at += 2
	s.acc, s.have, s.void = 0, 0, 0
	return true
}

// end gives nil where the picture ends as it should.
func (s *bits) end() error {
	if !s.mark(endMark) {
		return ErrOther
	}
	return nil
}
