// Package jpeg decodes photos at a half, a quarter or an eighth of their size, some
// lines at a time: whoever wants a small picture of a large one pays neither for
// pixels that would be averaged away, nor for the memory of the whole.
//
// It reads what cameras and phones write: baseline JPEG, three components in one scan,
// YCbCr, with the usual sampling of colour, with or without restarts. For all else, and
// for all that is damaged, it gives ErrOther: then image/jpeg has to judge, which is
// slower and knows more. What it accepts, image/jpeg accepts. It trusts nothing that a
// file says: it takes some lines of memory, and time by the bytes and the stated size,
// which its caller bounds.
package jpeg

import (
	"errors"
	"io"
)

// ErrOther says that a file has to be read by image/jpeg.
var ErrOther = errors.New("jpeg: of a kind that image/jpeg has to read")

// Reader decodes one picture from top to bottom.
type Reader struct {
	Width, Height int // of what is given: the stated size, divided and rounded up
	Full          [2]int

	by           int
	mcus         int // in a line of them
	left         int // lines of them that are to come
	given        int // lines of pixels
	components   [3]component
	bits         bits
	restart      int // MCUs between restarts; 0: there are none
	toRestart    int
	expectedMark byte
}

// component is one plane of a picture.
type component struct {
	h, v     int // blocks in an MCU
	nx, ny   int // pixels that a block becomes
	quantity [64]int32
	dc, ac   *huffman
	last     int32 // the DC of the block before
}

// Band is some lines of a picture, of three planes of one size.
type Band struct {
	Planes [3][]byte // Y, Cb, Cr
	Stride int
	Lines  int
}

// NewReader reads all that stands before the pixels. by is 2, 4 or 8.
func NewReader(data []byte, by int) (*Reader, error) {
	h := header{data: data}
	if err := h.read(); err != nil {
		return nil, err
	}
	r := &Reader{by: by, Full: [2]int{h.width, h.height}, Width: (h.width + by - 1) / by, Height: (h.height + by - 1) / by, restart: h.restart}
	r.toRestart, r.expectedMark = r.restart, firstRestart
	for i := range r.components {
		f, c := &h.frame[i], &r.components[i]
		c.h, c.v = f.h, f.v
		c.nx, c.ny = 8*h.frame[0].h/f.h/by, 8*h.frame[0].v/f.v/by
		q, dc, ac := &h.quantities[f.quantity], &h.tables[0][f.dc], &h.tables[1][f.ac]
		if c.nx > 8 || c.ny > 8 || !q.defined || !dc.defined || !ac.defined {
			return nil, ErrOther
		}
		c.dc, c.ac = dc, ac
		c.quantity = scaled(&q.steps, c.nx, c.ny)
	}
	wide, high := 8*h.frame[0].h, 8*h.frame[0].v
	r.mcus, r.left = (h.width+wide-1)/wide, (h.height+high-1)/high
	r.bits = bits{data: data, at: h.at}
	return r, nil
}

// Next fills a band with the next lines; io.EOF comes after the last. The band may
// come from a call before, and is then overwritten.
func (r *Reader) Next(band *Band) error {
	if r.left == 0 {
		return io.EOF
	}
	y := &r.components[0]
	lines := y.v * y.ny
	band.Stride = r.mcus * y.h * y.nx
	for i := range band.Planes {
		if len(band.Planes[i]) != lines*band.Stride {
			band.Planes[i] = make([]byte, lines*band.Stride)
		}
	}
	for m := range r.mcus {
		if err := r.mcu(band, m); err != nil {
			return err
		}
	}
	r.left--
	band.Lines = min(lines, r.Height-r.given)
	r.given += band.Lines
	if r.left == 0 {
		return r.bits.end()
	}
	if r.bits.short() {
		return ErrOther // soon, not only where a hostile size ends
	}
	return nil
}

// mcu decodes the blocks of one minimum coded unit.
func (r *Reader) mcu(band *Band, m int) error {
	if r.restart > 0 {
		if r.toRestart == 0 {
			if err := r.resume(); err != nil {
				return err
			}
		}
		r.toRestart--
	}
	for i := range r.components {
		c := &r.components[i]
		for j := range c.h * c.v {
			var b block
			if !r.bits.block(c, &b) {
				return ErrOther
			}
			to := band.Planes[i][j/c.h*c.ny*band.Stride+(m*c.h+j%c.h)*c.nx:]
			if c.nx == 4 && c.ny == 4 {
				b.half(to, band.Stride)
			} else {
				b.transform(c.nx, c.ny, to, band.Stride)
			}
		}
	}
	return nil
}

// resume begins anew after the mark of a restart.
func (r *Reader) resume() error {
	if !r.bits.mark(r.expectedMark) {
		return ErrOther
	}
	r.toRestart = r.restart
	r.expectedMark = firstRestart + (r.expectedMark-firstRestart+1)%8
	for i := range r.components {
		r.components[i].last = 0
	}
	return nil
}
