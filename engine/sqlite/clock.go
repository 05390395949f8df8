package sqlite

import "time"

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
