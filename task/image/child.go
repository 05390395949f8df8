package image

import (
	"encoding/json"
	"errors"
	"fmt"
	stdimage "image"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"time"

	"golang.org/x/sync/errgroup"
)

// restAfter is how soon a child that waits gives its memory back: it may wait long,
// but not where pictures come one after the other.
const restAfter = time.Second

// ChildMain is the whole of a child process: it carries out plans that it reads
// from in, and answers on out. It ends with its input. The result is the exit code.
func ChildMain(args []string, in io.Reader, out io.Writer) int {
	if len(args) != 0 {
		fmt.Fprintln(os.Stderr, "image-worker takes no arguments: the server starts it, and talks to it")
		return 2
	}
	requests, replies := json.NewDecoder(in), json.NewEncoder(out)
	var rest *time.Timer
	for {
		var r request
		err := requests.Decode(&r)
		if rest != nil {
			rest.Stop()
		}
		if err != nil {
			if errors.Is(err, io.EOF) {
				return 0
			}
			fmt.Fprintln(os.Stderr, "image-worker:", err)
			return 1
		}
		if err := r.limit(); err != nil {
			fmt.Fprintln(os.Stderr, "image-worker: limits:", err)
			return 1
		}
		var answer reply
		outputs, err := r.carryOut(func(stage string) { replies.Encode(reply{Stage: stage}) })
		answer.Made = outputs
		if err != nil && !errors.As(err, &answer.Error) {
			answer.Error = &stageError{Stage: stageLoad, Text: err.Error()}
		}
		if err := replies.Encode(answer); err != nil {
			return 1 // nobody listens any more
		}
		rest = time.AfterFunc(restAfter, debug.FreeOSMemory)
	}
}

// limit bounds this process, before it reads anything of a picture.
func (r *request) limit() error {
	debug.SetMemoryLimit(r.Memory / 4 * 3) // the collector works harder before the kernel says no
	if err := limitSelf(r.Memory); err != nil {
		return err
	}
	return limitTime(r.CPU)
}

func (r *request) carryOut(tell func(string)) ([]made, error) {
	p := r.Plan
	tell(p.first())
	base, err := load(filepath.Join(r.Dir, p.Source.File), p.Source, p.Box)
	if err != nil {
		return nil, &stageError{Stage: p.first(), Code: codeDamaged, Text: err.Error()}
	}
	if len(p.Marks) > 0 {
		tell(stageWatermark)
	}
	for i := range p.Marks {
		if err := r.mark(base, &p.Marks[i]); err != nil {
			return nil, &stageError{Stage: stageWatermark, Code: codeMark, Text: err.Error()}
		}
	}
	outputs := make([]made, len(p.Outputs))
	var g errgroup.Group
	g.SetLimit(runtime.GOMAXPROCS(0))
	for i, o := range p.Outputs {
		tell(o.Stage)
		g.Go(func() (err error) {
			outputs[i], err = r.save(base, o)
			return err
		})
	}
	return outputs, g.Wait()
}

func (r *request) save(base *stdimage.NRGBA, o output) (made, error) {
	size, err := save(filepath.Join(r.Dir, o.File), base, o)
	var system *os.PathError
	if errors.As(err, &system) {
		return made{}, &stageError{Stage: o.Stage, Text: err.Error()}
	}
	if err != nil {
		return made{}, &stageError{Stage: o.Stage, Code: codeCannotEnc, Text: err.Error()}
	}
	return made{o, size}, nil
}

func (r *request) mark(base *stdimage.NRGBA, m *mark) error {
	on := inMemory(base)
	img := (*stdimage.NRGBA)(nil)
	var err error
	if m.Source == nil {
		img, err = m.letters(on.size)
	} else {
		img, err = load(filepath.Join(r.Dir, m.Source.File), *m.Source, m.box(on.size))
	}
	if err != nil {
		return err
	}
	return on.lay(inMemory(img), m)
}
