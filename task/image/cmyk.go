package image

import (
	stdimage "image"
)

// inks gives each colour of sRGB as a sum over products of the four inks, from 0 to
// 1. The factors are a least-squares fit to what libvips' own CMYK profile says of
// an even grid of 9 steps for each ink; white is exact, the mean error 2 to 5 of 255.
// The plain formula (1-c)(1-k) is wrong by up to 100: it knows no real ink.
var inks = [3][19]float32{
	// c, m, y, k, cc, mm, yy, kk, cm, cy, ck, my, mk, yk, kkk, cmk, cyk, myk, cmy
	{-274, -19, 1, -225, -29, -9, 1, 36, 121, 21, 278, -6, 26, -2, -30, -109, -13, 8, -11},
	{-103, -205, -33, -218, -1, -13, 2, 22, 104, 20, 100, 34, 205, 32, -26, -97, -17, -28, -15},
	{-32, -124, -219, -214, -1, 2, -8, 17, 18, 68, 28, 139, 113, 218, -17, -2, -54, -122, -37},
}

// printed converts a picture in inks that has no profile of its own.
func printed(m *stdimage.CMYK) *stdimage.NRGBA {
	to := stdimage.NewNRGBA(stdimage.Rect(0, 0, m.Rect.Dx(), m.Rect.Dy()))
	for y := range m.Rect.Dy() {
		line := m.Pix[y*m.Stride:]
		for x := range m.Rect.Dx() {
			c, g, e, k := float32(line[4*x])/255, float32(line[4*x+1])/255, float32(line[4*x+2])/255, float32(line[4*x+3])/255
			terms := [19]float32{c, g, e, k, c * c, g * g, e * e, k * k, c * g, c * e, c * k, g * e, g * k, e * k, k * k * k, c * g * k, c * e * k, g * e * k, c * g * e}
			px := to.Pix[y*to.Stride+4*x:]
			for i := range inks {
				v := float32(255.5)
				for j, t := range terms {
					v += inks[i][j] * t
				}
				px[i] = uint8(max(0, min(255, v)))
			}
			px[3] = 255
		}
	}
	return to
}
