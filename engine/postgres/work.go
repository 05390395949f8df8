package postgres

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/forebayhq/forebay"
)

// A call that writes, life of one:
//
//  1. It begins a transaction, takes the locks of its queues (see plan), and asks for the
//     time and for the numbers it may need: one round trip.
//  2. It loads the rows that it is about, in bulk.
//  3. It does its items one after the other, in memory (type work).
//  4. It writes what has changed, in bulk, and commits: one round trip (flush.go).
//  5. It wakes who waits, here and elsewhere, and notes when time will do something next.

// plan says what a transaction locks, and how it commits.
//
// A queue's lock is taken alone by what looks at more than its own rows: claims and
// settlements where there are groups, limit keys, tenants or limits, and what finds jobs by
// id. It is shared by claims of plain messages, and not taken by sends and settlements of
// these. All locks are taken in one order: queues by number, then rows by number.
type plan struct {
	alone  []int32
	shared []int32
	seqs   int  // numbers of messages that may come to be
	lazy   bool // a commit that may be lost with the machine: it is done again by itself
}

// work is what one transaction does.
type work struct {
	e    *Engine
	conn *pgxpool.Conn
	now  int64 // µs
	seqs []int64

	ahead int64 // of the server's clock, µs

	items   map[int64]*item
	order   []*item // those of items, as they came
	records map[string]*record
	ended   []*ending
	unended []int64
	events  []event
	chains  map[lane]bool
	freed   map[lane]int32
	groups  []deadDelta
	thin    map[shelf]int32

	more []func(b *pgx.Batch) // further statements of the flush
	wake map[string]bool
	next int64 // when time will do something that this has caused; 0: never
	news bool  // events were written

	counted []counted
}

// lane names a part of a queue: a chain or a limit key.
type lane struct {
	queue int32
	name  string
}

// do runs f in a transaction, and again where the server undid it.
func (e *Engine) do(whole context.Context, p plan, f func(ctx context.Context, w *work) error) error {
	ctx, cancel := context.WithTimeout(whole, e.cfg.Timeout)
	defer cancel()
	for try, wait := 0, 10*time.Millisecond; ; try++ {
		w := &work{
			e: e, items: make(map[int64]*item), records: make(map[string]*record), chains: make(map[lane]bool), freed: make(map[lane]int32),
			wake: make(map[string]bool), thin: make(map[shelf]int32),
		}
		err := w.run(ctx, p, f)
		if err == nil {
			w.done()
			return nil
		}
		switch {
		case again(err) && try < 10:
		case undone(err) && pause(ctx, wait):
			wait = min(2*wait, time.Second)
		default:
			if whole.Err() != nil {
				return whole.Err()
			}
			return e.fault(err)
		}
	}
}

func (w *work) run(ctx context.Context, p plan, f func(ctx context.Context, w *work) error) (err error) {
	if w.conn, err = w.e.pool.Acquire(ctx); err != nil {
		return err
	}
	defer w.conn.Release() // it closes a connection that is still in a transaction
	if err = w.begin(ctx, p); err == nil {
		if err = f(ctx, w); err == nil {
			err = w.flush(ctx)
		}
	}
	if err != nil && !w.conn.Conn().IsClosed() && w.conn.Conn().PgConn().TxStatus() != 'I' {
		_, undo := w.conn.Exec(ctx, "ROLLBACK")
		return errors.Join(err, undo)
	}
	return err
}

// clock is the server's time in µs.
const clock = `SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint`

func (w *work) begin(ctx context.Context, p plan) error {
	b := &pgx.Batch{}
	b.Queue("BEGIN")
	if p.lazy {
		b.Queue("SET LOCAL synchronous_commit = off")
	}
	w.lock(b, p)
	if p.seqs > 0 {
		b.Queue(w.e.q(`SELECT nextval('~seq') FROM generate_series(1, $1)`), p.seqs).Query(func(rows pgx.Rows) (err error) {
			w.seqs, err = pgx.CollectRows(rows, pgx.RowTo[int64])
			return err
		})
	}
	if w.e.cfg.Now != nil {
		w.now = w.e.cfg.Now().UnixMicro()
	} else {
		b.Queue(clock).QueryRow(func(row pgx.Row) error { return row.Scan(&w.now) })
	}
	before := time.Now().UnixMicro()
	if err := w.conn.SendBatch(ctx, b).Close(); err != nil || w.e.cfg.Now != nil {
		return err
	}
	w.ahead = apart(w.now, before, time.Now().UnixMicro())
	w.e.ahead.Store(w.ahead)
	return nil
}

func (w *work) lock(b *pgx.Batch, p plan) {
	slices.Sort(p.alone)
	slices.Sort(p.shared)
	for _, id := range slices.Compact(p.alone) {
		b.Queue(`SELECT pg_advisory_xact_lock($1, $2)`, w.e.class, id)
	}
	for _, id := range slices.Compact(p.shared) {
		b.Queue(`SELECT pg_advisory_xact_lock_shared($1, $2)`, w.e.class, id)
	}
}

// soon notes a time at which something is to be done.
func (w *work) soon(at int64) {
	if at > 0 && (w.next == 0 || at < w.next) {
		w.next = at
	}
}

// done tells others of what was committed.
func (w *work) done() {
	w.e.tally.add(w.counted)
	if w.next > 0 {
		w.e.keeper.sooner(w.next, w.now)
	}
	if len(w.thin) > 0 {
		w.e.keeper.thin(w.thin)
	}
	w.e.signal(w.wake, w.news)
}

// read runs a question of one statement.
func (e *Engine) read(whole context.Context, sql string, args []any, each func(rows pgx.Rows) error) error {
	ctx, cancel := context.WithTimeout(whole, e.cfg.Timeout)
	defer cancel()
	for wait := 10 * time.Millisecond; ; wait = min(2*wait, time.Second) {
		rows, err := e.pool.Query(ctx, e.q(sql), args...)
		if err == nil {
			for rows.Next() && err == nil {
				err = each(rows)
			}
			rows.Close()
			err = cmp.Or(err, rows.Err())
		}
		if err == nil || !undone(err) || !pause(ctx, wait) {
			if err != nil && whole.Err() != nil {
				return whole.Err()
			}
			return e.fault(err)
		}
	}
}

// pause waits, and tells whether ctx lives on.
func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// now is the engine's time, for bounds of what is sent.
func (e *Engine) now() time.Time {
	if e.cfg.Now != nil {
		return e.cfg.Now()
	}
	return time.Now()
}

// micros is a time as it is stored; 0: none. A part of one counts as one, so that nothing
// comes before its time.
func micros(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	us := t.UnixMicro()
	if t.Nanosecond()%1000 != 0 {
		us++
	}
	return max(us, 1)
}

func atMicros(us int64) time.Time {
	if us <= 0 {
		return time.Time{}
	}
	return time.UnixMicro(us)
}

func ceilMicros(d time.Duration) int64 {
	return int64((d + time.Microsecond - 1) / time.Microsecond)
}

// counted is something for the counts since the opening.
type counted struct {
	queue string
	what  forebay.QueueStats
}
