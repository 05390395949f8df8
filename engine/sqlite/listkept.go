package sqlite

import (
	"slices"

	"zombiezen.com/go/sqlite"

	"github.com/forebayhq/forebay"
)

// kept lists what is dead, or has finished, the last first: what has no signature
// yet, then what signatures do not exclude.
func (w *walk) kept() (end bool, err error) {
	s := signs{w: w, kind: signDead}
	if w.at.section == sectionFinished {
		s.kind = signFinished
	}
	signed, err := ask(w.ctx, w.e, func(t *tx) (int64, error) { return t.l.signer.signed[s.kind], nil })
	if err != nil {
		return false, err
	}
	all := len(w.sieve.kept) == 0 && w.filter.Since.IsZero() && w.filter.Until.IsZero()
	if all {
		signed = 0
	}
	if err := w.rows(signed); err != nil || w.spent() || all {
		return !w.spent(), err
	}
	if err := s.start(); err != nil {
		return false, err
	}
	for !w.spent() {
		if err := s.fill(); err != nil {
			return false, err
		}
		switch {
		case s.next != nil:
			w.pass(s.next.last + 1)
			err = w.rows(s.next.first - 1)
			s.next = nil
		case s.end:
			return true, nil
		}
		if err != nil {
			return false, err
		}
	}
	return false, nil
}

// keptRow is a dead job, or a row of finished ones.
type keptRow struct {
	seq  int64
	dead *forebay.Job // nil: it is not meant
	row  finishedRow
	data []byte
	keep bitmap
}

// rows looks at the rows down to a seq, which is not among them.
func (w *walk) rows(down int64) error {
	for !w.spent() && w.at.seq > down {
		some, end, err := w.slice(down)
		if err != nil {
			return err
		}
		for i := range some {
			if !w.row(&some[i]) {
				return nil
			}
		}
		if end {
			w.pass(down + 1)
			return nil
		}
	}
	return nil
}

// row looks at the jobs of a row, and tells whether there is room for more.
func (w *walk) row(r *keptRow) bool {
	w.reads += 64 + len(r.data)
	switch {
	case r.dead != nil:
		w.reads += len(r.dead.Payload)
		if !w.see(r.dead, r.seq, 0) {
			return false
		}
	case r.data != nil:
		recs, _ := records(r.data, len(r.row.states))
		for i := len(recs) - 1; i >= 0; i-- {
			at := recs[i]
			if at[1] == 0 || !r.keep.has(i) || !w.at.before(r.seq, int64(i)) || !w.sieve.may(r.data[at[0]:at[1]]) {
				continue
			}
			job, err := finishedJob(r.data[at[0]:at[1]], r.row.q.name, r.row.at)
			if err == nil && !w.see(&job, r.seq, int64(i)) {
				return false
			}
		}
	}
	w.pass(r.seq)
	return true
}

// slice reads some rows, the last first. end: there are no more.
func (w *walk) slice(down int64) (some []keptRow, end bool, err error) {
	type slice struct {
		rows []keptRow
		end  bool
	}
	from := w.at.seq
	if w.at.idx == 0 {
		from--
	}
	read, columns, table, most := w.readDead, deadJobColumns, "dead", int64(4*sliceRows)
	if w.at.section == sectionFinished {
		read, columns, table = w.readFinished, finishedColumns+", seq", "finished"
	}
	got, err := ask(w.ctx, w.e, func(t *tx) (got slice, err error) {
		bytes, n := 0, int64(0)
		err = t.l.db.each("SELECT "+columns+" FROM "+table+" WHERE seq <= ? AND seq > ? ORDER BY seq DESC LIMIT ?", func(st *sqlite.Stmt) error {
			if n++; bytes >= sliceReads {
				return errStop
			}
			row, size, err := read(t, st)
			bytes += size
			got.rows = append(got.rows, row)
			return err
		}, from, down, most)
		if err == errStop {
			return got, nil
		}
		got.end = n < most
		return got, err
	})
	return got.rows, got.end, err
}

func (w *walk) readFinished(t *tx, st *sqlite.Stmt) (r keptRow, size int, err error) {
	r = keptRow{seq: st.ColumnInt64(7), row: t.l.readFinishedRow(st)}
	if r.row.q == nil || w.filter.Queue != "" && r.row.q.name != w.filter.Queue {
		return r, 64, nil
	}
	for i := range min(len(r.row.states), blockMessages) {
		meant := len(w.filter.States) == 0 || slices.Contains(w.filter.States, stateOf(r.row.states[i]))
		if meant && r.row.keeps(i, t.now) {
			r.keep.set(i)
		}
	}
	if r.keep != (bitmap{}) {
		r.data = columnBytes(st, 6)
	}
	return r, len(r.data) + 64, nil
}

func (w *walk) readDead(t *tx, st *sqlite.Stmt) (r keptRow, size int, err error) {
	r.seq = st.ColumnInt64(0)
	body := columnBytes(st, 8)
	size = len(body) + 64
	q := t.l.byID[st.ColumnInt64(1)]
	if q == nil || w.filter.Queue != "" && q.name != w.filter.Queue || !isJob(body) || !w.sieve.may(body) {
		return r, size, nil
	}
	job, err := t.l.readDeadJob(st)
	if err == nil {
		r.dead = &job
	}
	return r, 2 * size, nil // one that is damaged is not listed
}
