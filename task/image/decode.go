package image

import (
	"bytes"
	"errors"
	"fmt"
	stdimage "image"
	"image/color"
	"image/gif"
	stdjpeg "image/jpeg"
	"image/png"
	"io"
	"os"

	"github.com/gen2brain/avif"
	"github.com/kovidgoyal/imaging"
	"github.com/kovidgoyal/imaging/prism/meta"
	"github.com/kovidgoyal/imaging/prism/meta/jpegmeta"
	"github.com/kovidgoyal/imaging/prism/meta/pngmeta"
	"github.com/kovidgoyal/imaging/prism/meta/webpmeta"
	"github.com/rwcarlsen/goexif/exif"
	"golang.org/x/image/webp"

	"github.com/forebayhq/forebay/internal/jpeg"
)

// load decodes a picture to upright sRGB pixels of 8 bits that fit in a box. It
// runs in a child process only.
func load(path string, s source, box Size) (*stdimage.NRGBA, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	md := metadata(s.Format, data)
	turn := orientation(md)
	if turn > 4 { // it lies on its side: the box is for the upright one
		box = Size{box.Height, box.Width}
	}
	small, err := reduced(data, s, box)
	var m stdimage.Image = small
	if errors.Is(err, jpeg.ErrOther) {
		m, err = whole(data, s, box, md)
	} else if err == nil {
		m, err = inSRGB(m, md)
	}
	if err != nil {
		return nil, err
	}
	return asNRGBA(upright(m, turn)), nil
}

// whole decodes all of a picture before it is made smaller.
func whole(data []byte, s source, box Size, md *meta.Data) (stdimage.Image, error) {
	m, err := decode(s.Format, data)
	if err != nil {
		return nil, err
	}
	size := Size{m.Bounds().Dx(), m.Bounds().Dy()}
	if int64(size.Width)*int64(size.Height) > int64(s.Width)*int64(s.Height) {
		return nil, fmt.Errorf("it has %d × %d pixels, and its header said %d × %d", size.Width, size.Height, s.Width, s.Height)
	}
	to := box.inside(size)
	m = eightBits(shrink(m, to))
	switch m.(type) {
	case *stdimage.Gray, *stdimage.CMYK: // profiles of these know no other values
		if m, err = inSRGB(m, md); err != nil {
			return nil, err
		}
		md = nil
	}
	if m, err = resized(m, to, imaging.IsOpaque(m)); err != nil {
		return nil, err
	}
	return inSRGB(m, md) // of fewer pixels
}

func decode(format string, data []byte) (stdimage.Image, error) {
	r := bytes.NewReader(data)
	switch format {
	case formatJPEG:
		return stdjpeg.Decode(r)
	case formatPNG:
		return png.Decode(r)
	case formatGIF:
		return gif.Decode(r) // the first frame
	case formatWebP:
		m, err := webp.Decode(r)
		return fullRange(m), err
	case formatAVIF:
		return avif.Decode(r)
	}
	return nil, fmt.Errorf("the format %q is not known", format)
}

// metadata reads what a file says about its picture; nil where it says nothing that
// can be understood, which leaves the picture as it is.
func metadata(format string, data []byte) *meta.Data {
	extract := map[string]func(io.Reader) (*meta.Data, error){
		formatJPEG: jpegmeta.ExtractMetadata, formatPNG: pngmeta.ExtractMetadata, formatWebP: webpmeta.ExtractMetadata,
	}[format]
	if extract == nil {
		return nil
	}
	md, err := extract(bytes.NewReader(data))
	if err != nil {
		return nil
	}
	return md
}

// orientation is EXIF's number, 1 to 8.
func orientation(md *meta.Data) int {
	if md == nil {
		return 1
	}
	x, err := md.Exif()
	if err != nil || x == nil {
		return 1
	}
	tag, err := x.Get(exif.Orientation)
	if err != nil || tag == nil || tag.Count < 1 {
		return 1
	}
	if n, err := tag.Int(0); err == nil && n >= 1 && n <= 8 {
		return n
	}
	return 1
}

// upright turns and mirrors a picture as EXIF says.
func upright(m stdimage.Image, orientation int) stdimage.Image {
	switch orientation {
	case 2:
		return imaging.FlipH(m)
	case 3:
		return imaging.Rotate180(m)
	case 4:
		return imaging.FlipV(m)
	case 5:
		return imaging.Transpose(m)
	case 6:
		return imaging.Rotate270(m)
	case 7:
		return imaging.Transverse(m)
	case 8:
		return imaging.Rotate90(m)
	}
	return m
}

// inSRGB converts by the file's own profile. A profile that cannot be read is
// ignored, as browsers do.
func inSRGB(m stdimage.Image, md *meta.Data) (stdimage.Image, error) {
	if md != nil {
		if profile, err := md.ICCProfile(); err == nil && profile != nil {
			return imaging.ConvertToSRGB(profile, imaging.Relative, true, m)
		}
	}
	if inks, ok := m.(*stdimage.CMYK); ok {
		return printed(inks), nil
	}
	return m, nil
}

// eightBits halves what has 16 bits for a value.
func eightBits(m stdimage.Image) stdimage.Image {
	switch m.(type) {
	case *stdimage.RGBA64, *stdimage.NRGBA64, *stdimage.Gray16:
	default:
		return m
	}
	b := m.Bounds()
	to := stdimage.NewNRGBA(stdimage.Rect(0, 0, b.Dx(), b.Dy()))
	for y := range b.Dy() {
		for x := range b.Dx() {
			c := color.NRGBA64Model.Convert(m.At(b.Min.X+x, b.Min.Y+y)).(color.NRGBA64)
			to.SetNRGBA(x, y, color.NRGBA{uint8(c.R >> 8), uint8(c.G >> 8), uint8(c.B >> 8), uint8(c.A >> 8)})
		}
	}
	return to
}
