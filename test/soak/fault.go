//go:build linux

package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"sync"
	"syscall"
	"time"
)

// fault is one thing that goes wrong. It hurts, waits, and makes it well again, all within do.
type fault struct {
	name string
	lane lane
	do   func(ctx context.Context, rng *rand.Rand) error // an error: the harness, or the program, did not do what it must
}

// lane tells what a fault is done to. Faults of one lane come one after the other, those of
// two at the same time.
type lane int

const (
	servers lane = iota
	behind
	lanes
)

// within gives a time between two.
func within(rng *rand.Rand, from, to time.Duration) time.Duration {
	return from + time.Duration(rng.Int64N(int64(to-from)))
}

// rest waits; false: ctx has ended before.
func rest(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}

// faults are those of a stand on this machine, and the names of those that cannot be done here.
func (s *stand) faults(b *book) (all []fault, not []string) {
	all = append(s.serverFaults(), s.networkFaults()...)
	all = append(all, fault{"postgres stopped", behind, func(ctx context.Context, rng *rand.Rand) error {
		s.pg.Stop()
		rest(ctx, within(rng, time.Second, 6*time.Second))
		return s.pg.Start(context.WithoutCancel(ctx))
	}}, fault{"postgres killed", behind, func(ctx context.Context, rng *rand.Rand) error {
		s.pg.Kill()
		rest(ctx, within(rng, 0, 3*time.Second))
		return s.pg.Start(context.WithoutCancel(ctx))
	}})
	if s.redis != nil {
		all = append(all, fault{"redis killed", behind, func(ctx context.Context, rng *rand.Rand) error {
			s.redis.Kill()
			rest(ctx, within(rng, 0, 4*time.Second))
			return s.redis.Start(context.WithoutCancel(ctx))
		}}, fault{"redis paused", behind, func(ctx context.Context, rng *rand.Rand) error {
			if err := s.redis.Pause(); err != nil {
				return err
			}
			rest(ctx, within(rng, time.Second, 4*time.Second))
			return s.redis.Resume()
		}})
	}
	if s.disk != nil {
		all = append(all, fault{"disk full", servers, func(ctx context.Context, rng *rand.Rand) error {
			if err := s.disk.fill(); err != nil {
				return fmt.Errorf("fill the disk: %w", err)
			}
			rest(ctx, within(rng, time.Second, 5*time.Second))
			return s.disk.free()
		}})
	} else {
		not = append(not, "disk full: it takes root, for a file system of its own")
	}
	if _, err := exec.LookPath("strace"); err == nil {
		all = append(all, s.slowDisk())
	} else {
		not = append(not, "disk slow: it takes strace")
	}
	if s.clock != nil {
		all = append(all, s.clockJump(b))
	} else {
		not = append(not, "clock jump: it was switched off")
	}
	return all, not
}

// serverFaults are done to one process of the program.
func (s *stand) serverFaults() []fault {
	some := func(rng *rand.Rand) *node { all := s.all(); return all[rng.IntN(len(all))] }
	return []fault{
		{"server killed", servers, func(ctx context.Context, rng *rand.Rand) error {
			n := some(rng)
			n.kill()
			rest(ctx, within(rng, 0, 2*time.Second))
			return n.start(context.WithoutCancel(ctx))
		}},
		{"server ended and started", servers, func(ctx context.Context, rng *rand.Rand) error {
			n := some(rng)
			if err := n.terminate(60 * time.Second); err != nil {
				return err
			}
			return n.start(context.WithoutCancel(ctx))
		}},
		{"server frozen", servers, func(ctx context.Context, rng *rand.Rand) error {
			n := some(rng)
			n.signal(syscall.SIGSTOP)
			rest(ctx, within(rng, 500*time.Millisecond, 3*time.Second))
			n.signal(syscall.SIGCONT)
			return nil
		}},
	}
}

// networkFaults are done to what leads from the servers to what they need.
func (s *stand) networkFaults() (all []fault) {
	for _, name := range []string{"postgres", "redis", "sqs"} { // in this order, so that a seed means the same each time
		n := s.nets[name]
		if n == nil {
			continue
		}
		bad := func(change func(*network), most time.Duration) func(context.Context, *rand.Rand) error {
			return func(ctx context.Context, rng *rand.Rand) error {
				n.set(change)
				rest(ctx, within(rng, 500*time.Millisecond, most))
				n.heal()
				return nil
			}
		}
		all = append(all,
			fault{"connections to " + name + " reset", behind, func(ctx context.Context, rng *rand.Rand) error {
				for range 1 + rng.IntN(10) {
					n.reset()
					rest(ctx, within(rng, 50*time.Millisecond, 500*time.Millisecond))
				}
				return nil
			}},
			fault{"network to " + name + " swallows", behind, bad(func(n *network) { n.swallow = true }, 6*time.Second)},
			fault{"network to " + name + " slow", behind, bad(func(n *network) { n.delay = 40 * time.Millisecond }, 6*time.Second)},
			fault{"network to " + name + " cut", behind, func(ctx context.Context, rng *rand.Rand) error {
				n.set(func(n *network) { n.refuse = true })
				n.reset()
				rest(ctx, within(rng, 500*time.Millisecond, 6*time.Second))
				n.heal()
				return nil
			}})
	}
	return all
}

func (s *stand) slowDisk() fault {
	return fault{"disk slow", servers, func(ctx context.Context, rng *rand.Rand) error {
		ctx, cancel := context.WithTimeout(ctx, within(rng, 2*time.Second, 6*time.Second))
		defer cancel()
		all := s.all()
		return slow(ctx, all[rng.IntN(len(all))].pid(), within(rng, 20*time.Millisecond, 300*time.Millisecond))
	}}
}

// clockJump moves the clock of all servers, and back. Those of one store have one clock, as
// its leases do.
func (s *stand) clockJump(b *book) fault {
	return fault{"clock jump", servers, func(ctx context.Context, rng *rand.Rand) error {
		by := within(rng, 2*time.Second, 40*time.Second)
		if rng.IntN(2) == 0 {
			by = -by
		}
		b.jumped(time.Now())
		if err := s.clock.set(by); err != nil {
			return err
		}
		rest(ctx, within(rng, time.Second, 6*time.Second))
		b.jumped(time.Now())
		return s.clock.set(0)
	}}
}

// chaos does faults, one after the other in each lane, until ctx ends.
type chaos struct {
	told func(name string) // each fault, when it begins

	mu     sync.Mutex // guards all below
	counts map[string]int
	err    error // the first of a fault
}

// lane runs one of the lanes; when ctx ends, what was hurt is made well first.
func (c *chaos) lane(ctx context.Context, all []fault, l lane, rng *rand.Rand) {
	var mine []fault
	for _, f := range all {
		if f.lane == l {
			mine = append(mine, f)
		}
	}
	for len(mine) > 0 && rest(ctx, within(rng, 500*time.Millisecond, 4*time.Second)) {
		f := mine[rng.IntN(len(mine))]
		c.told(f.name)
		err := f.do(ctx, rng)
		c.mu.Lock()
		c.counts[f.name]++
		if err != nil && c.err == nil {
			c.err = fmt.Errorf("%s: %w", f.name, err)
		}
		c.mu.Unlock()
		if err != nil {
			return
		}
	}
}
