package image_test

import (
	"bytes"
	"context"
	"syscall"
	"testing"
	"time"

	"github.com/forebayhq/forebay/task/image"
)

// waitFor waits until so many processes work in a folder.
func waitFor(t *testing.T, dir string, n int) []int {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		pids := processes(dir)
		if len(pids) == n {
			return pids
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("%d processes, not %d", len(pids), n)
		}
	}
}

// Jobs that are alike find their processes started: what they make is the same, they
// are of no use to another job, and one that died while it waited harms nobody.
func TestStartedAhead(t *testing.T) {
	t.Parallel()
	r := newRig(t, image.Config{Backend: "vips", Parallel: 1})
	source, steps := jpegOf(t, photo(1600, 1200)), []image.Step{{Op: "resize", Width: 400, Height: 400}, {Op: "compress"}, {Op: "convert", Format: "webp"}}
	first := r.must(t, source, steps...)
	_, cold := r.get(t, first.Picture)
	if left := processes(r.temp); len(left) != 0 {
		t.Errorf("after one job %d processes are left", len(left))
	}
	r.must(t, source, steps...)
	waitFor(t, r.temp, 3) // one to load, two to save
	_, ahead := r.get(t, r.must(t, source, steps...).Picture)
	if !bytes.Equal(cold, ahead) {
		t.Errorf("%d bytes of a process that was started ahead, %d of one that was not", len(ahead), len(cold))
	}
	for _, pid := range waitFor(t, r.temp, 3) {
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Error(err)
		}
	}
	waitFor(t, r.temp, 0)
	other := r.must(t, source, image.Step{Op: "resize", Width: 300, Height: 300}, image.Step{Op: "compress", Format: "png"})
	if m, _ := r.get(t, other.Picture); m.Bounds().Dx() != 300 || m.Bounds().Dy() != 225 {
		t.Errorf("another job got %v", m.Bounds())
	}
	_, again := r.get(t, r.must(t, source, steps...).Picture)
	if !bytes.Equal(cold, again) {
		t.Error("another picture after the processes were killed")
	}
	// Many commands that came twice: there is a bound to what waits.
	for width := 101; width < 106; width++ {
		for range 2 {
			r.must(t, source, image.Step{Op: "resize", Width: width, Height: width}, image.Step{Op: "compress"})
		}
	}
	if n := len(processes(r.temp)); n > 4 {
		t.Errorf("%d processes wait", n)
	}
}

// A JPEG that is decoded at a part of its size is of the same shape, and looks the
// same, as one that is not.
func TestDecodedSmaller(t *testing.T) {
	t.Parallel()
	whole := jpegOf(t, photo(1600, 1200))
	vips, plain := newRig(t, image.Config{Backend: "vips"}), newRig(t, image.Config{Backend: "go"})
	for name, c := range map[string]struct {
		source []byte
		box    image.Size
	}{
		"by two":                  {whole, image.Size{Width: 480, Height: 480}},
		"by four, one side":       {whole, image.Size{Height: 200}},
		"by eight":                {whole, image.Size{Width: 100, Height: 100}},
		"odd":                     {jpegOf(t, photo(1601, 1199)), image.Size{Width: 480, Height: 480}},
		"turned":                  {withEXIF(whole, 6), image.Size{Width: 480, Height: 480}},
		"turned, not in a square": {withEXIF(whole, 6), image.Size{Width: 480}},
		"no bound that matters":   {jpegOf(t, photo(160, 120)), image.Size{Width: 480, Height: 480}},
	} {
		steps := []image.Step{{Op: "resize", Width: c.box.Width, Height: c.box.Height}, {Op: "compress", Format: "png"}}
		a, _ := vips.get(t, vips.must(t, c.source, steps...).Picture)
		b, _ := plain.get(t, plain.must(t, c.source, steps...).Picture)
		if a.Bounds() != b.Bounds() {
			t.Errorf("%s: %v and %v", name, a.Bounds(), b.Bounds())
		} else if db := psnr(a, b); db < 30 {
			t.Errorf("%s: %.1f dB", name, db)
		}
	}
}
