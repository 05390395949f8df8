package image

import (
	"bufio"
	"errors"
	"fmt"
	stdimage "image"
	"image/jpeg"
	"image/png"
	"io"
	"os"

	"github.com/gen2brain/avif"
	"github.com/gen2brain/webp"
)

// How hard the encoders try. Of WebP the next better methods give files that are 1 to 6 %
// smaller, and take half as long again in libvips and, without wide registers in
// WebAssembly, four times as long here.
const (
	webpMethod = 2
	avifSpeed  = 9
	webpSide   = 16383
)

// save writes one output, and gives its size.
func save(path string, base *stdimage.NRGBA, o output) (Size, error) {
	m := base
	if o.Box != (Size{}) {
		from := Size{m.Rect.Dx(), m.Rect.Dy()}
		var err error
		if m, err = resized(m, o.Box.inside(from), m.Opaque()); err != nil {
			return Size{}, err
		}
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return Size{}, err
	}
	w := bufio.NewWriterSize(f, 1<<16)
	if err = encode(w, m, o); err == nil {
		err = w.Flush()
	}
	return Size{m.Rect.Dx(), m.Rect.Dy()}, errors.Join(err, f.Close())
}

func encode(w io.Writer, m *stdimage.NRGBA, o output) error {
	switch o.Format {
	case formatJPEG:
		return jpeg.Encode(w, onWhite(m), &jpeg.Options{Quality: o.Quality})
	case formatPNG:
		return png.Encode(w, m)
	case formatWebP:
		if m.Rect.Dx() > webpSide || m.Rect.Dy() > webpSide {
			return fmt.Errorf("a WebP has at most %d pixels on a side; this picture is %d × %d", webpSide, m.Rect.Dx(), m.Rect.Dy())
		}
		// 100 would mean lossless.
		options := webp.Options{Quality: min(o.Quality, 99), Method: webpMethod}
		if m.Opaque() {
			return webp.Encode(w, video(m), options)
		}
		return webp.Encode(w, m, options)
	case formatAVIF:
		return avif.Encode(w, m, avif.Options{Quality: o.Quality, QualityAlpha: o.Quality, Speed: avifSpeed, ChromaSubsampling: stdimage.YCbCrSubsampleRatio420})
	}
	return fmt.Errorf("the format %q is not written", o.Format)
}

// onWhite gives the picture without transparency, as the type that the JPEG encoder
// is quick with.
func onWhite(m *stdimage.NRGBA) *stdimage.RGBA {
	if m.Opaque() {
		return &stdimage.RGBA{Pix: m.Pix, Stride: m.Stride, Rect: m.Rect}
	}
	to := stdimage.NewRGBA(m.Rect)
	for i := 0; i+4 <= len(m.Pix); i += 4 {
		a := uint32(m.Pix[i+3])
		for c := range 3 {
			to.Pix[i+c] = uint8((uint32(m.Pix[i+c])*a + 255*(255-a) + 127) / 255)
		}
		to.Pix[i+3] = 255
	}
	return to
}
