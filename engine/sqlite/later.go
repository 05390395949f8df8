package sqlite

import (
	"math"

	"zombiezen.com/go/sqlite"

	"github.com/forebayhq/forebay"
)

// later says which rows of again are in the store only: those without a group
// whose (due, key, idx) is beyond the mark. The others are in memory, or their
// lane has not come to them yet. The mark is never before due = 0: of what comes
// back at once memory is the truth, and its rows, if it has any, only serve the
// next start.
type later struct {
	due, key int64 // the mark
	idx      int64
	next     int64 // due time of the first beyond the mark; math.MaxInt64: none
	timer    timer

	// The queue's delayed count has all rows of the tenant that are due after counted; the first
	// of them is due at countAt. So each message is counted down once, when
	// somebody asks.
	counted, countAt int64
}

// readyAtMost is how many due messages are loaded into memory.
const readyAtMost = 4096

// start is the mark of a new queue.
func (n *later) start() {
	n.due, n.key, n.next, n.countAt = 0, math.MaxInt64, math.MaxInt64, math.MaxInt64
}

// loadLater takes up the rows of a tenant at start. Those with due 0 were in memory
// when the last process ended, so they fit there; the others are loaded when due.
func (tn *tenant) loadLater(l *loop) error {
	delayed, err := l.db.int("SELECT count(*) FROM again WHERE queue = ? AND due > 0", tn.id)
	if err != nil {
		return err
	}
	tn.q.delayed += delayed
	tn.later.countAt = 0
	err = l.db.each(`SELECT key, idx, due, ord, sent_at, attempts, deliveries, lim, started FROM again
		WHERE queue = ? AND grp = 0 AND due = 0 ORDER BY due, key, idx`, func(s *sqlite.Stmt) error {
		if r := readRef(s); !l.isHeld(r) {
			tn.pushReady(r)
		}
		return nil
	}, tn.id)
	if err != nil {
		return err
	}
	if err := tn.countDue(l, l.now()); err != nil { // also meets damage now, where it leads to a recovery
		return err
	}
	return tn.findNext(l)
}

// delay counts a message that was stored with a due time in the future.
func (tn *tenant) delay(due, now int64) {
	if due > now {
		tn.q.delayed++
		tn.later.countAt = min(tn.later.countAt, due)
	}
}

// putLater notes a message without a group that waits outside its lane.
func (tn *tenant) putLater(l *loop, r *ref) {
	n := &tn.later
	if r.due < n.due || r.due == n.due && (r.key < n.key || r.key == n.key && int64(r.idx) <= n.idx) {
		tn.pushReady(r)
		l.touch(tn.q)
		return
	}
	if r.due < n.next {
		n.next = r.due
		l.timers.sooner(&n.timer, r.due)
	}
}

// behind tells whether messages are due that are in the store only, and may be loaded.
func (tn *tenant) behind(now int64) bool {
	return tn.later.next <= now && len(tn.ready) <= readyAtMost/2 && !tn.full()
}

// advance loads the messages whose time has come, in bounded slices. Damage hides
// them until the next start; what memory has goes on.
func (tn *tenant) advance(l *loop, now int64) error {
	err := tn.loadDue(l, now)
	if forebay.CodeOf(err) != forebay.CodeDamaged {
		return err
	}
	l.log.Error("delayed messages cannot be read", "queue", tn.q.name, "error", err)
	l.damaged = true
	l.timers.stop(&tn.later.timer)
	tn.later.next, tn.later.countAt = math.MaxInt64, math.MaxInt64
	return nil
}

func (tn *tenant) loadDue(l *loop, now int64) error {
	n := &tn.later
	if err := tn.countDue(l, now); err != nil { // before any of them can leave
		return err
	}
	if !tn.behind(now) {
		return nil
	}
	room := int64(readyAtMost - len(tn.ready))
	loaded := int64(0)
	due, key, idx := n.due, n.key, n.idx
	err := l.db.each(`SELECT key, idx, due, ord, sent_at, attempts, deliveries, lim, started FROM again
		WHERE queue = ?1 AND grp = 0 AND (due, key, idx) > (?2, ?3, ?4) AND due <= ?5 ORDER BY due, key, idx LIMIT ?6`,
		func(s *sqlite.Stmt) error {
			r := readRef(s)
			loaded++
			n.due, n.key, n.idx = r.due, r.key, int64(r.idx)
			r.due = 0
			tn.pushReady(r)
			return nil
		}, tn.id, due, key, idx, now, room)
	if err != nil {
		return err
	}
	if loaded < room {
		n.due, n.key, n.idx = now, math.MaxInt64, 0
	}
	return tn.findNext(l)
}

// countDue takes what has become due out of the delayed count.
func (tn *tenant) countDue(l *loop, now int64) error {
	n := &tn.later
	if n.countAt > now {
		return nil
	}
	left, err := l.db.int(`SELECT (SELECT count(*) FROM again WHERE queue = ?1 AND grp = 0 AND due > ?2 AND due <= ?3)
		+ (SELECT count(*) FROM again WHERE queue = ?1 AND grp <> 0 AND due > ?2 AND due <= ?3)`, tn.id, n.counted, now)
	if err != nil {
		return err
	}
	next, err := l.db.int(`SELECT min(ifnull((SELECT min(due) FROM again WHERE queue = ?1 AND grp = 0 AND due > ?2), ?3),
		ifnull((SELECT min(due) FROM again WHERE queue = ?1 AND grp <> 0 AND due > ?2), ?3))`, tn.id, now, int64(math.MaxInt64))
	if err != nil {
		return err
	}
	tn.q.delayed -= left
	n.counted, n.countAt = now, next
	return nil
}

// findNext looks for the first message beyond the mark.
func (tn *tenant) findNext(l *loop) error {
	n := &tn.later
	n.next = math.MaxInt64
	next := int64(-1)
	err := l.db.each(`SELECT due FROM again WHERE queue = ?1 AND grp = 0 AND (due, key, idx) > (?2, ?3, ?4) ORDER BY due, key, idx LIMIT 1`,
		func(s *sqlite.Stmt) error {
			next = s.ColumnInt64(0)
			return nil
		}, tn.id, n.due, n.key, n.idx)
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
		limitKey: uint64(s.ColumnInt64(7)), started: s.ColumnInt64(8), stored: true,
	}
}

// keep stores a message's place in again. Failures that are nil stay as they are.
func (t *tx) keep(q *queue, r *ref, failures []byte) error {
	n := [10]int64{r.key, int64(r.idx), laneOf(r.key) / levels, r.due, r.ord, r.sentAt, int64(r.attempts), int64(r.deliveries), int64(r.group), int64(r.limitKey)}
	args := make([]any, 0, 13)
	for _, v := range n {
		args = append(args, v)
	}
	args = append(args, againSum(n), r.started)
	const insert = "INSERT INTO again (" + againColumns + ", sum, started, failures) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, "
	const update = ") ON CONFLICT DO UPDATE SET queue = ?3, due = ?4, ord = ?5, sent_at = ?6, attempts = ?7, deliveries = ?8, grp = ?9, lim = ?10, sum = ?11, started = ?12"
	if failures != nil {
		return t.exec(insert+"?13"+update+", failures = ?13", append(args, string(failures))...)
	}
	return t.exec(insert+"'[]'"+update, args...)
}

// unkeep removes a message's row, or else the next start does.
func (t *tx) unkeep(r *ref) error {
	if t.l.damaged {
		return nil
	}
	return t.exec("DELETE FROM again WHERE key = ? AND idx = ?", r.key, int64(r.idx))
}

// kept reads the row of a message; nil: it has none.
func (l *loop) kept(key int64, idx int) (r *ref, err error) {
	err = l.db.each(`SELECT key, idx, due, ord, sent_at, attempts, deliveries, lim, started FROM again WHERE key = ? AND idx = ?`,
		func(s *sqlite.Stmt) error {
			r = readRef(s)
			return nil
		}, key, int64(idx))
	return r, err
}

// failures reads the causes of a message's earlier attempts.
func (l *loop) failures(r *ref) (text string, err error) {
	err = l.db.each("SELECT failures FROM again WHERE key = ? AND idx = ?", func(s *sqlite.Stmt) error {
		text = s.ColumnText(0)
		return nil
	}, r.key, int64(r.idx))
	return text, err
}
