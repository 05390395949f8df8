package queue

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/forebayhq/forebay"
)

// funnel lets one caller at a time send for many. Whoever comes while nobody sends
// sends what has gathered, itself first; then it hands over to the first of those that
// came meanwhile. There is no goroutine that has to be started or ended.
type funnel struct {
	do func(ctx context.Context, msgs []forebay.Message) ([]forebay.SendResult, error)

	mu       sync.Mutex
	busy     bool
	waiting  []*ticket
	gathered int // messages that wait
}

// Bounds of a funnel.
const (
	funnelMost    = 20_000           // messages that wait
	funnelAtOnce  = 2_000            // messages of one call
	funnelTimeout = 30 * time.Second // of one call
)

// ticket is one call that waits.
type ticket struct {
	msgs    []forebay.Message
	results []forebay.SendResult
	err     error
	turn    chan bool // true: send for all; false: it is done
	told    bool      // that it is its turn; guarded by the funnel
}

func (f *funnel) send(ctx context.Context, msgs []forebay.Message) ([]forebay.SendResult, error) {
	t := &ticket{msgs: msgs, turn: make(chan bool, 1)}
	f.mu.Lock()
	if f.gathered+len(msgs) > funnelMost && f.busy {
		f.mu.Unlock()
		return nil, fault("RequestThrottled", "Too many messages for this FIFO queue are on their way. Try again.")
	}
	f.waiting, f.gathered = append(f.waiting, t), f.gathered+len(msgs)
	lead := !f.busy
	f.busy = true
	f.mu.Unlock()
	if !lead {
		select {
		case lead = <-t.turn:
		case <-ctx.Done():
			if f.leave(t) {
				return nil, ctx.Err()
			}
			lead = <-t.turn // somebody sends it, within funnelTimeout, or it is its turn
		}
	}
	if lead {
		f.lead(ctx)
	}
	return t.results, t.err
}

// leave takes back a call that nobody has begun to send.
func (f *funnel) leave(t *ticket) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	at := slices.Index(f.waiting, t)
	if at < 0 || t.told {
		return false
	}
	f.waiting = slices.Delete(f.waiting, at, at+1)
	f.gathered -= len(t.msgs)
	return true
}

// lead sends what has gathered. The first of those that wait is the caller.
func (f *funnel) lead(ctx context.Context) {
	f.mu.Lock()
	var all []forebay.Message
	n := 0
	for n < len(f.waiting) && (n == 0 || len(all)+len(f.waiting[n].msgs) <= funnelAtOnce) {
		all = append(all, f.waiting[n].msgs...)
		n++
	}
	now := slices.Clone(f.waiting[:n])
	f.waiting = slices.Delete(f.waiting, 0, n)
	f.gathered -= len(all)
	f.mu.Unlock()

	// The others' messages must not suffer when this caller leaves.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), funnelTimeout)
	results, err := f.do(ctx, all)
	cancel()
	at := 0
	for i, t := range now {
		if t.err = err; err == nil {
			t.results = results[at : at+len(t.msgs)]
		}
		at += len(t.msgs)
		if i > 0 {
			t.turn <- false
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.busy = len(f.waiting) > 0; f.busy {
		f.waiting[0].told = true
		f.waiting[0].turn <- true
	}
}
