package sqlite

import (
	"context"
	"os"
	"syscall"
	"time"
)

// Exec runs SQL on the engine's own connection.
func (e *Engine) Exec(sql string) error {
	return e.submit(context.Background(), question(func(t *tx) error { return t.l.db.exec(sql) }))
}

// BreakSync makes the log's flush fail, until mend is called.
func (e *Engine) BreakSync() (mend func() error, err error) {
	broken, _, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	restore := e.OnSync(func(func() error) error { return syscall.Fdatasync(int(broken.Fd())) })
	return func() error {
		restore()
		return broken.Close()
	}, err
}

// OnSync puts f in the place of the log's flush, which it is given, until restore
// is called. No flush may be running.
func (e *Engine) OnSync(f func(flush func() error) error) (restore func()) {
	var was func() error
	swap := func(to func() error) {
		_ = e.submit(context.Background(), question(func(t *tx) error {
			fl := t.l.flusher
			fl.mu.Lock()
			defer fl.mu.Unlock()
			was, fl.sync = fl.sync, to
			fl.few = 0 // so that single calls show what many do
			return nil
		}))
	}
	swap(func() error { return f(was) })
	return func() { swap(was) }
}

// Few sets how many messages are too few for a commit of their own.
func (e *Engine) Few(n int64) {
	e.flusher.mu.Lock()
	defer e.flusher.mu.Unlock()
	e.flusher.few = n
}

// Hold stops the loop until release is called.
func (e *Engine) Hold() (release func()) {
	held, free := make(chan struct{}), make(chan struct{})
	done := make(chan error, 1)
	go func() {
		done <- e.submit(context.Background(), question(func(*tx) error {
			close(held)
			<-free
			return nil
		}))
	}()
	<-held
	return func() { close(free); <-done }
}

// Stepped leaves the engine's clock where it is while that of the machine is stepped by d.
func (e *Engine) Stepped(d time.Duration) {
	_ = e.submit(context.Background(), question(func(t *tx) error {
		t.l.clock.off -= int64(d)
		return nil
	}))
}

// Queued is how many requests wait for the loop.
func (e *Engine) Queued() int { return len(e.requests) }

// LogSize is the size of the log that is not in the database yet; saving: it is on its way.
func (e *Engine) LogSize() (size int64, saving bool) {
	_ = e.submit(context.Background(), question(func(t *tx) error {
		size, saving = t.l.saver.size(), t.l.saver.busy
		return nil
	}))
	return size, saving
}

// ForgetData takes the data of all blocks out of memory.
func (e *Engine) ForgetData() {
	_ = e.submit(context.Background(), question(func(t *tx) error {
		for _, b := range t.l.blocks.byKey {
			t.l.blocks.drop(b)
		}
		return nil
	}))
}

// Oldest is the time of the oldest message outside the lanes, as it is kept and as
// a walk through all finds it.
func (e *Engine) Oldest(name string) (kept, walked int64) {
	_ = e.submit(context.Background(), question(func(t *tx) error {
		q := t.l.queueFor(name)
		see := func(at int64) {
			if walked == 0 || at < walked {
				walked = at
			}
		}
		seeAll := func(h readyHeap) {
			for _, it := range h {
				if it.ref != nil {
					see(it.ref.sentAt)
				}
			}
		}
		for tn := range q.all {
			seeAll(tn.ready)
		}
		for _, k := range q.keys {
			seeAll(k.waiting)
		}
		for _, g := range q.groups {
			if len(g.pending) > 0 && g.pending[0].due <= t.now {
				see(g.pending[0].sentAt)
			}
		}
		kept = q.outside.oldest()
		return nil
	}))
	return kept, walked
}

const GroupCalls = groupCalls

// Unflushed is how many calls wait for the next flush.
func (e *Engine) Unflushed() int {
	e.flusher.mu.Lock()
	defer e.flusher.mu.Unlock()
	return len(e.flusher.waiting)
}

// Count gives the number that a query selects.
func (e *Engine) Count(sql string) (n int64) {
	_ = e.submit(context.Background(), question(func(t *tx) (err error) {
		n, err = t.l.db.int(sql)
		return err
	}))
	return n
}
