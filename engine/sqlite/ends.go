package sqlite

import (
	"math"

	"zombiezen.com/go/sqlite"
)

// Jobs that expire, or have a deadline, have a row in ends. One timer stands for the
// first of them. A row is looked at when its time has come: the job is ended, or has
// finished long ago, or it is active, and then its lease ends it (mustEnd) and the
// row stays for the next start.
type ends struct {
	mark  end // rows up to it were looked at
	timer timer
}

const (
	endExpires = iota
	endDeadline
)

type end struct {
	at, key, idx, kind int64
}

// endsAtOnce is how many rows one cycle looks at.
const endsAtOnce = 256

// end notes when a job that is sent must have begun, or ended.
func (t *tx) end(key int64, idx int, job *newJob) {
	if job.expires != 0 {
		t.ends = append(t.ends, end{job.expires, key, int64(idx), endExpires})
	}
	if job.deadline != 0 {
		t.ends = append(t.ends, end{job.deadline, key, int64(idx), endDeadline})
	}
}

func (t *tx) writeEnds() error {
	for _, n := range t.ends {
		if err := t.exec("INSERT INTO ends (at, key, idx, kind) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING", n.at, n.key, n.idx, n.kind); err != nil {
			return err
		}
	}
	return nil
}

func (t *tx) publishEnds() {
	e := &t.l.ends
	for _, n := range t.ends {
		if n.at <= e.mark.at {
			e.mark = end{at: n.at - 1, key: math.MaxInt64}
		}
		t.l.timers.sooner(&e.timer, n.at)
	}
}

// startEnds sets the timer for the first row beyond the mark.
func (l *loop) startEnds(*tx) error {
	l.ends.timer.fire = l.fireEnds
	next, err := l.nextEnd(l.ends.mark)
	if err == nil && next > 0 {
		l.timers.set(&l.ends.timer, next)
	}
	return err
}

// nextEnd is when the first row beyond a mark has its time; 0: there is none.
func (l *loop) nextEnd(m end) (at int64, err error) {
	return l.db.int("SELECT at FROM ends WHERE (at, key, idx, kind) > (?, ?, ?, ?) ORDER BY at, key, idx, kind LIMIT 1", m.at, m.key, m.idx, m.kind)
}

// fireEnds lets the same cycle end what is due.
func (l *loop) fireEnds(now int64) {
	l.own = append(l.own, &endJobs{})
	l.timers.set(&l.ends.timer, now+int64(endAgain)) // unless it is committed
}

// endJobs ends the jobs whose time has come.
type endJobs struct {
	change
	mark end
	next int64
}

func (*endJobs) durable() bool { return false }

func (o *endJobs) apply(t *tx) error {
	l := t.l
	o.mark = l.ends.mark
	var due []end
	err := l.db.each("SELECT at, key, idx, kind FROM ends WHERE (at, key, idx, kind) > (?, ?, ?, ?) AND at <= ? ORDER BY at, key, idx, kind LIMIT ?",
		func(s *sqlite.Stmt) error {
			due = append(due, end{s.ColumnInt64(0), s.ColumnInt64(1), s.ColumnInt64(2), s.ColumnInt64(3)})
			return nil
		}, o.mark.at, o.mark.key, o.mark.idx, o.mark.kind, t.now, int64(endsAtOnce))
	if err != nil {
		return err
	}
	for _, n := range due {
		o.mark = n
		stays, err := o.one(t, n)
		if err != nil {
			return err
		}
		if stays || l.damaged {
			continue
		}
		if err := t.dropEnd(n); err != nil {
			return err
		}
	}
	o.next, err = l.nextEnd(o.mark)
	return err
}

// one looks at one row. It tells whether the row must stay.
func (o *endJobs) one(t *tx, n end) (stays bool, err error) {
	stored, err := t.isStored(n.key, int(n.idx))
	if !stored || err != nil {
		return false, err
	}
	var job liveJob
	err = t.l.waits(&job, n.key, int(n.idx))
	if err == nil && job.q != nil {
		job.body, job.g, err = t.l.bodyOf(&job.ref)
	}
	if err == errUnreadable || err == nil && job.q == nil {
		return true, nil // the next start knows more
	}
	if err != nil {
		return false, err
	}
	job.ref.job = true
	job.ref.group, job.ref.limitKey = routing(job.body)
	switch {
	case n.kind == endDeadline && (job.it != nil || job.moving):
		return true, nil
	case n.kind == endDeadline:
		return false, t.finishWaiting(&job, &ending{state: stDead, cause: deadlineCause()})
	case job.it == nil && !job.moving && !job.ref.begun():
		return false, t.finishWaiting(&job, &ending{state: stExpired, cause: expiredCause()})
	}
	return false, nil
}

func (t *tx) dropEnd(n end) error {
	return t.exec("DELETE FROM ends WHERE at = ? AND key = ? AND idx = ? AND kind = ?", n.at, n.key, n.idx, n.kind)
}

// dropDeadline drops the row of a job that has finished after its deadline; other
// rows leave when their time comes.
func (t *tx) dropDeadline(r *ref, g *glance) error {
	if g.deadline == 0 || g.deadline > t.now {
		return nil
	}
	return t.dropEnd(end{g.deadline, r.key, int64(r.idx), endDeadline})
}

func (o *endJobs) publish(t *tx) {
	e := &t.l.ends
	e.mark = o.mark
	if o.next > 0 {
		t.l.timers.set(&e.timer, o.next)
	} else {
		t.l.timers.stop(&e.timer)
	}
}

// late tells whether a job that could be handed out must not be any more: a timer is
// about to end it.
func (g *glance) late(r *ref, now int64) bool {
	return g.deadline != 0 && g.deadline <= now || g.expires != 0 && g.expires <= now && !r.begun()
}

// begun tells whether a job was ever handed out, be it that the hand-out was given back.
func (r *ref) begun() bool { return r.deliveries > 0 || r.started != 0 }
