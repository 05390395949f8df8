package sqlite

import (
	"context"
	"fmt"
	"slices"

	"zombiezen.com/go/sqlite"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
)

var _ engine.Peeker = (*Engine)(nil)

// A page of Peek is gathered as one of jobs is (list.go): in pieces of the loop's
// time, decoded by the caller. Its place is that of the next message, lane by lane.

// Peek lists messages of a queue as they are; see engine.Peeker.
func (e *Engine) Peek(ctx context.Context, q engine.PeekQuery) (page engine.PeekPage, err error) {
	if err := engine.CheckQueue(q.Queue); err != nil {
		return page, err
	}
	if q.Limit == 0 {
		q.Limit = engine.DefaultPeek
	}
	if q.Limit < 1 || q.Limit > engine.MaxPeek {
		return page, badPeek("limit", "must be 1 to %d", engine.MaxPeek)
	}
	at, err := parseSpot(q.After)
	if err != nil {
		return page, err
	}
	for reads := 0; len(page.Messages) < q.Limit && reads < pageReads; {
		slice, err := ask(ctx, e, func(t *tx) (peekSlice, error) { return t.peek(q.Queue, at) })
		if err != nil {
			return engine.PeekPage{}, err
		}
		reads += blockReads
		for i := range slice.blocks {
			b := &slice.blocks[i]
			reads += len(b.data) + blockReads
			if at = b.peek(&page, q.Limit, at, &slice); len(page.Messages) == q.Limit {
				break
			}
		}
		if len(page.Messages) < q.Limit {
			if at = slice.next; at == (spot{}) {
				return page, nil
			}
		}
	}
	page.Next = at.String()
	return page, nil
}

func badPeek(field, format string, args ...any) error {
	e := forebay.Errorf(forebay.CodeInvalid, "sqlite: peek", format, args...)
	e.Field = field
	return e
}

func (s spot) String() string { return fmt.Sprintf("%x.%x", s.key, s.idx) }

func parseSpot(text string) (s spot, err error) {
	if text == "" {
		return s, nil
	}
	_, err = fmt.Sscanf(text, "%x.%x", &s.key, &s.idx)
	if err != nil || s.String() != text || s.key <= 0 || s.idx < 0 || s.idx > blockMessages {
		return s, badPeek("after", "%q is not the next of a page", text)
	}
	return s, nil
}

// peekSlice is what one piece of the loop's work has read.
type peekSlice struct {
	blocks []peekBlock
	next   spot // what comes after them; none: nothing
	now    int64
	hold   int64 // the queue's delay
}

// peekBlock is a block and what is leased of it.
type peekBlock struct {
	liveBlock
	held map[int]item
}

// peek reads some blocks of a queue, from a place on.
func (t *tx) peek(name string, from spot) (s peekSlice, err error) {
	q := t.l.queues[name]
	if q == nil || q.id == 0 {
		return s, nil
	}
	s.now, s.hold = t.now, q.hold.span
	bytes, left := 0, sliceBlocks
	for _, lane := range q.lanesFrom(laneOf(from.key)) {
		keys, err := t.l.keysOf(max(from.key, blockKey(lane, 0)), blockKey(lane+1, 0), left)
		if err != nil {
			return s, err
		}
		for _, key := range keys {
			if bytes >= sliceReads {
				s.next = spot{key: key}
				return s, nil
			}
			b, err := t.l.liveBlock(key)
			if err != nil {
				return s, err
			}
			if b != nil {
				s.blocks = append(s.blocks, peekBlock{*b, t.l.heldOf(key)})
				bytes += len(b.data)
			}
		}
		if left -= len(keys) + 1; left <= 0 {
			s.next = spot{key: blockKey(lane+1, 0)}
			if len(keys) > 0 {
				s.next.key = keys[len(keys)-1] + 1
			}
			return s, nil
		}
	}
	return s, nil
}

// lanesFrom gives the lanes of a queue from one on, in order.
func (q *queue) lanesFrom(from int64) (lanes []int64) {
	for tn := range q.all {
		for level, n := range tn.lanes {
			if id := laneID(tn.id, level); n != nil && id >= from {
				lanes = append(lanes, id)
			}
		}
	}
	slices.Sort(lanes)
	return lanes
}

func (l *loop) keysOf(from, to int64, n int) (keys []int64, err error) {
	err = l.db.each("SELECT key FROM block WHERE key >= ? AND key < ? ORDER BY key LIMIT ?", func(s *sqlite.Stmt) error {
		keys = append(keys, s.ColumnInt64(0))
		return nil
	}, from, to, int64(n))
	return keys, err
}

// heldOf copies what is leased of a block.
func (l *loop) heldOf(key int64) map[int]item {
	held := map[int]item{}
	for _, it := range l.blocks.byKey[key].items {
		held[it.idx] = *it
	}
	return held
}

// peek adds messages of the block to a page, and gives the place of the next.
func (b *peekBlock) peek(page *engine.PeekPage, limit int, from spot, s *peekSlice) spot {
	if b.recs == nil {
		b.recs, _ = records(b.data, b.n)
	}
	i := 0
	if from.key == b.key {
		i = from.idx
	}
	for ; i < b.n && len(page.Messages) < limit; i++ {
		held, leased := b.held[i]
		if r := b.recs[i]; r[1] == 0 || b.skip.has(i) && !leased {
			continue
		}
		m, err := decodeBody(b.data[b.recs[i][0]:b.recs[i][1]], b.q.name)
		if err != nil {
			continue // it is damaged: what can be read is listed
		}
		p := engine.Peeked{Message: m, Where: engine.WhereWaiting, SentAt: unix(b.sentAt)}
		again, moved := b.again[i]
		switch {
		case leased:
			p.Where, p.LeaseUntil = engine.WhereActive, unix(held.until)
			p.Deliveries, p.Attempts, p.SentAt = held.deliveries, held.attempts, unix(held.sentAt)
		case moved:
			p.Deliveries, p.Attempts, p.SentAt = again.ref.deliveries, again.ref.attempts, unix(again.ref.sentAt)
		}
		if due := dueAt(again.ref.due, b.sentAt, p.Deliveries, s.hold); !leased && due > s.now {
			p.Where, p.NotBefore = engine.WhereDelayed, unix(due)
		}
		page.Messages = append(page.Messages, p)
	}
	if i == b.n {
		return spot{key: b.key + 1}
	}
	return spot{b.key, i}
}
