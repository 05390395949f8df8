package image

import (
	"bytes"
	"errors"
	stdimage "image"
	stdjpeg "image/jpeg"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/kovidgoyal/imaging"

	"github.com/forebayhq/forebay/internal/jpeg"
)

// A lane holds what any weights make of any values: else colours would run into
// each other.
func TestLanesNeverOverflow(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		from := 1 + r.IntN(5000)
		to := 1 + r.IntN(from)
		for x, p := range lanczos(from, to) {
			sum, least, most := 0, 0, 0
			for _, w := range p.weights {
				sum, least, most = sum+int(w), least+min(0, 255*int(w)), most+max(0, 255*int(w))
			}
			if sum != one || p.from < 0 || p.from+len(p.weights) > from {
				t.Fatalf("%d to %d: pixel %d is made of %d, from %d, weights together %d", from, to, x, len(p.weights), p.from, sum)
			}
			if least+below*one < 0 || most+below*one+one/2 >= 1<<laneBits {
				t.Fatalf("%d to %d: pixel %d is between %d and %d", from, to, x, least/one, most/one)
			}
		}
	}
}

func TestSettle(t *testing.T) {
	t.Parallel()
	for v := -below; v < 512-below; v++ {
		sum := uint64((v+below)<<weightBits+one/2) * lanes
		want := byte(max(0, min(255, v)))
		if a, b, c := unpack(settle(sum)); a != want || b != want || c != want {
			t.Fatalf("%d settles as %d, %d, %d", v, a, b, c)
		}
	}
}

// noise is the hardest picture there is: it has all frequencies, and values that
// have to be cut off.
func noise(w, h int) *stdimage.NRGBA {
	m := stdimage.NewNRGBA(stdimage.Rect(0, 0, w, h))
	r := rand.New(rand.NewPCG(uint64(w), uint64(h)))
	for i := range m.Pix {
		m.Pix[i] = byte(r.Uint32()) | byte(255*(i%4/3))
		if i%4 < 3 && i/4%w/20%2 == 0 { // flat black and white between
			m.Pix[i] = byte(255 * (i / 4 / w / 10 % 2))
		}
	}
	return m
}

// The library that is used where there is transparency is the oracle.
func TestResizedAsImaging(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ from, to Size }{
		{Size{200, 150}, Size{120, 90}}, {Size{201, 99}, Size{13, 77}}, {Size{64, 64}, Size{64, 20}}, {Size{64, 64}, Size{20, 64}},
		{Size{300, 1}, Size{30, 1}}, {Size{1, 300}, Size{1, 30}}, {Size{90, 70}, Size{1, 1}}, {Size{1000, 3}, Size{1, 1}},
	} {
		m := noise(c.from.Width, c.from.Height)
		got, err := resized(m, c.to, true)
		if err != nil {
			t.Fatal(err)
		}
		want := asNRGBA(imaging.ResizeWithOpacity(m, c.to.Width, c.to.Height, imaging.Lanczos, true))
		for i, v := range want.Pix {
			if d := int(got.Pix[i]) - int(v); d < -1 || d > 1 {
				t.Fatalf("%v to %v: value %d is %d, not %d", c.from, c.to, i, got.Pix[i], v)
			}
		}
		if same, err := resized(m, c.from, true); err != nil || !bytes.Equal(same.Pix, m.Pix) {
			t.Errorf("%v: another picture at its own size, %v", c.from, err)
		}
	}
}

// waves have no frequency that a small picture cannot show.
func waves(w, h int) *stdimage.NRGBA {
	m := stdimage.NewNRGBA(stdimage.Rect(0, 0, w, h))
	for i := range m.Pix {
		x, y := float64(i/4%w), float64(i/4/w)
		m.Pix[i] = byte(128 + 60*math.Sin(x/(80+20*float64(i%4))) + 50*math.Cos(y/90))
		if i%4 == 3 {
			m.Pix[i] = 255
		}
	}
	return m
}

// A photo that is decoded at a part of its size is the one that is decoded in full;
// one that is damaged is not taken.
func TestReduced(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ from, box Size }{
		{Size{960, 640}, Size{300, 200}}, {Size{961, 643}, Size{150, 150}}, {Size{1599, 1201}, Size{130, 0}}, {Size{1600, 1200}, Size{10, 0}},
	} {
		var b bytes.Buffer
		if err := stdjpeg.Encode(&b, waves(c.from.Width, c.from.Height), &stdjpeg.Options{Quality: 95}); err != nil {
			t.Fatal(err)
		}
		s := source{Format: formatJPEG, Size: c.from}
		got, err := reduced(b.Bytes(), s, c.box)
		if err != nil {
			t.Fatalf("%+v: %v", c, err)
		}
		m, err := whole(b.Bytes(), s, c.box, nil)
		if err != nil {
			t.Fatal(err)
		}
		if want := asNRGBA(m); got.Rect != want.Rect {
			t.Errorf("%+v: %v and %v", c, got.Rect, want.Rect)
		} else if db := nearness(got.Pix, want.Pix); db < 42 {
			t.Errorf("%+v: %.1f dB", c, db)
		}
		for _, n := range []int{30, b.Len() / 2, b.Len() - 2} {
			if _, err := reduced(b.Bytes()[:n], s, c.box); !errors.Is(err, jpeg.ErrOther) {
				t.Errorf("%+v: %d of %d bytes: %v", c, n, b.Len(), err)
			}
		}
	}
}

func nearness(a, b []byte) float64 {
	sum := 1e-9
	for i := range a {
		d := float64(a[i]) - float64(b[i])
		sum += d * d
	}
	return 10 * math.Log10(255*255*float64(len(a))/sum)
}

// What a WebP stores comes back as the colours that it was made of.
func TestVideoRange(t *testing.T) {
	t.Parallel()
	for _, size := range []Size{{16, 16}, {17, 15}, {1, 1}} {
		for _, c := range [][3]byte{{0, 0, 0}, {255, 255, 255}, {250, 20, 10}, {10, 200, 90}, {20, 30, 255}} {
			m := stdimage.NewNRGBA(stdimage.Rect(0, 0, size.Width, size.Height))
			for i := 0; i < len(m.Pix); i += 4 {
				m.Pix[i], m.Pix[i+1], m.Pix[i+2], m.Pix[i+3] = c[0], c[1], c[2], 255
			}
			var b bytes.Buffer
			if err := encode(&b, m, output{Format: formatWebP, Quality: 95}); err != nil {
				t.Fatal(err)
			}
			back, err := decode(formatWebP, b.Bytes())
			if err != nil {
				t.Fatal(err)
			}
			got, err := resized(back, size, true)
			if err != nil {
				t.Fatal(err)
			}
			for i, v := range got.Pix {
				if d := int(v) - int(m.Pix[i]); d < -6 || d > 6 {
					t.Fatalf("%v of %v: %v", c, size, got.Pix[i/4*4:i/4*4+4])
				}
			}
		}
	}
}
