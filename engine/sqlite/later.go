package sqlite

import (
	"math"

	"zombiezen.com/go/sqlite"
)

// later says which rows of again are in the store only: those without a group
// whose (due, key, idx) is beyond the mark. The others are in memory.
type later struct {
	due, key int64
	idx      int64
	next     int64 // due time of the first beyond the mark; math.MaxInt64: none
	counted  int64 // due times up to it have left the queue's delayed count
	timer    timer
}

// readyAtMost is how many due messages are loaded into memory.
const readyAtMost = 4096

func (n *later) start() { n.due, n.next, n.counted = -1, math.MaxInt64, -1 }

// putLater notes a message that was stored with a due time.
func (q *queue) putLater(l *loop, r *ref, now int64) {
	n := &q.later
	if r.group != 0 {
		q.groupFor(r.group).put(l, q, r, now)
		return
	}
	if r.due > n.counted && r.due > now {
		q.delayed++
	}
	if r.due < n.due || r.due == n.due && (r.key < n.key || r.key == n.key && int64(r.idx) <= n.idx) {
		q.pushReady(r)
		l.touch(q)
		return
	}
	if r.due < n.next {
		n.next = r.due
		l.timers.sooner(&n.timer, r.due)
	}
}

// advance loads the messages whose time has come, in bounded slices.
func (q *queue) advance(l *loop, now int64) error {
	n := &q.later
	if n.next > now || len(q.ready) > readyAtMost/2 {
		return nil
	}
	room := int64(readyAtMost - len(q.ready))
	loaded := int64(0)
	due, key, idx := n.due, n.key, n.idx
	err := l.db.each(`SELECT key, idx, due, ord, sent_at, attempts, deliveries, lim FROM again
		WHERE queue = ?1 AND grp = 0 AND (due, key, idx) > (?2, ?3, ?4) AND due <= ?5 ORDER BY due, key, idx LIMIT ?6`,
		func(s *sqlite.Stmt) error {
			r := readRef(s)
			loaded++
			n.due, n.key, n.idx = r.due, r.key, int64(r.idx)
			if r.due > n.counted {
				q.delayed--
			}
			r.due = 0
			q.pushReady(r)
			return nil
		}, q.id, due, key, idx, now, room)
	if err != nil {
		return err
	}
	if loaded < room {
		n.due, n.key, n.idx = now, math.MaxInt64, 0
		n.counted = now
	} else if err := q.countDue(l, now); err != nil {
		return err
	}
	return q.findNext(l)
}

// countDue takes the messages out of the delayed count that have become due but
// stay in the store for now. Each is counted once.
func (q *queue) countDue(l *loop, now int64) error {
	n := &q.later
	if n.next > now || n.counted >= now {
		return nil
	}
	left, err := l.db.int(`SELECT count(*) FROM again WHERE queue = ?1 AND grp = 0
		AND (due, key, idx) > (?2, ?3, ?4) AND due > ?5 AND due <= ?6`,
		q.id, n.due, n.key, n.idx, n.counted, now)
	if err != nil {
		return err
	}
	q.delayed -= left
	n.counted = now
	return nil
}

// findNext looks for the first message beyond the mark.
func (q *queue) findNext(l *loop) error {
	n := &q.later
	n.next = math.MaxInt64
	next := int64(-1)
	err := l.db.each(`SELECT due FROM again WHERE queue = ?1 AND grp = 0 AND (due, key, idx) > (?2, ?3, ?4) ORDER BY due, key, idx LIMIT 1`,
		func(s *sqlite.Stmt) error {
			next = s.ColumnInt64(0)
			return nil
		}, q.id, n.due, n.key, n.idx)
	if err != nil || next < 0 {
		l.timers.stop(&n.timer)
		return err
	}
	n.next = next
	l.timers.set(&n.timer, next)
	return nil
}

func readRef(s *sqlite.Stmt) *ref {
	return &ref{
		key: s.ColumnInt64(0), idx: int(s.ColumnInt64(1)), due: s.ColumnInt64(2), ord: s.ColumnInt64(3),
		sentAt: s.ColumnInt64(4), attempts: int(s.ColumnInt64(5)), deliveries: int(s.ColumnInt64(6)),
		limitKey: uint64(s.ColumnInt64(7)), stored: true,
	}
}

// keep stores a message's place in again. Failures that are nil stay as they are.
func (t *tx) keep(q *queue, r *ref, failures []byte) error {
	if failures != nil {
		return t.exec(`INSERT INTO again (key, idx, queue, due, ord, sent_at, attempts, deliveries, grp, lim, failures)
			VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11) ON CONFLICT DO UPDATE SET
			due = ?4, attempts = ?7, deliveries = ?8, failures = ?11`,
			r.key, int64(r.idx), q.id, r.due, r.ord, r.sentAt, int64(r.attempts), int64(r.deliveries),
			int64(r.group), int64(r.limitKey), string(failures))
	}
	return t.exec(`INSERT INTO again (key, idx, queue, due, ord, sent_at, attempts, deliveries, grp, lim)
		VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10) ON CONFLICT DO UPDATE SET
		due = ?4, attempts = ?7, deliveries = ?8`,
		r.key, int64(r.idx), q.id, r.due, r.ord, r.sentAt, int64(r.attempts), int64(r.deliveries),
		int64(r.group), int64(r.limitKey))
}

// failures reads the causes of a message's earlier attempts.
func (l *loop) failures(r *ref) (text string, err error) {
	err = l.db.each("SELECT failures FROM again WHERE key = ? AND idx = ?", func(s *sqlite.Stmt) error {
		text = s.ColumnText(0)
		return nil
	}, r.key, int64(r.idx))
	return text, err
}
