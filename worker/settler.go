package worker

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/broker"
)

// ending is an item with its verdict.
type ending struct {
	it      *item
	s       forebay.Settlement
	outcome Outcome
	after   time.Time // not before; after a failed try
	tries   int
}

// settler stores verdicts. One call at a time; what arrives meanwhile goes
// together with the next. An item that waits for its turn keeps its lease.
type settler struct {
	b       *broker.Broker
	keeper  *keeper
	talker  *talker
	observe Observe
	freed   chan struct{} // signalled when items have left
	wake    chan struct{}
	pending atomic.Int64 // items that have come and not left

	mu     sync.Mutex // guards all below
	queue  []ending
	gone   []departure // of groups, since taken was called last
	closed bool

	// Owned by run.
	spare    []ending  // room for the next ones
	pause    time.Time // no call before; the one before failed as a whole
	health   health    // of whole calls
	unstored int       // verdicts that nobody will store any more
	told     time.Time // when a refusal was last told of
}

func newSettler(w *Worker, k *keeper, t *talker) *settler {
	return &settler{
		b: w.b, keeper: k, talker: t, observe: w.cfg.Observe,
		freed: make(chan struct{}, 1), wake: make(chan struct{}, 1),
		health: health{log: w.log, what: "storing verdicts"},
	}
}

func (s *settler) add(es []ending) {
	s.pending.Add(int64(len(es)))
	s.queueUp(es)
}

// departure is an item that has left. Not stored: it comes again when its lease ends.
type departure struct {
	it     *item
	stored bool
}

// left books items that are gone.
func (s *settler) left(ds []departure) {
	if len(ds) == 0 {
		return
	}
	s.pending.Add(-int64(len(ds)))
	s.mu.Lock()
	for _, d := range ds {
		if d.it.d.Group != "" {
			s.gone = append(s.gone, d)
		}
	}
	s.mu.Unlock()
	select {
	case s.freed <- struct{}{}:
	default:
	}
}

// departed gives what has left of groups.
func (s *settler) departed() []departure {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := s.gone
	s.gone = nil
	return all
}

func (s *settler) queueUp(es []ending) {
	s.mu.Lock()
	s.queue = append(s.queue, es...)
	s.mu.Unlock()
	s.signal()
}

// close lets run return as soon as the queue is empty.
func (s *settler) close() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.signal()
}

func (s *settler) signal() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// run stores verdicts until close, or until ctx ends. It returns how many could
// not be stored; their messages come again when their leases end.
func (s *settler) run(ctx context.Context) int {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		group, wait, more := s.take()
		if len(group) > 0 {
			s.flush(ctx, group)
			clear(group)
			s.spare = group[:0]
			continue
		}
		if !more {
			return s.unstored
		}
		timer.Reset(wait)
		select {
		case <-s.wake:
		case <-timer.C:
		case <-ctx.Done():
			s.mu.Lock()
			rest := s.queue
			s.queue = nil
			s.mu.Unlock()
			s.giveUp(rest, context.Cause(ctx))
			return s.unstored
		}
	}
}

const forever = time.Hour // how long to sleep when only a signal can bring work

// take returns what can be stored now, or how long nothing can. more is false
// when nothing is left and nothing will come.
func (s *settler) take() (group []ending, wait time.Duration, more bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	if len(s.queue) == 0 {
		return nil, forever, !s.closed
	}
	if now.Before(s.pause) {
		return nil, s.pause.Sub(now), true
	}
	wait = forever
	if !slices.ContainsFunc(s.queue, func(e ending) bool { return e.after.After(now) }) {
		group, s.queue, s.spare = s.queue, s.spare, nil
		return group, wait, true
	}
	var later []ending
	for _, e := range s.queue {
		if e.after.After(now) {
			wait = min(wait, e.after.Sub(now))
			later = append(later, e)
		} else {
			group = append(group, e)
		}
	}
	s.queue = later
	return group, wait, true
}

func (s *settler) flush(ctx context.Context, group []ending) {
	items := make([]*item, len(group))
	for i := range group {
		items[i] = group[i].it
	}
	s.keeper.stop(items)
	s.talker.close(items)
	ours := group[:0]
	var gone []departure
	settlements := make([]forebay.Settlement, 0, len(group))
	for _, e := range group {
		if e.it.lost.Load() { // the keeper has told of it
			gone = append(gone, departure{it: e.it})
			continue
		}
		ours = append(ours, e)
		settlements = append(settlements, e.s)
	}
	s.left(gone)
	if len(ours) == 0 {
		return
	}
	call, cancel := context.WithTimeout(ctx, settleTimeout)
	errs, err := s.b.Settle(call, settlements)
	cancel()
	if err != nil {
		s.failed(ours, err)
		return
	}
	s.health.worked()
	gone = gone[:0]
	for i, e := range ours {
		if s.ended(e, errs[i]) {
			gone = append(gone, departure{e.it, errs[i] == nil})
		}
	}
	s.left(gone)
}

const settleTimeout = 10 * time.Second

// failed keeps verdicts whose call failed as a whole. Their leases are renewed
// on, where the engine still does that: otherwise work that is done would be
// done again.
func (s *settler) failed(es []ending, err error) {
	if forebay.CodeOf(err) == forebay.CodeClosed {
		s.giveUp(es, err)
		return
	}
	s.health.failed(err)
	s.pause = time.Now().Add(backoff(s.health.failures))
	items := make([]*item, len(es))
	for i := range es {
		items[i] = es[i].it
	}
	s.keeper.hold(items)
	s.queueUp(es)
}

// ended books the answer for one verdict. It is false when the verdict will be
// tried again, which is so until the lease ends.
func (s *settler) ended(e ending, err error) bool {
	switch code := forebay.CodeOf(err); {
	case err == nil:
		if s.observe.Settled != nil {
			s.observe.Settled(e.outcome)
		}
	case code == forebay.CodeLeaseLost:
		s.keeper.lost(e.it.d)
	case code == forebay.CodeInvalid || code == forebay.CodeTooLarge || !time.Now().Before(e.it.deadline):
		s.forget(e, err)
	default:
		s.refused(e, err)
		e.tries++
		e.after = time.Now().Add(backoff(e.tries))
		s.queueUp([]ending{e})
		return false
	}
	return true
}

// refusalGap is how long nothing more is said of refusals.
const refusalGap = time.Minute

// refused tells of a verdict that is not taken while others are: without a word its
// message would go round for as long as that lasts, and nobody would know why.
func (s *settler) refused(e ending, err error) {
	now := time.Now()
	if !s.told.IsZero() && now.Sub(s.told) < refusalGap {
		return
	}
	s.told = now
	s.health.log.Warn("a verdict is refused; it is tried again until its lease ends, then its message comes again",
		"id", e.it.d.ID, "verdict", e.s.Verdict.String(), "error", err)
}

// giveUp is for verdicts that nobody will store any more.
func (s *settler) giveUp(es []ending, err error) {
	gone := make([]departure, len(es))
	for i, e := range es {
		if gone[i].it = e.it; !e.it.lost.Load() {
			s.unstored++
			s.forget(e, err)
		}
	}
	s.left(gone)
}

// forget leaves a delivery to the end of its lease.
func (s *settler) forget(e ending, err error) {
	if s.observe.SettleFailed != nil {
		s.observe.SettleFailed(e.it.d, err)
	}
}
