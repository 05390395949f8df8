package sqlite

import (
	"errors"
	"log/slog"
	"os"
	"runtime"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/forebayhq/forebay"
)

// request is what the loop takes: *call, *receive or *cancel.
type request interface{ request() }

// op is a change of the store, or a question to it.
type op interface {
	size() int64
	messages() int64 // that it is about, at least 1
	// apply writes into the open transaction and notes what is to be published.
	// It is called again, from the start, when the transaction was rolled back.
	apply(t *tx) error
	// publish makes what was committed visible in memory.
	publish(t *tx)
	// abort undoes what apply noted in memory.
	abort()
	durable() bool
}

// call is an op on its way. It is answered on done exactly once.
type call struct {
	op   op
	done chan error
	room *semaphore.Weighted // nil: it took none
	size int64               // of it
	msgs int64               // that it is about
}

func (*call) request() {}

func (c *call) release() {
	if c.room != nil {
		c.room.Release(c.size)
	}
}

func (c *call) finish(err error) {
	c.release()
	c.done <- err
}

// loop owns the connection and all state in memory. One cycle: take what waits,
// apply it in one transaction, commit, publish, and leave the calls to the flusher,
// which answers them. So a message may be handed out, and settled, before its sender
// has an answer; whoever depends on it is flushed with it or later. Nothing else
// touches these fields, so nothing here is locked.
type loop struct {
	e       *Engine
	db      db
	log     *slog.Logger
	wal     *os.File // to sync the log
	flusher *flusher // nil: nothing is synced
	lock    *lockFile
	saver   *saver // nil in memory
	sleeper *time.Timer

	queues   map[string]*queue
	byID     map[int64]*queue
	topID    int64 // the largest number of a queue or tenant
	tenants  tenants
	dirty    map[*queue]struct{} // may have something for its waiters
	timers   timers
	clock    clock
	wentBack bool // the clock, and the tenants' marks are to follow

	blocks     blocks
	unreadable map[int64]bool // blocks that are passed over
	damaged    bool           // damage was met: nothing is deleted any more, which might go through it
	marked     bool           // the store says so
	leases     map[int64]*lease
	leaseID    int64
	expired    []expired // in this cycle
	ended      []*lease  // whose rows are to go
	opening    int64     // of the store, counted
	sealer     sealer
	seq        int64 // of the next block
	seqKept    int64 // seqs below it are reserved in the store
	dedup      dedup

	documents    documents
	signer       signer
	history      history
	logs         logs
	ends         ends
	retention    retention
	finishedSeq  int64  // of the next row
	finishedRoom int    // what the last rows took, about: to begin with for the next
	finishedKept int64  // seqs below it are reserved in the store
	own          []op   // of the engine itself, for this cycle
	scratch      []byte // for one record at a time
	args         []any  // of one statement at a time

	spaceAt   int64 // when free disk was looked at last
	spaceErr  error
	refusing  bool  // the store refuses writes
	unsynced  bool  // what the log holds may not all be on the disk
	distrust  bool  // what the database holds may not all be on the disk
	resyncAt  int64 // not before, since the last one failed
	shrinking bool  // the file may be mostly free
	requested []request
}

func (l *loop) now() int64 { return l.clock.now() }

// run is the loop.
func (l *loop) run() {
	defer close(l.e.stopped)
	stopping := l.e.stopping
	for {
		reqs, open := l.gather(&stopping)
		l.cycle(reqs, stopping == nil)
		if !open {
			break
		}
	}
	l.e.result = errors.Join(l.keepBuckets(), l.keepSeqs(), l.close())
}

// mostYields is how often gather lets others run before it takes it that no more
// requests come: callers who are about to send join the same commit. It costs nothing
// when nobody runs, and a third less CPU time a message with 64 producers.
const mostYields = 2

// gather waits for a request, a timer or work that is left, then takes all that
// waits, up to the bounds of one commit. It tells whether more may come.
func (l *loop) gather(stopping *chan struct{}) (reqs []request, open bool) {
	reqs = l.requested[:0]
	bytes, msgs := int64(0), int64(0)
	durable, paused := false, false
	take := func(r request) {
		reqs = append(reqs, r)
		if c, ok := r.(*call); ok {
			l.e.queued.Add(-c.msgs)
			bytes, msgs = bytes+c.op.size(), msgs+c.msgs
			durable = durable || c.op.durable()
		}
	}
	if open = l.await(take, stopping); !open {
		return reqs, false
	}
	for yields := 0; ; {
		full := len(reqs) >= groupCalls || bytes >= groupBytes
		if durable && !paused && (full || yields > mostYields) {
			l.flusher.pause(msgs, &l.e.queued)
			paused = true
		}
		if full {
			l.requested = reqs
			return reqs, true
		}
		select {
		case r, ok := <-l.e.requests:
			if !ok {
				return reqs, false
			}
			take(r)
		default:
			yields++
			switch {
			case yields <= mostYields:
				runtime.Gosched()
			case paused || !durable:
				l.requested = reqs
				return reqs, true
			}
		}
	}
}

// await waits for the first request, unless there is something to do at once. It
// tells whether more may come.
func (l *loop) await(take func(request), stopping *chan struct{}) (open bool) {
	if l.workLeft() {
		return true
	}
	l.shrinking = l.shrinking && len(l.e.requests) == 0 && l.shrink()
	l.sleep()
	defer l.sleeper.Stop()
	select {
	case r, ok := <-l.e.requests:
		if !ok {
			return false
		}
		take(r)
	case <-l.sleeper.C:
	case err := <-l.saver.wake():
		l.saved(err)
	case err := <-l.flusher.failure():
		l.noteUnsynced(err)
	case <-*stopping:
		*stopping = nil
	}
	return true
}

// sleep arms the timer for the earliest deadline; with none it stays silent.
func (l *loop) sleep() {
	if l.shrinking {
		l.sleeper.Reset(0)
	} else if len(l.timers) > 0 {
		l.sleeper.Reset(min(max(time.Duration(l.timers[0].at-l.now()), 0), lookAgain))
	}
}

// workLeft tells whether a waiter may be served at once.
func (l *loop) workLeft() bool {
	for q := range l.dirty {
		if len(q.waiters) > 0 {
			return true
		}
		delete(l.dirty, q)
	}
	return false
}

// cycle does all that came, in one commit.
func (l *loop) cycle(reqs []request, stopping bool) {
	l.follow()
	select {
	case err := <-l.flusher.failure():
		l.noteUnsynced(err)
	default:
	}
	refused := l.trust(reqs) // before anything is written
	t := l.newTx()
	calls := make([]*call, 0, len(reqs))
	l.timers.run(t.now)
	l.keepExpired(t)
	calls = l.takeOwn(calls)
	for _, r := range reqs {
		switch r := r.(type) {
		case *call:
			calls = append(calls, r)
			if o, ok := r.op.(*send); ok {
				t.count += len(o.msgs)
			}
			t.hint = int(min(int64(t.hint)+r.op.size(), blockBytes+recordHeader))
		case *receive:
			r.q = l.queueFor(r.name)
			r.q.waiters = append(r.q.waiters, r)
			l.touch(r.q)
		case *cancel:
			l.cancelReceive(r)
		}
	}
	if stopping {
		l.turnAway()
	}
	l.serve(t)
	if refused != nil {
		calls = refuse(calls, refused)
	}
	err := errors.Join(refused, l.commit(t, calls))
	for _, r := range t.claims {
		if err := l.claimed(r.ls, t.now, err); err != nil {
			r.ls = nil
			r.done <- err
			continue
		}
		r.done <- nil
	}
	l.noteStore(t.wrote, err)
	l.keepMark()
	l.saver.consider(l)
	l.dedup.trim(l, t.now)
}

// commit applies calls to t and commits. When the store refuses, each call is
// done in a transaction of its own, so that one cannot fail its group.
func (l *loop) commit(t *tx, calls []*call) error {
	err := l.applyAll(t, calls)
	if err == nil {
		t.publish()
		for _, c := range calls {
			c.op.publish(t)
		}
		t.moved.publish(t)
		l.flusher.answer(calls, t.wrote)
		return nil
	}
	t.rollback()
	for _, c := range calls {
		c.op.abort()
	}
	if forebay.CodeOf(err) == forebay.CodeDamaged && !l.damaged {
		l.damaged = true // from now on the call may pass
	} else if len(calls) == 1 && !t.extra {
		calls[0].finish(err)
		return err
	}
	for _, c := range calls {
		l.commit(l.newTx(), []*call{c})
	}
	return err
}

func (l *loop) applyAll(t *tx, calls []*call) error {
	for _, c := range calls {
		if err := c.op.apply(t); err != nil {
			return err
		}
	}
	return t.commit()
}

// noteStore logs once when the store begins to refuse writes, and once when it
// takes them again.
func (l *loop) noteStore(wrote bool, err error) {
	code := forebay.CodeOf(err)
	failed := code == forebay.CodeFull || code == forebay.CodeUnavailable || code == forebay.CodeDamaged
	if failed == l.refusing || err != nil && !failed || err == nil && !wrote {
		return
	}
	l.refusing = failed
	if failed {
		l.log.Error("the store refuses writes", "code", string(code), "error", err)
		return
	}
	l.log.Info("the store takes writes again")
}
