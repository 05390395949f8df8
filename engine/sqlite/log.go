package sqlite

import (
	"errors"
	"time"

	"zombiezen.com/go/sqlite"
)

// The log of a queue is its blocks, which stay readable after they were settled. The
// data of a block of such a queue is written once, into the table log, and the row of
// the block itself is a small one without data: settling drops that one only. So a log
// costs a small row per commit, and no payload is written or moved a second time.
//
// Rows lie by queue and seq. Many of them are a slice, and slices are what leaves: by
// age, or when all logs together are too large. Rows of messages that still wait
// are then left to their blocks, which take them along when they are settled. The
// newest slice is open: its sums are in memory, and a start makes them up from its rows.

// LogConfig says which queues keep a log, and how much.
type LogConfig struct {
	Age      time.Duration            // how long messages can be read; 0: no logs
	Ages     map[string]time.Duration // of queues that differ, by name; 0: no log
	MaxBytes int64                    // of all logs together, about; 0: 1 GiB
	KeepFree int64                    // bytes of the disk; with less free, logs give way; 0: DiskReserve and a quarter
}

const (
	defaultLogBytes = 1 << 30
	logSliceRows    = 1024
	logSliceBytes   = 4 << 20
	sliceShare      = 8  // no slice spans more than this part of the age
	budgetSlices    = 16 // at least so many slices fit into MaxBytes
)

func (c *LogConfig) age(queue string) time.Duration {
	if age, ok := c.Ages[queue]; ok {
		return max(age, 0)
	}
	return max(c.Age, 0)
}

func (c *LogConfig) maxBytes() int64 {
	if c.MaxBytes <= 0 {
		return defaultLogBytes
	}
	return c.MaxBytes
}

// A place in a log holds the seq of a block above the index of a message.
const (
	logIdxBits = 10 // of blockMessages
	logIdxMask = 1<<logIdxBits - 1
)

func logKey(queue, seq int64) int64 { return queue<<seqBits | seq }

// logSlice sums up rows that lie one after the other.
type logSlice struct {
	first, last    int64 // seqs
	rows, n, bytes int64
	since, until   int64 // first and last time of sending
}

func (s *logSlice) add(seq, n, bytes, at int64) {
	if s.rows == 0 {
		s.first, s.since, s.until = seq, at, at
	}
	s.last = seq
	s.rows, s.n, s.bytes = s.rows+1, s.n+n, s.bytes+bytes
	s.since, s.until = min(s.since, at), max(s.until, at)
}

// queueLog is what memory holds of the log of a queue.
type queueLog struct {
	age    time.Duration // 0: nothing is added
	gone   int64         // seq of the last block that has left
	slices []logSlice    // closed ones, oldest first
	tail   logSlice      // the open one
}

// all gives the slices that have rows, the open one last.
func (g *queueLog) all(yield func(*logSlice) bool) {
	for i := range g.slices {
		if !yield(&g.slices[i]) {
			return
		}
	}
	if g.tail.rows > 0 {
		yield(&g.tail)
	}
}

// oldest gives the first slice; nil: there is none.
func (g *queueLog) oldest() *logSlice {
	for s := range g.all {
		return s
	}
	return nil
}

// logs is what the logs of all queues have in common.
type logs struct {
	bytes   int64
	crowded bool          // the disk has too little room: they give way
	more    chan struct{} // closed when there is more
}

// logging is what a transaction has to say of logs.
type logging struct {
	tails  map[*queue]*logSlice
	closed map[*queue][]logSlice
	left   map[*queue]int64 // seq up to which they leave by this transaction
	logged int64            // bytes
}

// tail gives the open slice of a log, to be changed by this transaction.
func (t *tx) tail(q *queue) *logSlice {
	s := t.tails[q]
	if s == nil {
		s = new(logSlice)
		*s = q.log.tail
		if t.tails == nil {
			t.tails = map[*queue]*logSlice{}
		}
		t.tails[q] = s
	}
	return s
}

// writeLog puts a block into the log of its queue, if that keeps one, and gives the
// data that is left for the block's own row.
func (t *tx) writeLog(b *builder) ([]byte, error) {
	if b.q.log.age == 0 || b.old {
		return b.data, nil
	}
	seq, n, bytes := seqOf(b.key), int64(len(b.recs)), int64(len(b.data))
	err := t.exec("INSERT INTO log (key, lane, n, sent_at, bytes, data) VALUES (?, ?, ?, ?, ?, ?)",
		logKey(b.q.id, seq), laneOf(b.key), n, b.sentAt, bytes, b.data)
	if err != nil {
		return nil, err
	}
	s := t.tail(b.q)
	if s.rows > 0 && b.sentAt-s.since >= int64(b.q.log.age)/sliceShare {
		err = t.closeSlice(b.q)
	}
	s.add(seq, n, bytes, b.sentAt)
	t.logged += bytes
	if s.rows >= logSliceRows || s.bytes >= min(logSliceBytes, t.l.e.cfg.Log.maxBytes()/budgetSlices) {
		err = errors.Join(err, t.closeSlice(b.q))
	}
	return []byte{}, err
}

// closeSlice closes the open slice of a log.
func (t *tx) closeSlice(q *queue) error {
	s := t.tail(q)
	err := t.exec("INSERT INTO log_slice (key, last, rows, n, bytes, since, until) VALUES (?, ?, ?, ?, ?, ?, ?)",
		logKey(q.id, s.first), logKey(q.id, s.last), s.rows, s.n, s.bytes, s.since, s.until)
	if err != nil {
		return err
	}
	if t.closed == nil {
		t.closed = map[*queue][]logSlice{}
	}
	t.closed[q] = append(t.closed[q], *s)
	*s = logSlice{}
	return nil
}

func (t *tx) publishLogs() {
	l := t.l
	for q, s := range t.tails {
		q.log.slices = append(q.log.slices, t.closed[q]...)
		q.log.tail = *s
	}
	if t.logged == 0 {
		return
	}
	l.logs.bytes += t.logged
	if l.logs.bytes > l.e.cfg.Log.maxBytes() {
		l.timers.sooner(&l.retention.timer, t.now+int64(retainRest))
	}
	for q := range t.tails {
		if s := q.log.oldest(); s != nil {
			l.timers.sooner(&l.retention.timer, s.until+int64(q.log.age)+1)
		}
	}
	close(l.logs.more)
	l.logs.more = make(chan struct{})
}

// dropBlock drops a block that is settled whole. What its log has left to it goes too.
func (t *tx) dropBlock(key int64) error {
	if err := t.exec("DELETE FROM block WHERE key = ?", key); err != nil {
		return err
	}
	tn := t.l.tenantOf(key)
	if tn == nil || seqOf(key) > max(t.left[tn.q], tn.q.log.gone) {
		return nil
	}
	return t.exec("DELETE FROM log WHERE key = ?", logKey(tn.q.id, seqOf(key)))
}

// stored reads the data of a block, from wherever it is.
func (l *loop) stored(key int64) (data []byte, err error) {
	read := func(s *sqlite.Stmt) error {
		data = columnBytes(s, 0)
		return nil
	}
	err = l.db.each("SELECT data FROM block WHERE key = ?", read, key)
	if tn := l.tenantOf(key); len(data) == 0 && tn != nil && err == nil {
		err = l.db.each("SELECT data FROM log WHERE key = ?", read, logKey(tn.q.id, seqOf(key)))
	}
	return data, err
}

// rewriteBlock writes the data of a block anew, wherever it is.
func (t *tx) rewriteBlock(key int64, data []byte) error {
	own, err := t.l.db.int("SELECT length(data) FROM block WHERE key = ?", key)
	if err != nil {
		return err
	}
	if tn := t.l.tenantOf(key); own == 0 && tn != nil {
		if err := t.exec("UPDATE log SET bytes = ?, data = ? WHERE key = ?", int64(len(data)), data, logKey(tn.q.id, seqOf(key))); err != nil {
			return err
		}
		return t.exec("UPDATE block SET bytes = ? WHERE key = ?", int64(len(data)), key)
	}
	return t.exec("UPDATE block SET bytes = ?, data = ? WHERE key = ?", int64(len(data)), data, key)
}

// loadLogs takes up the slices, and sums up the rows of the open ones.
func (l *loop) loadLogs(*tx) error {
	err := l.db.each("SELECT queue, gone FROM log_gone", func(s *sqlite.Stmt) error {
		if q := l.byID[s.ColumnInt64(0)]; q != nil {
			q.log.gone = s.ColumnInt64(1)
		}
		return nil
	})
	if err != nil {
		return err
	}
	err = l.db.each("SELECT key, last, rows, n, bytes, since, until FROM log_slice ORDER BY key", func(s *sqlite.Stmt) error {
		if q := l.byID[s.ColumnInt64(0)>>seqBits]; q != nil {
			q.log.slices = append(q.log.slices, logSlice{
				first: max(seqOf(s.ColumnInt64(0)), q.log.gone+1), last: seqOf(s.ColumnInt64(1)), rows: s.ColumnInt64(2),
				n: s.ColumnInt64(3), bytes: s.ColumnInt64(4), since: s.ColumnInt64(5), until: s.ColumnInt64(6),
			})
			l.logs.bytes += s.ColumnInt64(4)
		}
		return nil
	})
	for _, q := range l.byID {
		from := q.log.gone
		if n := len(q.log.slices); n > 0 {
			from = max(from, q.log.slices[n-1].last)
		}
		if err != nil {
			return err
		}
		err = l.db.each("SELECT key, n, bytes, sent_at FROM log WHERE key > ? AND key <= ?", func(s *sqlite.Stmt) error {
			q.log.tail.add(seqOf(s.ColumnInt64(0)), s.ColumnInt64(1), s.ColumnInt64(2), s.ColumnInt64(3))
			l.logs.bytes += s.ColumnInt64(2)
			return nil
		}, logKey(q.id, from), logKey(q.id, seqMask))
	}
	return err
}
