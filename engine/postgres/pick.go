package postgres

import (
	"cmp"
	"context"
	"math"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/forebayhq/forebay/engine"
)

// bucket is the token bucket of a rate. It is one time: when it will be full again.
type bucket struct {
	full       float64 // µs
	per, burst float64 // µs from one start to the next; starts saved up at most. per 0: no bound
}

func (b *bucket) of(r engine.Rate) {
	if r.Count > 0 {
		b.per = float64(cmp.Or(r.Per, time.Second)) / 1000 / float64(r.Count)
		b.burst = float64(cmp.Or(r.Burst, 1))
	}
}

// opens is when the next one may start.
func (b *bucket) opens(now int64) int64 {
	if b.per == 0 {
		return now
	}
	return max(now, int64(math.Ceil(b.full-(b.burst-1)*b.per-1e-3)))
}

func (b *bucket) spend(now int64) {
	if b.per > 0 {
		b.full = math.Max(b.full, float64(now)) + b.per
	}
}

// gather reads the tenants that have something ready and the best of each.
func (c *claim) gather(ctx context.Context, most int) error {
	c.byKey, c.follow = make(map[string]*key), make(map[string][]*item)
	const sql = `WITH RECURSIVE t AS (
			(SELECT tenant FROM ~item WHERE queue = $1 AND state = 0 ORDER BY tenant LIMIT 1)
			UNION ALL
			SELECT (SELECT i.tenant FROM ~item i WHERE i.queue = $1 AND i.state = 0 AND i.tenant > t.tenant ORDER BY i.tenant LIMIT 1) FROM t WHERE t.tenant IS NOT NULL)
		SELECT t.tenant, coalesce(l.turn, 0) FROM t LEFT JOIN ~lane l ON l.queue = $1 AND l.tenant = t.tenant WHERE t.tenant IS NOT NULL`
	rows, err := c.w.conn.Query(ctx, c.w.e.q(sql), c.q.id)
	if err != nil {
		return err
	}
	var one tenant
	if _, err := pgx.ForEachRow(rows, []any{&one.name, &one.turn}, func() error {
		t := one
		c.tenants = append(c.tenants, &t)
		return nil
	}); err != nil {
		return err
	}
	slices.SortFunc(c.tenants, func(a, b *tenant) int { return cmp.Or(cmp.Compare(a.turn, b.turn), cmp.Compare(a.name, b.name)) })
	n := len(c.tenants)
	if n == 0 {
		return nil
	}
	return c.fetch(ctx, c.tenants[:min(n, most*2)], min(most, max(8, 2*most/n))+1)
}

// fetch reads the next of tenants, n of each.
func (c *claim) fetch(ctx context.Context, ts []*tenant, n int) error {
	ranks, seqs, names := make([]int64, len(ts)), make([]int64, len(ts)), make([]string, len(ts))
	byName := make(map[string]*tenant, len(ts))
	for i, t := range ts {
		names[i], ranks[i] = t.name, math.MinInt64
		if k := len(t.its); k > 0 {
			ranks[i], seqs[i] = t.its[k-1].rank, t.its[k-1].seq
		}
		byName[t.name], t.more = t, false
	}
	before := len(c.w.order)
	_, err := c.w.load(ctx, `i.seq IN (SELECT x.seq FROM unnest($2::text[], $3::bigint[], $4::bigint[]) t(name, rank, seq) CROSS JOIN LATERAL (
			SELECT seq FROM ~item WHERE queue = $1 AND tenant = t.name AND state = 0 AND (rank, seq) > (t.rank, t.seq) ORDER BY rank, seq LIMIT $5) x)
		ORDER BY i.rank, i.seq`, c.q.id, names, ranks, seqs, n)
	if err != nil {
		return err
	}
	fresh := c.w.order[before:]
	count := make(map[string]int)
	for _, it := range fresh {
		t := byName[it.tenant]
		t.its = append(t.its, it)
		count[it.tenant]++
		t.more = count[it.tenant] == n
	}
	if err := c.keys(ctx, fresh); err != nil {
		return err
	}
	return c.followers(ctx, fresh, n)
}

// keys reads what is known of limit keys.
func (c *claim) keys(ctx context.Context, its []*item) error {
	var names []string
	for _, it := range its {
		if it.key != "" && c.byKey[it.key] == nil {
			k := &key{}
			k.rate.of(c.limits.KeyRate)
			c.byKey[it.key] = k
			names = append(names, it.key)
		}
	}
	if len(names) == 0 || c.limits.KeyActive == 0 && c.limits.KeyRate.Count == 0 {
		return nil
	}
	const sql = `SELECT t.k, (SELECT count(*) FROM (SELECT FROM ~item i WHERE i.queue = $1 AND i.limit_key = t.k AND i.state = 2 AND i.until > $3 LIMIT $4) x),
		coalesce(p.full_at, 0) FROM unnest($2::text[]) t(k) LEFT JOIN ~pace p ON p.queue = $1 AND p.limit_key = t.k`
	rows, err := c.w.conn.Query(ctx, c.w.e.q(sql), c.q.id, names, c.w.now, c.limits.KeyActive)
	if err != nil {
		return err
	}
	var name string
	var n int
	var full float64
	_, err = pgx.ForEachRow(rows, []any{&name, &n, &full}, func() error {
		c.byKey[name].inUse, c.byKey[name].rate.full = n, full
		return nil
	})
	return err
}

// followers reads what comes after the first of groups, so that one receive may get several.
func (c *claim) followers(ctx context.Context, its []*item, n int) error {
	var names []string
	var seqs []int64
	for _, it := range its {
		if len(it.chain) > 2 && it.chain[:2] == "g:" {
			names, seqs = append(names, it.chain), append(seqs, it.seq)
		}
	}
	if len(names) == 0 || n <= 1 {
		return nil
	}
	before := len(c.w.order)
	_, err := c.w.load(ctx, `i.seq IN (SELECT x.seq FROM unnest($2::text[], $3::bigint[]) t(name, seq) CROSS JOIN LATERAL (
			SELECT seq FROM ~item WHERE queue = $1 AND chain = t.name AND seq > t.seq ORDER BY seq LIMIT $4) x) ORDER BY i.seq`,
		c.q.id, names, seqs, max(1, min(n, 2*claimsAtOnce/len(names))))
	if err != nil {
		return err
	}
	fresh := c.w.order[before:]
	for _, it := range fresh {
		c.follow[it.chain] = append(c.follow[it.chain], it)
	}
	return c.keys(ctx, fresh)
}

// pick takes up to max for one want.
func (c *claim) pick(ctx context.Context, max, most int) (out []*item, err error) {
	var loose []*item // of groups whose earlier ones this want has got, by rank
	for len(out) < max && len(c.taken) < claimsAtOnce && !c.full() {
		it, t, err := c.best(ctx, loose, most)
		if err != nil || it == nil {
			return out, err
		}
		if i := slices.Index(loose, it); i >= 0 {
			loose = slices.Delete(loose, i, i+1)
		}
		if !c.free(it) {
			continue
		}
		c.take(it, t)
		out = append(out, it)
		if next := c.next(it); next != nil {
			at, _ := slices.BinarySearchFunc(loose, next, byRank)
			loose = slices.Insert(loose, at, next)
		}
	}
	return out, nil
}

func byRank(a, b *item) int { return cmp.Or(cmp.Compare(a.rank, b.rank), cmp.Compare(a.seq, b.seq)) }

// next gives what comes after an item in its group, if it waits for that only.
func (c *claim) next(it *item) *item {
	fs := c.follow[it.chain]
	for len(fs) > 0 && fs[0].seq <= it.seq {
		fs = fs[1:]
	}
	c.follow[it.chain] = fs
	if len(fs) == 0 || fs[0].state != behind || fs[0].due > c.w.now {
		return nil
	}
	return fs[0]
}

// best gives the next to hand out: of the tenant whose turn it is, by priority and age.
func (c *claim) best(ctx context.Context, loose []*item, most int) (best *item, of *tenant, err error) {
	for _, t := range c.tenants {
		for len(t.its) > 0 && t.its[0].state != ready {
			if len(t.its) == 1 && t.more {
				if err := c.fetch(ctx, []*tenant{t}, most); err != nil {
					return nil, nil, err
				}
			}
			t.its = t.its[1:]
		}
		if len(t.its) == 0 || of != nil && (of.turn < t.turn || of.turn == t.turn && byRank(best, t.its[0]) <= 0) {
			continue
		}
		best, of = t.its[0], t
	}
	for _, it := range loose {
		t := c.tenant(it.tenant)
		if of == nil || t.turn < of.turn || t.turn == of.turn && byRank(it, best) < 0 {
			best, of = it, t
		}
	}
	return best, of, nil
}

func (c *claim) tenant(name string) *tenant {
	for _, t := range c.tenants {
		if t.name == name {
			return t
		}
	}
	t := &tenant{name: name}
	c.tenants = append(c.tenants, t)
	return t
}

// free tells whether the limit key of an item lets it go on. If not, it is held up.
func (c *claim) free(it *item) bool {
	k := c.byKey[it.key]
	if it.key == "" || k == nil {
		return true
	}
	if c.limits.KeyActive > 0 && k.inUse >= c.limits.KeyActive {
		c.park(it)
		return false
	}
	if at := k.rate.opens(c.w.now); at > c.w.now {
		k.wake, k.spent = at, true
		c.park(it)
		return false
	}
	return true
}

func (c *claim) park(it *item) {
	if it.state == ready {
		it.state, it.changed = heldUp, true
	}
}

// take leases an item.
func (c *claim) take(it *item, t *tenant) {
	c.turn++
	t.turn, t.took = c.turn, true
	c.inUse++
	c.bytes += int64(it.size)
	c.rate.spend(c.w.now)
	if k := c.byKey[it.key]; it.key != "" && k != nil {
		k.inUse++
		if k.rate.per > 0 {
			k.rate.spend(c.w.now)
			k.wake, k.spent = k.rate.opens(c.w.now), true
		}
	}
	it.state, it.until, it.alarm, it.token, it.started, it.changed = active, c.w.now+ceilMicros(c.lease), 0, newToken(), c.w.now, true
	it.deliveries++
	c.taken = append(c.taken, it)
}

// write notes turns and buckets.
func (c *claim) write() {
	c.w.more = append(c.w.more, func(b *pgx.Batch) {
		if len(c.taken) > 0 {
			b.Queue(c.w.e.q(`UPDATE ~queue SET turn = $2, full_at = $3 WHERE id = $1`), c.q.id, c.turn, c.rate.full)
		}
		for _, t := range c.tenants {
			if t.took {
				b.Queue(c.w.e.q(`INSERT INTO ~lane VALUES ($1, $2, $3) ON CONFLICT (queue, tenant) DO UPDATE SET turn = $3`), c.q.id, t.name, t.turn)
			}
		}
	})
	var names []string
	var fulls []float64
	var wakes []int64
	for name, k := range c.byKey {
		if k.spent {
			names, fulls, wakes = append(names, name), append(fulls, k.rate.full), append(wakes, k.wake)
			c.w.soon(k.wake)
		}
	}
	if len(names) > 0 {
		c.w.more = append(c.w.more, func(b *pgx.Batch) {
			b.Queue(c.w.e.q(`INSERT INTO ~pace (queue, limit_key, full_at, wake) SELECT $1, k, f, nullif(w, 0) FROM unnest($2::text[], $3::float8[], $4::bigint[]) x(k, f, w)
				ON CONFLICT (queue, limit_key) DO UPDATE SET full_at = excluded.full_at, wake = excluded.wake`), c.q.id, names, fulls, wakes)
		})
	}
}
