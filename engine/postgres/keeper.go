package postgres

import (
	"context"
	"maps"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
)

// keeper does what time alone asks for while no call comes, at the moment at which it is
// due. What other processes know of is looked at from time to time, since each has a keeper
// of its own, and theirs may have died.
type keeper struct {
	e      *Engine
	kick   chan struct{} // something is due sooner, one is kept
	sweeps sync.Mutex    // held by whoever sweeps

	mu    sync.Mutex // guards all below
	next  time.Time  // by this process's clock; zero: nothing is known
	busy  bool       // somebody sweeps
	later time.Time  // what is next after that, as far as it is known
	thins map[shelf]int32
}

const (
	sweepAtOnce = 500              // of each kind, of one queue, in one transaction
	sweepEvery  = 5 * time.Second  // of everything
	thinAfter   = time.Second      // from the end of a job to the leaving of those before it
	catchUps    = 4                // slices that a call does before it goes on
	tidyEvery   = 10 * time.Second // of what has no moment of its own
)

func newKeeper(e *Engine) *keeper {
	return &keeper{e: e, kick: make(chan struct{}, 1), thins: make(map[shelf]int32)}
}

// sooner says that something is due at a moment of the store's clock, which is now.
func (k *keeper) sooner(at, now int64) {
	k.by(time.Now().Add(time.Duration(max(at-now, 0)) * time.Microsecond))
}

func (k *keeper) by(at time.Time) {
	k.mu.Lock()
	to := &k.next
	if k.busy {
		to = &k.later
	}
	earlier := to.IsZero() || at.Before(*to)
	if earlier {
		*to = at
	}
	k.mu.Unlock()
	if earlier {
		select {
		case k.kick <- struct{}{}:
		default:
		}
	}
}

// thin notes that more may be kept of queues than is to be.
func (k *keeper) thin(m map[shelf]int32) {
	k.mu.Lock()
	for s, most := range m {
		if was, ok := k.thins[s]; !ok || most < was {
			k.thins[s] = most
		}
	}
	k.mu.Unlock()
	after := thinAfter
	for s := range m {
		if s.dead {
			after = 0 // they are few, and are told of as dead letters
		}
	}
	k.by(time.Now().Add(after))
}

func (k *keeper) wait() time.Duration {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.next.IsZero() {
		return sweepEvery
	}
	return min(max(time.Until(k.next), 0), sweepEvery)
}

func (k *keeper) run() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	tidied, trouble := time.Now(), time.Duration(0)
	if k.e.learnThins(ctx) != nil {
		trouble = time.Second // what is kept too long leaves with the next that ends
	}
	for {
		t := time.NewTimer(max(k.wait(), trouble))
		select {
		case <-k.e.closing:
			t.Stop()
			return
		case <-k.kick:
			t.Stop()
			continue
		case <-t.C:
		}
		err := k.e.sweep(ctx)
		if err == nil && time.Since(tidied) >= tidyEvery {
			tidied = time.Now()
			err = k.e.tidy(ctx)
		}
		if trouble = 0; err != nil {
			trouble = time.Second
		}
	}
}

// catchUp does what is due, so that whoever asks is told of now.
func (e *Engine) catchUp(ctx context.Context) error {
	for range catchUps {
		if more, err := e.sweepSome(ctx, true); err != nil || !more {
			return err
		}
	}
	return nil
}

// dueSQL asks per queue when time will do something next. Each part is one probe of an index.
const dueSQL = `SELECT q.id, least(
		(SELECT due FROM ~item WHERE queue = q.id AND state = 1 ORDER BY due LIMIT 1),
		(SELECT until FROM ~item WHERE queue = q.id AND state = 2 ORDER BY until LIMIT 1),
		(SELECT alarm FROM ~item WHERE queue = q.id AND alarm IS NOT NULL ORDER BY alarm LIMIT 1),
		(SELECT wake FROM ~pace WHERE queue = q.id AND wake IS NOT NULL ORDER BY wake LIMIT 1)) FROM ~queue q
	UNION ALL SELECT 0, (SELECT leave FROM ~ended WHERE leave IS NOT NULL ORDER BY leave LIMIT 1)`

// sweep does what is due in all queues, in bounded slices.
func (e *Engine) sweep(ctx context.Context) error {
	for {
		if more, err := e.sweepSome(ctx, false); err != nil || !more {
			return err
		}
	}
}

// sweepSome does a slice. ifDue: unless somebody has just done it.
func (e *Engine) sweepSome(ctx context.Context, ifDue bool) (more bool, err error) {
	k := e.keeper
	if ifDue && !k.due() {
		return false, nil
	}
	k.sweeps.Lock()
	defer k.sweeps.Unlock()
	if ifDue && !k.due() {
		return false, nil // somebody else has just done it
	}
	thins := k.begin()
	more, err = e.sweepOnce(ctx, thins)
	k.end(thins, more, err)
	return more, err
}

func (k *keeper) due() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return !k.next.IsZero() && !k.next.After(time.Now())
}

// begin leaves next as it is until the end, so that whoever asks meanwhile waits for that.
func (k *keeper) begin() (thins map[shelf]int32) {
	k.mu.Lock()
	defer k.mu.Unlock()
	thins = k.thins
	k.thins, k.busy, k.later = make(map[shelf]int32), true, time.Time{}
	return thins
}

func (k *keeper) end(thins map[shelf]int32, more bool, err error) {
	k.mu.Lock()
	k.busy, k.next = false, k.later
	if err != nil {
		for s, most := range thins {
			k.thins[s] = most
		}
	}
	k.mu.Unlock()
	if more || err != nil {
		k.by(time.Now())
	}
}

func (e *Engine) sweepOnce(ctx context.Context, thins map[shelf]int32) (more bool, err error) {
	now, err := e.stored(ctx)
	if err != nil {
		return false, err
	}
	due, next := make(map[int32]bool), int64(0)
	var id int32
	var at *int64
	if err := e.read(ctx, dueSQL, nil, func(rows pgx.Rows) error {
		if err := rows.Scan(&id, &at); err != nil || at == nil {
			return err
		}
		if *at <= now {
			due[id] = true
		} else if next == 0 || *at < next {
			next = *at
		}
		return nil
	}); err != nil {
		return false, err
	}
	if next > 0 {
		e.keeper.sooner(next, now)
	}
	for s, most := range thins {
		some, err := e.thinOne(ctx, s, most)
		if more = more || some; err != nil {
			return more, err
		}
	}
	more = more || len(due) > 0 // what comes next in those is to be asked again
	for id := range maps.Keys(due) {
		some := false
		if id == 0 {
			some, err = e.retire(ctx)
		} else {
			some, err = e.sweepQueue(ctx, id)
		}
		if more = more || some; err != nil {
			return more, err
		}
	}
	return more, nil
}

// sweepQueue does what is due in one queue.
func (e *Engine) sweepQueue(ctx context.Context, id int32) (more bool, err error) {
	if err := e.queues.nameOf(ctx, e, []int32{id}); err != nil {
		return false, err
	}
	return more, e.do(ctx, plan{alone: []int32{id}, lazy: true}, func(ctx context.Context, w *work) error {
		ended, err := w.load(ctx, `i.queue = $1 AND i.state = 2 AND i.until <= $2 ORDER BY i.until, i.seq LIMIT $3 FOR UPDATE OF i SKIP LOCKED`, id, w.now, sweepAtOnce)
		if err != nil {
			return err
		}
		for _, it := range ended {
			w.lapse(it)
		}
		come, err := w.load(ctx, `i.queue = $1 AND i.state = 1 AND i.due <= $2 ORDER BY i.due, i.seq LIMIT $3 FOR UPDATE OF i SKIP LOCKED`, id, w.now, sweepAtOnce)
		if err != nil {
			return err
		}
		for _, it := range come {
			w.enqueue(it)
		}
		late, err := w.load(ctx, `i.queue = $1 AND i.alarm <= $2 ORDER BY i.alarm, i.seq LIMIT $3 FOR UPDATE OF i SKIP LOCKED`, id, w.now, sweepAtOnce)
		if err != nil {
			return err
		}
		for _, it := range late {
			w.tooLate(it)
		}
		more = max(len(ended), len(come), len(late)) == sweepAtOnce
		return w.openKeys(ctx, id)
	})
}

// tooLate ends a job that is not active by its own times.
func (w *work) tooLate(it *item) {
	switch {
	case it.gone || it.state == active || it.alarm > w.now || it.alarm == 0:
	case it.deliveries == 0 && it.expires > 0 && it.expires <= w.now:
		w.finish(it, forebay.StateExpired, forebay.Cause{Code: "expired", Message: "not begun in time", At: atMicros(w.now)}, nil)
	default:
		w.bury(it, deadlineCause(atMicros(w.now)), false)
	}
}

// openKeys lets go what was held by limit keys whose rate lets some go on.
func (w *work) openKeys(ctx context.Context, id int32) error {
	rows, err := w.conn.Query(ctx, w.e.q(`SELECT limit_key FROM ~pace WHERE queue = $1 AND wake <= $2 ORDER BY wake LIMIT $3`), id, w.now, sweepAtOnce)
	if err != nil {
		return err
	}
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil || len(names) == 0 {
		return err
	}
	for _, name := range names {
		w.freed[lane{id, name}]++ // one at a time: its start says when the next may come
	}
	w.more = append(w.more, func(b *pgx.Batch) {
		b.Queue(w.e.q(`UPDATE ~pace SET wake = NULL WHERE queue = $1 AND limit_key = ANY($2)`), id, names)
	})
	return nil
}

// retire drops what was kept as long as its retention says.
func (e *Engine) retire(ctx context.Context) (more bool, err error) {
	return more, e.do(ctx, plan{lazy: true}, func(ctx context.Context, w *work) error {
		ds, err := w.endings(ctx, `n.leave <= $1 ORDER BY n.leave LIMIT $2 FOR UPDATE OF n SKIP LOCKED`, w.now, sweepAtOnce)
		if err != nil {
			return err
		}
		more = len(ds) == sweepAtOnce
		w.discard(ds, engine.LeftByRetention+": age")
		return nil
	})
}

// thinOne drops what is more than the newest of a queue that are to be kept.
func (e *Engine) thinOne(ctx context.Context, s shelf, most int32) (more bool, err error) {
	const beyond = `n.dead = $2 AND n.no IN (SELECT no FROM (SELECT no, keep, $3 + row_number() OVER (ORDER BY no DESC) AS place FROM (
			SELECT no, keep FROM ~ended WHERE queue = $1 AND dead = $2 AND job ORDER BY no DESC OFFSET $3 LIMIT $4) x) y WHERE keep > 0 AND place > keep)
		ORDER BY n.no FOR UPDATE OF n SKIP LOCKED`
	return more, e.do(ctx, plan{lazy: true}, func(ctx context.Context, w *work) error {
		ds, err := w.endings(ctx, beyond, s.queue, s.dead, most, 2*sweepAtOnce)
		if err != nil {
			return err
		}
		if more = len(ds) == 2*sweepAtOnce; more {
			w.thin[s] = most
		}
		w.discard(ds, engine.LeftByRetention+": count")
		return nil
	})
}

// learnThins asks for what may be more than is to be kept, once: those who knew may have died.
func (e *Engine) learnThins(ctx context.Context) error {
	m := make(map[shelf]int32)
	err := e.read(ctx, `SELECT queue, dead, min(keep) FROM ~ended WHERE keep > 0 GROUP BY queue, dead`, nil, func(rows pgx.Rows) error {
		var s shelf
		var most int32
		err := rows.Scan(&s.queue, &s.dead, &most)
		m[s] = most
		return err
	})
	if len(m) > 0 {
		e.keeper.thin(m)
	}
	return err
}
