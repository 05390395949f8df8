// Package image makes of an uploaded picture what an app shows: smaller, marked, in
// other formats, as thumbnails.
//
// It promises that no picture touches the server: every decoder and encoder of real
// files runs in a process of its own, with limits on time, memory and the size of
// files, and what is too large is refused by its header, before it is decoded.
// Pictures stand upright (EXIF), their colours are sRGB, and what else was in the
// file (place, camera, names) is gone. An attempt that is repeated writes the same
// objects again. A compression that fails leaves the original in its place; any
// other failed step fails the attempt; a picture that can never work is refused for
// good, with a code that says why.
//
// Where libvips' command is installed it does the work, else Go and WebAssembly do:
// same sizes, same steps, pictures that differ by less than an eye sees. Processes are
// started before they are needed: of libvips for commands that came twice of late, at
// most four for each picture at work; each does one thing and ends, or ends after a
// minute (it holds some 25 MB until then). Those of Go live on from picture to picture.
//
// It refuses to fetch a source from anywhere but the storage.
package image

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/storage"
	"github.com/forebayhq/forebay/worker"
)

// Config of the handler. Store and Child are needed; zero values of the others
// mean their default.
type Config struct {
	Store *storage.Store
	// Child is the command that calls ChildMain, in a process of its own: the program
	// itself with the name of a sub-command.
	Child []string

	Backend   string        // "vips", "go" or empty: vips where it is installed
	MaxBytes  int64         // of a source; 64 MiB
	MaxPixels int64         // of a source; 64 million
	MaxMemory int64         // of one process; 2 GiB
	Memory    int64         // of all at once, as estimated from headers; 2 GiB
	Parallel  int           // pictures at once; one for each core
	Timeout   time.Duration // of one picture, and of its CPU time on each core; 2 minutes
	TempDir   string        // for the files of pictures at work; the system's

	Warm   []string     // a CDN's URLs of the storage: each result is asked for under each
	Client *http.Client // for that; one with a timeout of 10 s
}

func (c *Config) fill() {
	set(&c.MaxBytes, 64<<20)
	set(&c.MaxPixels, 64_000_000)
	set(&c.MaxMemory, 2<<30)
	set(&c.Memory, 2<<30)
	set(&c.Parallel, runtime.GOMAXPROCS(0))
	set(&c.Timeout, 2*time.Minute)
	if c.TempDir == "" {
		c.TempDir = os.TempDir()
	}
	if c.Client == nil {
		c.Client = &http.Client{Timeout: 10 * time.Second}
	}
}

func set[T int | int64 | time.Duration](field *T, value T) {
	if *field == 0 {
		*field = value
	}
}

// Handler is safe for concurrent use.
type Handler struct {
	cfg    Config
	vips   *vips // nil: not used
	pool   *pool
	doctor string
	memory *semaphore.Weighted
	slots  *semaphore.Weighted
}

var _ worker.JobHandler = (*Handler)(nil)

// backend carries out a plan on the files of one folder.
type backend interface {
	run(ctx context.Context, dir string, p *plan, tell func(stage string)) ([]made, error)
}

// New makes a handler, and finds out which backend there is. Close it when no job
// runs any more.
func New(ctx context.Context, cfg Config) (*Handler, error) {
	cfg.fill()
	switch {
	case cfg.Store == nil:
		return nil, forebay.Errorf(forebay.CodeInvalid, "image", "there is no storage")
	case len(cfg.Child) == 0:
		return nil, forebay.Errorf(forebay.CodeInvalid, "image", "there is no command for the child process")
	case cfg.Backend != "" && cfg.Backend != "vips" && cfg.Backend != "go":
		return nil, forebay.Errorf(forebay.CodeInvalid, "image", "the backend is %q; vips, go or nothing is allowed", cfg.Backend)
	}
	h := &Handler{cfg: cfg, memory: semaphore.NewWeighted(cfg.Memory), slots: semaphore.NewWeighted(int64(cfg.Parallel))}
	h.pool = newPool(cfg)
	if cfg.Backend == "go" {
		h.doctor = "pure Go, as set"
		return h, nil
	}
	v, err := findVips(ctx, cfg)
	if err != nil && cfg.Backend == "vips" {
		return nil, forebay.Errorf(forebay.CodeUnavailable, "image", "the backend is set to vips: %w", err)
	}
	if err != nil {
		h.doctor = fmt.Sprintf("pure Go (%v; the package libvips-tools would halve the time of a picture)", err)
		return h, nil
	}
	h.vips, h.doctor = v, "libvips "+v.version+" ("+v.path+"), in processes with limits"
	if !v.avif {
		h.doctor += "; pure Go for AVIF, which this libvips has not"
	}
	return h, nil
}

// Doctor says which backend is used, and why.
func (h *Handler) Doctor() string { return h.doctor }

// Close ends the processes that wait for work.
func (h *Handler) Close() {
	h.pool.close()
	if h.vips != nil {
		h.vips.ahead.close()
	}
}

// HandleJob carries out the steps of one picture.
func (h *Handler) HandleJob(ctx context.Context, j *worker.Job) ([]byte, error) {
	var d Data
	if err := decodeData(j.Payload, &d); err != nil {
		return nil, permanent("bad_data", err)
	}
	p, err := newPlan(d)
	if err != nil {
		return nil, permanent("bad_data", err)
	}
	if err := h.slots.Acquire(ctx, 1); err != nil {
		return nil, context.Cause(ctx)
	}
	defer h.slots.Release(1)
	ctx, cancel := context.WithTimeoutCause(ctx, h.cfg.Timeout, errSlow)
	defer cancel()
	dir, err := os.MkdirTemp(h.cfg.TempDir, "forebay-image-")
	if err != nil {
		return nil, forebay.Errorf(forebay.CodeUnavailable, "image", "temporary folder: %w", err)
	}
	defer os.RemoveAll(dir)
	t := &teller{job: j, stages: p.stages() + 2}
	result, err := h.process(ctx, t, dir, p, d)
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		return nil, err
	}
	t.done()
	return json.Marshal(result)
}

const attemptsToCompress = 3

var errSlow = forebay.Because(forebay.Cause{Code: "image_timeout"}, errors.New("image: the picture took longer than it may"))

// process fetches the source, has it worked on, and stores the outcome.
func (h *Handler) process(ctx context.Context, t *teller, dir string, p *plan, d Data) (*Result, error) {
	t.tell("fetch")
	if err := h.fetch(ctx, dir, p); err != nil {
		return nil, err
	}
	need := p.Source.memory()
	if err := h.memory.Acquire(ctx, min(need, h.cfg.Memory)); err != nil {
		return nil, err
	}
	outputs, fallback, err := h.work(ctx, t, dir, p)
	h.memory.Release(min(need, h.cfg.Memory))
	if err != nil {
		return nil, err
	}
	t.tell("store")
	result, err := h.keep(ctx, t.job, dir, p, outputs, fallback)
	if err != nil {
		return nil, err
	}
	h.warm(ctx, t, result)
	if h.backend(p) == backend(h.vips) {
		h.vips.again(p)
	}
	return result, nil
}

// work runs the plan. Where the picture cannot be compressed the original stands in,
// and what is left of the plan is run. A process that died says nothing of the
// picture: the attempt fails, and only the third one that does settles for the original.
func (h *Handler) work(ctx context.Context, t *teller, dir string, p *plan) (outputs []made, fallback bool, err error) {
	outputs, err = h.backend(p).run(ctx, dir, p, t.tell)
	var s *stageError
	if !errors.As(err, &s) || ctx.Err() != nil {
		return outputs, false, err
	}
	if s.Stage != stageCompress || s.Code == "" && t.job.Attempt < attemptsToCompress {
		return nil, false, s.asJobError()
	}
	t.job.Logf("the compression failed, the original stands in: %s", s.Text)
	if p = p.withoutCompress(); len(p.Outputs) == 0 {
		return nil, true, nil
	}
	outputs, err = h.backend(p).run(ctx, dir, p, t.tell)
	if errors.As(err, &s) {
		err = s.asJobError()
	}
	return outputs, true, err
}

// backend gives the one that can do all of a plan.
func (h *Handler) backend(p *plan) backend {
	if h.vips == nil || p.avif() && !h.vips.avif {
		return h.pool
	}
	return h.vips
}

// Executable is the command of a program's own sub-command, for Config.Child.
func Executable(arguments ...string) ([]string, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, forebay.Errorf(forebay.CodeUnavailable, "image", "own program: %w", err)
	}
	return append([]string{self}, arguments...), nil
}

func findVips(ctx context.Context, cfg Config) (*vips, error) {
	path, err := exec.LookPath("vips")
	if err != nil {
		return nil, errors.New("there is no command vips")
	}
	if path, err = filepath.Abs(path); err != nil {
		return nil, err
	}
	return newVips(ctx, path, cfg)
}

// teller tells the stages of one job.
type teller struct {
	job          *worker.Job
	told, stages int
}

func (t *teller) tell(stage string) {
	t.job.Progress(stage, float64(min(t.told*100/t.stages, 99)), "begins: "+stage)
	t.told++
}

func (t *teller) done() { t.job.Progress("completed", 100, "done") }
