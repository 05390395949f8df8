package worker_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/broker"
	"github.com/forebayhq/forebay/engine"
	"github.com/forebayhq/forebay/engine/enginetest"
	"github.com/forebayhq/forebay/engine/sqlite"
	"github.com/forebayhq/forebay/worker"
)

// chaos is a handler that does everything a handler may do, by chance, and keeps
// book of what it promised: which messages it finished, and in which order.
type chaos struct {
	mu       sync.Mutex // guards all below
	rand     *rand.Rand
	finished map[string]int
	groups   map[string][]string // what of each group was finished, in order, once
}

func newChaos(seed uint64) *chaos {
	return &chaos{rand: rand.New(rand.NewPCG(seed, 1)), finished: make(map[string]int), groups: make(map[string][]string)}
}

func (c *chaos) dice(n int) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.rand.IntN(n)
}

func (c *chaos) finish(d forebay.Delivery) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.finished[d.ID]++; c.finished[d.ID] == 1 && d.Group != "" {
		c.groups[d.Group] = append(c.groups[d.Group], d.ID)
	}
}

func (c *chaos) Handle(ctx context.Context, d forebay.Delivery) error {
	select {
	case <-time.After(time.Duration(c.dice(400)) * time.Millisecond):
	case <-ctx.Done():
		return ctx.Err()
	}
	switch c.dice(20) {
	case 0:
		return errors.New("by chance")
	case 1:
		return forebay.RetryAfter(time.Second, errors.New("by chance"))
	case 2:
		return forebay.Snooze(time.Second)
	case 3:
		panic("by chance")
	}
	c.finish(d)
	return nil
}

// HandleBatch keeps the order of groups: behind a failure nothing of its group
// is done.
func (c *chaos) HandleBatch(ctx context.Context, ds []forebay.Delivery) []error {
	errs := make([]error, len(ds))
	failed := make(map[string]bool)
	for i, d := range ds {
		if d.Group != "" && failed[d.Group] {
			errs[i] = forebay.Snooze(0)
			continue
		}
		if ctx.Err() != nil {
			errs[i] = context.Cause(ctx)
		} else if c.dice(300) == 0 {
			panic("by chance")
		} else if c.dice(20) == 0 {
			errs[i] = errors.New("by chance")
		} else {
			c.finish(d)
		}
		failed[d.Group] = failed[d.Group] || errs[i] != nil
	}
	<-time.After(time.Duration(c.dice(300)) * time.Millisecond)
	return errs
}

// flaky makes calls of the engine slow and failing: not done, done without an
// answer, refused item by item, and deaf to wake-ups.
func flaky(e engine.Engine, seed uint64) engine.Engine {
	e = enginetest.Faulty(e, enginetest.Plan{
		Seed: seed, Ops: []enginetest.Op{enginetest.OpExtend, enginetest.OpSettle},
		Before: 0.1, After: 0.1, Item: 0.05, Delay: 100 * time.Millisecond,
	})
	return enginetest.Faulty(e, enginetest.Plan{
		Seed: seed + 1, Ops: []enginetest.Op{enginetest.OpReceive}, Before: 0.05, After: 0.02, Deaf: 0.05,
	})
}

// Workers start and stop again and again, over an engine that fails by chance,
// with handlers that fail by chance. In the end everything was done, groups in
// order, and no goroutine is left (the bubble sees to that).
func TestChaos(t *testing.T) {
	t.Parallel()
	engines := map[string]func(t *testing.T) engine.Engine{
		"model": func(*testing.T) engine.Engine { return enginetest.NewModel() },
		"sqlite": func(t *testing.T) engine.Engine {
			e, err := sqlite.Open(sqlite.Config{})
			if err != nil {
				t.Fatal(err)
			}
			return e
		},
	}
	for name, open := range engines {
		for _, kind := range []string{"single", "batch"} {
			for range 2 {
				seed := rand.Uint64N(1 << 32)
				if text := os.Getenv("WORKER_SEED"); text != "" { // one that a failure named
					_, _ = fmt.Sscan(text, &seed)
				}
				t.Run(fmt.Sprintf("%s/%s/WORKER_SEED=%d", name, kind, seed), func(t *testing.T) {
					t.Parallel()
					synctest.Test(t, func(t *testing.T) { chaosLives(t, open(t), kind, seed) })
				})
			}
		}
	}
}

const chaosMessages, chaosGroups = 300, 10

func chaosLives(t *testing.T, e engine.Engine, kind string, seed uint64) {
	b, err := broker.New(flaky(e, seed), broker.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	c := newChaos(seed)
	for i := range chaosMessages {
		m := forebay.Message{
			ID: fmt.Sprintf("m%03d", i), Queue: queue, Payload: []byte("12345"),
			Limits: forebay.Limits{Attempts: engine.MaxAttempts, Deliveries: engine.MaxDeliveries},
		}
		if i%2 == 0 {
			m.Group = fmt.Sprint("g", i/2%chaosGroups)
		}
		if _, err := b.Send(t.Context(), []forebay.Message{m}); err != nil {
			t.Fatal(err)
		}
	}
	for life := 0; ; life++ {
		stats, err := b.Stats(t.Context(), queue)
		if err != nil {
			t.Fatal(err)
		}
		if stats[0].Completed == chaosMessages {
			break
		}
		if life > 1000 {
			t.Fatalf("after %d lives: %+v", life, stats[0])
		}
		c.live(t, b, kind)
	}
	c.check(t)
}

// live is one worker from start to stop.
func (c *chaos) live(t *testing.T, b *broker.Broker, kind string) {
	cfg := worker.Config{
		Queue: queue, Lease: 2 * time.Second, Concurrency: 1 + c.dice(5),
		DrainTimeout: time.Duration(1+c.dice(2000)) * time.Millisecond,
	}
	if c.dice(2) == 0 {
		cfg.Auto = &worker.Concurrency{Max: 1 + c.dice(8)}
	}
	if kind == "single" {
		cfg.Handler = c
	} else {
		cfg.Batch, cfg.BatchMax, cfg.BatchBytes = c, 1+c.dice(40), 1+c.dice(200)
		cfg.BatchWait = time.Duration(c.dice(200)) * time.Millisecond
	}
	w, err := worker.New(b, cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Duration(c.dice(5000))*time.Millisecond)
	defer cancel()
	if c.dice(4) == 0 {
		later := time.AfterFunc(time.Duration(c.dice(3000))*time.Millisecond, func() { _ = w.Tune(worker.Concurrency{Max: 4}) })
		defer later.Stop()
	}
	// An engine that fails on and on at the end may leave verdicts unstored.
	if err := w.Run(ctx); err != nil && forebay.CodeOf(err) != forebay.CodeUnavailable {
		t.Fatal(err)
	}
}

func (c *chaos) check(t *testing.T) {
	for id := range chaosMessages {
		if c.finished[fmt.Sprintf("m%03d", id)] == 0 {
			t.Errorf("m%03d was settled but never handled", id)
		}
	}
	for g, order := range c.groups {
		if !slices.IsSorted(order) {
			t.Errorf("group %s was done in the order %v", g, order)
		}
	}
}
