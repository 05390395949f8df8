package image

import (
	"errors"
	"fmt"
	stdimage "image"
	"image/color"
	"image/draw"
	"strings"

	"github.com/kovidgoyal/imaging/nrgb"
	"golang.org/x/image/font"
	"golang.org/x/image/font/gofont/gobold"
	"golang.org/x/image/font/opentype"
	"golang.org/x/image/font/sfnt"
	"golang.org/x/image/math/fixed"
)

// mark is a watermark. Both backends lay it on with the same code, on pixels.
type mark struct {
	Text    string  `json:"text,omitempty"`
	Source  *source `json:"source,omitempty"`
	Gravity string  `json:"gravity"`
	Opacity float64 `json:"opacity"`
	Margin  float64 `json:"margin"`
	Scale   float64 `json:"scale"`
}

func newMark(s Step, n int) mark {
	m := mark{Text: s.Text, Gravity: strings.ToLower(s.Gravity), Opacity: 0.6, Margin: 0.03, Scale: 0.05}
	if s.Image != "" {
		m.Source, m.Scale = &source{Name: s.Image, File: fmt.Sprintf("mark%d", n)}, 0.25
	}
	if s.Opacity != nil {
		m.Opacity = *s.Opacity
	}
	if s.Margin != nil {
		m.Margin = *s.Margin
	}
	if s.Scale != 0 {
		m.Scale = s.Scale
	}
	return m
}

// gravities are the places, as shares of the room that is left.
var gravities = map[string][2]float64{
	"": {1, 1}, "north": {0.5, 0}, "northeast": {1, 0}, "east": {1, 0.5}, "southeast": {1, 1}, "south": {0.5, 1},
	"southwest": {0, 1}, "west": {0, 0.5}, "northwest": {0, 0}, "center": {0.5, 0.5}, "centre": {0.5, 0.5},
}

// box is what the mark has to fit in on a picture of this size.
func (m *mark) box(on Size) Size {
	margin := m.pixels(on, m.Margin)
	room := Size{max(1, on.Width-2*margin), max(1, on.Height-2*margin)}
	if m.Source != nil {
		side := max(1, m.pixels(on, m.Scale))
		room = Size{min(room.Width, side), min(room.Height, side)}
	}
	return room
}

func (m *mark) pixels(on Size, share float64) int {
	return int(float64(min(on.Width, on.Height))*share + 0.5)
}

// place is the upper left corner of a mark.
func (m *mark) place(on, mark Size) (x, y int) {
	margin := m.pixels(on, m.Margin)
	g := gravities[m.Gravity]
	x = margin + int(float64(on.Width-2*margin-mark.Width)*g[0]+0.5)
	y = margin + int(float64(on.Height-2*margin-mark.Height)*g[1]+0.5)
	return max(0, x), max(0, y)
}

// readable tells whether the font has all letters of a text.
func readable(text string) error {
	f, err := opentype.Parse(gobold.TTF)
	if err != nil {
		return err
	}
	var b sfnt.Buffer
	for _, r := range text {
		if i, err := f.GlyphIndex(&b, r); err != nil || i == 0 {
			return fmt.Errorf("the font has no %q; a watermark of an image may have any writing", r)
		}
	}
	return nil
}

// letters draws the text of a mark for a picture of this size: white, with a dark
// edge, so that it is seen on any ground.
func (m *mark) letters(on Size) (*stdimage.NRGBA, error) {
	f, err := opentype.Parse(gobold.TTF)
	if err != nil {
		return nil, err
	}
	room, size := m.box(on), max(float64(m.pixels(on, m.Scale)), 4)
	face, width, err := measure(f, m.Text, size)
	if err != nil {
		return nil, err
	}
	if width > room.Width { // smaller, so that it fits
		size = max(1, size*float64(room.Width)/float64(width))
		if face, width, err = measure(f, m.Text, size); err != nil {
			return nil, err
		}
	}
	height := face.Metrics().Height.Ceil()
	if width < 1 || height < 1 || width > 4*maxSide || height > maxSide {
		return nil, errors.New("the text has no size")
	}
	edge := max(1, int(size/24))
	img := stdimage.NewNRGBA(stdimage.Rect(0, 0, width+2*edge, height+2*edge))
	write := func(c color.Color, dx, dy int) {
		d := font.Drawer{Dst: img, Src: stdimage.NewUniform(c), Face: face,
			Dot: fixed.P(edge+dx, edge+dy+face.Metrics().Ascent.Ceil())}
		d.DrawString(m.Text)
	}
	write(color.NRGBA{0, 0, 0, 160}, edge, edge)
	write(color.White, 0, 0)
	return img, nil
}

func measure(f *opentype.Font, text string, size float64) (font.Face, int, error) {
	face, err := opentype.NewFace(f, &opentype.FaceOptions{Size: size, DPI: 72, Hinting: font.HintingNone})
	if err != nil {
		return nil, 0, err
	}
	return face, font.MeasureString(face, text).Ceil(), nil
}

// lay blends a line of a mark (NRGBA) onto a line of pixels, which has one value
// (gray), two (and alpha), three (colour) or four (and alpha) for each pixel.
func lay(line []byte, bands int, mark []byte, opacity float64) {
	share := uint32(opacity*256 + 0.5)
	for x := 0; x*4 < len(mark) && (x+1)*bands <= len(line); x++ {
		src, dst := mark[x*4:x*4+4], line[x*bands:(x+1)*bands]
		a := uint32(src[3]) * share / 256
		if a == 0 {
			continue
		}
		colours := bands
		if bands%2 == 0 { // the last one is alpha
			colours--
		}
		under := uint32(255)
		if colours < bands {
			under = uint32(dst[colours])
		}
		// The "over" of two colours that are not multiplied by their alpha.
		out := a + under*(255-a)/255
		for i := range colours {
			v := uint32(src[i])
			if colours == 1 {
				v = (299*uint32(src[0]) + 587*uint32(src[1]) + 114*uint32(src[2])) / 1000
			}
			dst[i] = uint8((v*a + uint32(dst[i])*under*(255-a)/255 + out/2) / out)
		}
		if colours < bands {
			dst[colours] = uint8(out)
		}
	}
}

// asNRGBA gives the pixels of any image.
func asNRGBA(m stdimage.Image) *stdimage.NRGBA {
	if n, ok := m.(*stdimage.NRGBA); ok && n.Rect.Min == (stdimage.Point{}) && n.Stride == 4*n.Rect.Dx() {
		return n
	}
	n := stdimage.NewNRGBA(stdimage.Rect(0, 0, m.Bounds().Dx(), m.Bounds().Dy()))
	if opaque, ok := m.(*nrgb.Image); ok { // what resizing gives, which draw knows nothing of
		for y := range n.Rect.Dy() {
			from, to := opaque.Pix[y*opaque.Stride:], n.Pix[y*n.Stride:][:n.Stride]
			for x := 0; x < len(to); x += 4 {
				to[x], to[x+1], to[x+2], to[x+3] = from[0], from[1], from[2], 255
				from = from[3:]
			}
		}
		return n
	}
	draw.Draw(n, n.Rect, m, m.Bounds().Min, draw.Src)
	return n
}
