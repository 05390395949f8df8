package broker

import (
	"sort"

	"github.com/forebayhq/forebay"
)

// Bounds of the ring: what streams that resume can get without the store.
const (
	ringEvents = 1 << 16
	ringBytes  = 32 << 20 // of texts, data and results of the events
)

// ring holds the last events of the history, in order.
type ring struct {
	events []forebay.HistoryEvent // a power of two of places; grows up to ringEvents
	first  int                    // place of the oldest
	count  int
	bytes  int
	floor  int64 // all that came after it is held
	known  bool  // floor means something
}

// reset forgets all; what comes after the place will be held.
func (r *ring) reset(place int64) { *r = ring{floor: place, known: true} }

func (r *ring) at(i int) *forebay.HistoryEvent { return &r.events[(r.first+i)&(len(r.events)-1)] }

func (r *ring) add(e forebay.HistoryEvent) {
	if r.count == len(r.events) && r.count < ringEvents {
		r.grow()
	}
	if r.count == len(r.events) {
		r.drop()
	}
	r.count++
	*r.at(r.count - 1) = e
	r.bytes += weight(&e)
	for r.bytes > ringBytes && r.count > 1 {
		r.drop()
	}
}

func (r *ring) grow() {
	bigger := make([]forebay.HistoryEvent, max(64, 2*len(r.events)))
	for i := range r.count {
		bigger[i] = *r.at(i)
	}
	r.events, r.first = bigger, 0
}

func (r *ring) drop() {
	oldest := r.at(0)
	r.floor = oldest.Seq
	r.bytes -= weight(oldest)
	*oldest = forebay.HistoryEvent{}
	r.first = (r.first + 1) & (len(r.events) - 1)
	r.count--
}

// since gives what came after a place, of one job or of all. ok is false where
// some of it is no longer held.
func (r *ring) since(after int64, job string) (events []forebay.HistoryEvent, ok bool) {
	if !r.known || after < r.floor {
		return nil, false
	}
	for i := sort.Search(r.count, func(i int) bool { return r.at(i).Seq > after }); i < r.count; i++ {
		if e := r.at(i); job == "" || e.Job == job {
			events = append(events, *e)
		}
	}
	return events, true
}

func weight(e *forebay.HistoryEvent) int {
	n := len(e.Text) + len(e.Result)
	if e.Progress != nil {
		n += len(e.Progress.Data) + len(e.Progress.Message)
	}
	if e.Cause != nil {
		n += len(e.Cause.Message)
		for _, v := range e.Cause.Detail {
			n += len(v)
		}
	}
	return n
}
