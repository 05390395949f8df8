package image_test

import (
	"bytes"
	stdimage "image"
	"image/color"
	"image/gif"
	"testing"

	"github.com/forebayhq/forebay/task/image"
)

func gifOf(t testing.TB, m stdimage.Image) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := gif.Encode(&b, m, nil); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func plain(w, h int, c color.NRGBA) *stdimage.NRGBA {
	m := stdimage.NewNRGBA(stdimage.Rect(0, 0, w, h))
	for i := 0; i < len(m.Pix); i += 4 {
		m.Pix[i], m.Pix[i+1], m.Pix[i+2], m.Pix[i+3] = c.R, c.G, c.B, c.A
	}
	return m
}

// changed is the part of a picture that is not of one colour.
func changed(m stdimage.Image, c color.NRGBA) stdimage.Rectangle {
	var area stdimage.Rectangle
	for y := m.Bounds().Min.Y; y < m.Bounds().Max.Y; y++ {
		for x := m.Bounds().Min.X; x < m.Bounds().Max.X; x++ {
			if got := color.NRGBAModel.Convert(m.At(x, y)).(color.NRGBA); got != c {
				area = area.Union(stdimage.Rect(x, y, x+1, y+1))
			}
		}
	}
	return area
}

func TestWatermark(t *testing.T) {
	t.Parallel()
	ground := color.NRGBA{40, 90, 160, 255}
	half, none := 0.5, 0.0
	both(t, func(t *testing.T, backend string) {
		r := newRig(t, image.Config{Backend: backend})
		r.put(t, "logo", pngOf(t, plain(400, 200, color.NRGBA{255, 0, 0, 255})))
		source := pngOf(t, plain(800, 400, ground))
		for _, c := range []struct {
			step image.Step
			area stdimage.Rectangle
		}{
			{image.Step{Image: "logo", Gravity: "northwest", Margin: &none, Opacity: &half}, stdimage.Rect(0, 0, 100, 50)},
			{image.Step{Image: "logo", Opacity: &half}, stdimage.Rect(688, 338, 788, 388)},
			{image.Step{Image: "logo", Gravity: "center", Scale: 0.5, Opacity: &half}, stdimage.Rect(300, 150, 500, 250)},
			{image.Step{Text: "© Forebay", Gravity: "northeast"}, stdimage.Rect(400, 0, 800, 50)},
			{image.Step{Text: "a text that is too wide for its picture, so that it is made smaller until it fits", Scale: 0.5}, stdimage.Rect(0, 300, 800, 400)},
		} {
			c.step.Op = "watermark"
			m, _ := r.get(t, r.must(t, source, c.step, image.Step{Op: "convert", Format: "png"}).Picture)
			area := changed(m, ground)
			if c.step.Text != "" {
				if area.Empty() || !area.In(c.area) || area.Dy() < 8 {
					t.Errorf("%+v: marked at %v; within %v is expected", c.step, area, c.area)
				}
				continue
			}
			got := color.NRGBAModel.Convert(m.At(area.Min.X+5, area.Min.Y+5)).(color.NRGBA)
			if area != c.area || got != (color.NRGBA{147, 45, 80, 255}) {
				t.Errorf("%+v: marked at %v with %v; %v is expected", c.step, area, got, c.area)
			}
		}
	})
}

// A mark on what is clear keeps its own colour, and makes only itself seen.
func TestWatermarkOnTransparency(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, backend string) {
		r := newRig(t, image.Config{Backend: backend})
		r.put(t, "logo", pngOf(t, plain(100, 100, color.NRGBA{200, 100, 50, 255})))
		opacity := 0.5
		result := r.must(t, pngOf(t, plain(100, 100, color.NRGBA{0, 0, 0, 0})),
			image.Step{Op: "watermark", Image: "logo", Scale: 0.5, Gravity: "center", Opacity: &opacity}, image.Step{Op: "convert", Format: "png"})
		m, _ := r.get(t, result.Picture)
		in := color.NRGBAModel.Convert(m.At(50, 50)).(color.NRGBA)
		_, _, _, out := m.At(5, 5).RGBA()
		if in != (color.NRGBA{200, 100, 50, 127}) || out != 0 {
			t.Errorf("the mark is %v, and beside it alpha is %d", in, out)
		}
	})
}
