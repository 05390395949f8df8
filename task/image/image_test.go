package image_test

import (
	"bytes"
	"context"
	"encoding/json"
	stdimage "image"
	"image/jpeg"
	"image/png"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/gen2brain/avif"
	"golang.org/x/image/webp"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/storage"
	"github.com/forebayhq/forebay/task/image"
	"github.com/forebayhq/forebay/worker"
)

const (
	childName     = "image-worker"
	childVariable = "FOREBAY_TEST_IMAGE_CHILD" // where it was built
)

// TestMain makes this program its own child process, as the real one is.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == childName {
		os.Exit(image.ChildMain(os.Args[2:], os.Stdin, os.Stdout))
	}
	os.Exit(testMain(m))
}

// testMain builds the child without the race detector, which makes WebAssembly ten
// times as slow, and without cgo, as the product is.
func testMain(m *testing.M) int {
	dir, err := os.MkdirTemp("", "forebay-child-")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	build := exec.Command("go", "test", "-c", "-tags", "nodynamic", "-o", filepath.Join(dir, "child"), ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		panic(string(out))
	}
	os.Setenv(childVariable, filepath.Join(dir, "child"))
	return m.Run()
}

// rig is a handler on a storage of its own.
type rig struct {
	*image.Handler
	store *storage.Store
	temp  string

	mu     sync.Mutex
	stages []string
	last   forebay.Progress
	log    []string
	onTell func(forebay.Progress)
}

func newRig(t *testing.T, cfg image.Config) *rig {
	t.Helper()
	store, err := storage.Open(t.Context(), storage.Config{Address: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	cfg.Store, cfg.TempDir = store, t.TempDir()
	cfg.Child = []string{os.Getenv(childVariable), childName}
	h, err := image.New(t.Context(), cfg)
	if err != nil {
		t.Fatalf("%v (make setup installs libvips-tools)", err)
	}
	t.Cleanup(func() {
		h.Close()
		if left, _ := os.ReadDir(cfg.TempDir); len(left) != 0 {
			t.Errorf("left in the folder for temporary files: %v", left)
		}
	})
	return &rig{Handler: h, store: store, temp: cfg.TempDir}
}

func (r *rig) tell(p *forebay.Progress, l *forebay.LogLine) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if l != nil {
		r.log = append(r.log, l.Text)
		return
	}
	r.stages, r.last = append(r.stages, p.Stage), *p
	if r.onTell != nil {
		r.onTell(*p)
	}
}

func (r *rig) put(t *testing.T, name string, data []byte) {
	t.Helper()
	if _, err := r.store.Put(t.Context(), name, "application/octet-stream", bytes.NewReader(data), 0); err != nil {
		t.Fatal(err)
	}
}

func (r *rig) job(data any) *worker.Job {
	payload, err := json.Marshal(data)
	if err != nil {
		panic(err)
	}
	return worker.NewJob(forebay.Delivery{Message: forebay.Message{ID: "job-1", Payload: payload}, Attempt: 1}, r.tell)
}

func (r *rig) do(ctx context.Context, d image.Data) (image.Result, error) {
	var result image.Result
	out, err := r.HandleJob(ctx, r.job(d))
	if err == nil {
		err = json.Unmarshal(out, &result)
	}
	return result, err
}

func (r *rig) must(t *testing.T, source []byte, steps ...image.Step) image.Result {
	t.Helper()
	r.put(t, "originals/a", source)
	result, err := r.do(t.Context(), image.Data{Source: "originals/a", Steps: steps})
	if err != nil {
		t.Fatal(err)
	}
	return result
}

// get reads an output again: as bytes, and decoded by its real decoder.
func (r *rig) get(t *testing.T, p image.Picture) (stdimage.Image, []byte) {
	t.Helper()
	name, ok := r.store.NameOf(p.URL)
	if !ok {
		t.Fatalf("%q is no URL of the storage", p.URL)
	}
	body, object, err := r.store.Get(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	defer body.Close()
	data, err := io.ReadAll(body)
	if err != nil {
		t.Fatal(err)
	}
	decode := map[string]func(io.Reader) (stdimage.Image, error){"jpeg": jpeg.Decode, "png": png.Decode, "webp": webp.Decode, "avif": avif.Decode}[p.Format]
	if image.Sniff(data) != p.Format || object.ContentType != "image/"+p.Format || int64(len(data)) != p.Bytes {
		t.Fatalf("%+v is stored as %s, %s, %d bytes", p, image.Sniff(data), object.ContentType, len(data))
	}
	m, err := decode(bytes.NewReader(data))
	if err != nil {
		t.Fatalf("%+v: %v", p, err)
	}
	if m.Bounds().Dx() != p.Width || m.Bounds().Dy() != p.Height {
		t.Errorf("%+v is %v", p, m.Bounds())
	}
	return m, data
}

// both runs a test with each backend.
func both(t *testing.T, f func(t *testing.T, backend string)) {
	for _, backend := range []string{"vips", "go"} {
		t.Run(backend, func(t *testing.T) {
			t.Parallel()
			f(t, backend)
		})
	}
}

func TestAllOperations(t *testing.T) {
	t.Parallel()
	original := photo(1600, 1200)
	want := boxed(original, 4)
	both(t, func(t *testing.T, backend string) {
		r := newRig(t, image.Config{Backend: backend})
		result := r.must(t, withEXIF(jpegOf(t, original), 1),
			image.Step{Op: "resize", Width: 400, Height: 400},
			image.Step{Op: "compress", Quality: 80},
			image.Step{Op: "convert", Format: "webp"}, image.Step{Op: "convert", Format: "png"}, image.Step{Op: "format-convert", Format: "avif"},
			image.Step{Op: "thumbnail", Sizes: []image.Size{{Width: 100, Height: 100}, {Width: 0, Height: 60}, {Width: 9000, Height: 9000}}})
		least := map[string]float64{"jpeg": 31, "webp": 29, "png": 35, "avif": 28}
		for _, p := range append([]image.Picture{result.Picture}, result.Variants...) {
			m, data := r.get(t, p)
			if bytes.Contains(data, []byte(secret)) {
				t.Errorf("%s: what the camera wrote is still there", p.URL)
			}
			if p.Width != 400 {
				continue
			}
			q := psnr(m, want)
			t.Logf("%s %s: %.1f dB, %d bytes", backend, p.URL, q, p.Bytes)
			if p.Height != 300 || q < least[p.Format] {
				t.Errorf("%s: %d × %d, %.1f dB; 400 × 300 and %.0f dB are expected", p.URL, p.Width, p.Height, q, least[p.Format])
			}
		}
		if result.Fallback || result.URL != "/files/images/job-1/image.jpg" || len(result.Variants) != 6 {
			t.Errorf("result: %+v", result)
		}
		for i, want := range [][2]int{{100, 75}, {80, 60}, {400, 300}} { // never enlarged
			if v := result.Variants[3+i]; v.Width != want[0] || v.Height != want[1] {
				t.Errorf("thumbnail %+v; %v is expected", v, want)
			}
		}
		stages := strings.Join(r.stages, " ")
		if stages != "fetch resize compress convert convert convert thumbnail thumbnail thumbnail store completed" || r.last.Percent != 100 {
			t.Errorf("stages: %s; the last is at %g %%", stages, r.last.Percent)
		}
	})
}

func TestDefaultStepsAndRepeatedAttempts(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, backend string) {
		r := newRig(t, image.Config{Backend: backend})
		source := jpegOf(t, photo(1500, 1000))
		first := r.must(t, source)
		if first.Width != 1200 || first.Height != 800 || first.Format != "jpeg" {
			t.Errorf("result: %+v", first)
		}
		if again := r.must(t, source); again.Picture != first.Picture {
			t.Errorf("a repeated attempt made %+v of the same; the first made %+v", again, first)
		}
		n := 0
		for range r.store.List(t.Context(), "images/") {
			n++
		}
		if n != 1 {
			t.Errorf("%d objects are there after two attempts", n)
		}
	})
}

func TestOrientation(t *testing.T) {
	t.Parallel()
	upright := corners(240, 160)
	both(t, func(t *testing.T, backend string) {
		r := newRig(t, image.Config{Backend: backend})
		for o := 1; o <= 8; o++ {
			source := withEXIF(jpegOf(t, stored(upright, o)), uint16(o))
			result := r.must(t, source, image.Step{Op: "resize", Width: 120}, image.Step{Op: "compress", Format: "png"})
			m, _ := r.get(t, result.Picture)
			if q := psnr(m, boxed(upright, 2)); q < 25 {
				t.Errorf("orientation %d: %d × %d, %.1f dB", o, result.Width, result.Height, q)
			}
		}
	})
}

func TestTransparency(t *testing.T) {
	t.Parallel()
	clear := photo(200, 100)
	for i := 3; i < len(clear.Pix)/2; i += 4 {
		clear.Pix[i] = 0
	}
	both(t, func(t *testing.T, backend string) {
		r := newRig(t, image.Config{Backend: backend})
		result := r.must(t, pngOf(t, clear), image.Step{Op: "convert", Format: "png"}, image.Step{Op: "convert", Format: "webp"}, image.Step{Op: "convert", Format: "jpeg"})
		for _, p := range append([]image.Picture{result.Picture}, result.Variants...) {
			m, _ := r.get(t, p)
			red, _, _, a := m.At(50, 10).RGBA()
			switch {
			case p.Format != "jpeg" && a != 0:
				t.Errorf("%s: what was clear has alpha %d", p.Format, a>>8)
			case p.Format == "jpeg" && red>>8 < 250:
				t.Errorf("jpeg: what was clear is %d, not white", red>>8)
			}
		}
	})
}

func TestBackendsAgree(t *testing.T) {
	t.Parallel()
	sources := map[string][]byte{"jpeg": jpegOf(t, photo(1300, 900)), "png": pngOf(t, photo(700, 400))}
	vips, plain := newRig(t, image.Config{Backend: "vips"}), newRig(t, image.Config{Backend: "go"})
	for name, source := range sources {
		steps := []image.Step{{Op: "resize", Width: 320}, {Op: "compress"}, {Op: "watermark", Text: "Forebay"}, {Op: "convert", Format: "webp"}, {Op: "convert", Format: "avif"}}
		a, b := vips.must(t, source, steps...), plain.must(t, source, steps...)
		for i, p := range append([]image.Picture{a.Picture}, a.Variants...) {
			q := append([]image.Picture{b.Picture}, b.Variants...)[i]
			m, _ := vips.get(t, p)
			n, _ := plain.get(t, q)
			db, ratio := psnr(m, n), float64(q.Bytes)/float64(p.Bytes)
			t.Logf("%s to %s: %.1f dB between the two, Go's file is %.2f of vips'", name, p.Format, db, ratio)
			if p.Width != q.Width || p.Height != q.Height || db < 30 || ratio > 2 || ratio < 0.6 {
				t.Errorf("%s: %+v and %+v: %.1f dB", name, p, q, db)
			}
		}
	}
}
