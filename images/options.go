package images

import (
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/forebayhq/forebay/task/image"
)

// The options of an upload beside its picture.
const (
	optWidth      = "width"
	optHeight     = "height"
	optQuality    = "quality"
	optFormat     = "format"
	optWatermark  = "watermark" // a text
	optGravity    = "gravity"
	optThumbnails = "thumbnails" // 200x200,64x64
	optSteps      = "steps"      // all of it, as JSON
)

var options = []string{optWidth, optHeight, optQuality, optFormat, optWatermark, optGravity, optThumbnails, optSteps}

// stepsOf makes steps of the options of an upload. What it does not know is refused:
// a slip of the pen would give a picture that nobody asked for, and say nothing.
func stepsOf(fields url.Values) ([]image.Step, error) {
	given := slices.DeleteFunc(slices.Sorted(maps.Keys(fields)), func(name string) bool { return fields.Get(name) == "" })
	for _, name := range given {
		if !slices.Contains(options, name) {
			return nil, invalid(name, "there is no option %q; allowed are %s", name, strings.Join(options, ", "))
		}
	}
	if text := fields.Get(optSteps); text != "" {
		if len(given) > 1 {
			return nil, invalid(optSteps, "steps say all, so no other option stands beside them; here are %s", strings.Join(given, ", "))
		}
		return decodeSteps(text)
	}
	resize, compress := image.DefaultSteps()[0], image.DefaultSteps()[1]
	for name, to := range map[string]*int{optWidth: &resize.Width, optHeight: &resize.Height, optQuality: &compress.Quality} {
		text := fields.Get(name)
		if text == "" {
			continue
		}
		n, ok := number(text)
		if !ok {
			return nil, invalid(name, "%q is no number above zero", text)
		}
		*to = n
	}
	if fields.Get(optWidth) != "" && fields.Get(optHeight) == "" {
		resize.Height = 0
	}
	if fields.Get(optHeight) != "" && fields.Get(optWidth) == "" {
		resize.Width = 0
	}
	steps := []image.Step{resize, compress}
	if text := fields.Get(optWatermark); text != "" {
		steps = append(steps, image.Step{Op: "watermark", Text: text, Gravity: fields.Get(optGravity)})
	} else if fields.Get(optGravity) != "" {
		return nil, invalid(optGravity, "gravity says where the watermark goes, and there is none")
	}
	if format := fields.Get(optFormat); format != "" {
		steps = append(steps, image.Step{Op: "convert", Format: format, Quality: qualityOf(fields, compress)})
	}
	return thumbnails(steps, fields.Get(optThumbnails))
}

// decodeSteps reads steps as strictly as their job will be read.
func decodeSteps(text string) ([]image.Step, error) {
	var steps []image.Step
	d := json.NewDecoder(strings.NewReader(text))
	d.DisallowUnknownFields()
	err := d.Decode(&steps)
	if err == nil {
		if _, rest := d.Token(); !errors.Is(rest, io.EOF) {
			return nil, invalid(optSteps, "something stands behind the list of steps")
		}
		return steps, nil
	}
	return nil, invalid(optSteps, "they are not a list of steps: %s", strings.TrimPrefix(err.Error(), "json: "))
}

// qualityOf is the one that was asked for: a format has a default of its own.
func qualityOf(fields url.Values, compress image.Step) int {
	if fields.Get(optQuality) == "" {
		return 0
	}
	return compress.Quality
}

func thumbnails(steps []image.Step, text string) ([]image.Step, error) {
	if text == "" {
		return steps, nil
	}
	s := image.Step{Op: "thumbnail"}
	for size := range strings.SplitSeq(text, ",") {
		width, height, _ := strings.Cut(strings.TrimSpace(size), "x")
		w, okWidth := number(width)
		h, okHeight := number(height)
		if !okWidth || !okHeight {
			return nil, invalid(optThumbnails, "%q is no size; 200x200,64x64 would be two", size)
		}
		s.Sizes = append(s.Sizes, image.Size{Width: w, Height: h})
	}
	return append(steps, s), nil
}
