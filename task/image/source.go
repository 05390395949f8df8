package image

import (
	"bytes"
	"encoding/binary"
	"image/gif"
	"image/jpeg"
	"image/png"
	"io"

	"golang.org/x/image/webp"
)

// Formats. All are read, and all but gif are written.
const (
	formatJPEG = "jpeg"
	formatPNG  = "png"
	formatWebP = "webp"
	formatAVIF = "avif"
	formatGIF  = "gif"
)

func extension(format string) (string, bool) {
	switch format {
	case formatJPEG, "jpg":
		return ".jpg", true
	case formatPNG, formatWebP, formatAVIF:
		return "." + format, true
	}
	return "", false
}

// source is a picture as its header tells it. Nothing of it was decoded.
type source struct {
	Name   string `json:"-"`    // in the storage
	File   string `json:"file"` // in the folder of the job
	Format string `json:"format"`
	Size          // as it is stored; EXIF may turn it

	Profile bool `json:"profile,omitempty"` // it seems to say what its colours mean (ICC)
	EXIF    bool `json:"-"`                 // it may say how it lies
	Plain   bool `json:"-"`                 // a JPEG of gray or of the usual colours
}

// memory is an upper guess at what one picture takes, by format: of a JPEG the
// planes, and of a progressive one all its coefficients.
func (s source) memory() int64 {
	perPixel := map[string]int64{formatJPEG: 14, formatPNG: 16, formatWebP: 12, formatAVIF: 16, formatGIF: 6}[s.Format]
	return 96<<20 + int64(s.Width)*int64(s.Height)*perPixel
}

// Sniff tells the format of a picture by its first bytes (32 are enough), or empty.
func Sniff(head []byte) string {
	switch {
	case bytes.HasPrefix(head, []byte("\xff\xd8\xff")):
		return formatJPEG
	case bytes.HasPrefix(head, []byte("\x89PNG\r\n\x1a\n")):
		return formatPNG
	case bytes.HasPrefix(head, []byte("GIF87a")), bytes.HasPrefix(head, []byte("GIF89a")):
		return formatGIF
	case len(head) >= 16 && string(head[:4]) == "RIFF" && string(head[8:15]) == "WEBPVP8":
		return formatWebP
	case len(head) >= 16 && string(head[4:8]) == "ftyp" && (string(head[8:12]) == "avif" || string(head[8:12]) == "avis"):
		return formatAVIF
	case len(head) >= 24 && string(head[4:12]) == "ftypmif1" && bytes.Contains(head, []byte("avif")):
		return formatAVIF
	}
	return ""
}

// profiled tells whether there seems to be an ICC profile in the beginning of a file.
func profiled(format string, head []byte) bool {
	sign := map[string]string{formatJPEG: "ICC_PROFILE\x00", formatPNG: "iCCP", formatWebP: "ICCP", formatAVIF: "colrprof"}[format]
	return sign != "" && bytes.Contains(head, []byte(sign))
}

// ContentType of a format; empty where there is none.
func ContentType(format string) string {
	switch format {
	case formatJPEG, formatPNG, formatWebP, formatAVIF, formatGIF:
		return "image/" + format
	}
	return ""
}

// header reads the size of a picture. It decodes nothing, and allocates little
// whatever the file says.
func header(format string, r io.ReadSeeker) (Size, error) {
	switch format {
	case formatJPEG:
		c, err := jpeg.DecodeConfig(r)
		return Size{c.Width, c.Height}, err
	case formatPNG:
		c, err := png.DecodeConfig(r)
		return Size{c.Width, c.Height}, err
	case formatGIF:
		c, err := gif.DecodeConfig(r)
		return Size{c.Width, c.Height}, err
	case formatWebP:
		return webpHeader(r)
	case formatAVIF:
		return avifHeader(r)
	}
	return Size{}, bad("source", "it is no picture: jpeg, png, webp, avif and gif are allowed")
}

// webpHeader refuses moving pictures, which would have to be decoded frame by frame
// to know what they need.
func webpHeader(r io.ReadSeeker) (Size, error) {
	head := make([]byte, 21)
	if _, err := io.ReadFull(r, head); err != nil {
		return Size{}, err
	}
	if string(head[12:16]) == "VP8X" && head[20]&2 != 0 {
		return Size{}, bad("source", "it is a moving WebP, which is not supported")
	}
	if _, err := r.Seek(0, io.SeekStart); err != nil {
		return Size{}, err
	}
	c, err := webp.DecodeConfig(r)
	return Size{c.Width, c.Height}, err
}

// avifHeader takes the largest size that the file's properties (ispe) name: tiles
// have smaller ones.
func avifHeader(r io.Reader) (Size, error) {
	meta, err := io.ReadAll(io.LimitReader(r, 1<<20)) // the properties are at the front
	if err != nil {
		return Size{}, err
	}
	var largest Size
	for i := bytes.Index(meta, []byte("ispe")); i >= 0; {
		if i+16 > len(meta) {
			break
		}
		w, h := binary.BigEndian.Uint32(meta[i+8:]), binary.BigEndian.Uint32(meta[i+12:])
		if uint64(w)*uint64(h) > uint64(largest.Width)*uint64(largest.Height) && w < 1<<30 && h < 1<<30 {
			largest = Size{int(w), int(h)}
		}
		next := bytes.Index(meta[i+4:], []byte("ispe"))
		if next < 0 {
			break
		}
		i += 4 + next
	}
	if largest == (Size{}) {
		return Size{}, bad("source", "it has no size")
	}
	return largest, nil
}
