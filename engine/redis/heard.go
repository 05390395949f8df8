package redis

import "time"

// Times of day cross the contract in messages, and those who send them go by the clock of
// this machine, while what is due is told by the clock of Redis. Where the two differ, a
// delay of a second would be over at once, or never. So each answer tells how they stand.

// Bounds of what is believed of an answer.
const (
	heardWithin = 100 * time.Millisecond // a later one says little of now
	heardLeast  = 100                    // ms: a smaller difference may be the way
)

// heard is what the clock of Redis said, and when it was heard.
type heard struct {
	server int64 // ms
	at     time.Time
}

// hear takes the time of an answer to a call.
func (e *Engine) hear(server int64, began time.Time) {
	if now := e.now(); now.Sub(began) < heardWithin {
		e.heard.Store(&heard{server, now})
	}
}

// byServer is a time of this machine, in ms, by the clock of Redis.
func (e *Engine) byServer(ms int64) int64 { return e.heard.Load().shift(ms, e.now()) }

// shift takes the time since the answer from the monotonic clock, so that a wall clock that is
// stepped is seen at once.
func (h *heard) shift(ms int64, now time.Time) int64 {
	if ms == 0 || h == nil {
		return ms
	}
	ahead := h.server + now.Sub(h.at).Milliseconds() - now.UnixMilli()
	if ahead > -heardLeast && ahead < heardLeast {
		return ms
	}
	return max(ms+ahead, 1)
}
