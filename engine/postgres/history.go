package postgres

import (
	"cmp"
	"context"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
)

// The places of events are given out before their transactions commit, so a reader that saw
// the last place could miss one before it. Whoever writes events holds a lock from before
// it takes its places until its commit is done, shared with others who write; whoever reads
// takes that lock alone for a moment, and goes no further than what was there then.
const historyLock = -1

// news lets calls wait for events.
type news struct {
	mu      sync.Mutex // guards changed
	changed chan struct{}
}

func (n *news) wait() <-chan struct{} {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.changed == nil {
		n.changed = make(chan struct{})
	}
	return n.changed
}

func (n *news) signal() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.changed != nil {
		close(n.changed)
		n.changed = nil
	}
}

const (
	newsGap    = 20 * time.Millisecond // from one look to the next of a call that waits
	scanAtOnce = 1000
	scanMost   = 20 // slices that one call looks through, where few match
)

// History reads events; see engine.History.
func (e *Engine) History(ctx context.Context, q engine.HistoryQuery) (engine.HistoryPage, error) {
	page := engine.HistoryPage{Epoch: e.epoch, Next: q.After}
	switch {
	case q.Limit < 0 || q.Limit > engine.MaxHistory:
		return page, bad("limit", "a limit of %d; 1 to %d are allowed", q.Limit, engine.MaxHistory)
	case q.Wait < 0 || q.Wait > engine.MaxWait:
		return page, bad("wait", "a wait of %v; 0 to %v are allowed", q.Wait, engine.MaxWait)
	}
	q.Limit = cmp.Or(q.Limit, engine.MaxHistory)
	if err := e.enter(); err != nil {
		return page, err
	}
	defer e.leave()
	end := time.Now().Add(q.Wait)
	for {
		changed := e.news.wait() // before reading, so that nothing falls in between
		if err := e.catchUp(ctx); err != nil {
			return page, err
		}
		if err := e.scanEvents(ctx, &q, &page); err != nil {
			return page, err
		}
		left := time.Until(end)
		if len(page.Events) > 0 || page.More || left <= 0 {
			return page, nil
		}
		q.After = page.Next
		if err := e.restForNews(ctx, changed, min(left, e.wire.recheck())); err != nil {
			return page, err
		}
	}
}

func (e *Engine) restForNews(ctx context.Context, changed <-chan struct{}, most time.Duration) error {
	t := time.NewTimer(most)
	defer t.Stop()
	select {
	case <-changed:
		if !e.quiet {
			pause(ctx, min(newsGap, most)) // under load a transaction is too little to look for
		}
	case <-t.C:
	case <-ctx.Done():
		return ctx.Err()
	case <-e.closing:
		return errClosed()
	}
	return ctx.Err()
}

// horizon is the last place that may be read, and the first that is there.
func (e *Engine) horizon(ctx context.Context) (first, last int64, err error) {
	err = e.do(ctx, plan{lazy: true}, func(ctx context.Context, w *work) error {
		b := &pgx.Batch{}
		b.Queue(`SELECT pg_advisory_xact_lock($1, $2)`, e.class, historyLock)
		b.Queue(e.q(`SELECT coalesce((SELECT seq FROM ~event ORDER BY seq LIMIT 1), 0), coalesce((SELECT seq FROM ~event ORDER BY seq DESC LIMIT 1), 0)`)).QueryRow(
			func(row pgx.Row) error { return row.Scan(&first, &last) })
		return w.conn.SendBatch(ctx, b).Close()
	})
	return first, last, err
}

// scanEvents adds to a page what lies after q.After and is asked for.
func (e *Engine) scanEvents(ctx context.Context, q *engine.HistoryQuery, page *engine.HistoryPage) error {
	first, last, err := e.horizon(ctx)
	if err != nil {
		return err
	}
	if page.Oldest = first; q.After < 0 {
		q.After = last
	}
	page.Next, page.More = q.After, false
	types := make([]string, len(q.Types))
	for i, t := range q.Types {
		types[i] = string(t)
	}
	// A bounded run of places is looked through at a time, whatever of it matches.
	const sql = `SELECT seq, at, type, job, queue, kind, attempt, state, more FROM ~event WHERE seq > $1 AND seq <= $2 AND ($3 = '' OR job = $3)
		AND ($4 = '' OR queue = $4) AND (cardinality($5::text[]) = 0 OR type = ANY($5)) AND at >= $6 AND ($7::bigint = 0 OR at < $7) ORDER BY seq LIMIT $8`
	for range scanMost {
		if page.Next >= last || len(page.Events) > q.Limit {
			break
		}
		to := min(last, max(page.Next, first-1)+10*scanAtOnce)
		if q.Job != "" {
			to = last // an index leads to them
		}
		if err := e.read(ctx, sql, []any{page.Next, to, q.Job, q.Queue, types, micros(q.Since), micros(q.Until), q.Limit + 1 - len(page.Events)}, func(rows pgx.Rows) error {
			ev, err := readEvent(rows)
			page.Events = append(page.Events, ev)
			return err
		}); err != nil {
			return err
		}
		if len(page.Events) <= q.Limit {
			page.Next = to
		}
	}
	page.More = page.Next < last
	if len(page.Events) > q.Limit {
		page.Events = page.Events[:q.Limit]
		page.Next, page.More = page.Events[q.Limit-1].Seq, true
	}
	return nil
}

func readEvent(rows pgx.Rows) (ev forebay.HistoryEvent, err error) {
	var at int64
	var more []byte
	var m eventMore
	if err := rows.Scan(&ev.Seq, &at, &ev.Type, &ev.Job, &ev.Queue, &ev.Kind, &ev.Attempt, &ev.State, &more); err != nil {
		return ev, err
	}
	if more != nil {
		err = decode(more, &m)
	}
	ev.At, ev.Due, ev.Text, ev.Cause, ev.Result = atMicros(at), atMicros(m.Due), m.Text, m.Cause, m.Result
	if m.Progress != nil {
		p := m.Progress.progress()
		ev.Progress = &p
	}
	return ev, err
}
