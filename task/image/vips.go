package image

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/forebayhq/forebay"
)

// vips works with libvips' own command: one process to load and resize, one for
// each output, with pixels in a file between them. They are started ahead.
type vips struct {
	path, version string
	avif          bool
	limits        limits
	threads       int // of a process
	cores         int // processes of one picture at a time
	temp          string
	ahead         *ahead
}

func newVips(ctx context.Context, path string, cfg Config) (*vips, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	v := &vips{path: path, threads: max(1, runtime.GOMAXPROCS(0)/cfg.Parallel), cores: runtime.GOMAXPROCS(0), temp: cfg.TempDir}
	v.ahead = newAhead(v.begin, cfg.Parallel)
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
	// What saves starts while the picture is loaded.
	savers := make([]*call, len(p.Outputs))
	for i, o := range p.Outputs {
		savers[i] = saver(o)
	}
	v.ahead.prepare(1, savers[:min(len(savers), v.cores)]...)
	if err := v.bring(ctx, dir, p); err != nil {
		return nil, err
	}
	if len(p.Marks) > 0 {
		tell(stageWatermark)
		if err := v.mark(ctx, dir, p.Marks); err != nil {
			return nil, err
		}
	}
	outputs := make([]made, len(p.Outputs))
	g, saving := errgroup.WithContext(ctx)
	g.SetLimit(v.cores)
	for i, o := range p.Outputs {
		tell(o.Stage)
		g.Go(func() (err error) {
			outputs[i], err = v.save(saving, dir, o, savers[i])
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	return outputs, nil
}

// again starts ahead what will be needed if the next job is as this one was. It does
// not wait for that, and nobody waits for it but close.
func (v *vips) again(p *plan) {
	calls := []*call{loader(&p.Source, p.Box)}
	for _, o := range p.Outputs {
		calls = append(calls, saver(o))
	}
	v.ahead.expect(calls)
}

// bring makes the pixels that all else is made of.
func (v *vips) bring(ctx context.Context, dir string, p *plan) error {
	err := v.do(ctx, dir, p.first(), codeDamaged, loader(&p.Source, p.Box), basePixels, func(_ string, in io.Writer) error {
		f, err := os.Open(filepath.Join(dir, p.Source.File))
		if err != nil {
			return err
		}
		defer f.Close()
		_, err = io.Copy(in, f)
		return err
	})
	if err != nil {
		return err
	}
	return bare(filepath.Join(dir, basePixels), p.first())
}

// load is for what lies in the folder of the job: marks, and pixels for thumbnails.
func (v *vips) load(ctx context.Context, dir string, from *source, to string, box Size, stage, refusal string) error {
	args := append([]string{"thumbnail", from.File, to}, fit(from, box)...)
	if err := v.once(ctx, dir, stage, refusal, from.Format == formatAVIF, args...); err != nil {
		return err
	}
	return bare(filepath.Join(dir, to), stage)
}

// bare cuts off what else the file said, or it would be in the outputs.
func bare(path, stage string) error {
	px, err := openPixels(path)
	if err == nil {
		err = errors.Join(px.bare(), px.Close())
	}
	if err != nil {
		return &stageError{Stage: stage, Text: err.Error()}
	}
	return nil
}

// save makes one output of the pixels.
func (v *vips) save(ctx context.Context, dir string, o output, c *call) (made, error) {
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
	return made{o, px.size}, v.do(ctx, dir, o.Stage, codeCannotEnc, c, o.File, func(its string, in io.Writer) error {
		if err := os.Link(filepath.Join(dir, from), filepath.Join(its, pixelsIn)); err != nil {
			return err
		}
		_, err := io.WriteString(in, "P5 1 1 255\n\x00")
		return err
	})
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

// do has one call carried out, and moves what it made into the folder of the job.
func (v *vips) do(ctx context.Context, dir, stage, refusal string, c *call, to string, feed func(its string, in io.Writer) error) error {
	s, err := v.ahead.take(c)
	if err != nil {
		return err
	}
	defer s.discard()
	said, err := s.work(ctx, feed)
	if err == nil {
		if err = os.Rename(filepath.Join(s.dir, c.out), filepath.Join(dir, to)); err != nil {
			err = &stageError{Stage: stage, Text: err.Error()}
		}
		return err
	}
	return judge(ctx, stage, refusal, said, err)
}

// once runs one command in the folder of the job.
func (v *vips) once(ctx context.Context, dir, stage, refusal string, modules bool, args ...string) error {
	c := &call{args: args, own: strings.HasSuffix(args[1], ".v"), modules: modules}
	said, err := run(v.command(ctx, dir, c))
	if err == nil {
		return nil
	}
	return judge(ctx, stage, refusal, said, err)
}

// begin starts a process in a folder of its own.
func (v *vips) begin(c *call) (*started, error) {
	dir, err := os.MkdirTemp(v.temp, "forebay-image-")
	if err != nil {
		return nil, forebay.Errorf(forebay.CodeUnavailable, "image", "temporary folder: %w", err)
	}
	s, err := newStarted(v.command(context.Background(), dir, c))
	if err != nil {
		os.RemoveAll(dir)
	}
	return s, err
}

func (v *vips) command(ctx context.Context, dir string, c *call) *exec.Cmd {
	var more []string
	if !c.own {
		// Loaders that were never hardened stay shut; that of our own pixels is one of them.
		more = append(more, "VIPS_BLOCK_UNTRUSTED=1")
	}
	if !c.modules {
		// Where it looks for its modules there are none: loading ImageMagick's and
		// others takes a third of the start, and only AVIF's is ever needed.
		more = append(more, "VIPSHOME="+dir)
	}
	return sandboxed(ctx, v.limits, dir, v.env(dir, more...), append([]string{v.path}, c.args...)...)
}

// judge tells whose fault a failure is. A refusal by vips itself is the file's,
// unless it says that the machine has not enough of something.
func judge(ctx context.Context, stage, refusal, said string, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	var system *os.PathError
	var link *os.LinkError
	var d *died
	switch {
	case errors.As(err, &system), errors.As(err, &link):
		return &stageError{Stage: stage, Text: err.Error()}
	case errors.As(err, &d):
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
