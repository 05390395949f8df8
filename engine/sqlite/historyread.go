package sqlite

import (
	"context"
	"math"
	"slices"
	"time"

	"zombiezen.com/go/sqlite"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
)

// Bounds of what one look into the history reads while the loop waits for it.
const (
	lookRows  = 4096
	lookBytes = 2 << 20
)

// History reads events; see engine.History.
func (e *Engine) History(ctx context.Context, q engine.HistoryQuery) (engine.HistoryPage, error) {
	if q.Limit == 0 {
		q.Limit = engine.MaxHistory
	}
	if q.Limit < 1 || q.Limit > engine.MaxHistory {
		return engine.HistoryPage{}, badHistory("limit", "must be 1 to %d", engine.MaxHistory)
	}
	if q.Wait < 0 || q.Wait > engine.MaxWait {
		return engine.HistoryPage{}, badHistory("wait", "must be 0 to %s", engine.MaxWait)
	}
	var timeout <-chan time.Time
	if q.Wait > 0 {
		timer := time.NewTimer(q.Wait)
		defer timer.Stop()
		timeout = timer.C
	}
	h := look{q: q, hash: idHash([]byte(q.Job)), after: q.After}
	for {
		more, err := h.look(ctx, e)
		if err != nil || len(h.page.Events) > 0 || q.Wait == 0 {
			return h.page, err
		}
		select {
		case <-more:
		case <-timeout:
			return h.page, nil
		case <-ctx.Done():
			return engine.HistoryPage{}, ctx.Err()
		case <-e.stopping:
			return engine.HistoryPage{}, errClosed()
		}
	}
}

func badHistory(field, format string, args ...any) error {
	err := forebay.Errorf(forebay.CodeInvalid, "sqlite: history", format, args...)
	err.Field = field
	return err
}

// look is a History on its way.
type look struct {
	q     engine.HistoryQuery
	hash  uint64 // of the job
	after int64
	page  engine.HistoryPage
}

// glimpse is what the loop finds for it.
type glimpse struct {
	rows  []*historyRow
	epoch string
	gone  int64
	to    int64 // the last seq that was looked at
	whole bool  // that was all there is
	bad   int   // rows that could not be read
	more  chan struct{}
}

// look goes on until there is an event, or no more to look at; then the channel tells
// of more.
func (h *look) look(ctx context.Context, e *Engine) (more chan struct{}, err error) {
	for {
		q, after := h.q, h.after // of this turn: when ctx ends, the loop may still read them
		g, err := ask(ctx, e, func(t *tx) (glimpse, error) { return t.l.glimpse(&q, h.hash, after) })
		if err != nil {
			return nil, err
		}
		if g.bad > 0 {
			e.log.Error("history: rows that cannot be read are passed over", "rows", g.bad)
		}
		full := h.take(g)
		h.page.Epoch, h.page.Oldest, h.page.Next, h.page.More = g.epoch, g.gone, h.after, full || !g.whole
		if g.whole || len(h.page.Events) > 0 {
			return g.more, nil
		}
	}
}

// take adds what is meant. It tells whether the page is full, and there is more.
func (h *look) take(g glimpse) (full bool) {
	h.after = max(h.after, 0)
	for _, row := range g.rows {
		at := unix(row.at)
		if !h.q.Since.IsZero() && at.Before(h.q.Since) || !h.q.Until.IsZero() && !at.Before(h.q.Until) {
			continue
		}
		row.each(func(i int, r *reader) bool {
			seq := row.seq + int64(i)
			if seq <= h.after {
				return true
			}
			if full = len(h.page.Events) == h.q.Limit; full {
				return false
			}
			e := forebay.HistoryEvent{Seq: seq, At: at}
			if r.historyEvent(&e) && h.meant(&e) {
				h.page.Events = append(h.page.Events, e)
			}
			h.after = seq
			return true
		})
		if full {
			return true
		}
	}
	h.after = max(h.after, g.to)
	return false
}

func (h *look) meant(e *forebay.HistoryEvent) bool {
	return (h.q.Job == "" || h.q.Job == e.Job) && (h.q.Queue == "" || h.q.Queue == e.Queue) &&
		(len(h.q.Types) == 0 || slices.Contains(h.q.Types, e.Type))
}

// glimpse reads the next rows after a place, of a bounded number.
func (l *loop) glimpse(q *engine.HistoryQuery, hash uint64, after int64) (glimpse, error) {
	h := &l.history
	g := glimpse{epoch: h.epoch, gone: h.gone, more: h.more}
	if after < 0 {
		g.to, g.whole = h.next-1, true
		return g, nil
	}
	if since := q.Since.UnixNano(); !q.Since.IsZero() && since > 0 {
		from, err := l.historySince(since, after)
		if err != nil {
			return g, err
		}
		after = max(after, from)
	}
	after = max(after, h.gone)
	g.to = after
	if len(h.recent) > 0 && after+1 >= h.recent[0].seq {
		l.glimpseRecent(&g, q, hash, after)
		return g, nil
	}
	return g, l.glimpseStored(&g, q, hash, after)
}

// glimpseRecent takes rows that are in memory.
func (l *loop) glimpseRecent(g *glimpse, q *engine.HistoryQuery, hash uint64, after int64) {
	rows := l.history.recent
	first, found := slices.BinarySearchFunc(rows, after+1, func(r *historyRow, seq int64) int {
		return int(min(max(r.seq-seq, -1), 1))
	})
	if !found && first > 0 {
		first-- // the place lies inside of this one
	}
	for _, row := range rows[first:] {
		if q.Job == "" || row.has(hash) {
			g.rows = append(g.rows, row)
		}
	}
	g.to, g.whole = l.history.next-1, true
}

// glimpseStored reads rows from the store.
func (l *loop) glimpseStored(g *glimpse, q *engine.HistoryQuery, hash uint64, after int64) error {
	from, err := l.db.int("SELECT max(seq) FROM history WHERE seq <= ?", after+1)
	if err != nil {
		return err
	}
	seen, bytes := 0, int64(0)
	err = l.db.each("SELECT seq, n, at, bytes, jobs FROM history WHERE seq >= ? ORDER BY seq LIMIT ?", func(s *sqlite.Stmt) error {
		row := &historyRow{seq: s.ColumnInt64(0), n: int(s.ColumnInt64(1)), at: s.ColumnInt64(2)}
		if seen++; seen >= lookRows || bytes >= lookBytes {
			return errStop
		}
		if q.Job != "" {
			if row.jobs = columnBytes(s, 4); !row.has(hash) {
				g.to = row.seq + int64(row.n) - 1
				return nil
			}
		}
		g.to = row.seq + int64(row.n) - 1
		g.rows = append(g.rows, row)
		bytes += s.ColumnInt64(3)
		return nil
	}, max(from, 1), int64(lookRows))
	if err != nil && err != errStop {
		return err
	}
	g.whole = err == nil
	return l.fillHistory(g)
}

// fillHistory reads the events of rows. Those that are damaged are left out.
func (l *loop) fillHistory(g *glimpse) error {
	for _, row := range g.rows {
		err := l.db.each("SELECT jobs, data FROM history WHERE seq = ?", func(s *sqlite.Stmt) error {
			row.jobs, row.data = columnBytes(s, 0), columnBytes(s, 1)
			return nil
		}, row.seq)
		if err != nil && forebay.CodeOf(err) != forebay.CodeDamaged {
			return err
		}
		if err != nil || !row.whole() {
			row.data = nil
			g.bad++
		}
	}
	g.rows = slices.DeleteFunc(g.rows, func(r *historyRow) bool { return r.data == nil })
	return nil
}

// historySince finds a place before the first event of a time, by halving: rows lie
// in the order of their time, but for steps of the clock.
func (l *loop) historySince(at, after int64) (int64, error) {
	low, high := max(after, l.history.gone), l.history.next
	for high-low > 1 {
		mid := low + (high-low)/2
		found := int64(math.MinInt64)
		err := l.db.each("SELECT at FROM history WHERE seq <= ? ORDER BY seq DESC LIMIT 1", func(s *sqlite.Stmt) error {
			found = s.ColumnInt64(0)
			return nil
		}, mid)
		if err != nil {
			return 0, err
		}
		if found < at {
			low = mid
		} else {
			high = mid
		}
	}
	return low, nil
}
