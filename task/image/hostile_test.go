package image_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"hash/crc32"
	stdimage "image"
	"image/color"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/task/image"
)

func code(err error) string { return forebay.CauseOf(err, time.Now()).Code }

// bomb is a small PNG that says that it is very large.
func bomb(w, h uint32) []byte {
	data := make([]byte, 0, 64)
	data = append(data, "\x89PNG\r\n\x1a\n\x00\x00\x00\x0d"...)
	chunk := append([]byte("IHDR"), 0, 0, 0, 0, 0, 0, 0, 0, 8, 6, 0, 0, 0)
	binary.BigEndian.PutUint32(chunk[4:], w)
	binary.BigEndian.PutUint32(chunk[8:], h)
	data = append(data, chunk...)
	return binary.BigEndian.AppendUint32(data, crc32.ChecksumIEEE(chunk))
}

func TestRefusedForGood(t *testing.T) {
	t.Parallel()
	photo := jpegOf(t, photo(400, 300))
	both(t, func(t *testing.T, backend string) {
		r := newRig(t, image.Config{Backend: backend, MaxBytes: 1 << 20})
		for name, c := range map[string]struct {
			data  []byte
			code  string
			steps []image.Step
		}{
			"truncated JPEG":   {photo[:len(photo)/2], "damaged_image", nil},
			"truncated PNG":    {pngOf(t, corners(300, 300))[:300], "damaged_image", nil},
			"header only":      {photo[:12], "damaged_image", nil},
			"text":             {[]byte("<script>alert(1)</script>"), "not_an_image", nil},
			"SVG":              {[]byte(`<svg xmlns="http://www.w3.org/2000/svg"/>`), "not_an_image", nil},
			"PDF":              {[]byte("%PDF-1.4\n"), "not_an_image", nil},
			"empty":            {nil, "not_an_image", nil},
			"100 megapixels":   {bomb(10_000, 10_000), "too_many_pixels", nil},
			"a wide one":       {bomb(1_000_000, 1_000_000), "too_many_pixels", nil},
			"too many bytes":   {make([]byte, 1<<20+1), "too_large", nil},
			"zip in a JPEG":    {append([]byte("\xff\xd8\xff\xe0"), bytes.Repeat([]byte("PK\x03\x04"), 100)...), "damaged_image", nil},
			"a bad watermark":  {photo, "bad_watermark", []image.Step{{Op: "watermark", Image: "text"}}},
			"unknown step":     {photo, "bad_data", []image.Step{{Op: "rotate"}}},
			"no such mark":     {photo, "source_missing", []image.Step{{Op: "watermark", Image: "none"}}},
			"enormous box":     {photo, "bad_data", []image.Step{{Op: "resize", Width: 1 << 20}}},
			"no letters":       {photo, "bad_data", []image.Step{{Op: "watermark", Text: "版权"}}},
			"same name, twice": {photo, "bad_data", []image.Step{{Op: "convert", Format: "png"}, {Op: "convert", Format: "png"}, {Op: "compress"}}},
		} {
			r.put(t, "text", []byte("no image"))
			r.put(t, "a", c.data)
			_, err := r.do(t.Context(), image.Data{Source: "a", Steps: c.steps})
			if !forebay.IsPermanent(err) || code(err) != c.code {
				t.Errorf("%s: %s, %v; a refusal for good with %s is expected", name, code(err), err, c.code)
			}
		}
		_, err := r.do(t.Context(), image.Data{Source: "nothing/here"})
		if !forebay.IsPermanent(err) || code(err) != "source_missing" {
			t.Errorf("a source that is not there: %v", err)
		}
		_, err = r.HandleJob(t.Context(), r.job(map[string]any{"source": "a", "sizes": 3}))
		if !forebay.IsPermanent(err) || code(err) != "bad_data" {
			t.Errorf("an unknown field: %v", err)
		}
		for range r.store.List(t.Context(), "images/") {
			t.Error("a refused picture left an output")
		}
	})
}

func TestKindsOfColour(t *testing.T) {
	t.Parallel()
	cmyk, err := os.ReadFile("testdata/cmyk.jpg") // inks, without a profile
	if err != nil {
		t.Fatal(err)
	}
	p3, err := os.ReadFile("testdata/p3.png") // Display P3, by its profile
	if err != nil {
		t.Fatal(err)
	}
	deep := stdimage.NewNRGBA64(stdimage.Rect(0, 0, 160, 120))
	want := stdimage.NewNRGBA(deep.Rect)
	for y := range 120 {
		for x := range 160 {
			c := color.NRGBA64{uint16(x * 409), uint16(y * 546), 0x8000, 0xffff}
			deep.SetNRGBA64(x, y, c)
			want.SetNRGBA(x, y, color.NRGBA{uint8(c.R >> 8), uint8(c.G >> 8), 0x80, 255})
		}
	}
	gray := stdimage.NewGray(stdimage.Rect(0, 0, 120, 90))
	for i := range gray.Pix {
		gray.Pix[i] = uint8(i / 60)
	}
	vips, plain := newRig(t, image.Config{Backend: "vips"}), newRig(t, image.Config{Backend: "go"})
	for name, c := range map[string]struct {
		data  []byte
		least float64 // dB between the backends
		want  stdimage.Image
	}{
		"CMYK":        {cmyk, 24, nil},
		"Display P3":  {p3, 38, nil},
		"16-bit PNG":  {pngOf(t, deep), 45, want},
		"gray JPEG":   {jpegOf(t, gray), 38, gray},
		"palette GIF": {gifOf(t, corners(90, 60)), 38, nil},
	} {
		steps := []image.Step{{Op: "convert", Format: "png"}, {Op: "watermark", Text: "x", Opacity: new(float64)}}
		a, _ := vips.get(t, vips.must(t, c.data, steps...).Picture)
		b, _ := plain.get(t, plain.must(t, c.data, steps...).Picture)
		if db := psnr(a, b); db < c.least {
			t.Errorf("%s: %.1f dB between the backends", name, db)
		}
		for backend, m := range map[string]stdimage.Image{"vips": a, "go": b} {
			if c.want != nil && psnr(m, c.want) < 36 {
				t.Errorf("%s, %s: %.1f dB", name, backend, psnr(m, c.want))
			}
		}
	}
}

// A WebP has at most 16383 pixels on a side: a real compression that cannot work.
func TestFailedCompressionFallsBack(t *testing.T) {
	t.Parallel()
	wide := pngOf(t, corners(16_400, 4))
	both(t, func(t *testing.T, backend string) {
		r := newRig(t, image.Config{Backend: backend})
		result := r.must(t, wide, image.Step{Op: "compress", Format: "webp"}, image.Step{Op: "thumbnail", Sizes: []image.Size{{Width: 100}}})
		if !result.Fallback || result.URL != "/files/originals/a" || result.Width != 16_400 || result.Bytes != int64(len(wide)) || len(result.Variants) != 1 {
			t.Errorf("result: %+v", result)
		}
		if len(r.log) != 1 || !strings.Contains(r.log[0], "compression failed") {
			t.Errorf("log: %v", r.log)
		}
		// Any other step that fails fails the attempt.
		_, err := r.do(t.Context(), image.Data{Source: "originals/a", Steps: []image.Step{{Op: "convert", Format: "webp"}}})
		if code(err) != "cannot_encode" {
			t.Errorf("a failed conversion: %v", err)
		}
	})
}

// processes are those that work in a folder, or below.
func processes(dir string) (pids []int) {
	links, _ := filepath.Glob("/proc/[0-9]*/cwd")
	for _, link := range links {
		if cwd, err := os.Readlink(link); err == nil && strings.HasPrefix(cwd, dir) {
			pid := 0
			for _, c := range filepath.Base(filepath.Dir(link)) {
				pid = pid*10 + int(c-'0')
			}
			pids = append(pids, pid)
		}
	}
	return pids
}

var slow = []image.Step{{Op: "resize", Width: 1500}, {Op: "convert", Format: "avif", Quality: 90}}

func TestKilledProcess(t *testing.T) {
	t.Parallel()
	source := jpegOf(t, photo(1600, 1200))
	both(t, func(t *testing.T, backend string) {
		r := newRig(t, image.Config{Backend: backend})
		r.put(t, "a", source)
		killed := make(chan bool, 1)
		r.onTell = func(p forebay.Progress) {
			if p.Stage != "convert" {
				return
			}
			go func() { // vips begins after this
				for t.Context().Err() == nil {
					for _, pid := range processes(r.temp) {
						if syscall.Kill(pid, syscall.SIGKILL) == nil {
							killed <- true
							return
						}
					}
				}
			}()
		}
		_, err := r.do(t.Context(), image.Data{Source: "a", Steps: slow})
		<-killed
		if err == nil || forebay.IsPermanent(err) || code(err) != "image_process" {
			t.Errorf("a killed process: %s, %v", code(err), err)
		}
		r.mu.Lock()
		r.onTell = nil
		r.mu.Unlock()
		if _, err := r.do(t.Context(), image.Data{Source: "a"}); err != nil { // the next attempt has a new process
			t.Error(err)
		}
	})
}

func TestCancelled(t *testing.T) {
	t.Parallel()
	source := jpegOf(t, photo(1600, 1200))
	both(t, func(t *testing.T, backend string) {
		r := newRig(t, image.Config{Backend: backend})
		r.put(t, "a", source)
		ctx, cancel := context.WithCancelCause(t.Context())
		r.onTell = func(p forebay.Progress) {
			if p.Stage == "convert" {
				cancel(forebay.ErrCancelled)
			}
		}
		if _, err := r.do(ctx, image.Data{Source: "a", Steps: slow}); !errors.Is(err, forebay.ErrCancelled) {
			t.Errorf("cancelled: %v", err)
		}
		if backend == "vips" { // a process in Go was killed, and is waited for by Close
			if left := processes(r.temp); len(left) != 0 {
				t.Errorf("processes are left: %v", left)
			}
		}
		r.Close()
		if left := processes(r.temp); len(left) != 0 {
			t.Errorf("processes are left: %v", left)
		}
	})
}

func TestTooSlow(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, backend string) {
		r := newRig(t, image.Config{Backend: backend, Timeout: 1}) // a nanosecond
		r.put(t, "a", jpegOf(t, photo(100, 100)))
		if _, err := r.do(t.Context(), image.Data{Source: "a"}); err == nil || forebay.IsPermanent(err) || code(err) != "image_timeout" {
			t.Errorf("got %s, %v", code(err), err)
		}
	})
}

// A process that needs more memory than it may have fails, and nothing else does.
func TestMemoryIsBounded(t *testing.T) {
	t.Parallel()
	source := withEXIF(jpegOf(t, corners(6000, 5000)), 6) // which cannot be turned line by line
	for backend, most := range map[string]int64{"vips": 150 << 20, "go": 100 << 20} {
		r := newRig(t, image.Config{Backend: backend, MaxMemory: most})
		r.put(t, "a", source)
		_, err := r.do(t.Context(), image.Data{Source: "a", Steps: []image.Step{{Op: "convert", Format: "png"}}})
		if err == nil || forebay.IsPermanent(err) {
			t.Errorf("%s: a picture of 30 million pixels in %d MiB: %v", backend, most>>20, err)
		}
	}
}

func TestWarming(t *testing.T) {
	t.Parallel()
	var asked []string
	cdn := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.URL.Path)
		if strings.HasSuffix(r.URL.Path, ".png") {
			w.WriteHeader(http.StatusBadGateway)
		}
	}))
	defer cdn.Close()
	r := newRig(t, image.Config{Warm: []string{cdn.URL + "/cdn"}})
	r.must(t, jpegOf(t, photo(80, 60)), image.Step{Op: "compress"}, image.Step{Op: "convert", Format: "png"})
	if got := strings.Join(asked, " "); got != "/cdn/images/job-1/image.jpg /cdn/images/job-1/image.png" {
		t.Errorf("asked for %s", got)
	}
	if len(r.log) != 1 || !strings.Contains(r.log[0], "502") { // told, and the job is done all the same
		t.Errorf("log: %v", r.log)
	}
}

func TestDoctor(t *testing.T) {
	t.Parallel()
	if got := newRig(t, image.Config{}).Doctor(); !strings.HasPrefix(got, "libvips 8.") {
		t.Errorf("doctor: %s", got)
	}
	if got := newRig(t, image.Config{Backend: "go"}).Doctor(); got != "pure Go, as set" {
		t.Errorf("doctor: %s", got)
	}
	if code := image.ChildMain([]string{"x"}, strings.NewReader(""), nil); code != 2 {
		t.Errorf("a child with arguments ends with %d", code)
	}
}
