package redis

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"
)

// keeper does what time alone asks for while no call comes: it sweeps the queues of
// which something is due, at the moment at which it is. What other processes know of is
// looked at from time to time, since each has a keeper of its own.
type keeper struct {
	e    *Engine
	look chan struct{} // something is due sooner, one is kept

	mu   sync.Mutex // guards next and used
	next time.Time
	used map[string]bool // queues that this engine sent to or received from
}

const (
	sweepMost   = 500              // of each kind, of one queue, in one script
	sweepAtOnce = 50               // queues in one script
	sweepEvery  = 30 * time.Second // of the queues in use: who lost a worker that is not ours
)

func newKeeper(e *Engine) *keeper {
	return &keeper{e: e, look: make(chan struct{}, 1), used: make(map[string]bool)}
}

// sooner says that something is due in a while.
func (k *keeper) sooner(in time.Duration) {
	at := time.Now().Add(max(in, 0))
	k.mu.Lock()
	earlier := k.next.IsZero() || at.Before(k.next)
	if earlier {
		k.next = at
	}
	k.mu.Unlock()
	if earlier {
		select {
		case k.look <- struct{}{}:
		default:
		}
	}
}

func (k *keeper) uses(queue string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.used[queue] = true
}

func (k *keeper) wait() time.Duration {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.next.IsZero() {
		return sweepEvery
	}
	return min(max(time.Until(k.next), time.Millisecond), sweepEvery)
}

func (k *keeper) run() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	last, trouble := time.Now(), time.Duration(0)
	for {
		t := time.NewTimer(max(k.wait(), trouble))
		select {
		case <-k.e.closing:
			t.Stop()
			return
		case <-k.look:
			t.Stop()
			continue
		case <-t.C:
		}
		k.mu.Lock()
		k.next = time.Time{}
		k.mu.Unlock()
		var err error
		if time.Since(last) >= sweepEvery {
			last = time.Now()
			err = k.sweepAll(ctx)
		} else {
			err = k.e.tidy(ctx, []any{sweepMost, 0})
		}
		if err != nil {
			trouble = min(max(2*trouble, 100*time.Millisecond), 5*time.Second)
		} else {
			trouble = 0
		}
	}
}

// sweepAll sweeps the queues in use, some in each script.
func (k *keeper) sweepAll(ctx context.Context) error {
	k.mu.Lock()
	all := slices.Collect(maps.Keys(k.used))
	k.mu.Unlock()
	k.e.listed.again()
	for some := range slices.Chunk(all, sweepAtOnce) {
		args := []any{sweepMost, len(some)}
		for _, queue := range some {
			args = append(args, queue)
		}
		if err := k.e.tidy(ctx, args); err != nil {
			return err
		}
	}
	if err := k.e.tidy(ctx, []any{sweepMost, 0}); err != nil || len(all) == 0 {
		return err
	}
	return k.e.groupDead(ctx, keeperTurns)
}
