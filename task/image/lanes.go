package image

import (
	stdimage "image"
	"image/color"

	"github.com/kovidgoyal/imaging/nrgb"
	"github.com/kovidgoyal/imaging/types"
)

// Pixels without transparency are resized three values at a time: a word has a lane
// for each, so wide that a sum of weighted values never runs into the next one. That
// takes a third of the multiplications, with nothing but Go.
const (
	laneBits   = 21
	lanes      = 1 | 1<<laneBits | 1<<(2*laneBits)
	weightBits = 12
	one        = 1 << weightBits
	// Sums may be below zero by so much: lanes have no sign.
	below = 96
	// What a sum begins with: that, and a half to round.
	nothing = (below<<weightBits + one/2) * lanes
)

func pack(a, b, c byte) uint64 {
	return uint64(a) | uint64(b)<<laneBits | uint64(c)<<(2*laneBits)
}

func unpack(v uint64) (a, b, c byte) {
	return byte(v), byte(v >> laneBits), byte(v >> (2 * laneBits))
}

// settle makes values from 0 to 255 of sums, in each lane. With 256 added a value's
// bit 8 says that it is in the range, and bit 9 that it is above.
func settle(sum uint64) uint64 {
	v := sum>>weightBits&(511*lanes) + (256-below)*lanes
	in, above := v>>8&lanes, v>>9&lanes
	return v&(in*255) | above*255
}

// lines are those of a picture without transparency, from top to bottom.
type lines interface {
	next(to []uint64) error // of a whole line, packed
}

// toRGB tells what colours mean: those of a JPEG are still as they were stored.
func toRGB(line []byte, packed []uint64, ycc bool) {
	for x, v := range packed {
		a, b, c := unpack(v)
		if ycc {
			a, b, c = color.YCbCrToRGB(a, b, c)
		}
		px := line[4*x:][:4]
		px[0], px[1], px[2], px[3] = a, b, c, 255
	}
}

// planes are the lines of a JPEG that was decoded in full.
type planes struct {
	*stdimage.YCbCr
	y int
}

func (p *planes) next(to []uint64) error {
	sx, sy := subsampling(p.SubsampleRatio)
	y := p.Y[p.y*p.YStride:][:len(to)]
	cb, cr := p.Cb[p.y/sy*p.CStride:], p.Cr[p.y/sy*p.CStride:]
	for x := range to {
		to[x] = pack(y[x], cb[x/sx], cr[x/sx])
	}
	p.y++
	return nil
}

// scanned are the lines of any picture.
type scanned struct {
	types.Scanner
	rgb []byte
	y   int
}

func scan(m stdimage.Image) *scanned {
	return &scanned{Scanner: nrgb.NewNRGBScanner(m, nrgb.Color{}), rgb: make([]byte, 3*m.Bounds().Dx())}
}

func (s *scanned) next(to []uint64) error {
	s.Scan(0, s.y, len(to), s.y+1, s.rgb)
	for x := range to {
		to[x] = pack(s.rgb[3*x], s.rgb[3*x+1], s.rgb[3*x+2])
	}
	s.y++
	return nil
}
