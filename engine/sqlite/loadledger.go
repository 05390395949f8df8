package sqlite

import (
	"math/rand/v2"
	"strconv"

	"zombiezen.com/go/sqlite"
)

// loadLedger takes up what is counted, and the seqs where the last process cannot have been.
func (l *loop) loadLedger(t *tx) error {
	for _, n := range []struct {
		name       string
		next, kept *int64
	}{{"event_seq", &l.history.next, &l.history.kept}, {"finished_seq", &l.finishedSeq, &l.finishedKept}} {
		at, err := l.db.int("SELECT value FROM meta WHERE name = ?", n.name)
		if err != nil {
			return err
		}
		*n.next, *n.kept = max(at, 1), at
	}
	t.eventSeq, t.finishedSeq = l.history.next, l.finishedSeq
	err := l.db.each("SELECT queue, ord, completed, cancelled, expired FROM ledger", func(s *sqlite.Stmt) error {
		if q := l.byID[s.ColumnInt64(0)]; q != nil {
			q.tally = tally{s.ColumnInt64(1), s.ColumnInt64(2), s.ColumnInt64(3), s.ColumnInt64(4)}
		}
		return nil
	})
	if err != nil {
		return err
	}
	return l.loadHistory(t)
}

// loadHistory takes up the state of the history, and begins one for a new store. The
// epoch says whether a place that somebody remembers is one of this store.
func (l *loop) loadHistory(t *tx) error {
	err := t.exec("INSERT INTO history_state (id, epoch, gone, n, bytes) VALUES (1, ?, 0, 0, 0) ON CONFLICT DO NOTHING", rand.Int64())
	if err != nil {
		return err
	}
	h := &l.history
	return l.db.each("SELECT epoch, gone, n, bytes FROM history_state", func(s *sqlite.Stmt) error {
		h.epoch = strconv.FormatInt(s.ColumnInt64(0), 36)
		h.gone, h.total, h.stored = s.ColumnInt64(1), s.ColumnInt64(2), s.ColumnInt64(3)
		return nil
	})
}

// keepSeqs stores the seqs as they are at a clean end, so that the next start goes on
// without a gap.
func (l *loop) keepSeqs() error {
	for name, next := range map[string]int64{"event_seq": l.history.next, "finished_seq": l.finishedSeq} {
		err := l.db.exec("INSERT INTO meta (name, value) VALUES (?1, ?2) ON CONFLICT DO UPDATE SET value = ?2", name, next)
		if err != nil {
			return err
		}
	}
	return nil
}

// loadStops tells which jobs were asked to stop, and why.
func (l *loop) loadStops() (map[[2]int64]string, error) {
	stops := map[[2]int64]string{}
	err := l.db.each("SELECT key, idx, reason FROM stop", func(s *sqlite.Stmt) error {
		stops[[2]int64{s.ColumnInt64(0), s.ColumnInt64(1)}] = s.ColumnText(2)
		return nil
	})
	return stops, err
}

// freeJob notes that a job has lost its lease, or ends it, if it was asked to stop.
func (l *loop) freeJob(t *tx, q *queue, r *ref, body []byte, stops map[[2]int64]string) (ended bool, err error) {
	g, err := glanceAt(body)
	if err != nil {
		return false, nil // the message stays; whoever decodes it says so
	}
	reason, stop := stops[[2]int64{r.key, int64(r.idx)}]
	n := note{typ: evLeaseLost, state: stWaiting, attempt: r.attempts + 1, id: g.id, kind: g.kind, queue: q.name}
	if !stop {
		t.record(&n)
		return false, nil
	}
	r.job = true
	if err := t.jobFinished(q, r, &ending{state: stCancelled, cause: cancelCause(reason), note: n}, body, &g); err != nil {
		return false, err
	}
	return true, t.leave(r)
}
