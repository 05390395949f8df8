package image

import (
	"bytes"
	"fmt"
	"image/color"
	"image/jpeg"
	"strconv"
	"strings"
)

// call is one command of vips that begins its work when something comes on its
// standard input, and writes one file into the folder that it runs in. So it can be
// started before there is anything to do: starting takes a third of the time of a
// picture (a hundred libraries are linked).
type call struct {
	args    []string
	out     string // the name of the file
	own     bool   // it reads nothing but pixels that we wrote
	modules bool   // AVIF
}

func (c *call) key() string { return strings.Join(c.args, "\x00") }

const pixelsOut = "out.v"

// loader decodes a picture to upright sRGB pixels of 8 bits that fit in a box. A
// large JPEG is decoded at a half, a quarter or an eighth of its size.
func loader(from *source, box Size) *call {
	if by, scale := from.shrinks(box); by > 1 {
		return &call{out: pixelsOut, args: []string{"resize", fmt.Sprintf("stdin[shrink=%d,autorotate=true,fail_on=truncated]", by), pixelsOut,
			strconv.FormatFloat(scale, 'g', -1, 64)}}
	}
	c := &call{out: pixelsOut, modules: from.Format == formatAVIF}
	c.args = append([]string{"thumbnail_source", "[descriptor=0]", pixelsOut}, fit(from, box)...)
	c.args = append(c.args, "--option-string", "[fail_on=truncated]") // libvips 8.14 forgets the other option here
	return c
}

// fit is how a thumbnail is made: into the box, and never larger.
func fit(from *source, box Size) []string {
	width, height := box.Width, box.Height
	if width == 0 {
		width = maxSide
	}
	if height == 0 {
		height = maxSide
	}
	args := []string{strconv.Itoa(width), "--height", strconv.Itoa(height), "--size", "down", "--fail-on", "truncated"}
	if from.Profile { // on pictures without one, libvips 8.14 does harm with this
		args = append(args, "--export-profile", "srgb")
	}
	return args
}

const pixelsIn = "in.v"

// saver makes one output of pixels. It looks for them when one pixel comes on its
// standard input: "if that then these, else these" is these, whatever it is.
func saver(o output) *call {
	ext, _ := extension(o.Format)
	options := fmt.Sprintf("strip=true,Q=%d", o.Quality)
	switch o.Format {
	case formatJPEG:
		options += ",background=255"
	case formatWebP:
		options += fmt.Sprintf(",effort=%d", webpMethod)
	case formatAVIF:
		options += ",compression=av1,bitdepth=8"
	case formatPNG:
		options = "strip=true,filter=all"
	}
	out := "out" + ext
	return &call{args: []string{"ifthenelse", "stdin", pixelsIn, pixelsIn, out + "[" + options + "]"}, out: out, own: true, modules: o.Format == formatAVIF}
}

// plain tells whether a JPEG may be decoded at a part of its size: one of colours
// that need no profile. What is not sure is not.
func plain(format string, head []byte) bool {
	if format != formatJPEG {
		return false
	}
	c, err := jpeg.DecodeConfig(bytes.NewReader(head))
	return err == nil && (c.ColorModel == color.YCbCrModel || c.ColorModel == color.GrayModel) && !profiled(format, head)
}

// shrinks tells by what a JPEG is divided while it is decoded, and the scale of what
// is left. As in Go, that is at least half as large again as what is wanted. A
// size that cannot be divided would make another shape by a hair; and a picture that
// EXIF may turn has to fit in a square, since nobody has looked how it lies.
func (s *source) shrinks(box Size) (by int, scale float64) {
	if !s.Plain || s.EXIF && box.Width != box.Height {
		return 1, 1
	}
	to := box.inside(s.Size)
	for by = 8; by > 1; by /= 2 {
		if s.Width%by == 0 && s.Height%by == 0 && s.Width*2 >= to.Width*by*3 && s.Height*2 >= to.Height*by*3 {
			break
		}
	}
	scale = float64(by)
	if box.Width > 0 {
		scale = min(scale, float64(box.Width*by)/float64(s.Width))
	}
	if box.Height > 0 {
		scale = min(scale, float64(box.Height*by)/float64(s.Height))
	}
	return by, scale
}
