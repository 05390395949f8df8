package image

import (
	stdimage "image"
	"math/bits"
	"runtime"
	"sync"
)

// divisor is 2, 4 or 8 where a picture may be made so many times smaller in a cheap
// way first, else 1: what is left is at least half as large again as what is wanted.
// The slow and good filter then has less to do, and nothing that one sees is lost.
func divisor(from, to Size) int {
	by := 1
	for by < 8 && from.Width*2 >= to.Width*by*2*3 && from.Height*2 >= to.Height*by*2*3 {
		by *= 2
	}
	return by
}

// shrink averages blocks of pixels. Planes of a JPEG are averaged as they are, each at
// its own size.
func shrink(m stdimage.Image, to Size) stdimage.Image {
	by := divisor(Size{m.Bounds().Dx(), m.Bounds().Dy()}, to)
	if by == 1 {
		return m
	}
	switch m := m.(type) {
	case *stdimage.YCbCr:
		return shrinkYCbCr(m, by)
	case *stdimage.Gray:
		w, h := m.Rect.Dx(), m.Rect.Dy()
		pix, size := average(m.Pix, m.Stride, w, h, 1, by, by)
		return &stdimage.Gray{Pix: pix, Stride: size.Width, Rect: stdimage.Rect(0, 0, size.Width, size.Height)}
	case *stdimage.CMYK:
		w, h := m.Rect.Dx(), m.Rect.Dy()
		pix, size := average(m.Pix, m.Stride, w, h, 4, by, by)
		return &stdimage.CMYK{Pix: pix, Stride: 4 * size.Width, Rect: stdimage.Rect(0, 0, size.Width, size.Height)}
	}
	return m
}

// shrinkYCbCr gives a picture whose planes are all of one size: those of colour,
// which are often smaller already, are averaged less.
func shrinkYCbCr(m *stdimage.YCbCr, by int) stdimage.Image {
	sx, sy := subsampling(m.SubsampleRatio)
	if sx > by || sy > by || m.Rect.Min != (stdimage.Point{}) {
		return m
	}
	w, h := m.Rect.Dx(), m.Rect.Dy()
	y, size := average(m.Y, m.YStride, w, h, 1, by, by)
	cw, ch := (w+sx-1)/sx, (h+sy-1)/sy
	cb, _ := average(m.Cb, m.CStride, cw, ch, 1, by/sx, by/sy)
	cr, _ := average(m.Cr, m.CStride, cw, ch, 1, by/sx, by/sy)
	return &stdimage.YCbCr{Y: y, Cb: cb, Cr: cr, YStride: size.Width, CStride: size.Width,
		SubsampleRatio: stdimage.YCbCrSubsampleRatio444, Rect: stdimage.Rect(0, 0, size.Width, size.Height)}
}

func subsampling(r stdimage.YCbCrSubsampleRatio) (x, y int) {
	switch r {
	case stdimage.YCbCrSubsampleRatio444:
		return 1, 1
	case stdimage.YCbCrSubsampleRatio422:
		return 2, 1
	case stdimage.YCbCrSubsampleRatio420:
		return 2, 2
	case stdimage.YCbCrSubsampleRatio440:
		return 1, 2
	case stdimage.YCbCrSubsampleRatio411:
		return 4, 1
	}
	return 4, 2
}

// average takes blocks of bx × by pixels of so many bytes together, on all cores.
// Those at the right and lower edge may be smaller.
func average(pix []byte, stride, w, h, bytes, bx, by int) ([]byte, Size) {
	size := Size{(w + bx - 1) / bx, (h + by - 1) / by}
	out := make([]byte, size.Width*size.Height*bytes)
	parts := min(runtime.GOMAXPROCS(0), size.Height)
	var all sync.WaitGroup
	for i := range parts {
		all.Go(func() {
			sums := make([]uint32, size.Width*bytes)
			for y := size.Height * i / parts; y < size.Height*(i+1)/parts; y++ {
				rows := min(by, h-y*by)
				averageLine(out[y*len(sums):][:len(sums)], sums, pix[y*by*stride:], stride, w, rows, bytes, bx)
			}
		})
	}
	all.Wait()
	return out, size
}

// averageLine makes one line of so many rows.
func averageLine(to []byte, sums []uint32, pix []byte, stride, w, rows, bytes, bx int) {
	clear(sums)
	for r := range rows {
		line := pix[r*stride:][:w*bytes]
		if bytes == 1 && bx == 2 {
			pairs(sums, line)
			continue
		}
		for x := range w {
			for b := range bytes {
				sums[x/bx*bytes+b] += uint32(line[x*bytes+b])
			}
		}
	}
	if full := uint32(bx * rows); full&(full-1) == 0 && w%bx == 0 { // no division
		half, shift := full/2, bits.TrailingZeros32(full)
		for i, sum := range sums {
			to[i] = uint8((sum + half) >> shift)
		}
		return
	}
	for i, sum := range sums {
		n := uint32(min(bx, w-i/bytes*bx) * rows)
		to[i] = uint8((sum + n/2) / n)
	}
}

// pairs is the most frequent case of average: two neighbours, one byte each.
func pairs(sums []uint32, line []byte) {
	n := len(line) / 2
	for i := range sums[:n] {
		sums[i] += uint32(line[2*i]) + uint32(line[2*i+1])
	}
	if len(line)%2 == 1 {
		sums[n] += uint32(line[len(line)-1])
	}
}
