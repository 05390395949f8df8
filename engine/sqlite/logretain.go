package sqlite

import (
	"math"

	"zombiezen.com/go/sqlite"
)

// Bounds of what one slice of retention drops of a log.
const (
	dropRows  = 64
	dropBytes = 1 << 20
)

// logDrop is what one slice of retention takes from a log.
type logDrop struct {
	q     *queue
	to    int64 // seq
	whole bool  // that was its oldest slice
}

// logs drops a portion of the oldest slice that has had its time, by age or bytes.
func (o *retain) logs(t *tx) error {
	q, err := o.dueLog(t)
	if q == nil || err != nil {
		return err
	}
	if len(q.log.slices) == 0 {
		o.more = true // what was open is dropped next time
		return t.closeSlice(q)
	}
	s := q.log.slices[0]
	d := logDrop{q: q, to: s.last, whole: true}
	rows, bytes := 0, int64(0)
	err = t.l.db.each("SELECT key, bytes FROM log WHERE key >= ? AND key <= ? ORDER BY key LIMIT ?", func(st *sqlite.Stmt) error {
		rows, bytes = rows+1, bytes+st.ColumnInt64(1)
		if rows == dropRows || bytes >= dropBytes {
			d.to = seqOf(st.ColumnInt64(0))
			return errStop
		}
		return nil
	}, logKey(q.id, s.first), logKey(q.id, s.last), int64(dropRows))
	if err != nil && err != errStop {
		return err
	}
	d.whole = d.to == s.last
	// Those whose blocks still wait stay, until these are settled (dropBlock).
	err = t.exec(`DELETE FROM log WHERE key >= ? AND key <= ?
		AND NOT EXISTS (SELECT 1 FROM block WHERE block.key = (log.lane << 40 | (log.key & 1099511627775)))`,
		logKey(q.id, s.first), logKey(q.id, d.to))
	if err == nil {
		err = t.exec("INSERT INTO log_gone (queue, gone) VALUES (?1, ?2) ON CONFLICT DO UPDATE SET gone = ?2", q.id, d.to)
	}
	if err == nil && d.whole {
		err = t.exec("DELETE FROM log_slice WHERE key <= ? AND last = ?", logKey(q.id, s.first), logKey(q.id, s.last))
	}
	if t.left == nil {
		t.left = map[*queue]int64{}
	}
	t.left[q] = d.to
	o.log, o.more = d, true
	return err
}

// dueLog finds the log whose oldest slice must go. Without one it notes when the next
// has had its time.
func (o *retain) dueLog(t *tx) (*queue, error) {
	var largest *queue
	since := int64(math.MaxInt64)
	for _, q := range t.l.byID {
		s := q.log.oldest()
		if s == nil {
			continue
		}
		at := s.until + int64(q.log.age) + 1
		if at <= t.now {
			return q, nil
		}
		o.next = min(o.next, at)
		if s.since < since {
			largest, since = q, s.since
		}
	}
	if t.l.logs.crowded { // is it still?
		if _, _, err := t.l.size(); err != nil {
			return nil, err
		}
	}
	if t.l.logs.crowded || t.l.logs.bytes > t.l.e.cfg.Log.maxBytes() {
		return largest, nil
	}
	return nil, nil
}

// crowd lets the logs give way while the disk has too little room: what must be taken
// comes before what was settled.
func (l *loop) crowd(free int64) {
	keep := l.e.cfg.keepFree()
	was := l.logs.crowded
	if l.logs.crowded = free < keep && l.logs.bytes > 0; !l.logs.crowded {
		return
	}
	if !was {
		l.log.Warn("the disk is nearly full: messages that are kept to be read again leave early", "free", free, "wanted", keep, "bytes", l.logs.bytes)
	}
	l.timers.sooner(&l.retention.timer, l.now()+int64(retainRest))
}

// publish takes out of memory what has left.
func (d *logDrop) publish(l *loop) {
	if d.q == nil {
		return
	}
	g := &d.q.log
	g.gone = d.to
	if !d.whole {
		g.slices[0].first = d.to + 1
		return
	}
	l.logs.bytes -= g.slices[0].bytes
	g.slices = g.slices[1:]
}
