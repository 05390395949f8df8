package jpeg

import "math"

// zigzag is the order in which coefficients are stored, from low frequencies to high.
var zigzag = [64]byte{
	0, 1, 8, 16, 9, 2, 3, 10,
	17, 24, 32, 25, 18, 11, 4, 5,
	12, 19, 26, 33, 40, 48, 41, 34,
	27, 20, 13, 6, 7, 14, 21, 28,
	35, 42, 49, 56, 57, 50, 43, 36,
	29, 22, 15, 23, 30, 37, 44, 51,
	58, 59, 52, 45, 38, 31, 39, 46,
	53, 60, 61, 54, 47, 55, 62, 63,
}

// block is one of 8 × 8 coefficients, line by line.
type block struct {
	v    [64]int32
	rows uint8 // that have more than the mean, a bit each
}

const (
	pointBits = 10 // of the coefficients, behind the point
	turnBits  = 12 // of the cosines
)

// Cosines of so many sixteenths of half a turn.
const (
	cos1 = 4017
	cos2 = 3784
	cos3 = 3406
	cos5 = 2276
	cos6 = 1567
	cos7 = 799
)

// scaled are the quantities of a block that becomes nx × ny pixels. All factors of
// the transform that belong to one coefficient are in them. Frequencies that so few
// pixels cannot show are left out: that is the shrinking.
func scaled(steps *[64]int32, nx, ny int) (to [64]int32) {
	factor := func(k, n int) float64 {
		if k >= n {
			return 0
		}
		if k*2 == n || k == 0 {
			return math.Sqrt2 / 4
		}
		return 0.5
	}
	for i, step := range steps {
		x, y := int(zigzag[i]&7), int(zigzag[i]>>3)
		to[i] = int32(math.Round(float64(step) * factor(x, nx) * factor(y, ny) * (1 << pointBits)))
	}
	return to
}

// transform makes pixels of a block: the inverse cosine transform of nx × ny points.
func (b *block) transform(nx, ny int, to []byte, stride int) {
	if b.rows == 0 {
		b.flat(nx, ny, to, stride)
		return
	}
	b.rows |= 1
	for y := range ny {
		if b.rows>>y&1 != 0 {
			b.turn(nx, y*8, 1)
		}
	}
	for x := range nx {
		b.turn(ny, x, 8)
	}
	for y := range ny {
		line, v := to[y*stride:][:nx], b.v[8*y:][:nx]
		for x := range line {
			line[x] = pixel(v[x])
		}
	}
}

// flat is the transform of a block that has nothing but its mean.
func (b *block) flat(nx, ny int, to []byte, stride int) {
	p := pixel(b.v[0])
	for y := range ny {
		line := to[y*stride:][:nx]
		for x := range line {
			line[x] = p
		}
	}
}

// half is transform for the most frequent case, 4 × 4 points.
func (b *block) half(to []byte, stride int) {
	if b.rows == 0 {
		b.flat(4, 4, to, stride)
		return
	}
	v := &b.v
	for y := range 4 {
		if (b.rows|1)>>y&1 != 0 {
			l := (*[4]int32)(v[8*y:])
			l[0], l[1], l[2], l[3] = four(l[0], l[1], l[2], l[3])
		}
	}
	l0, l1, l2, l3 := (*[4]byte)(to), (*[4]byte)(to[stride:]), (*[4]byte)(to[2*stride:]), (*[4]byte)(to[3*stride:])
	for x := range 4 {
		p, q, r, s := four(v[x], v[8+x], v[16+x], v[24+x])
		l0[x], l1[x], l2[x], l3[x] = pixel(p), pixel(q), pixel(r), pixel(s)
	}
}

func pixel(v int32) byte {
	v = (v+1<<(pointBits-1))>>pointBits + 128
	if uint32(v) > 255 {
		v = ^v >> 31 // all ones, or none
	}
	return byte(v)
}

// turn transforms n values that stand so many places apart.
func (b *block) turn(n, at, step int) {
	v := &b.v
	switch n {
	case 2:
		i, j := at&63, (at+step)&63
		v[i], v[j] = v[i]+v[j], v[i]-v[j]
	case 4:
		i, j, k, l := at&63, (at+step)&63, (at+2*step)&63, (at+3*step)&63
		v[i], v[j], v[k], v[l] = four(v[i], v[j], v[k], v[l])
	case 8:
		i, j, k, l := at&63, (at+step)&63, (at+2*step)&63, (at+3*step)&63
		m, n, o, p := (at+4*step)&63, (at+5*step)&63, (at+6*step)&63, (at+7*step)&63
		e0, e1, e2, e3 := four(v[i], v[k], v[m], v[o])
		o0, o1, o2, o3 := odd(int64(v[j]), int64(v[l]), int64(v[n]), int64(v[p]))
		v[i], v[j], v[k], v[l] = e0+o0, e1+o1, e2+o2, e3+o3
		v[m], v[n], v[o], v[p] = e3-o3, e2-o2, e1-o1, e0-o0
	}
}

// four is the transform of four points, and of the even ones of eight.
func four(a, b, c, d int32) (int32, int32, int32, int32) {
	even, change := a+c, a-c
	outer := int32((int64(b)*cos2 + int64(d)*cos6) >> turnBits)
	inner := int32((int64(b)*cos6 - int64(d)*cos2) >> turnBits)
	return even + outer, change + inner, change - inner, even - outer
}

// odd is what the odd ones of eight points bring.
func odd(a, b, c, d int64) (int32, int32, int32, int32) {
	return int32((a*cos1 + b*cos3 + c*cos5 + d*cos7) >> turnBits),
		int32((a*cos3 - b*cos7 - c*cos1 - d*cos5) >> turnBits),
		int32((a*cos5 - b*cos1 + c*cos7 + d*cos3) >> turnBits),
		int32((a*cos7 - b*cos5 + c*cos3 - d*cos1) >> turnBits)
}
