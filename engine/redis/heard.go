package redis

import (
	"context"
	"time"
)

// Times of day cross the contract in messages, and those who send them go by the clock of
// this machine, as do those who look how long their lease lasts; while what is due, late or
// over is told by the clock of Redis. Where the two differ, a delay of a second would be over
// at once, or never, and a lease would seem to have ended before it began. So each answer
// tells how they stand.

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

// hear takes the time of an answer to a call. Of one that was long under way, which is taken
// where nothing else is known, it is not known when the clock was read, so the difference is
// the least that there may be.
func (e *Engine) hear(server int64, began time.Time) {
	now := e.now()
	if now.Sub(began) >= heardWithin && e.heard.Load() != nil {
		return
	}
	h := &heard{server, now}
	switch {
	case server > now.UnixMilli():
	case server < began.UnixMilli():
		h.at = began
	default:
		h.server = now.UnixMilli()
	}
	e.heard.Store(h)
}

// listen asks for the time, so that it is known before the first call.
func (e *Engine) listen(ctx context.Context) error {
	began := e.now()
	at, err := e.client.Time(ctx).Result()
	if err != nil {
		return e.fault(err)
	}
	if e.clock != nil {
		at = e.clock()
	}
	e.hear(at.UnixMilli(), began)
	return nil
}

// byServer is a time of this machine, in ms, by the clock of Redis.
func (e *Engine) byServer(ms int64) int64 { return e.heard.Load().shift(ms, e.now()) }

// byHere is a time of the clock of Redis, in ms, by this machine's.
func (e *Engine) byHere(ms int64) int64 {
	if ms <= 0 {
		return ms
	}
	return max(ms-e.heard.Load().ahead(e.now()), 1)
}

// shift gives a time by the clock of Redis; 0 stays none.
func (h *heard) shift(ms int64, now time.Time) int64 {
	if ms == 0 {
		return ms
	}
	return max(ms+h.ahead(now), 1)
}

// ahead is by how much the clock of Redis is ahead, in ms. It takes the time since the answer
// from the monotonic clock, so that a wall clock that is stepped is seen at once.
func (h *heard) ahead(now time.Time) int64 {
	if h == nil {
		return 0
	}
	ahead := h.server + now.Sub(h.at).Milliseconds() - now.UnixMilli()
	if ahead > -heardLeast && ahead < heardLeast {
		return 0
	}
	return ahead
}
