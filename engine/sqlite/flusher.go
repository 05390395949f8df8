package sqlite

import (
	"math"
	"os"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/forebayhq/forebay"
)

// flusher syncs the log in a goroutine of its own, so that the loop commits
// further groups while a flush runs. One flush answers all calls that were handed
// over before it began. At most one runs; it begins as soon as the one before has
// ended and a call waits for it. What comes during it shares the next.
//
// A call that wrote nothing waits as well, if anything does: a duplicate is there
// for sure only when the message that it repeats is.
//
// Nil: nothing is synced, and calls are answered at once.
type flusher struct {
	sync   func() error
	few    int64      // messages that are too few for a commit of their own while a flush runs
	failed chan error // tells the loop of a flush that failed, before any call hears of it
	ended  chan struct{}

	// enough is how many queued messages end the loop's pause; ripe and freed end it.
	enough atomic.Int64
	ripe   chan struct{} // there are enough
	freed  chan struct{} // a flush has ended

	mu      sync.Mutex
	changed sync.Cond
	waiting []*call
	behind  int64   // messages of those
	running int64   // messages of the flush that runs
	spare   []*call // room for the next waiting ones
	dirty   bool    // something was committed after the last flush began
	broken  bool    // a flush failed: nothing is answered with success until mend
	closing bool
	pausing bool // the loop waits for freed
}

func newFlusher(log *os.File) *flusher {
	f := &flusher{
		sync:   func() error { return syscall.Fdatasync(int(log.Fd())) },
		few:    fewMessages,
		failed: make(chan error, 1),
		ended:  make(chan struct{}),
		ripe:   make(chan struct{}, 1),
		freed:  make(chan struct{}, 1),
	}
	f.enough.Store(math.MaxInt64)
	f.changed.L = &f.mu
	go f.run()
	return f
}

// answer answers calls once what they wrote is on the disk, the others at once.
func (f *flusher) answer(calls []*call, wrote bool) {
	if f == nil {
		finishAll(calls, nil)
		return
	}
	f.mu.Lock()
	now := calls[:0]
	for _, c := range calls {
		if c.op.durable() {
			f.waiting, f.behind = append(f.waiting, c), f.behind+c.msgs
			f.dirty = f.dirty || wrote
		} else {
			now = append(now, c)
		}
	}
	if len(f.waiting) > 0 {
		f.changed.Signal()
	}
	f.mu.Unlock()
	finishAll(now, nil)
}

// run flushes and answers until close.
func (f *flusher) run() {
	defer close(f.ended)
	for {
		calls, dirty, broken := f.take()
		if calls == nil {
			return
		}
		var err error
		switch {
		case broken:
			err = errUnsynced()
		case dirty:
			if err = f.sync(); err != nil {
				err = forebay.Errorf(forebay.CodeUnavailable, "sqlite: sync", "%w", err)
				calls = append(calls, f.fail(err)...)
			}
		}
		finishAll(calls, err)
		clear(calls)
		f.mu.Lock()
		f.spare = calls[:0]
		f.mu.Unlock()
	}
}

// take waits for calls and takes them all; none: close was called.
func (f *flusher) take() (calls []*call, dirty, broken bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.pausing {
		signal(f.freed)
	}
	f.running = 0
	for len(f.waiting) == 0 {
		if f.closing {
			return nil, false, false
		}
		f.changed.Wait()
	}
	calls, dirty, f.running = f.waiting, f.dirty, f.behind
	f.waiting, f.behind, f.spare, f.dirty = f.spare, 0, nil, false
	return calls, dirty, f.broken
}

// fail takes the calls that came during a flush that failed: their place in the
// log is behind what is missing there.
func (f *flusher) fail(err error) []*call {
	f.mu.Lock()
	defer f.mu.Unlock()
	calls := f.waiting
	f.waiting, f.behind, f.broken = nil, 0, true
	select {
	case f.failed <- err:
	default: // one is told already
	}
	return calls
}

// fewMessages is the few of a flusher: the commit of fewer costs more than it saves.
const fewMessages = 16

// pause lets calls gather while a flush runs, since a commit costs much the same for few
// and for many messages. It ends with the flush; or sooner, when no committed group waits
// for the next flush yet and half as many messages have come as are in this one, and not
// just a few, so that the disk need not wait for their commit. So it also bounds how many
// calls wait for the disk; their bytes are bounded by Engine.room. have messages were
// taken before.
func (f *flusher) pause(have int64, queued *atomic.Int64) {
	if f == nil {
		return
	}
	f.mu.Lock()
	running, behind := f.running, f.behind
	if running == 0 { // it is about to begin, if there is anything to flush
		running, behind = behind, 0
	}
	more := int64(math.MaxInt64)
	switch {
	case running == 0:
		more = 0
	case behind == 0:
		more = max(running/2, f.few) - have
	}
	drain(f.freed)
	drain(f.ripe)
	f.pausing = true
	f.enough.Store(more)
	f.mu.Unlock()
	if queued.Load() < more {
		select {
		case <-f.freed:
		case <-f.ripe:
		}
	}
	f.enough.Store(math.MaxInt64)
	f.mu.Lock()
	f.pausing = false
	f.mu.Unlock()
}

// handed tells a loop that pauses how many messages of calls wait for it.
func (f *flusher) handed(queued int64) {
	if f != nil && queued >= f.enough.Load() {
		signal(f.ripe)
	}
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

func drain(c chan struct{}) {
	select {
	case <-c:
	default:
	}
}

// failure tells the loop of a flush that failed; nil where nothing is synced.
func (f *flusher) failure() <-chan error {
	if f == nil {
		return nil
	}
	return f.failed
}

// mend takes up flushing again, once all that was committed is on the disk.
func (f *flusher) mend() {
	f.mu.Lock()
	f.broken = false
	f.mu.Unlock()
}

// close answers what waits and ends the goroutine.
func (f *flusher) close() {
	if f == nil {
		return
	}
	f.mu.Lock()
	f.closing = true
	f.changed.Signal()
	f.mu.Unlock()
	<-f.ended
}

func finishAll(calls []*call, err error) {
	for _, c := range calls {
		c.finish(err)
	}
}
