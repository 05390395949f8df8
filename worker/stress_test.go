package worker_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
	"github.com/forebayhq/forebay/worker"
)

// chaos is a handler that does everything a handler may do, by chance, and keeps
// book of what it promised: which messages it finished, and in which order.
type chaos struct {
	mu       sync.Mutex // guards all below
	rand     *rand.Rand
	finished map[string]int
	groups   map[string][]string // what of each group was finished, in order, once
	errors   []string
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

// flaky makes some of the engine's calls fail: before they are done, or after.
func (s *stand) flaky(c *chaos) {
	down := forebay.Errorf(forebay.CodeUnavailable, "test", "by chance")
	s.hooks.receive = func(ctx context.Context, r engine.Receive) ([]forebay.Delivery, error) {
		if c.dice(20) == 0 {
			return nil, down
		}
		return s.model.Receive(ctx, r)
	}
	s.hooks.extend = func(ctx context.Context, rs []forebay.Receipt, lease time.Duration) ([]error, error) {
		<-time.After(time.Duration(c.dice(100)) * time.Millisecond)
		if c.dice(4) == 0 {
			return nil, down
		}
		return s.model.Extend(ctx, rs, lease)
	}
	s.hooks.settle = func(ctx context.Context, ss []forebay.Settlement) ([]error, error) {
		<-time.After(time.Duration(c.dice(20)) * time.Millisecond)
		if c.dice(10) == 0 {
			return nil, down
		}
		errs, err := s.model.Settle(ctx, ss)
		if c.dice(10) == 0 {
			return nil, down // done, but nobody knows
		}
		return errs, err
	}
}

// Workers start and stop again and again, over an engine that fails by chance,
// with handlers that fail by chance. In the end everything was done, groups in
// order, and no goroutine is left (the bubble sees to that).
func TestChaos(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"single", "batch"} {
		for range 4 {
			seed := rand.Uint64N(1 << 32)
			t.Run(fmt.Sprintf("%s/seed %d", kind, seed), func(t *testing.T) {
				t.Parallel()
				bubble(t, func(s *stand) { s.chaos(kind, seed) })
			})
		}
	}
}

const chaosMessages, chaosGroups = 300, 10

func (s *stand) chaos(kind string, seed uint64) {
	c := newChaos(seed)
	s.flaky(c)
	for i := range chaosMessages {
		m := forebay.Message{ID: fmt.Sprintf("m%03d", i), Payload: []byte("12345"), Limits: forebay.Limits{Attempts: 1000, Deliveries: 10_000}}
		if i%2 == 0 {
			m.Group = fmt.Sprint("g", i/2%chaosGroups)
		}
		s.send(m)
	}
	deliveries := 0
	for life := 0; s.stats().Completed < chaosMessages; life++ {
		if life > 1000 {
			s.t.Fatalf("%d of %d done after %d lives: %+v", s.stats().Completed, chaosMessages, life, s.stats())
		}
		cfg := worker.Config{Lease: 2 * time.Second, DrainTimeout: time.Duration(1+c.dice(2000)) * time.Millisecond, Concurrency: 1 + c.dice(5)}
		if kind == "single" {
			cfg.Handler = c
		} else {
			cfg.Batch, cfg.BatchMax, cfg.BatchBytes = c, 1+c.dice(40), 1+c.dice(200)
			cfg.BatchWait = time.Duration(c.dice(200)) * time.Millisecond
		}
		s.run(cfg)
		pass(time.Duration(c.dice(5000)) * time.Millisecond)
		s.stop()
		if err := <-s.ended; err != nil {
			s.t.Fatalf("life %d: %v", life, err)
		}
		deliveries += len(s.outcomes) + len(s.lost) + len(s.failed)
		s.outcomes, s.lost, s.failed = nil, nil, nil
		s.want("active after a drain", s.stats().Active, 0)
	}
	for id := range chaosMessages {
		if c.finished[fmt.Sprintf("m%03d", id)] == 0 {
			s.t.Errorf("m%03d was settled but never handled", id)
		}
	}
	for g, order := range c.groups {
		for i := 1; i < len(order); i++ {
			if order[i] < order[i-1] {
				s.t.Errorf("group %s: %s before %s", g, order[i-1], order[i])
			}
		}
	}
}
