package sqlite

import (
	"math"
	"time"

	"zombiezen.com/go/sqlite"
)

// A clock that differs from the wall clock by more than stepLeast follows it, and
// lookAgain is how long a loop that waits for a time may sleep until it looks.
const (
	stepLeast = 100 * time.Millisecond
	lookAgain = time.Minute
)

// clock gives the time of the loop. It goes by the monotonic clock, and follows the
// wall clock where that was stepped, as by a machine that had slept: what was asked for
// by the time of day is due by it. What was asked for as a span (leases, rates) keeps it,
// see loop.follow.
type clock struct {
	read  func() time.Time
	start time.Time
	off   int64 // of the wall clock since
}

func (c *clock) now() int64 { return c.at(c.read()) }

func (c *clock) at(t time.Time) int64 {
	if c.start.IsZero() {
		c.start = t
	}
	return c.start.UnixNano() + int64(t.Sub(c.start)) + c.off // by the monotonic clock, if both have it
}

// follow takes the wall clock's word, and gives by how much it was stepped.
func (c *clock) follow() (by int64) {
	t := c.read()
	if by = t.UnixNano() - c.at(t); by > -int64(stepLeast) && by < int64(stepLeast) {
		return 0
	}
	c.off += by
	return by
}

// follow keeps the spans of leases and rates where the clock was stepped.
func (l *loop) follow() {
	by := l.clock.follow()
	if l.wentBack || by < 0 {
		l.goBack()
	}
	if by == 0 {
		return
	}
	l.log.Warn("the clock was stepped", "by", time.Duration(by).String())
	for _, ls := range l.leases {
		ls.until += by
		for i := range ls.items {
			ls.items[i].until += by
		}
		ls.stale = ls.stale || ls.kept
		l.timers.shift(&ls.timer, by)
	}
	for _, q := range l.queues {
		q.bucket.full += by
		q.drainedAt += by
		l.timers.shift(&q.wakeup, by)
		for _, k := range q.keys {
			k.bucket.full += by
			l.timers.shift(&k.timer, by)
		}
	}
}

// goBack has the tenants' marks follow a clock that went back. Where the store refuses,
// it is tried again.
func (l *loop) goBack() {
	now := l.now()
	var tenants []*tenant
	for _, q := range l.byID {
		for tn := range q.all {
			if n := &tn.later; n.counted > now || n.due > now {
				tenants = append(tenants, tn)
			}
		}
	}
	l.wentBack = false
	if len(tenants) == 0 || l.damaged {
		return
	}
	err := l.db.exec("BEGIN IMMEDIATE")
	again := make([]int64, len(tenants))
	for i := 0; i < len(tenants) && err == nil; i++ {
		again[i], err = tenants[i].laterAgain(l, now)
	}
	if err == nil {
		err = l.db.exec("COMMIT")
	}
	if err != nil {
		_ = l.db.exec("ROLLBACK")
		l.wentBack = true
		l.log.Warn("the clock was stepped back, and what is due later cannot be told yet", "error", err)
		return
	}
	for i, tn := range tenants {
		n := &tn.later
		tn.q.delayed += again[i]
		n.counted, n.countAt = min(n.counted, now), 0
		if n.due > now {
			n.due, n.key, n.idx = now, math.MaxInt64, 0
		}
		if err := tn.findNext(l); err != nil {
			l.log.Error("delayed messages cannot be read", "queue", tn.q.name, "error", err)
		}
	}
}

// laterAgain stores that what memory has as due stays due, and gives how many others are
// due later again.
func (tn *tenant) laterAgain(l *loop, now int64) (n int64, err error) {
	var due []*ref
	err = l.db.each(`SELECT key, idx, due, ord, sent_at, attempts, deliveries, lim, started FROM again
		WHERE queue = ?1 AND grp = 0 AND due > ?2 AND (due, key, idx) <= (?3, ?4, ?5)`,
		func(s *sqlite.Stmt) error {
			due = append(due, readRef(s))
			return nil
		}, tn.id, now, tn.later.due, tn.later.key, tn.later.idx)
	if err != nil {
		return 0, err
	}
	for _, r := range due {
		sum := againSum([10]int64{r.key, int64(r.idx), tn.id, 0, r.ord, r.sentAt, int64(r.attempts), int64(r.deliveries), 0, int64(r.limitKey)})
		if err := l.db.exec("UPDATE again SET due = 0, sum = ? WHERE key = ? AND idx = ?", sum, r.key, int64(r.idx)); err != nil {
			return 0, err
		}
	}
	return l.db.int("SELECT count(*) FROM again WHERE queue = ? AND due > ? AND due <= ?", tn.id, now, tn.later.counted)
}
