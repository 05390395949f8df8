package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
)

const (
	claimsAtOnce = 500      // messages of one transaction
	claimedBytes = 16 << 20 // of them; the first may go over it
)

// errSpecial says that a queue has more than plain messages.
var errSpecial = errors.New("special")

// claim leases for wants that ask for the same lease. again is in how long a limit lets
// something go on; 0: never by itself.
func (e *Engine) claim(name string, ws []*want) (got [][]forebay.Delivery, again time.Duration, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), e.cfg.Timeout) // what it leases must be known, whoever has gone away
	defer cancel()
	if err := e.catchUp(ctx); err != nil {
		return nil, 0, err
	}
	q, ok, err := e.queues.find(ctx, e, name)
	got = make([][]forebay.Delivery, len(ws))
	if err != nil || !ok {
		return got, 0, err
	}
	if !q.special {
		err = e.claimPlain(ctx, q, ws, got)
		if !errors.Is(err, errSpecial) {
			return got, 0, err
		}
	}
	var at, now int64
	err = e.do(ctx, plan{alone: []int32{q.id}, lazy: true}, func(ctx context.Context, w *work) error {
		clear(got)
		c := &claim{w: w, q: q, lease: ws[0].lease, kept: ws[0].kept}
		err := c.run(ctx, ws, got)
		at, now = c.again, w.now
		return err
	})
	if at > 0 {
		again = time.Duration(max(at-now, 1)) * time.Microsecond
	}
	e.hold(ws, got, err)
	return got, again, err
}

// hold notes the leases that end with this engine.
func (e *Engine) hold(ws []*want, got [][]forebay.Delivery, err error) {
	for i, ds := range got {
		if err == nil && !ws[i].kept {
			e.held.Add(ds, ws[i].lease)
		}
	}
}

func newToken() int64 { return rand.Int64N(1<<62) + 1 }

// claimPlain leases from a queue that has plain messages only, beside others who do: each
// skips what another one is taking.
func (e *Engine) claimPlain(ctx context.Context, q queue, ws []*want, got [][]forebay.Delivery) error {
	most := 0
	for _, w := range ws {
		most = min(most+w.max, claimsAtOnce)
	}
	err := e.do(ctx, plan{shared: []int32{q.id}, lazy: true}, func(ctx context.Context, w *work) error {
		clear(got)
		var special bool
		if err := w.conn.QueryRow(ctx, w.e.q(`SELECT special OR limits IS NOT NULL FROM ~queue WHERE id = $1`), q.id).Scan(&special); err != nil {
			return err
		}
		if special {
			return errSpecial
		}
		its, err := w.takePlain(ctx, q.id, most, ws[0].lease)
		if err != nil {
			return err
		}
		for i, one := range ws {
			n := min(one.max, len(its))
			for _, it := range its[:n] {
				got[i] = append(got[i], w.deliver(it, ws[0].lease))
			}
			its = its[n:]
		}
		return nil
	})
	e.hold(ws, got, err)
	return err
}

// takePlain takes the best of a queue in one statement.
func (w *work) takePlain(ctx context.Context, queue int32, most int, lease time.Duration) ([]*item, error) {
	const sql = `WITH best AS MATERIALIZED (
			SELECT seq, rank, size FROM ~item WHERE queue = $1 AND tenant = '' AND state = 0 AND chain IS NULL AND limit_key IS NULL
			ORDER BY rank, seq LIMIT $2 FOR UPDATE SKIP LOCKED),
		fits AS (SELECT seq FROM (SELECT seq, row_number() OVER o n, sum(size) OVER o - size AS before FROM best WINDOW o AS (ORDER BY rank, seq)) x
			WHERE before < $3 OR n = 1),
		taken AS (UPDATE ~item i SET state = 2, until = $4, alarm = NULL, token = $5 + i.seq, deliveries = deliveries + 1, started = $6
			FROM fits WHERE i.seq = fits.seq RETURNING i.*)
		SELECT ` + itemColumns + `, b.payload FROM taken i JOIN ~body b ON b.seq = i.seq ORDER BY i.rank, i.seq`
	rows, err := w.conn.Query(ctx, w.e.q(sql), queue, most, claimedBytes, w.now+ceilMicros(lease), newToken()/2, w.now)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var out []*item
	for rows.Next() {
		it := &item{}
		if err := it.scan(rows, &it.payload); err != nil {
			return nil, err
		}
		out = append(out, it)
	}
	return out, rows.Err()
}

// deliver tells of an item that was leased.
func (w *work) deliver(it *item, lease time.Duration) forebay.Delivery {
	w.note(it, forebay.HistoryStarted, forebay.StateActive)
	w.soon(it.until)
	return forebay.Delivery{
		Message: it.meta.message(it.id, w.queueName(it.queue), it.kind, it.payload), Receipt: receiptOf(it), Attempt: int(it.attempts) + 1,
		Deliveries: int(it.deliveries), SentAt: atMicros(it.sent), LeaseUntil: w.e.byHere(it.until), Failures: it.extra.Failures,
	}
}

// claim is one that looks at limits, groups and tenants. It has its queue alone.
type claim struct {
	w     *work
	q     queue
	lease time.Duration
	kept  bool
	again int64 // when a limit of the queue opens; 0: it does not by itself

	limits engine.QueueLimits
	turn   int64
	rate   bucket
	inUse  int // active ones of the queue
	bytes  int64

	tenants []*tenant
	byKey   map[string]*key
	follow  map[string][]*item // what comes after the first of a chain, in order
	taken   []*item
}

// tenant is one with something ready.
type tenant struct {
	name string
	turn int64
	its  []*item // by rank
	more bool    // there may be others after these
	took bool
}

// key is a limit key that something of this claim has.
type key struct {
	inUse int
	rate  bucket
	spent bool
	wake  int64
}

// run picks for one want after the other, and leases.
func (c *claim) run(ctx context.Context, ws []*want, got [][]forebay.Delivery) error {
	most := 0
	for _, w := range ws {
		most = min(most+w.max, claimsAtOnce)
	}
	open, err := c.open(ctx)
	if err != nil || !open {
		return err
	}
	if err := c.gather(ctx, most); err != nil {
		return err
	}
	picked := make([][]*item, len(ws))
	for i, w := range ws {
		if picked[i], err = c.pick(ctx, w.max, most); err != nil {
			return err
		}
	}
	if err := c.payloads(ctx); err != nil {
		return err
	}
	for i := range picked {
		for _, it := range picked[i] {
			got[i] = append(got[i], c.w.deliver(it, c.lease))
		}
	}
	c.write()
	return nil
}

// open reads the limits of the queue. False: they let nothing go on now.
func (c *claim) open(ctx context.Context) (bool, error) {
	var limits []byte
	err := c.w.conn.QueryRow(ctx, c.w.e.q(`SELECT limits, turn, full_at FROM ~queue WHERE id = $1`), c.q.id).Scan(&limits, &c.turn, &c.rate.full)
	if err != nil {
		return false, err
	}
	if limits != nil {
		if err := json.Unmarshal(limits, &c.limits); err != nil {
			return false, fail(forebay.CodeDamaged, "the limits of queue %q cannot be read: %v", c.q.name, err)
		}
	}
	c.rate.of(c.limits.Rate)
	if c.limits.Active > 0 {
		const sql = `SELECT count(*) FROM (SELECT FROM ~item WHERE queue = $1 AND state = 2 AND until > $2 LIMIT $3) x`
		if err := c.w.conn.QueryRow(ctx, c.w.e.q(sql), c.q.id, c.w.now, c.limits.Active).Scan(&c.inUse); err != nil {
			return false, err
		}
	}
	return !c.full(), nil
}

// full tells whether the limits of the queue let nothing go on.
func (c *claim) full() bool {
	if c.limits.Paused || c.limits.Active > 0 && c.inUse >= c.limits.Active || c.bytes >= claimedBytes {
		return true
	}
	if at := c.rate.opens(c.w.now); at > c.w.now {
		c.again = at
		return true
	}
	return false
}

// payloads reads those of what was taken.
func (c *claim) payloads(ctx context.Context) error {
	if len(c.taken) == 0 {
		return nil
	}
	byNumber := make(map[int64]*item, len(c.taken))
	for _, it := range c.taken {
		byNumber[it.seq] = it
	}
	rows, err := c.w.conn.Query(ctx, c.w.e.q(`SELECT seq, payload FROM ~body WHERE seq = ANY($1)`), column(c.taken, func(it *item) int64 { return it.seq }))
	if err != nil {
		return err
	}
	var seq int64
	var payload []byte
	_, err = pgx.ForEachRow(rows, []any{&seq, &payload}, func() error {
		byNumber[seq].payload = append([]byte(nil), payload...)
		return nil
	})
	return err
}
