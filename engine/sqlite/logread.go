package sqlite

import (
	"context"
	"slices"
	"strings"
	"time"

	"zombiezen.com/go/sqlite"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
)

// Bounds of what one look into a log reads while the loop waits for it, and of how
// many looks make a page.
const (
	logRows  = 256
	logBytes = 256 << 10 // its last row may go over it
	logLooks = 64
)

// firm is a question whose answer counts once all that it has seen is on the disk.
type firm struct{ question }

func (firm) durable() bool { return true }

// askFirm is ask, for a firm question.
func askFirm[T any](ctx context.Context, e *Engine, f func(*tx) (T, error)) (T, error) {
	answer := new(T)
	err := e.submit(ctx, firm{func(t *tx) (err error) {
		*answer, err = f(t)
		return err
	}})
	if err != nil {
		var none T
		return none, err
	}
	return *answer, nil
}

// ReadLog reads messages; see engine.Log.
func (e *Engine) ReadLog(ctx context.Context, q engine.LogQuery) (engine.LogPage, error) {
	if err := engine.CheckLogQuery(&q); err != nil {
		return engine.LogPage{}, err
	}
	if q.Limit == 0 {
		q.Limit = engine.MaxLog
	}
	var timeout <-chan time.Time
	if q.Wait > 0 {
		timer := time.NewTimer(q.Wait)
		defer timer.Stop()
		timeout = timer.C
	}
	r := logReading{q: q, after: q.After}
	for {
		more, err := r.page(ctx, e)
		if err != nil || len(r.found) > 0 || r.more || q.Wait == 0 || r.ended {
			return r.result(), err
		}
		select {
		case <-more:
		case <-timeout:
			return r.result(), nil
		case <-ctx.Done():
			return engine.LogPage{}, ctx.Err()
		case <-e.stopping:
			return engine.LogPage{}, errClosed()
		}
	}
}

// logReading is a ReadLog on its way.
type logReading struct {
	q     engine.LogQuery
	after int64
	found []engine.LogEntry
	left  int64
	more  bool
	ended bool // nothing that comes is meant any more
	last  logLook
}

func (r *logReading) result() engine.LogPage {
	return engine.LogPage{Epoch: r.last.epoch, Entries: r.found, Next: r.after, Oldest: r.last.gone, Left: r.left, More: r.more}
}

// logRow is a block as the log has it.
type logRow struct {
	seq, at int64
	n       int
	data    []byte
}

// logLook is what the loop finds for it.
type logLook struct {
	rows  []logRow
	epoch string
	gone  int64 // the place up to which it has left
	from  int64 // what lies before was not meant
	left  int64 // messages from the first row on, about
	whole bool  // that was all there is
	ended bool  // whatever comes was sent too late
	more  chan struct{}
}

// page gathers a page; then the channel tells of more.
func (r *logReading) page(ctx context.Context, e *Engine) (chan struct{}, error) {
	for range logLooks {
		q, after := r.q, r.after // of this turn: when ctx ends, the loop may still read them
		look, err := askFirm(ctx, e, func(t *tx) (logLook, error) { return t.l.lookLog(&q, after, t.now) })
		if err != nil {
			return nil, err
		}
		r.last = look
		r.after = max(r.after, look.from)
		full := r.take(e, look.rows)
		r.left = max(0, look.left-look.read(r.after))
		r.more, r.ended = full || !look.whole, look.ended
		if full || look.whole {
			return look.more, nil
		}
	}
	return nil, nil
}

// take adds what is meant of rows. It tells whether the page is full, and there is more.
func (r *logReading) take(e *Engine, rows []logRow) (full bool) {
	for _, row := range rows {
		at := unix(row.at)
		out := !r.q.Since.IsZero() && at.Before(r.q.Since) || !r.q.Until.IsZero() && !at.Before(r.q.Until)
		recs, bad := records(row.data, row.n)
		if bad > 0 {
			e.log.Error("log: messages that cannot be read are passed over", "queue", r.q.Queue, "messages", bad)
		}
		for i, rec := range recs {
			place := row.seq<<logIdxBits | int64(i)
			if place <= r.after {
				continue
			}
			if len(r.found) == r.q.Limit {
				return true
			}
			r.after = place
			if out || rec[1] == 0 || !r.meant(row.data[rec[0]:rec[1]]) {
				continue
			}
			if m, err := decodeBody(row.data[rec[0]:rec[1]], r.q.Queue); err == nil {
				r.found = append(r.found, engine.LogEntry{Seq: place, SentAt: at, Message: m})
			}
		}
		r.after = max(r.after, row.seq<<logIdxBits|logIdxMask)
	}
	return false
}

// meant tells whether a message is asked for, without copying it.
func (r *logReading) meant(body []byte) bool {
	if len(r.q.Kinds) == 0 && r.q.ID == "" {
		return true
	}
	g, err := glanceAt(body)
	return err == nil && (r.q.ID == "" || r.q.ID == string(g.id)) &&
		(len(r.q.Kinds) == 0 || slices.ContainsFunc(r.q.Kinds, func(k string) bool { return k == string(g.kind) }))
}

// lookLog reads the next rows after a place, of a bounded number.
func (l *loop) lookLog(q *engine.LogQuery, after, now int64) (logLook, error) {
	look := logLook{epoch: l.history.epoch, more: l.logs.more, whole: true, ended: !q.Until.IsZero() && q.Until.UnixNano() <= now}
	in := l.queues[q.Queue]
	if in == nil || in.log.age == 0 && in.log.oldest() == nil {
		if l.e.cfg.Log.age(q.Queue) == 0 {
			return look, forebay.Errorf(forebay.CodeUnsupported, "sqlite: log", "the queue %q keeps no log", q.Queue)
		}
		in = &queue{}
	}
	if in.log.gone > 0 {
		look.gone = in.log.gone<<logIdxBits | logIdxMask
	}
	if after < 0 {
		look.from = (l.seq-1)<<logIdxBits | logIdxMask
		return look, nil
	}
	first := after >> logIdxBits
	if after&logIdxMask == logIdxMask { // that row is used up, and may fill a look by itself
		first++
	}
	from, to := in.log.span(q)
	if from = max(from, in.log.gone+1, first); from > to {
		return look, nil
	}
	bytes := 0
	look.left = in.log.between(from, to, q.Until)
	err := l.db.each("SELECT key, n, sent_at, data FROM log WHERE key >= ? AND key <= ? ORDER BY key LIMIT ?", func(s *sqlite.Stmt) error {
		n := int(min(max(s.ColumnInt64(1), 0), blockMessages))
		row := logRow{seq: seqOf(s.ColumnInt64(0)), n: n, at: s.ColumnInt64(2), data: columnBytes(s, 3)}
		look.rows = append(look.rows, row)
		if bytes += len(row.data); bytes >= logBytes || len(look.rows) == logRows {
			look.whole = row.seq == to
			return errStop
		}
		return nil
	}, logKey(in.id, from), logKey(in.id, to), int64(logRows))
	if err == errStop {
		err = nil
	}
	return look, err
}

// span gives the seqs between which all lies that was sent in the time of a query.
func (g *queueLog) span(q *engine.LogQuery) (from, to int64) {
	from, to = 1, 0
	for s := range g.all {
		if !q.Since.IsZero() && unix(s.until).Before(q.Since) || !q.Until.IsZero() && !unix(s.since).Before(q.Until) {
			continue
		}
		if to == 0 {
			from = s.first
		}
		to = s.last
	}
	return from, to
}

// between tells how many messages that were sent before a time lie from one seq to another,
// about: within a slice they are taken to lie evenly.
func (g *queueLog) between(from, to int64, until time.Time) (n int64) {
	for s := range g.all {
		first, last := max(s.first, from), min(s.last, to)
		if first > last {
			continue
		}
		of := float64(s.n) * float64(last-first+1) / float64(s.last-s.first+1)
		if late := s.until - until.UnixNano(); !until.IsZero() && late > 0 {
			of -= float64(s.n) * float64(late) / float64(s.until-s.since)
		}
		n += int64(max(0, of))
	}
	return n
}

// read counts the messages of the rows up to a place.
func (k *logLook) read(place int64) (n int64) {
	for _, row := range k.rows {
		if row.seq<<logIdxBits > place {
			break
		}
		n += min(int64(row.n), place-row.seq<<logIdxBits+1)
	}
	return n
}

// Logs tells what is kept; see engine.Log.
func (e *Engine) Logs(ctx context.Context) ([]engine.LogInfo, error) {
	return ask(ctx, e, func(t *tx) (all []engine.LogInfo, err error) {
		for _, q := range t.l.byID {
			g := &q.log
			if g.age == 0 && g.oldest() == nil {
				continue
			}
			info := engine.LogInfo{Queue: q.name, Age: g.age}
			for s := range g.all {
				info.Messages, info.Bytes = info.Messages+s.n, info.Bytes+s.bytes
				if since := unix(s.since); info.Oldest.IsZero() || since.Before(info.Oldest) {
					info.Oldest = since
				}
				if until := unix(s.until); until.After(info.Newest) {
					info.Newest = until
				}
			}
			all = append(all, info)
		}
		slices.SortFunc(all, func(a, b engine.LogInfo) int { return strings.Compare(a.Queue, b.Queue) })
		return all, nil
	})
}
