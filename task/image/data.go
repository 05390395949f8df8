package image

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/storage"
)

// Data is what a job says. Without steps it has those of DefaultSteps.
type Data struct {
	Source string `json:"source"` // the name of the original in the storage
	Steps  []Step `json:"steps,omitempty"`
}

// Step is one thing to be done. The order is always the same, whatever the order
// of the list: resize, watermarks, then the outputs (compress, convert,
// thumbnail), each of which is made of the resized and marked picture.
type Step struct {
	Op string `json:"op"` // resize, watermark, compress, convert or thumbnail

	// resize: the box that the picture has to fit in. It is never enlarged. Zero: no
	// bound on that side.
	Width  int `json:"width,omitempty"`
	Height int `json:"height,omitempty"`

	// compress, convert, thumbnail. An empty format is the source's for compress and
	// thumbnail (jpeg for a gif); convert needs one. Quality is 1 to 100; 80, of avif 60.
	Format  string `json:"format,omitempty"`
	Quality int    `json:"quality,omitempty"`

	Sizes []Size `json:"sizes,omitempty"` // thumbnail: the boxes

	// watermark: a text, or the name of a picture in the storage.
	Text    string   `json:"text,omitempty"`
	Image   string   `json:"image,omitempty"`
	Gravity string   `json:"gravity,omitempty"` // a side, a corner or center; southeast
	Opacity *float64 `json:"opacity,omitempty"` // 0 to 1; 0.6
	Margin  *float64 `json:"margin,omitempty"`  // share of the shorter side; 0.03
	Scale   float64  `json:"scale,omitempty"`   // height of the text, or the box of the picture, as a share of the shorter side; 0.05 and 0.25
}

// Size is a box.
type Size struct {
	Width  int `json:"width"`
	Height int `json:"height"`
}

// The operations. The origin calls convert format-convert.
const (
	opResize    = "resize"
	opWatermark = "watermark"
	opCompress  = "compress"
	opConvert   = "convert"
	opThumbnail = "thumbnail"
	opConvert2  = "format-convert"
)

// DefaultSteps are the image service's own: at most 1200 on each side, quality 80.
func DefaultSteps() []Step {
	return []Step{{Op: opResize, Width: 1200, Height: 1200}, {Op: opCompress, Quality: 80}}
}

// Bounds of one job.
const (
	maxSteps  = 16
	maxSizes  = 8
	maxMarks  = 4
	maxSide   = 65_500
	maxRunes  = 200
	maxMargin = 0.5
)

// Check tells what is wrong with the data of a job, and where.
func (d Data) Check() error {
	_, err := newPlan(d)
	return err
}

func decodeData(payload []byte, d *Data) error {
	dec := json.NewDecoder(bytes.NewReader(payload))
	dec.DisallowUnknownFields()
	if err := dec.Decode(d); err != nil {
		return bad("data", "%v", err)
	}
	return nil
}

func bad(field, format string, args ...any) error {
	e := forebay.Errorf(forebay.CodeInvalid, "image", format, args...)
	e.Field = field
	return e
}

// check is about one step alone.
func (s *Step) check(at string) error {
	switch s.Op {
	case opResize:
		return s.checkBox(at)
	case opWatermark:
		return s.checkMark(at)
	case opCompress, opConvert, opConvert2:
		return s.checkOutput(at)
	case opThumbnail:
		if len(s.Sizes) == 0 || len(s.Sizes) > maxSizes {
			return bad(at+".sizes", "there are %d sizes; 1 to %d are allowed", len(s.Sizes), maxSizes)
		}
		for i, z := range s.Sizes {
			if err := (&Step{Width: z.Width, Height: z.Height}).checkBox(fmt.Sprintf("%s.sizes[%d]", at, i)); err != nil {
				return err
			}
		}
		return s.checkOutput(at)
	}
	return bad(at+".op", "the operation is %q; resize, watermark, compress, convert and thumbnail are allowed", s.Op)
}

func (s *Step) checkBox(at string) error {
	for name, v := range map[string]int{"width": s.Width, "height": s.Height} {
		if v < 0 || v > maxSide {
			return bad(at+"."+name, "the %s is %d; 1 to %d is allowed", name, v, maxSide)
		}
	}
	if s.Width == 0 && s.Height == 0 {
		return bad(at+".width", "there is neither width nor height")
	}
	return nil
}

func (s *Step) checkOutput(at string) error {
	if s.Quality < 0 || s.Quality > 100 {
		return bad(at+".quality", "the quality is %d; 1 to 100 is allowed", s.Quality)
	}
	needed := s.Op == opConvert || s.Op == opConvert2
	if _, ok := extension(s.Format); !ok && (needed || s.Format != "") {
		return bad(at+".format", "the format is %q; jpeg, png, webp and avif are allowed", s.Format)
	}
	return nil
}

func (s *Step) checkMark(at string) error {
	if (s.Text == "") == (s.Image == "") {
		return bad(at+".text", "a watermark is a text or an image, one of both")
	}
	if n := utf8.RuneCountInString(s.Text); n > maxRunes {
		return bad(at+".text", "the text has %d characters; at most %d are allowed", n, maxRunes)
	}
	if err := readable(s.Text); err != nil {
		return bad(at+".text", "%v", err)
	}
	if s.Image != "" && storage.CheckName(s.Image) != nil {
		return bad(at+".image", "%q is not the name of an object", s.Image)
	}
	if _, ok := gravities[strings.ToLower(s.Gravity)]; !ok {
		return bad(at+".gravity", "the gravity is %q; north, northeast, east, southeast, south, southwest, west, northwest and center are allowed", s.Gravity)
	}
	if s.Opacity != nil && !(*s.Opacity >= 0 && *s.Opacity <= 1) {
		return bad(at+".opacity", "the opacity is %g; 0 to 1 is allowed", *s.Opacity)
	}
	if s.Margin != nil && !(*s.Margin >= 0 && *s.Margin <= maxMargin) {
		return bad(at+".margin", "the margin is %g; 0 to %g is allowed", *s.Margin, maxMargin)
	}
	if !(s.Scale >= 0 && s.Scale <= 1) {
		return bad(at+".scale", "the scale is %g; 0 to 1 is allowed", s.Scale)
	}
	return nil
}
