package jpeg_test

import (
	"bytes"
	"errors"
	"fmt"
	"image"
	stdjpeg "image/jpeg"
	"io"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/forebayhq/forebay/internal/jpeg"
)

// all reads a whole picture into planes.
func all(data []byte, by int) (planes [3][]byte, w, h int, err error) {
	r, err := jpeg.NewReader(data, by)
	if err != nil {
		return planes, 0, 0, err
	}
	var band jpeg.Band
	for lines := 0; ; lines += band.Lines {
		if err := r.Next(&band); errors.Is(err, io.EOF) {
			if lines != r.Height {
				return planes, 0, 0, fmt.Errorf("%d of %d lines", lines, r.Height)
			}
			return planes, r.Width, r.Height, nil
		} else if err != nil {
			return planes, 0, 0, err
		}
		for i := range planes {
			for y := range band.Lines {
				planes[i] = append(planes[i], band.Planes[i][y*band.Stride:][:r.Width]...)
			}
		}
	}
}

// point is what the definition of the transform says of one pixel of a block that
// becomes nx × ny of them.
func point(b *[64]int, x, y, nx, ny int) float64 {
	sum := 0.0
	for v := range ny {
		for u := range nx {
			f := float64(b[8*v+u]) / 4
			if u == 0 {
				f /= math.Sqrt2
			}
			if v == 0 {
				f /= math.Sqrt2
			}
			sum += f * math.Cos(float64(2*x+1)*float64(u)*math.Pi/float64(2*nx)) * math.Cos(float64(2*y+1)*float64(v)*math.Pi/float64(2*ny))
		}
	}
	return max(0, min(255, 128+sum))
}

func shapes() []shape {
	var list []shape
	for _, sampling := range [][2]int{{1, 1}, {2, 1}, {1, 2}, {2, 2}, {4, 1}, {4, 2}} {
		for _, restart := range []int{0, 1, 3} {
			list = append(list, shape{77, 45, sampling[0], sampling[1], restart}, shape{64, 32, sampling[0], sampling[1], restart})
		}
	}
	return append(list, shape{1, 1, 2, 2, 0}, shape{400, 9, 1, 1, 2})
}

// Each pixel is what the definition says; the whole is what image/jpeg accepts.
func TestAsDefined(t *testing.T) {
	t.Parallel()
	for i, s := range shapes() {
		f := newFixture(rand.New(rand.NewPCG(1, uint64(i))), s)
		if _, err := stdjpeg.Decode(bytes.NewReader(f.file)); err != nil {
			t.Fatalf("%+v: image/jpeg: %v", s, err)
		}
		for _, by := range []int{2, 4, 8} {
			planes, w, h, err := all(f.file, by)
			if s.across > by || s.down > by {
				if !errors.Is(err, jpeg.ErrOther) {
					t.Errorf("%+v by %d: %v; colour would have to be made larger", s, by, err)
				}
				continue
			}
			if err != nil || w != (s.w+by-1)/by || h != (s.h+by-1)/by {
				t.Fatalf("%+v by %d: %d × %d, %v", s, by, w, h, err)
			}
			for c, plane := range planes {
				across, down := s.across, s.down
				if c > 0 {
					across, down = 1, 1
				}
				nx, ny := 8*s.across/across/by, 8*s.down/down/by
				perLine := (s.w + 8*s.across - 1) / (8 * s.across)
				for i, got := range plane {
					x, y := i%w, i/w
					bx, by := x/nx, y/ny
					mcu := by/down*perLine + bx/across
					b := &f.blocks[c][mcu*across*down+by%down*across+bx%across]
					if want := point(b, x%nx, y%ny, nx, ny); math.Abs(want-float64(got)) > 1 {
						t.Fatalf("%+v: plane %d at %d, %d: %d instead of %.1f", s, c, x, y, got, want)
					}
				}
			}
		}
	}
}

// Where colour keeps its size it is that of image/jpeg.
func TestAsImageJPEG(t *testing.T) {
	t.Parallel()
	f := newFixture(rand.New(rand.NewPCG(7, 7)), shape{160, 96, 2, 2, 0})
	m, err := stdjpeg.Decode(bytes.NewReader(f.file))
	if err != nil {
		t.Fatal(err)
	}
	planes, w, _, err := all(f.file, 2)
	if err != nil {
		t.Fatal(err)
	}
	want := m.(*image.YCbCr)
	for i, got := range planes[2] {
		if d := int(got) - int(want.Cr[i/w*want.CStride+i%w]); d < -1 || d > 1 {
			t.Fatalf("Cr at %d, %d: %d more", i%w, i/w, d)
		}
	}
}

// What is cut off anywhere, or goes on after its end, is left to others.
func TestDamaged(t *testing.T) {
	t.Parallel()
	for _, s := range []shape{{77, 45, 2, 2, 0}, {77, 45, 2, 2, 2}, {40, 40, 1, 1, 0}} {
		file := newFixture(rand.New(rand.NewPCG(3, 3)), s).file
		for n := range file {
			if _, _, _, err := all(file[:n], 2); !errors.Is(err, jpeg.ErrOther) {
				t.Fatalf("%+v: %d of %d bytes: %v", s, n, len(file), err)
			}
		}
		more := append(bytes.Clone(file[:len(file)-2]), 0x12, 0x34, 0xff, 0xd9)
		if _, _, _, err := all(more, 2); !errors.Is(err, jpeg.ErrOther) {
			t.Errorf("%+v: bytes behind the picture: %v", s, err)
		}
		if _, _, _, err := all(append(bytes.Clone(file), "behind the end"...), 2); err != nil {
			t.Errorf("%+v: bytes behind the end: %v", s, err)
		}
	}
}

// Kinds that are left to image/jpeg.
func TestOthers(t *testing.T) {
	t.Parallel()
	file := newFixture(rand.New(rand.NewPCG(3, 3)), shape{40, 40, 2, 2, 0}).file
	frame := bytes.Index(file, []byte{0xff, 0xc0})
	with := func(at int, b ...byte) []byte {
		changed := bytes.Clone(file)
		copy(changed[at:], b)
		return changed
	}
	var gray bytes.Buffer
	if err := stdjpeg.Encode(&gray, image.NewGray(image.Rect(0, 0, 32, 32)), nil); err != nil {
		t.Fatal(err)
	}
	rgb := append([]byte("\xff\xd8\xff\xee\x00\x0eAdobe\x00\x64\x00\x00\x00\x00\x00"), file[2+18:]...)
	ycc := bytes.Clone(rgb)
	ycc[17] = 1 // the transform
	for name, c := range map[string]struct {
		data []byte
		want error
	}{
		"as it is": {file, nil}, "progressive": {with(frame+1, 0xc2), jpeg.ErrOther}, "arithmetic": {with(frame+1, 0xc9), jpeg.ErrOther},
		"12 bits": {with(frame+4, 12), jpeg.ErrOther}, "no lines": {with(frame+5, 0, 0), jpeg.ErrOther}, "gray": {gray.Bytes(), jpeg.ErrOther},
		"red, green, blue": {rgb, jpeg.ErrOther}, "Adobe's usual colours": {ycc, nil}, "no JPEG": {[]byte("GIF89a"), jpeg.ErrOther}, "nothing": {nil, jpeg.ErrOther},
		"colour in four blocks": {with(frame+14, 0x22), jpeg.ErrOther}, "no such quantities": {with(frame+12, 3), jpeg.ErrOther},
	} {
		if _, _, _, err := all(c.data, 2); !errors.Is(err, c.want) || (err == nil) != (c.want == nil) {
			t.Errorf("%s: %v, not %v", name, err, c.want)
		}
	}
}

// Hostile bytes end in an error, and what is accepted image/jpeg accepts.
func FuzzReader(f *testing.F) {
	for i, s := range shapes() {
		f.Add(newFixture(rand.New(rand.NewPCG(5, uint64(i))), s).file, uint8(i))
	}
	f.Fuzz(func(t *testing.T, data []byte, which uint8) {
		by := 2 << (which % 3)
		r, err := jpeg.NewReader(data, by)
		if err != nil || r.Full[0]*r.Full[1] > 1<<20 { // sizes are bounded by the caller
			return
		}
		if _, _, _, err := all(data, by); err != nil {
			return
		}
		m, err := stdjpeg.Decode(bytes.NewReader(data))
		if err != nil {
			t.Fatalf("image/jpeg refuses it: %v", err)
		}
		if m.Bounds().Dx() != r.Full[0] || m.Bounds().Dy() != r.Full[1] {
			t.Fatalf("%v is not %v", m.Bounds(), r.Full)
		}
	})
}
