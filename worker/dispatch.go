package worker

import "time"

// dispatcher decides what is handled next. Both kinds are plain state, owned by
// the loop: no I/O, no locks, no clock of their own.
type dispatcher interface {
	// room is how many more messages may be asked for.
	room() int
	// take books what came.
	take(items []*item)
	// next gives what one handler should do now; nil: nothing, but perhaps so
	// at a later moment (zero: not before another call). settling: not every
	// verdict so far is stored.
	next(now time.Time, settling bool) (items []*item, at time.Time)
	// done books what ended, begun or not, and how long it ran. It returns items
	// at hand that must be released, since one before them in their group will
	// come again.
	done(items []*item, run time.Duration) (release []*item)
	// left books an item of a group whose verdict is stored, or never will be. What it
	// returns must be released, as with done.
	left(d departure) (release []*item)
	// resize says how many handlers, or batches, may run at once from now on.
	resize(n int)
	// drop gives away all that is not begun.
	drop() []*item
}
