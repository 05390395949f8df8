//go:build linux

// Command image measures the work on one picture beside sharp (npm), in one run: a
// JPEG of 4000 × 3000 to one of 1200 pixels, quality 80, and a WebP. They take turns;
// a ratio is that of medians. sharp runs as it comes, in a process that lives on, with
// the resize shared by both encoders, which is its best way. It is installed into a
// folder of the system's for temporary files, and never committed.
//
// Like with like: all three decode at half the size (sharp's fastShrinkOnLoad, our
// shrink), resize with Lanczos, and write quality 80 with 4:2:0. WebP's effort is
// what each takes by itself: sharp 4, ours 2. Ours are whole jobs: from the storage, in processes with limits, and
// flushed. Of libvips two figures are given: of the job after others like it, whose
// processes were started ahead, as sharp's was; and of the first one.
package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	stdimage "image"
	"image/jpeg"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/storage"
	"github.com/forebayhq/forebay/task/image"
	"github.com/forebayhq/forebay/worker"
)

const script = `const sharp = require('sharp'); sharp.cache(false);
const [, , source, dir] = process.argv;
require('readline').createInterface({ input: process.stdin }).on('line', async () => {
  const t = process.hrtime.bigint();
  const { data, info: raw } = await sharp(source).rotate().resize(1200, 1200, { fit: 'inside', withoutEnlargement: true }).raw().toBuffer({ resolveWithObject: true });
  await Promise.all([sharp(data, { raw }).jpeg({ quality: 80 }).toFile(dir + '/o.jpg'), sharp(data, { raw }).webp({ quality: 80 }).toFile(dir + '/o.webp')]);
  console.log(Number(process.hrtime.bigint() - t) / 1e6);
});`

func main() {
	if len(os.Args) > 1 && os.Args[1] == "image-worker" {
		os.Exit(image.ChildMain(os.Args[2:], os.Stdin, os.Stdout))
	}
	rounds := flag.Int("rounds", 7, "rounds that are counted")
	version := flag.String("sharp", "0.35.5", "the version of sharp")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *rounds, *version); err != nil {
		fmt.Fprintln(os.Stderr, "bench/image:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, rounds int, version string) (err error) {
	dir, err := os.MkdirTemp("", "forebay-bench-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	source := filepath.Join(dir, "source.jpg")
	if err := os.WriteFile(source, photo(4000, 3000), 0o600); err != nil {
		return err
	}
	peer, err := startSharp(ctx, dir, source, version)
	if err != nil {
		return err
	}
	defer peer.stop()
	ways := []way{{"sharp " + version, peer.once, nil}}
	for _, w := range []struct {
		backend string
		first   bool
	}{{"vips", false}, {"vips", true}, {"go", false}} {
		once, done, err := ours(ctx, dir, source, w.backend, w.first)
		if err != nil {
			return err
		}
		defer done()
		name := "forebay, " + w.backend
		if w.first {
			name += ", first"
		}
		ways = append(ways, way{name, once, nil})
	}
	for round := range rounds + warmUp {
		for i := range ways {
			took, err := ways[i].once(ctx)
			if err != nil {
				return fmt.Errorf("%s: %w", ways[i].name, err)
			}
			if round >= warmUp {
				ways[i].took = append(ways[i].took, took)
			}
			time.Sleep(settle)
		}
	}
	return report(ways)
}

const (
	warmUp = 3                      // rounds: a command is started ahead after it came twice
	settle = 400 * time.Millisecond // after each turn: no way pays for what another starts ahead
)

type way struct {
	name string
	once func(context.Context) (float64, error)
	took []float64 // milliseconds
}

func report(ways []way) error {
	var base float64
	for i, w := range ways {
		slices.Sort(w.took)
		median := w.took[len(w.took)/2]
		if i == 0 {
			base = median
		}
		fmt.Printf("%-20s %7.0f ms (%.0f to %.0f), ratio to sharp %.2f\n", w.name, median, w.took[0], w.took[len(w.took)-1], median/base)
	}
	var children unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_CHILDREN, &children); err != nil {
		return err
	}
	fmt.Printf("the largest process that has ended by now had %d MiB\n", children.Maxrss>>10)
	return nil
}

// ours is one job after the other through the real handler, on a real storage; each
// the first of a handler of its own, if so wanted.
func ours(ctx context.Context, dir, source, backend string, first bool) (func(context.Context) (float64, error), func(), error) {
	store, err := storage.Open(ctx, storage.Config{Address: filepath.Join(dir, backend+strconv.FormatBool(first))})
	if err != nil {
		return nil, nil, err
	}
	child, err := image.Executable("image-worker")
	if err != nil {
		return nil, nil, err
	}
	begin := func() (*image.Handler, error) {
		return image.New(ctx, image.Config{Store: store, Child: child, Backend: backend, TempDir: dir, Parallel: 1})
	}
	h, err := begin()
	if err != nil {
		return nil, nil, err
	}
	f, err := os.Open(source)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	if _, err := store.Put(ctx, "source", "image/jpeg", f, 0); err != nil {
		return nil, nil, err
	}
	payload, err := json.Marshal(image.Data{Source: "source", Steps: append(image.DefaultSteps(), image.Step{Op: "convert", Format: "webp", Quality: 80})})
	if err != nil {
		return nil, nil, err
	}
	once := func(ctx context.Context) (float64, error) {
		if first {
			h.Close()
			if h, err = begin(); err != nil {
				return 0, err
			}
		}
		j := worker.NewJob(forebay.Delivery{Message: forebay.Message{ID: "job", Payload: payload}}, func(*forebay.Progress, *forebay.LogLine) {})
		start := time.Now()
		_, err := h.HandleJob(ctx, j)
		return float64(time.Since(start).Microseconds()) / 1000, err
	}
	return once, func() {
		largest(dir, backend)
		h.Close()
		store.Close()
	}, nil
}

// largest prints what the child in Go had at most; vips' processes have ended.
func largest(dir, backend string) {
	if backend != "go" {
		return
	}
	files, _ := filepath.Glob("/proc/[0-9]*/status")
	for _, file := range files {
		if cwd, err := os.Readlink(filepath.Dir(file) + "/cwd"); err != nil || cwd != dir {
			continue
		}
		text, _ := os.ReadFile(file)
		for line := range strings.SplitSeq(string(text), "\n") {
			if most, found := strings.CutPrefix(line, "VmHWM:"); found && strings.Contains(string(text), fmt.Sprintf("PPid:\t%d\n", os.Getpid())) {
				fmt.Println("a child process had at most", strings.TrimSpace(most))
			}
		}
	}
}

type sharp struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Scanner
}

func startSharp(ctx context.Context, dir, source, version string) (*sharp, error) {
	install := exec.CommandContext(ctx, "npm", "install", "--prefix", dir, "--no-audit", "--no-fund", "--silent", "sharp@"+version)
	if out, err := install.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("install sharp: %w: %s", err, out)
	}
	if err := os.WriteFile(filepath.Join(dir, "sharp.js"), []byte(script), 0o600); err != nil {
		return nil, err
	}
	s := &sharp{cmd: exec.CommandContext(ctx, "node", "sharp.js", source, dir)}
	s.cmd.Dir, s.cmd.Stderr = "/", os.Stderr
	s.cmd.Args[1] = filepath.Join(dir, "sharp.js")
	var err error
	if s.in, err = s.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	s.out = bufio.NewScanner(out)
	return s, s.cmd.Start()
}

func (s *sharp) once(context.Context) (float64, error) {
	if _, err := io.WriteString(s.in, "\n"); err != nil {
		return 0, err
	}
	if !s.out.Scan() {
		return 0, errors.Join(errors.New("sharp ended"), s.out.Err())
	}
	return strconv.ParseFloat(s.out.Text(), 64)
}

func (s *sharp) stop() {
	s.in.Close()
	s.cmd.Wait()
}

// photo is like one: smooth light, hard edges, fine texture, and grain.
func photo(w, h int) []byte {
	m := stdimage.NewRGBA(stdimage.Rect(0, 0, w, h))
	r := rand.New(rand.NewPCG(1, 2))
	for y := range h {
		fy := float64(y) / float64(h)
		for x := range w {
			fx := float64(x) / float64(w)
			light := 120 + 60*math.Sin(fx*5+fy*3) + 12*math.Sin(fx*fy*400)
			if math.Hypot(math.Mod(fx*7, 1)-.5, math.Mod(fy*5, 1)-.5) < .3 {
				light += 45
			}
			light += r.NormFloat64() * 4
			px := m.Pix[y*m.Stride+4*x:]
			px[0], px[1], px[2], px[3] = uint8(max(0, min(255, light))), uint8(max(0, min(255, 200*fy+light*.2))), uint8(max(0, min(255, 240-light))), 255
		}
	}
	var b bytes.Buffer
	if err := jpeg.Encode(&b, m, &jpeg.Options{Quality: 90}); err != nil {
		panic(err) // of a buffer: never
	}
	return b.Bytes()
}
