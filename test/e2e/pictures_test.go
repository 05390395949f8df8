//go:build e2e && linux

package e2e

import (
	"bytes"
	"compress/zlib"
	endian "encoding/binary"
	"encoding/json"
	"hash/crc32"
	"image"
	"image/color"
	"image/jpeg"
	"image/png"
	"io"
	"math"
	"math/rand/v2"
	"mime/multipart"
	"net/http"
	"slices"
	"testing"

	"golang.org/x/image/webp"
)

// photo is like one: smooth light, hard edges, fine texture and grain.
func photo(w, h int) *image.NRGBA {
	m := image.NewNRGBA(image.Rect(0, 0, w, h))
	r := rand.New(rand.NewPCG(3, 4))
	for y := range h {
		fy := float64(y) / float64(h)
		for x := range w {
			fx := float64(x) / float64(w)
			light := 110 + 70*math.Sin(fx*6+fy*2) + 10*math.Sin(fx*fy*300)
			if math.Mod(fx*5, 1) < .2 && math.Mod(fy*4, 1) < .3 {
				light += 50
			}
			grain := r.Float64()*8 - 4
			m.SetNRGBA(x, y, color.NRGBA{level(light + grain), level(180*fy + light*.3 + grain), level(230 - light + grain), 255})
		}
	}
	return m
}

func level(v float64) uint8 { return uint8(math.Max(0, math.Min(255, v))) }

func jpegOf(t *testing.T, m image.Image) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := jpeg.Encode(&b, m, &jpeg.Options{Quality: 92}); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// turned gives a JPEG an EXIF block that says how the camera was held, and a text
// that nobody is to see.
func turned(b []byte, orientation uint16) []byte {
	tiff := []byte("II*\x00\x08\x00\x00\x00\x02\x00")
	entry := func(tag, kind uint16, count, value uint32) {
		tiff = endian.LittleEndian.AppendUint16(tiff, tag)
		tiff = endian.LittleEndian.AppendUint16(tiff, kind)
		tiff = endian.LittleEndian.AppendUint32(tiff, count)
		tiff = endian.LittleEndian.AppendUint32(tiff, value)
	}
	entry(0x0110, 2, uint32(len(camera)+1), 8+2+2*12+4)
	entry(0x0112, 3, 1, uint32(orientation))
	tiff = append(tiff, 0, 0, 0, 0)
	tiff = append(append(tiff, camera...), 0)
	block := append([]byte("Exif\x00\x00"), tiff...)
	head := endian.BigEndian.AppendUint16([]byte{0xff, 0xd8, 0xff, 0xe1}, uint16(len(block)+2))
	return slices.Concat(head, block, b[2:])
}

const camera = "a camera of somebody"

// deepPNG has 16 bits per channel.
func deepPNG(t *testing.T, w, h int) []byte {
	t.Helper()
	m := image.NewNRGBA64(image.Rect(0, 0, w, h))
	for y := range h {
		for x := range w {
			m.SetNRGBA64(x, y, color.NRGBA64{uint16(x * 65535 / w), uint16(y * 65535 / h), 0x8080, 0xffff})
		}
	}
	var b bytes.Buffer
	if err := png.Encode(&b, m); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// bombPNG is a few KiB that decode to 100 megapixels.
func bombPNG() []byte {
	const side = 10_000
	b := []byte("\x89PNG\r\n\x1a\n")
	chunk := func(kind string, data []byte) {
		b = endian.BigEndian.AppendUint32(b, uint32(len(data)))
		whole := append([]byte(kind), data...)
		b = endian.BigEndian.AppendUint32(append(b, whole...), crc32.ChecksumIEEE(whole))
	}
	head := endian.BigEndian.AppendUint32(nil, side)
	head = endian.BigEndian.AppendUint32(head, side)
	chunk("IHDR", append(head, 1, 0, 0, 0, 0)) // one bit per pixel
	var rows bytes.Buffer
	z := zlib.NewWriter(&rows)
	for range side {
		_, _ = z.Write(make([]byte, 1+side/8))
	}
	_ = z.Close()
	chunk("IDAT", rows.Bytes())
	chunk("IEND", nil)
	return b
}

// uploaded is the answer to an upload.
type uploaded struct {
	Code    int
	Message string
	Data    struct {
		JobID, Status, OriginalURL, ProgressURL, StreamURL string
		EstimatedSeconds                                   int
	}
}

// upload sends a picture as curl -F does; fields alternate between name and value.
func (s *server) upload(picture []byte, fields ...string) uploaded {
	s.t.Helper()
	var b bytes.Buffer
	form := multipart.NewWriter(&b)
	for i := 0; i < len(fields); i += 2 {
		if err := form.WriteField(fields[i], fields[i+1]); err != nil {
			s.t.Fatal(err)
		}
	}
	part, err := form.CreateFormFile("file", "photo.jpg")
	if err != nil {
		s.t.Fatal(err)
	}
	_, _ = part.Write(picture) // into memory
	_ = form.Close()
	status, body, err := post(s.t.Context(), s.url+"/api/images/upload", b.Bytes(), http.Header{"Content-Type": {form.FormDataContentType()}})
	if err != nil || status != http.StatusOK {
		s.t.Fatalf("upload: status %d, %v: %s", status, err, body)
	}
	var up uploaded
	if err := json.Unmarshal([]byte(body), &up); err != nil {
		s.t.Fatalf("upload: %v: %s", err, body)
	}
	return up
}

// made is the result of a picture's job.
type made struct {
	drawn
	Fallback bool
	Variants []drawn
}

type drawn struct {
	Name, URL, Format string
	Width, Height     int
	Bytes             int64
}

// fetch gets a result over HTTP, decodes it and compares it with what is said of it.
func (s *server) fetch(d drawn) image.Image {
	s.t.Helper()
	m, b := s.fetchBytes(d)
	if size := m.Bounds().Size(); size.X != d.Width || size.Y != d.Height || int64(len(b)) != d.Bytes {
		s.t.Errorf("%s is %v with %d bytes, and said to be %+v", d.URL, size, len(b), d)
	}
	return m
}

func (s *server) fetchBytes(d drawn) (image.Image, []byte) {
	s.t.Helper()
	res, err := client.Get(s.url + d.URL)
	if err != nil {
		s.t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if kind := res.Header.Get("Content-Type"); err != nil || res.StatusCode != http.StatusOK || kind != "image/"+d.Format {
		s.t.Fatalf("%s: status %d, %s, %v", d.URL, res.StatusCode, kind, err)
	}
	decode := map[string]func(io.Reader) (image.Image, error){"jpeg": jpeg.Decode, "png": png.Decode, "webp": webp.Decode}[d.Format]
	if decode == nil {
		s.t.Fatalf("%s has the format %q", d.URL, d.Format)
	}
	m, err := decode(bytes.NewReader(b))
	if err != nil {
		s.t.Fatalf("%s: %v", d.URL, err)
	}
	return m, b
}
