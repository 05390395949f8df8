package image_test

import (
	"bytes"
	"encoding/binary"
	stdimage "image"
	"image/color"
	"image/jpeg"
	"image/png"
	"math"
	"math/rand/v2"
	"testing"
)

// photo is like one: smooth light, hard edges, fine texture, and grain. It is the
// same each time.
func photo(w, h int) *stdimage.NRGBA {
	m := stdimage.NewNRGBA(stdimage.Rect(0, 0, w, h))
	r := rand.New(rand.NewPCG(1, 2))
	for y := range h {
		fy := float64(y) / float64(h)
		for x := range w {
			fx := float64(x) / float64(w)
			light := 120 + 60*math.Sin(fx*5+fy*3) + 12*math.Sin(fx*fy*400)
			if math.Hypot(math.Mod(fx*4, 1)-.5, math.Mod(fy*3, 1)-.5) < .3 {
				light += 45
			}
			grain := r.NormFloat64() * 3
			m.SetNRGBA(x, y, color.NRGBA{clamp(light + grain), clamp(200*fy + light*.2 + grain), clamp(240 - light + grain), 255})
		}
	}
	return m
}

func clamp(v float64) uint8 { return uint8(math.Max(0, math.Min(255, v+.5))) }

func jpegOf(t testing.TB, m stdimage.Image) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := jpeg.Encode(&b, m, &jpeg.Options{Quality: 92}); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func pngOf(t testing.TB, m stdimage.Image) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := png.Encode(&b, m); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

const secret = "secret camera name"

// withEXIF puts an EXIF block into a JPEG: its orientation, and a camera.
func withEXIF(data []byte, orientation uint16) []byte {
	var tiff bytes.Buffer
	le := binary.LittleEndian
	tiff.WriteString("II*\x00")
	put := func(v any) { binary.Write(&tiff, le, v) }
	put(uint32(8))
	put(uint16(2))
	put(uint16(0x0110)) // model: text
	put(uint16(2))
	put(uint32(len(secret) + 1))
	put(uint32(8 + 2 + 2*12 + 4))
	put(uint16(0x0112)) // orientation: short
	put(uint16(3))
	put(uint32(1))
	put(uint32(orientation))
	put(uint32(0))
	tiff.WriteString(secret + "\x00")
	block := append([]byte("Exif\x00\x00"), tiff.Bytes()...)
	head := []byte{0xff, 0xd8, 0xff, 0xe1, byte((len(block) + 2) >> 8), byte(len(block) + 2)}
	return append(append(head, block...), data[2:]...)
}

// corners is a picture whose corners tell how it lies: red, green, blue and white,
// from the upper left one in the order of reading.
func corners(w, h int) *stdimage.NRGBA {
	m := stdimage.NewNRGBA(stdimage.Rect(0, 0, w, h))
	colors := [4]color.NRGBA{{220, 30, 30, 255}, {30, 200, 30, 255}, {30, 30, 220, 255}, {240, 240, 240, 255}}
	for y := range h {
		for x := range w {
			i := 0
			if x >= w/2 {
				i++
			}
			if y >= h/2 {
				i += 2
			}
			m.SetNRGBA(x, y, colors[i])
		}
	}
	return m
}

// stored gives the picture as a camera stores it that was held so that EXIF says
// this orientation: the inverse of what a viewer does.
func stored(m *stdimage.NRGBA, orientation int) *stdimage.NRGBA {
	w, h := m.Rect.Dx(), m.Rect.Dy()
	if orientation > 4 {
		w, h = h, w
	}
	out := stdimage.NewNRGBA(stdimage.Rect(0, 0, w, h))
	for y := range h {
		for x := range w {
			var ux, uy int // where a viewer puts the stored pixel x, y
			switch orientation {
			case 1:
				ux, uy = x, y
			case 2:
				ux, uy = w-1-x, y
			case 3:
				ux, uy = w-1-x, h-1-y
			case 4:
				ux, uy = x, h-1-y
			case 5:
				ux, uy = y, x
			case 6:
				ux, uy = h-1-y, x
			case 7:
				ux, uy = h-1-y, w-1-x
			case 8:
				ux, uy = y, w-1-x
			}
			out.SetNRGBA(x, y, m.NRGBAAt(ux, uy))
		}
	}
	return out
}

// psnr is how near two pictures are, in dB: above 30 few people see a difference.
func psnr(a, b stdimage.Image) float64 {
	if a.Bounds().Size() != b.Bounds().Size() {
		return 0
	}
	var sum float64
	n := a.Bounds().Size()
	for y := range n.Y {
		for x := range n.X {
			p := color.NRGBAModel.Convert(a.At(a.Bounds().Min.X+x, a.Bounds().Min.Y+y)).(color.NRGBA)
			q := color.NRGBAModel.Convert(b.At(b.Bounds().Min.X+x, b.Bounds().Min.Y+y)).(color.NRGBA)
			for _, d := range []float64{float64(p.R) - float64(q.R), float64(p.G) - float64(q.G), float64(p.B) - float64(q.B)} {
				sum += d * d
			}
		}
	}
	mse := sum / float64(n.X*n.Y*3)
	if mse == 0 {
		return 99
	}
	return 10 * math.Log10(255*255/mse)
}

// boxed makes a picture smaller by averaging whole blocks: the plainest way there
// is, for tests to compare with.
func boxed(m *stdimage.NRGBA, by int) *stdimage.NRGBA {
	w, h := m.Rect.Dx()/by, m.Rect.Dy()/by
	out := stdimage.NewNRGBA(stdimage.Rect(0, 0, w, h))
	for y := range h {
		for x := range w {
			var s [3]int
			for dy := range by {
				for dx := range by {
					c := m.NRGBAAt(x*by+dx, y*by+dy)
					s[0], s[1], s[2] = s[0]+int(c.R), s[1]+int(c.G), s[2]+int(c.B)
				}
			}
			n := by * by
			out.SetNRGBA(x, y, color.NRGBA{uint8(s[0] / n), uint8(s[1] / n), uint8(s[2] / n), 255})
		}
	}
	return out
}
