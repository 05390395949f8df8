package postgres

import "time"

// Times of day cross the contract in messages, and those who send them go by the clock of
// this machine, as do those who look how long their lease lasts. What is due is told by the
// clock of the server. Where the two differ, a delay of a second would be over at once, or
// never, and a lease would seem to have ended before it began. So each transaction looks how
// they stand, at the moment at which it asks for the time.

// apartLeast is the least difference that is taken for one, in µs: a smaller one may be the
// way.
const apartLeast = 100_000

// apart is by how much the server's clock is ahead of this machine's, whose clock said before
// and after when it asked and when it was answered.
func apart(server, before, after int64) int64 {
	switch least, most := server-after, server-before; {
	case least >= apartLeast:
		return least
	case most <= -apartLeast:
		return most
	}
	return 0
}

// byServer is a time of this machine, in µs, by the server's clock; 0: none.
func (w *work) byServer(t time.Time) int64 {
	us := micros(t)
	if us == 0 {
		return 0
	}
	return max(us+w.ahead, 1)
}

// byHere is a time of the server's clock by this machine's, as they stood last.
func (e *Engine) byHere(us int64) time.Time {
	if us <= 0 {
		return time.Time{}
	}
	return atMicros(us - e.ahead.Load())
}
