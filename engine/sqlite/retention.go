package sqlite

import (
	"time"

	"zombiezen.com/go/sqlite"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
)

// What has been kept long enough leaves in slices, so that others get their turn in
// between: a slice a cycle while there is more, else when the next is due.
const (
	retainRows      = 16             // of a table, in one slice
	retainJobs      = 512            // of one slice; its last row may go over it
	retainRest      = time.Second    // after what has finished, until it is looked at
	historyMaxBytes = 4 << 30        // of events in the store
	retainFar       = 24 * time.Hour // the timer looks at the clock again
)

// retention is what memory holds of it.
type retention struct {
	timer timer
	check map[*queue]struct{} // some of its jobs are kept by their number
}

// retainSoon lets retention look at a queue.
func (l *loop) retainSoon(q *queue, now int64) {
	if q != nil {
		l.retention.check[q] = struct{}{}
	}
	l.timers.sooner(&l.retention.timer, now+int64(retainRest))
}

// retainSoonFor lets retention look when a row that was just written has had its time.
func (l *loop) retainSoonFor(f *finishing, now int64) {
	if f.count > 0 {
		l.retainSoon(f.q, now)
	}
	if f.age > 0 {
		l.timers.sooner(&l.retention.timer, now+f.age)
	}
}

func (l *loop) fireRetention(now int64) {
	l.own = append(l.own, &retain{})
	l.timers.set(&l.retention.timer, now+int64(retainRest)) // unless it is committed
}

// startRetention looks at everything once.
func (l *loop) startRetention(t *tx) error {
	l.retention.timer.fire = l.fireRetention
	for _, q := range l.byID {
		l.retention.check[q] = struct{}{}
	}
	l.timers.set(&l.retention.timer, t.now+int64(retainRest))
	return nil
}

// retain is one slice.
type retain struct {
	change
	more bool // there is more to do at once
	jobs int
	next int64 // when there is more by age
	done []*queue
	dead map[*queue]int64
	drop historyDrop
	log  logDrop
}

func (*retain) durable() bool { return false }

func (o *retain) apply(t *tx) error {
	*o = retain{next: t.now + int64(retainFar), dead: map[*queue]int64{}}
	if t.l.damaged { // deleting could go through the damage
		return nil
	}
	if err := o.byAge(t); err != nil {
		return err
	}
	for q := range t.l.retention.check {
		if o.jobs >= retainJobs {
			o.more = true
			break
		}
		if err := o.byCount(t, q); err != nil {
			return err
		}
	}
	if err := o.history(t); err != nil {
		return err
	}
	return o.logs(t)
}

// byAge drops what has reached its age.
func (o *retain) byAge(t *tx) error {
	full, err := o.finished(t, "until <= ? ORDER BY until", t.now)
	if err != nil {
		return err
	}
	o.more = o.more || full
	if full, err = o.letters(t, "age", "until <= ? ORDER BY until", t.now); err != nil {
		return err
	}
	o.more = o.more || full
	for _, table := range []string{"finished", "dead"} {
		next, err := t.l.db.int("SELECT until FROM " + table + " WHERE until IS NOT NULL ORDER BY until LIMIT 1")
		if err != nil {
			return err
		}
		if next > 0 {
			o.next = min(o.next, next)
		}
	}
	return nil
}

// byCount drops what is not among the newest of its queue any more.
func (o *retain) byCount(t *tx, q *queue) error {
	full, err := o.finished(t, "last <= ? AND queue = ? ORDER BY last", t.tally(q).ord, q.id)
	if err != nil {
		return err
	}
	if !full {
		if err := o.trim(t, q); err != nil {
			return err
		}
	}
	more, err := o.lettersByCount(t, q)
	if err != nil {
		return err
	}
	if more = more || full; !more {
		o.done = append(o.done, q)
	}
	o.more = o.more || more
	return nil
}

// trim takes those jobs out of rows that are not among the newest any more, while
// others of the row are.
func (o *retain) trim(t *tx, q *queue) error {
	ord := t.tally(q).ord
	var places []int64
	err := t.l.db.each("SELECT seq, last, states FROM finished WHERE queue = ? AND last > ? AND last < ? ORDER BY last LIMIT ?", func(s *sqlite.Stmt) error {
		states := columnBytes(s, 2)
		gone := int64(len(states)) - (s.ColumnInt64(1) - ord) // so many from the first on
		for i := int64(0); i < gone; i++ {
			if states[i] != 0 {
				places = append(places, s.ColumnInt64(0)<<finishedIdx|i)
			}
		}
		return nil
	}, q.id, ord, ord+finishedJobs, int64(retainRows))
	if err != nil {
		return err
	}
	return t.removeAll(places)
}

// lettersByCount drops dead jobs that are not among the newest of their queue.
func (o *retain) lettersByCount(t *tx, q *queue) (more bool, err error) {
	var counts []int64
	err = t.l.db.each("SELECT DISTINCT keep FROM dead WHERE queue = ? AND keep IS NOT NULL", func(s *sqlite.Stmt) error {
		counts = append(counts, s.ColumnInt64(0))
		return nil
	}, q.id)
	if err != nil {
		return false, err
	}
	for _, n := range counts {
		oldest, err := t.l.db.int("SELECT seq FROM dead WHERE queue = ? ORDER BY seq DESC LIMIT 1 OFFSET ?", q.id, n-1)
		if err != nil {
			return false, err
		}
		full, err := o.letters(t, "count", "queue = ? AND keep = ? AND seq < ? ORDER BY seq", q.id, n, oldest)
		if err != nil {
			return false, err
		}
		more = more || full
	}
	return more, nil
}

// finished drops rows of finished jobs. It tells whether there may be more.
func (o *retain) finished(t *tx, where string, args ...any) (full bool, err error) {
	type dropped struct {
		seq  int64
		row  finishedRow
		data []byte
	}
	var rows []dropped
	err = t.l.db.each("SELECT "+finishedColumns+", seq FROM finished WHERE "+where+" LIMIT ?", func(s *sqlite.Stmt) error {
		if o.jobs >= retainJobs {
			full = true
			return nil
		}
		d := dropped{s.ColumnInt64(7), t.l.readFinishedRow(s), columnBytes(s, 6)}
		o.jobs += len(d.row.states)
		rows = append(rows, d)
		return nil
	}, append(args, int64(retainRows))...)
	if err != nil {
		return false, err
	}
	for _, d := range rows {
		if d.row.q != nil {
			for _, s := range d.row.states {
				t.tally(d.row.q).add(s, -1)
			}
		}
		if err := t.dropPlaces(d.seq, d.data, len(d.row.states)); err != nil {
			return false, err
		}
		if err := t.exec("DELETE FROM finished WHERE seq = ?", d.seq); err != nil {
			return false, err
		}
	}
	return full || len(rows) == retainRows, nil
}

// dropPlaces forgets where the jobs of a row are.
func (t *tx) dropPlaces(seq int64, data []byte, n int) error {
	var ids []int64
	eachFinishedID(seq, data, n, func(h, at int64) { ids = append(ids, h, at) })
	return t.pairs("DELETE FROM finished_id WHERE (h, at) IN (VALUES ", ")", ids)
}

// letters drops dead jobs whose own setting says so: logged, and in the history.
func (o *retain) letters(t *tx, why, where string, args ...any) (full bool, err error) {
	var seqs []int64
	var jobs []forebay.Job
	err = t.l.db.each("SELECT "+deadJobColumns+" FROM dead WHERE "+where+" LIMIT ?", func(s *sqlite.Stmt) error {
		job, err := t.l.readDeadJob(s)
		if err != nil && forebay.CodeOf(err) != forebay.CodeDamaged {
			return err
		}
		if err == nil {
			jobs = append(jobs, job)
		}
		seqs = append(seqs, s.ColumnInt64(0))
		return nil
	}, append(args, int64(retainRows))...)
	if err != nil {
		return false, err
	}
	for i := range jobs {
		q := t.l.queues[jobs[i].Queue]
		n := note{typ: evDiscarded, id: []byte(jobs[i].ID), kind: []byte(jobs[i].Kind), queue: q.name, text: engine.LeftByRetention + ": " + why}
		t.record(&n)
		o.dead[q]++
	}
	for _, seq := range seqs {
		if err := t.exec("DELETE FROM dead WHERE seq = ?", seq); err != nil {
			return false, err
		}
	}
	if len(seqs) > 0 {
		t.l.log.Info("dead jobs leave by their retention", "bound", why, "jobs", len(seqs))
	}
	return len(seqs) == retainRows, nil
}

func (o *retain) publish(t *tx) {
	l := t.l
	for q, n := range o.dead {
		q.dead -= n
	}
	for _, q := range o.done {
		delete(l.retention.check, q)
	}
	l.history.dropped(&o.drop)
	o.log.publish(l)
	if o.more {
		o.next = t.now
	}
	l.timers.set(&l.retention.timer, max(o.next, t.now))
}

// historyDrop is what one slice takes from the history.
type historyDrop struct {
	gone, n, bytes int64
}

// history drops the oldest rows of the history, by age, number and bytes.
func (o *retain) history(t *tx) error {
	h, cfg := &t.l.history, &t.l.e.cfg
	before := int64(0)
	if cfg.HistoryAge > 0 {
		before = t.now - int64(cfg.HistoryAge)
	}
	n, bytes := h.total, h.stored
	for rows := 0; ; rows++ {
		var row historyRow
		var size int64
		err := t.l.db.each("SELECT seq, n, at, bytes FROM history ORDER BY seq LIMIT 1", func(s *sqlite.Stmt) error {
			row.seq, row.n, row.at, size = s.ColumnInt64(0), int(s.ColumnInt64(1)), s.ColumnInt64(2), s.ColumnInt64(3)
			return nil
		})
		if err != nil || row.n == 0 {
			return err
		}
		if n <= cfg.HistoryMax && bytes <= historyMaxBytes && row.at >= before {
			if before != 0 {
				o.next = min(o.next, row.at+int64(cfg.HistoryAge)+1)
			}
			break
		}
		if rows == retainRows {
			o.more = true
			break
		}
		if err := t.exec("DELETE FROM history WHERE seq = ?", row.seq); err != nil {
			return err
		}
		n, bytes = n-int64(row.n), bytes-size
		o.drop = historyDrop{row.seq + int64(row.n) - 1, o.drop.n + int64(row.n), o.drop.bytes + size}
	}
	if o.drop.n == 0 {
		return nil
	}
	t.historyLess = o.drop
	return t.exec("UPDATE history_state SET gone = ?, n = ?, bytes = ?", o.drop.gone, n, bytes)
}
