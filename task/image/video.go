package image

import (
	stdimage "image"
)

// How much of each colour is in the values of a WebP, whose range is that of video
// (ITU-R BT.601: brightness from 16 to 235, colour from 16 to 240), in parts of 1<<16.
const (
	redY, greenY, blueY    = 16829, 33039, 6416
	redCb, greenCb, blueCb = -9714, -19070, 28784
	redCr, greenCr, blueCr = 28784, -24103, -4681
)

// video gives an opaque picture as WebP stores it. The encoder would do so itself, but
// with four times the memory, and it is the fresh memory that takes the time. It
// expects all planes in one piece, in this order.
func video(m *stdimage.NRGBA) *stdimage.NYCbCrA {
	w, h := m.Rect.Dx(), m.Rect.Dy()
	cw, ch := (w+1)/2, (h+1)/2
	all := make([]byte, 2*w*h+2*cw*ch)
	to := &stdimage.NYCbCrA{AStride: w, YCbCr: stdimage.YCbCr{YStride: w, CStride: cw, SubsampleRatio: stdimage.YCbCrSubsampleRatio420, Rect: m.Rect}}
	to.Y, all = all[:w*h:w*h], all[w*h:]
	to.Cb, all = all[:cw*ch:cw*ch], all[cw*ch:]
	to.Cr, to.A = all[:cw*ch:cw*ch], all[cw*ch:]
	for i := range to.A {
		to.A[i] = 255
	}
	for y := range h {
		brightness(to.Y[y*w:][:w], m.Pix[y*m.Stride:])
	}
	for y := range ch {
		below := min(2*y+1, h-1)
		colour(to.Cb[y*cw:][:cw], to.Cr[y*cw:][:cw], m.Pix[2*y*m.Stride:][:4*w], m.Pix[below*m.Stride:][:4*w])
	}
	return to
}

func brightness(to, line []byte) {
	for x := range to {
		px := line[4*x:][:4]
		to[x] = byte((redY*int32(px[0]) + greenY*int32(px[1]) + blueY*int32(px[2]) + 16<<16 + 1<<15) >> 16)
	}
}

// colour takes the mean of four pixels; at an edge some count twice.
func colour(cb, cr, upper, lower []byte) {
	for x := range cb {
		a, next := 8*x, 8*x+4
		if next == len(upper) {
			next = a
		}
		p, q, s, t := upper[a:][:4], upper[next:][:4], lower[a:][:4], lower[next:][:4]
		r := int32(p[0]) + int32(q[0]) + int32(s[0]) + int32(t[0])
		g := int32(p[1]) + int32(q[1]) + int32(s[1]) + int32(t[1])
		b := int32(p[2]) + int32(q[2]) + int32(s[2]) + int32(t[2])
		cb[x] = byte((redCb*r + greenCb*g + blueCb*b + 128<<18 + 1<<17) >> 18)
		cr[x] = byte((redCr*r + greenCr*g + blueCr*b + 128<<18 + 1<<17) >> 18)
	}
}

// fullRange stretches what a WebP stores to the range that the types of image/color
// have, or light would be gray and dark would be, too. The decoder leaves that to others.
func fullRange(m stdimage.Image) stdimage.Image {
	var p *stdimage.YCbCr
	switch m := m.(type) {
	case *stdimage.YCbCr:
		p = m
	case *stdimage.NYCbCrA:
		p = &m.YCbCr
	default: // lossless, in colours; or nothing
		return m
	}
	var bright, colour [256]byte
	for i := range 256 {
		bright[i] = clamped((i-16)*255, 219)
		colour[i] = clamped((i-128)*255+128*224, 224)
	}
	for _, plane := range []struct {
		values []byte
		to     *[256]byte
	}{{p.Y, &bright}, {p.Cb, &colour}, {p.Cr, &colour}} {
		for i, v := range plane.values {
			plane.values[i] = plane.to[v]
		}
	}
	return m
}

func clamped(v, by int) byte { return byte(max(0, min(255, (v+by/2)/by))) }
