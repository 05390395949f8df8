package sqlite

import (
	"context"
	"encoding/json"

	"zombiezen.com/go/sqlite"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
)

// Locate tells where a message is, by its id.
func (e *Engine) Locate(ctx context.Context, id string) (engine.Location, error) {
	return ask(ctx, e, func(t *tx) (engine.Location, error) { return t.l.locate(id, t.now) })
}

func (l *loop) locate(id string, now int64) (engine.Location, error) {
	if len(id) == 0 || len(id) > forebay.MaxIDBytes {
		return engine.Location{Where: engine.WhereUnknown}, nil
	}
	hit, known, err := l.lookup(idDigest(id), false)
	if err != nil {
		return engine.Location{}, err
	}
	if known {
		stored, err := l.isStored(hit.key, hit.idx)
		if err != nil {
			return engine.Location{}, err
		}
		if stored {
			return l.locateStored(hit, now)
		}
	}
	if loc, ok, err := l.locateDead(id); ok || err != nil {
		return loc, err
	}
	if !known || now-hit.sentAt >= l.window(hit.window) {
		return engine.Location{Where: engine.WhereUnknown}, nil
	}
	return l.locateDone(id, hit, now)
}

// locateDone tells the queue of a message that is gone where that is certain. A
// tenant's number may be another's by now, so the ledger has to know the job.
func (l *loop) locateDone(id string, hit found, now int64) (engine.Location, error) {
	loc := engine.Location{Where: engine.WhereDone, SentAt: unix(hit.sentAt)}
	if q := l.byID[laneOf(hit.key)/levels]; q != nil {
		loc.Queue = q.name
		return loc, nil
	}
	job, ok, err := l.finishedJob(id, now)
	if ok && job.SentAt.Equal(loc.SentAt) {
		loc.Queue = job.Queue
	}
	return loc, err
}

func (l *loop) queueName(key int64) string {
	if q := l.queueOf(key); q != nil {
		return q.name
	}
	return ""
}

func (l *loop) locateStored(hit found, now int64) (engine.Location, error) {
	loc := engine.Location{Where: engine.WhereWaiting, Queue: l.queueName(hit.key), SentAt: unix(hit.sentAt)}
	due := int64(0)
	err := l.db.each("SELECT due, attempts, deliveries, failures FROM again WHERE key = ? AND idx = ?", func(s *sqlite.Stmt) error {
		due = s.ColumnInt64(0)
		loc.Attempts, loc.Deliveries = int(s.ColumnInt64(1)), int(s.ColumnInt64(2))
		if f := decodeFailures(s.ColumnText(3)); len(f) > 0 {
			loc.Last = &f[len(f)-1]
		}
		return nil
	}, hit.key, int64(hit.idx))
	if q := l.queueOf(hit.key); q != nil {
		due = dueAt(due, hit.sentAt, loc.Deliveries, q.hold.span)
	}
	if _, it := l.holder(hit.key, hit.idx); it != nil {
		loc.Where, loc.Deliveries = engine.WhereActive, it.deliveries
	} else if due > now {
		loc.Where, loc.NotBefore = engine.WhereDelayed, unix(due)
	}
	return loc, err
}

// locateDead finds the newest dead letter of an id.
func (l *loop) locateDead(id string) (loc engine.Location, ok bool, err error) {
	err = l.db.each("SELECT seq, queue, sent_at, attempts, deliveries, cause FROM dead WHERE id = ? ORDER BY seq DESC LIMIT 1",
		func(s *sqlite.Stmt) error {
			ok = true
			loc = engine.Location{
				Where: engine.WhereDead, DeadSeq: s.ColumnInt64(0), SentAt: unix(s.ColumnInt64(2)),
				Attempts: int(s.ColumnInt64(3)), Deliveries: int(s.ColumnInt64(4)), Last: new(forebay.Cause),
			}
			if q := l.byID[s.ColumnInt64(1)]; q != nil {
				loc.Queue = q.name
			}
			return json.Unmarshal([]byte(s.ColumnText(5)), loc.Last)
		}, id)
	return loc, ok, err
}
