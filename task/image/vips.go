package image

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
)

// vips works with libvips' own command: one process to load and resize, one for
// each output, with pixels in a file between them.
type vips struct {
	path, version string
	avif          bool
	limits        limits
	threads       int
}

func newVips(ctx context.Context, path string, cfg Config) (*vips, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	v := &vips{path: path, threads: max(1, runtime.GOMAXPROCS(0)/cfg.Parallel)}
	v.limits = limits{memory: cfg.MaxMemory, cpu: cfg.Timeout, file: max(cfg.MaxPixels*4+4096, 1<<20)}
	said, err := v.ask(ctx, "--version")
	if err != nil {
		return nil, fmt.Errorf("%s does not run: %w", path, err)
	}
	v.version = strings.TrimPrefix(strings.TrimSpace(said), "vips-")
	list, err := v.ask(ctx, "-l")
	if err != nil {
		return nil, fmt.Errorf("%s does not run: %w", path, err)
	}
	for _, needed := range []string{"jpegsave", "pngsave", "webpsave", "webpload", "thumbnail"} {
		if !strings.Contains(list, "("+needed+")") {
			return nil, fmt.Errorf("%s has no %s", path, needed)
		}
	}
	v.avif = strings.Contains(list, "(heifsave)") && strings.Contains(list, "(heifload)")
	return v, nil
}

// ask runs vips for what it prints.
func (v *vips) ask(ctx context.Context, args ...string) (string, error) {
	cmd := sandboxed(ctx, v.limits, os.TempDir(), v.env(os.TempDir()), append([]string{v.path}, args...)...)
	var out strings.Builder
	cmd.Stdout = &out
	said, err := run(cmd)
	if err != nil && said != "" {
		err = fmt.Errorf("%w: %s", err, said)
	}
	return out.String(), err
}

// env is all that vips sees.
func (v *vips) env(dir string, more ...string) []string {
	return append([]string{"PATH=/usr/bin:/bin", "HOME=" + dir, "TMPDIR=" + dir, "LANG=C", "MALLOC_ARENA_MAX=2",
		"VIPS_CONCURRENCY=" + strconv.Itoa(v.threads)}, more...)
}

const basePixels = "base.v"

func (v *vips) run(ctx context.Context, dir string, p *plan, tell func(string)) ([]made, error) {
	tell(p.first())
	if err := v.load(ctx, dir, &p.Source, basePixels, p.Box, p.first(), codeDamaged); err != nil {
		return nil, err
	}
	if len(p.Marks) > 0 {
		tell(stageWatermark)
		if err := v.mark(ctx, dir, p.Marks); err != nil {
			return nil, err
		}
	}
	outputs := make([]made, len(p.Outputs))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(max(1, v.threads))
	for i, o := range p.Outputs {
		tell(o.Stage)
		g.Go(func() (err error) {
			outputs[i], err = v.save(ctx, dir, o)
			return err
		})
	}
	return outputs, g.Wait()
}

// load decodes a picture to upright sRGB pixels of 8 bits that fit in a box.
// What else the file said is cut off, or it would be in the outputs.
func (v *vips) load(ctx context.Context, dir string, from *source, to string, box Size, stage, refusal string) error {
	width, height := box.Width, box.Height
	if width == 0 {
		width = maxSide
	}
	if height == 0 {
		height = maxSide
	}
	args := []string{"thumbnail", from.File, to, strconv.Itoa(width), "--height", strconv.Itoa(height), "--size", "down", "--fail-on", "truncated"}
	if from.Profile { // on pictures without one, libvips 8.14 does harm with this
		args = append(args, "--export-profile", "srgb")
	}
	if err := v.do(ctx, dir, stage, refusal, from.Format == formatAVIF, args...); err != nil {
		return err
	}
	px, err := openPixels(filepath.Join(dir, to))
	if err == nil {
		err = errors.Join(px.bare(), px.Close())
	}
	if err != nil {
		return &stageError{Stage: stage, Text: err.Error()}
	}
	return nil
}

// save makes one output of the pixels.
func (v *vips) save(ctx context.Context, dir string, o output) (made, error) {
	from := basePixels
	if o.Box != (Size{}) {
		from = o.File + ".v"
		if err := v.load(ctx, dir, &source{File: basePixels}, from, o.Box, o.Stage, codeCannotEnc); err != nil {
			return made{}, err
		}
	}
	px, err := openPixels(filepath.Join(dir, from))
	if err != nil {
		return made{}, &stageError{Stage: o.Stage, Text: err.Error()}
	}
	defer px.Close()
	args := []string{from, o.File, "--strip"}
	quality := strconv.Itoa(o.Quality)
	switch o.Format {
	case formatJPEG:
		args = append([]string{"jpegsave"}, append(args, "--Q", quality, "--background", "255 255 255")...)
	case formatWebP:
		args = append([]string{"webpsave"}, append(args, "--Q", quality)...)
	case formatAVIF:
		args = append([]string{"heifsave"}, append(args, "--Q", quality, "--compression", "av1", "--bitdepth", "8")...)
	case formatPNG:
		args = append([]string{"pngsave"}, append(args, "--filter", "all")...)
	}
	return made{o, px.size}, v.do(ctx, dir, o.Stage, codeCannotEnc, o.Format == formatAVIF, args...)
}

// mark lays the marks onto the pixels, in their file: only the lines that they
// cover are read.
func (v *vips) mark(ctx context.Context, dir string, marks []mark) error {
	px, err := openPixels(filepath.Join(dir, basePixels))
	if err != nil {
		return &stageError{Stage: stageWatermark, Text: err.Error()}
	}
	defer px.Close()
	for i := range marks {
		m := &marks[i]
		var img *pixels
		if m.Source == nil {
			letters, err := m.letters(px.size)
			if err != nil {
				return &stageError{Stage: stageWatermark, Code: codeMark, Text: err.Error()}
			}
			img = inMemory(letters)
		} else {
			file := m.Source.File + ".v"
			if err := v.load(ctx, dir, m.Source, file, m.box(px.size), stageWatermark, codeMark); err != nil {
				return err
			}
			if img, err = openPixels(filepath.Join(dir, file)); err != nil {
				return &stageError{Stage: stageWatermark, Text: err.Error()}
			}
		}
		err := px.lay(img, m)
		if err = errors.Join(err, img.Close()); err != nil {
			return &stageError{Stage: stageWatermark, Text: err.Error()}
		}
	}
	return nil
}

// do runs one command. A refusal by vips itself is the file's fault, unless it says
// that the machine has not enough of something.
func (v *vips) do(ctx context.Context, dir, stage, refusal string, modules bool, args ...string) error {
	var more []string
	if !strings.HasSuffix(args[1], ".v") {
		// Loaders that were never hardened stay shut; that of our own pixels is one of them.
		more = append(more, "VIPS_BLOCK_UNTRUSTED=1")
	}
	if !modules {
		// Where it looks for its modules there are none: loading ImageMagick's and
		// others takes a third of the start, and only AVIF's is ever needed.
		more = append(more, "VIPSHOME="+dir)
	}
	said, err := run(sandboxed(ctx, v.limits, dir, v.env(dir, more...), append([]string{v.path}, args...)...))
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	var d *died
	if errors.As(err, &d) {
		return &stageError{Stage: stage, Text: d.how + ": " + said}
	}
	for _, shortage := range []string{"No space left", "out of memory", "unable to malloc", "Cannot allocate", "unable to write", "File too large",
		"creating thread", "failed to map", "has been truncated"} {
		if strings.Contains(said, shortage) {
			return &stageError{Stage: stage, Text: said}
		}
	}
	return &stageError{Stage: stage, Code: refusal, Text: said}
}
