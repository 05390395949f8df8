package sqlite

import (
	"context"
	"slices"

	"zombiezen.com/go/sqlite"

	"github.com/forebayhq/forebay/engine"
)

// Remove drops finished jobs from the ledger; see engine.Jobs.
func (e *Engine) Remove(ctx context.Context, ids []string) ([]error, error) {
	if len(ids) > engine.MaxCancel {
		return nil, tooMany("ids", engine.MaxCancel)
	}
	o := &removeJobs{ids: slices.Clone(ids), errs: make([]error, len(ids))}
	if err := e.submit(ctx, o); err != nil {
		return nil, err
	}
	return o.errs, nil
}

// removeJobs is the op of Remove.
type removeJobs struct {
	change
	ids  []string
	errs []error
	dead map[*queue]int64
}

func (o *removeJobs) apply(t *tx) error {
	o.dead = map[*queue]int64{}
	for i, id := range o.ids {
		o.errs[i] = nil
		job, err := t.live(id)
		if err != nil {
			return err
		}
		if job.err == nil {
			o.errs[i] = errNotFinished()
			continue
		}
		n, err := o.one(t, id)
		if err != nil {
			return err
		}
		if n == 0 {
			o.errs[i] = noJob(id)
		}
	}
	return nil
}

// one drops all that the ledger has of an id.
func (o *removeJobs) one(t *tx, id string) (n int, err error) {
	var places, found []int64
	err = t.l.db.each("SELECT at FROM finished_id WHERE h = ? ORDER BY at DESC LIMIT ?", func(s *sqlite.Stmt) error {
		places = append(places, s.ColumnInt64(0))
		return nil
	}, finishedID([]byte(id)), int64(finishedPlaces))
	if err != nil {
		return 0, err
	}
	for _, place := range places {
		job, ok, err := t.l.finishedAt(place, t.now)
		if err != nil {
			return n, err
		}
		if !ok || job.ID != id {
			continue
		}
		found = append(found, place)
	}
	if err := t.removeAll(found); err != nil {
		return 0, err
	}
	n = len(found)
	dead, err := o.bodies(t, id)
	return n + dead, err
}

// bodies discards the dead jobs of an id.
func (o *removeJobs) bodies(t *tx, id string) (n int, err error) {
	for {
		job, ok, err := t.l.deadJob(id)
		if !ok || err != nil {
			return n, err
		}
		q := t.l.queues[job.Queue]
		t.exhumed(q, &job.Message, &deadEnd{})
		if err := t.exec("DELETE FROM dead WHERE seq = ?", job.DeadSeq); err != nil {
			return n, err
		}
		o.dead[q]++
		n++
	}
}

func (o *removeJobs) publish(*tx) {
	for q, n := range o.dead {
		q.dead -= n
	}
}

// removeAll takes jobs out of their rows; those of one row come one after the other.
func (t *tx) removeAll(places []int64) error {
	for len(places) > 0 {
		n := 1
		for n < len(places) && places[n]>>finishedIdx == places[0]>>finishedIdx {
			n++
		}
		if err := t.removeFrom(places[0]>>finishedIdx, places[:n]); err != nil {
			return err
		}
		places = places[n:]
	}
	return nil
}

// removeFrom takes jobs out of one row.
func (t *tx) removeFrom(seq int64, places []int64) error {
	var row finishedRow
	var data []byte
	err := t.l.db.each("SELECT "+finishedColumns+" FROM finished WHERE seq = ?", func(s *sqlite.Stmt) error {
		row, data = t.l.readFinishedRow(s), columnBytes(s, 6)
		return nil
	}, seq)
	if err != nil || row.q == nil {
		return err
	}
	gone := map[int64]bool{}
	for _, place := range places {
		idx := place & (1<<finishedIdx - 1)
		t.tally(row.q).add(row.states[idx], -1)
		row.states[idx] = 0
		gone[place] = true
	}
	var ids []int64
	eachFinishedID(seq, data, len(row.states), func(h, at int64) {
		if gone[at] {
			ids = append(ids, h, at)
		}
	})
	if err := t.pairs("DELETE FROM finished_id WHERE (h, at) IN (VALUES ", ")", ids); err != nil {
		return err
	}
	fresh := append(make([]byte, 0, len(data)), finishedVersion)
	recs, _ := records(data, len(row.states))
	for i, r := range recs {
		if row.states[i] != 0 && r[1] > 0 {
			fresh = appendRecord(fresh, i, data[r[0]:r[1]])
		}
	}
	if len(fresh) == 1 {
		return t.exec("DELETE FROM finished WHERE seq = ?", seq)
	}
	return t.exec("UPDATE finished SET states = ?, data = ? WHERE seq = ?", row.states, fresh, seq)
}
