package sqlite

import "zombiezen.com/go/sqlite"

// dropFinished drops some rows of finished jobs, and with the last what is counted of
// them.
type dropFinished struct {
	change
	rows int
}

func (*dropFinished) durable() bool { return false }

func (o *dropFinished) apply(t *tx) error {
	type row struct {
		seq  int64
		n    int
		data []byte
	}
	var rows []row
	err := t.l.db.each("SELECT seq, states, data FROM finished ORDER BY seq LIMIT ?", func(s *sqlite.Stmt) error {
		rows = append(rows, row{s.ColumnInt64(0), s.ColumnLen(1), columnBytes(s, 2)})
		return nil
	}, int64(rebuildRows))
	if err != nil {
		return err
	}
	for _, r := range rows {
		if err := t.dropPlaces(r.seq, r.data, r.n); err != nil {
			return err
		}
		if err := t.exec("DELETE FROM finished WHERE seq = ?", r.seq); err != nil {
			return err
		}
	}
	if o.rows = len(rows); o.rows > 0 {
		return nil
	}
	if err := t.exec("DELETE FROM finished_id"); err != nil { // of rows that were lost
		return err
	}
	for _, q := range t.l.byID {
		*t.tally(q) = tally{}
	}
	return nil
}

// keepRetold puts jobs into the ledger as they finished then. Those that would have
// left are counted among the others, and leave by retention.
type keepRetold struct {
	change
	jobs []retold
}

func (o *keepRetold) size() int64 {
	n := int64(0)
	for i := range o.jobs {
		n += int64(len(o.jobs[i].body) + len(o.jobs[i].result))
	}
	return n
}

func (o *keepRetold) apply(t *tx) error {
	for i := range o.jobs {
		j := &o.jobs[i]
		q, err := t.queue(j.queue)
		if err != nil {
			return err
		}
		g, err := glanceAt(j.body)
		if err != nil {
			return err
		}
		t.keepFinishedAt(q, &g, &j.outcome, j.body, j.at)
	}
	return nil
}

func (o *keepRetold) publish(t *tx) {
	for i := range o.jobs {
		t.l.retainSoon(t.l.queues[o.jobs[i].queue], t.now)
	}
}
