package sqlite

import (
	"context"
	"math"
	"slices"

	"zombiezen.com/go/sqlite"
)

// held counts what the delay of a queue holds, by the time at which it was sent. It is
// exact but for what was sent within a part of the delay in heldParts, so that its size
// is bounded however much waits.
type held struct {
	counts []sentThen // by time
	from   int64      // seq: blocks before it were there when the delay was set
	round  int64      // of counting what was there
}

// sentThen is how much was sent at a time, or soon after.
type sentThen struct{ at, n int64 }

const (
	heldParts = 1024
	heldSlice = 256 // blocks that are counted at once, so that others get their turn in between
)

// begin forgets what was counted for another delay.
func (h *held) begin(seq int64) (round int64) {
	h.counts, h.from = nil, seq
	h.round++
	return h.round
}

// sent counts what was just sent.
func (h *hold) sent(at, n int64) {
	if h.span == 0 || n == 0 {
		return
	}
	if c := h.held.counts; len(c) > 0 && at-c[len(c)-1].at <= h.span/heldParts {
		c[len(c)-1].n += n
		return
	}
	h.held.counts = append(h.held.counts, sentThen{at, n})
}

// gone takes away what was purged.
func (h *hold) gone(s sentThen) {
	for i := len(h.held.counts) - 1; i >= 0; i-- {
		if c := &h.held.counts[i]; c.at <= s.at {
			c.n = max(c.n-s.n, 0)
			return
		}
	}
}

// count tells how much is held now.
func (h *hold) count(now int64) (n int64) {
	first := slices.IndexFunc(h.held.counts, func(c sentThen) bool { return h.keeps(c.at, now) })
	if first < 0 {
		first = len(h.held.counts)
	}
	h.held.counts = h.held.counts[first:]
	for _, c := range h.held.counts {
		n += c.n
	}
	return n
}

// countHeld counts what was there when the delay of a queue was set, newest first, some
// at a time.
func (e *Engine) countHeld(ctx context.Context, q *queue, round int64) error {
	var found []sentThen
	for at := (spot{key: math.MaxInt64}); ; {
		done, err := ask(ctx, e, func(t *tx) (done bool, err error) {
			if q.hold.held.round != round { // it has been set again
				return true, nil
			}
			some, next, err := t.l.youngBefore(q, at.key, t.now)
			found = q.hold.merged(found, some)
			if at.key = next; next == 0 {
				q.hold.older(found)
			}
			return next == 0, err
		})
		if done || err != nil {
			return err
		}
	}
}

// merged puts counts together that are near enough to each other. Both are newest first.
func (h *hold) merged(all, more []sentThen) []sentThen {
	for _, s := range more {
		if n := len(all); n > 0 && all[n-1].at-s.at <= h.span/heldParts && all[n-1].at >= s.at {
			all[n-1] = sentThen{s.at, all[n-1].n + s.n}
			continue
		}
		all = append(all, s)
	}
	return all
}

// older adds what was there already, newest first, to what came since.
func (h *hold) older(found []sentThen) {
	slices.Reverse(found)
	h.held.counts = append(found, h.held.counts...)
	slices.SortStableFunc(h.held.counts, func(a, b sentThen) int { return int(min(max(a.at-b.at, -1), 1)) })
}

// youngBefore counts what is held in some blocks before a key, newest first; next is
// where to go on, 0: that were all.
func (l *loop) youngBefore(q *queue, before, now int64) (found []sentThen, next int64, err error) {
	lanes := q.lanesFrom(0)
	slices.Reverse(lanes)
	for _, lane := range lanes {
		if before <= blockKey(lane, 0) {
			continue
		}
		last := int64(0)
		err = l.db.each(`SELECT key, n, sent_at, settled, (SELECT count(*) FROM again WHERE again.key = block.key AND (deliveries > 0 OR due > ?1))
			FROM block LEFT JOIN part USING (key) WHERE key >= ?2 AND key < ?3 ORDER BY key DESC LIMIT ?4`,
			func(s *sqlite.Stmt) error {
				key, at := s.ColumnInt64(0), s.ColumnInt64(2)
				if last = key; !q.hold.keeps(at, now) {
					last = 0
					return nil
				}
				var settled bitmap
				var err error
				if s.ColumnLen(3) > 0 {
					settled, err = marksOf(key, columnBytes(s, 3))
				}
				n := s.ColumnInt64(1) - int64(settled.count()) - s.ColumnInt64(4)
				if b := l.blocks.byKey[key]; b != nil {
					n -= int64(b.leased)
				}
				if n > 0 {
					found = append(found, sentThen{at, n})
				}
				return err
			}, now, blockKey(lane, 0), min(before, blockKey(lane, q.hold.held.from)), int64(heldSlice))
		if err != nil {
			return nil, 0, err
		}
		if last > 0 {
			return found, last, nil
		}
	}
	return found, 0, nil
}

// loadHeld counts what the delays hold, at start.
func (l *loop) loadHeld(t *tx) error {
	for _, q := range l.byID {
		if q.hold.span == 0 {
			continue
		}
		q.hold.held.begin(l.seq)
		var found []sentThen
		for next := int64(math.MaxInt64); next > 0; {
			some, before, err := l.youngBefore(q, next, t.now)
			if err != nil {
				return err
			}
			found, next = q.hold.merged(found, some), before
		}
		q.hold.older(found)
	}
	return nil
}
