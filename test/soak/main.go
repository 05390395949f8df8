//go:build linux

package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
)

// config is what the flags say.
type config struct {
	length    time.Duration
	round     time.Duration
	patience  time.Duration
	seed      uint64
	engines   []string
	binary    string
	clock     bool
	report    string
	producers int
	only      string
	build     string
	dir       string // of this run
	self      string // this program
}

func main() {
	if len(os.Args) == 3 && os.Args[1] == "handler" {
		os.Exit(program(os.Args[2]))
	}
	ok, err := start()
	if err != nil {
		fmt.Fprintln(os.Stderr, "soak:", err)
	}
	if !ok || err != nil {
		os.Exit(1)
	}
}

func flags() (*config, error) {
	cfg := &config{}
	var list string
	flag.DurationVar(&cfg.length, "for", time.Hour, "how long, of all engines together")
	flag.DurationVar(&cfg.round, "round", time.Minute, "how long the load of one round lasts; after each all is compared")
	flag.DurationVar(&cfg.patience, "patience", 150*time.Second, "how long all may take to end after a round")
	flag.Uint64Var(&cfg.seed, "seed", 0, "of load and faults; 0: a new one")
	flag.StringVar(&list, "engines", strings.Join(engines, ","), "which ones")
	flag.StringVar(&cfg.binary, "binary", "", "the program; empty: it is built, with a clock that can be moved")
	flag.BoolVar(&cfg.clock, "clock", false, "that program was built with --build: its clock can be moved")
	flag.StringVar(&cfg.build, "build", "", "only build the program, with a clock that can be moved, to this file")
	flag.StringVar(&cfg.report, "json", "", "a file for the report")
	flag.IntVar(&cfg.producers, "producers", 2, "producers of each kind")
	flag.StringVar(&cfg.only, "only", "", "only faults whose names contain this")
	flag.Parse()
	cfg.engines = strings.Split(list, ",")
	for _, e := range cfg.engines {
		if !strings.Contains(","+strings.Join(engines, ",")+",", ","+e+",") {
			return nil, fmt.Errorf("--engines: %q; allowed are %v", e, engines)
		}
	}
	if cfg.seed == 0 {
		cfg.seed = rand.Uint64N(1e9) + 1
	}
	var err error
	if cfg.self, err = os.Executable(); err != nil {
		return nil, err
	}
	cfg.dir, err = os.MkdirTemp("", "forebay-soak-")
	return cfg, err
}

// start runs all, and tells whether nothing was found.
func start() (bool, error) {
	cfg, err := flags()
	if err != nil {
		return false, err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	show := newDisplay(os.Stdout, cfg)
	show.line("seed %d, folder %s", cfg.seed, cfg.dir)
	if done, err := cfg.prepare(ctx, show); done || err != nil {
		return err == nil, errors.Join(err, os.RemoveAll(cfg.dir))
	}
	t, err := startTarget()
	if err != nil {
		return false, err
	}
	defer t.close()
	rep := newReport(ctx, cfg)
	for i, engine := range cfg.engines {
		e, err := one(ctx, cfg, uint64(i), engine, t, show)
		rep.Engines = append(rep.Engines, e)
		if err != nil {
			e.Error = err.Error()
		}
		if err != nil || len(e.Findings) > 0 || ctx.Err() != nil {
			break
		}
	}
	rep.Ended = time.Now().UTC().Truncate(time.Second)
	ok := rep.print(show) && ctx.Err() == nil
	if !ok {
		show.line("the folder is kept: %s\nagain: go run ./test/soak --seed %d --for %s --engines %s", cfg.dir, cfg.seed, cfg.length, strings.Join(cfg.engines, ","))
	} else {
		err = os.RemoveAll(cfg.dir)
	}
	return ok, errors.Join(err, rep.write(cfg.report))
}

// prepare builds the program unless one is named; done: that was all that was asked for.
func (cfg *config) prepare(ctx context.Context, show *display) (done bool, err error) {
	if cfg.binary != "" {
		cfg.binary, err = filepath.Abs(cfg.binary)
		return false, err
	}
	show.line("building the program with a clock that can be moved")
	cfg.binary, cfg.clock = cmp.Or(cfg.build, filepath.Join(cfg.dir, "forebay")), true
	return cfg.build != "", buildWithClock(ctx, cfg.dir, cfg.binary)
}

// one soaks one engine for its share of the time.
func one(ctx context.Context, cfg *config, number uint64, engine string, t *target, show *display) (*engineReport, error) {
	e := &engineReport{Engine: engine, Faults: map[string]int{}}
	b := newBook()
	t.use(b)
	show.begin(engine, b)
	defer show.finish()
	s, err := newStand(ctx, cfg, engine, t.url)
	if err != nil {
		return e, err
	}
	defer s.close()
	if err := s.prepare(ctx); err != nil {
		return e, err
	}
	k := &soak{cfg: cfg, s: s, b: b, show: show, number: number, watch: newWatch(s)}
	k.chaos = &chaos{told: show.fault, counts: e.Faults}
	k.all, e.NotDone = s.faults(b)
	if cfg.only != "" {
		k.all = only(k.all, cfg.only)
	}
	if err := k.watch.first(ctx); err != nil {
		return e, err
	}
	watching, stop := context.WithCancel(ctx)
	var running sync.WaitGroup
	running.Go(func() { k.watch.run(watching) })
	defer running.Wait()
	defer stop()
	err = k.rounds(ctx, e)
	stop()
	running.Wait()
	e.Memory = k.watch.memory(b)
	e.Idle = k.watch.atRest
	e.conclude(ctx, b, s)
	return e, err
}

func only(all []fault, part string) (some []fault) {
	for _, f := range all {
		if strings.Contains(f.name, part) {
			some = append(some, f)
		}
	}
	return some
}

// rounds goes on until the time of the engine is over. In its last third the processes live on,
// so that their memory can be judged; what is behind them goes on to be hurt.
func (k *soak) rounds(ctx context.Context, e *engineReport) error {
	share := k.cfg.length / time.Duration(len(k.cfg.engines))
	begun := time.Now()
	for n := 1; ; n++ {
		passed := time.Since(begun)
		e.Seconds = passed.Seconds()
		if passed >= share || n > 1 && share-passed < k.cfg.round/2 || ctx.Err() != nil {
			return ctx.Err()
		}
		hurt := []lane{servers, behind}
		if passed > share*2/3 {
			hurt = hurt[1:]
		}
		load := min(k.cfg.round, max(share-passed, 10*time.Second))
		k.show.round(n, passed, share)
		if err := k.round(ctx, n, load, hurt); err != nil {
			return err
		}
		e.Rounds = n
		e.Seconds = time.Since(begun).Seconds()
		if k.b.broken() {
			return nil
		}
	}
}
