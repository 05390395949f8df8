package jpeg

import "encoding/binary"

// Marks, as ISO/IEC 10918-1 numbers them (table B.1).
const (
	baseline     = 0xc0
	huffmanMark  = 0xc4
	firstRestart = 0xd0
	beginMark    = 0xd8
	endMark      = 0xd9
	scanMark     = 0xda
	quantityMark = 0xdb
	restartMark  = 0xdd
	firstApp     = 0xe0
	adobeApp     = 0xee
	lastApp      = 0xef
	comment      = 0xfe
)

// header is all that stands before the pixels.
type header struct {
	data []byte
	at   int

	width, height int // 0: not known yet
	frame         [3]struct {
		id, quantity, dc, ac byte
		h, v                 int
	}
	quantities [4]struct {
		defined bool
		steps   [64]int32 // in the order of the file
	}
	tables  [2][2]huffman // DC, AC
	restart int
	jfif    bool
	adobe   int // its transform and 1; 0: not said
}

// read ends behind the head of the scan.
func (h *header) read() error {
	if len(h.data) < 2 || h.data[0] != 0xff || h.data[1] != beginMark {
		return ErrOther
	}
	for h.at = 2; ; {
		if len(h.data)-h.at < 4 || h.data[h.at] != 0xff {
			return ErrOther
		}
		mark, n := h.data[h.at+1], int(binary.BigEndian.Uint16(h.data[h.at+2:]))
		if n < 2 || n > len(h.data)-h.at-2 {
			return ErrOther
		}
		segment := h.data[h.at+4 : h.at+2+n]
		h.at += 2 + n
		if !h.segment(mark, segment) {
			return ErrOther
		}
		if mark == scanMark {
			return nil
		}
	}
}

// segment tells whether one is of a kind that is read here.
func (h *header) segment(mark byte, s []byte) bool {
	switch mark {
	case baseline:
		return h.size(s)
	case huffmanMark:
		return h.huffman(s)
	case quantityMark:
		return h.quantity(s)
	case restartMark:
		if len(s) == 2 {
			h.restart = int(binary.BigEndian.Uint16(s))
		}
		return len(s) == 2
	case scanMark:
		return h.scan(s)
	case firstApp:
		if len(s) >= 5 {
			h.jfif = string(s[:5]) == "JFIF\x00"
		}
		return true
	case adobeApp:
		if len(s) >= 12 && string(s[:5]) == "Adobe" {
			h.adobe = int(s[11]) + 1
		}
		return true
	}
	return mark > firstApp && mark <= lastApp || mark == comment
}

// size takes three components, of which those of colour have one block in an MCU.
func (h *header) size(s []byte) bool {
	if h.height != 0 || len(s) != 6+3*3 || s[0] != 8 || s[5] != 3 {
		return false
	}
	h.height, h.width = int(binary.BigEndian.Uint16(s[1:])), int(binary.BigEndian.Uint16(s[3:]))
	for i := range h.frame {
		c, f := &h.frame[i], s[6+3*i:]
		c.id, c.h, c.v, c.quantity = f[0], int(f[1]>>4), int(f[1]&15), f[2]
		if c.quantity > 3 || i > 0 && (c.h != 1 || c.v != 1) {
			return false
		}
	}
	y, cb, cr := &h.frame[0], &h.frame[1], &h.frame[2]
	known := (y.h == 1 || y.h == 2 || y.h == 4) && (y.v == 1 || y.v == 2)
	return h.height > 0 && h.width > 0 && known && y.id != cb.id && cb.id != cr.id && cr.id != y.id
}

func (h *header) quantity(s []byte) bool {
	for len(s) > 0 {
		wide, which := int(s[0]>>4), s[0]&15
		if s = s[1:]; wide > 1 || which > 3 || len(s) < 64<<wide {
			return false
		}
		q := &h.quantities[which]
		q.defined = true
		for i := range q.steps {
			if wide == 1 {
				q.steps[i] = int32(binary.BigEndian.Uint16(s[2*i:]))
			} else {
				q.steps[i] = int32(s[i])
			}
		}
		s = s[64<<wide:]
	}
	return true
}

func (h *header) huffman(s []byte) bool {
	for len(s) > 0 {
		if len(s) < 17 || s[0]>>4 > 1 || s[0]&15 > 1 {
			return false
		}
		n, ok := h.tables[s[0]>>4][s[0]&15].define(s[1:17], s[17:])
		if !ok {
			return false
		}
		s = s[17+n:]
	}
	return true
}

// scan takes one of all components, in order. Pictures of red, green and blue are
// for image/jpeg, which knows them by the same signs.
func (h *header) scan(s []byte) bool {
	if h.height == 0 || len(s) != 4+2*3 || s[0] != 3 {
		return false
	}
	for i := range h.frame {
		c, f := &h.frame[i], s[1+2*i:]
		if f[0] != c.id || f[1]>>4 > 1 || f[1]&15 > 1 {
			return false
		}
		c.dc, c.ac = f[1]>>4, f[1]&15
	}
	rgb := h.adobe == 1 || h.frame[0].id == 'R' && h.frame[1].id == 'G' && h.frame[2].id == 'B'
	return h.jfif || !rgb
}
