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
	gathered load // of what waits
}

// load is how much there is of messages.
type load struct{ messages, bytes int }

func (l load) plus(o load, sign int) load {
	return load{l.messages + sign*o.messages, l.bytes + sign*o.bytes}
}

func (l load) over(most load) bool { return l.messages > most.messages || l.bytes > most.bytes }

func loadOf(msgs []forebay.Message) load {
	l := load{messages: len(msgs)}
	for i := range msgs {
		l.bytes += len(msgs[i].Payload)
	}
	return l
}

// Bounds of a funnel.
const funnelTimeout = 30 * time.Second // of one call

func funnelMost() load   { return load{20_000, 64 << 20} } // that waits
func funnelAtOnce() load { return load{2_000, 8 << 20} }   // of one call; the first may be more

// ticket is one call that waits.
type ticket struct {
	msgs    []forebay.Message
	load    load
	results []forebay.SendResult
	err     error
	turn    chan bool // true: send for all; false: it is done
	told    bool      // that it is its turn; guarded by the funnel
}

func (f *funnel) send(ctx context.Context, msgs []forebay.Message) ([]forebay.SendResult, error) {
	t := &ticket{msgs: msgs, load: loadOf(msgs), turn: make(chan bool, 1)}
	f.mu.Lock()
	if f.busy && f.gathered.plus(t.load, 1).over(funnelMost()) {
		f.mu.Unlock()
		return nil, fault("RequestThrottled", "Too many messages for this FIFO queue are on their way. Try again.")
	}
	f.waiting, f.gathered = append(f.waiting, t), f.gathered.plus(t.load, 1)
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
	f.gathered = f.gathered.plus(t.load, -1)
	return true
}

// lead sends what has gathered. The first of those that wait is the caller.
func (f *funnel) lead(ctx context.Context) {
	f.mu.Lock()
	var all []forebay.Message
	var sum load
	n := 0
	for n < len(f.waiting) && (n == 0 || !sum.plus(f.waiting[n].load, 1).over(funnelAtOnce())) {
		all, sum = append(all, f.waiting[n].msgs...), sum.plus(f.waiting[n].load, 1)
		n++
	}
	now := slices.Clone(f.waiting[:n])
	f.waiting = slices.Delete(f.waiting, 0, n)
	f.gathered = f.gathered.plus(sum, -1)
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
