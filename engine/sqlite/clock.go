package sqlite

import "time"

// rebaseAfter is how long the clock runs by itself.
const rebaseAfter = time.Hour

// clock gives the time of the loop. Between two looks at the wall clock it goes by
// the monotonic one, so that a step of the wall clock does not end all leases, or
// prolong them. It looks again when an hour is over, or nothing is leased.
type clock struct {
	read func() time.Time
	base time.Time
}

func (c *clock) now() int64 {
	t := c.read()
	if c.base.IsZero() {
		c.base = t
	}
	return c.base.UnixNano() + int64(t.Sub(c.base)) // by the monotonic clock, if both have it
}

// rebase takes the wall clock's word.
func (c *clock) rebase(idle bool) {
	t := c.read()
	if gone := t.Sub(c.base); gone > rebaseAfter || idle && gone > time.Minute {
		c.base = t
	}
}
