package postgres

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
)

// A listing goes through four sections. Each is read backwards along an index, some rows at
// a time; what the index does not decide is decided by the filter, here. A page ends where
// it is full, or where it has looked at as much as one call may.
const (
	sectionActive = iota
	sectionWaiting
	sectionDead
	sectionFinished
	sections
)

const (
	listAtOnce = 500
	listMost   = 5000     // jobs that one call looks at
	listBytes  = 16 << 20 // of one page
	endless    = int64(1)<<62 - 1
)

// listing is one call.
type listing struct {
	e       *Engine
	f       *engine.JobFilter
	limit   int
	queue   int32
	now     int64
	section int
	below   int64 // only with a smaller number
	looked  int
	bytes   int
	page    engine.JobPage
}

// Jobs lists; see engine.JobLister.
func (e *Engine) Jobs(ctx context.Context, q engine.JobQuery) (engine.JobPage, error) {
	l := &listing{e: e, f: &q.Filter, limit: cmp.Or(q.Limit, engine.DefaultJobs), below: endless}
	if q.Limit < 0 || q.Limit > engine.MaxJobs {
		return l.page, bad("limit", "a limit of %d; 1 to %d are allowed", q.Limit, engine.MaxJobs)
	}
	if q.After != "" {
		if n, err := fmt.Sscanf(q.After, "%d.%d", &l.section, &l.below); n != 2 || err != nil || l.section < 0 || l.section >= sections ||
			q.After != fmt.Sprintf("%d.%d", l.section, l.below) {
			return l.page, bad("after", "%.80q is not the next of a page", q.After)
		}
	}
	if err := e.enter(); err != nil {
		return l.page, err
	}
	defer e.leave()
	err := l.run(ctx)
	return l.page, err
}

func (l *listing) run(ctx context.Context) (err error) {
	if err := l.e.catchUp(ctx); err != nil {
		return err
	}
	if l.now, err = l.e.stored(ctx); err != nil {
		return err
	}
	if l.f.Queue != "" {
		q, ok, err := l.e.queues.find(ctx, l.e, l.f.Queue)
		if err != nil || !ok {
			return err
		}
		l.queue = q.id
	}
	for ; l.section < sections; l.section, l.below = l.section+1, endless {
		for l.wanted() {
			n, err := l.some(ctx)
			if err != nil {
				return err
			}
			if len(l.page.Jobs) == l.limit || l.looked >= listMost || l.bytes > listBytes {
				l.page.Next = fmt.Sprintf("%d.%d", l.section, l.below)
				return nil
			}
			if n < listAtOnce {
				break
			}
		}
	}
	return nil
}

// wanted tells whether a section has states that are asked for.
func (l *listing) wanted() bool {
	of := [sections][]forebay.State{
		{forebay.StateActive}, {forebay.StateWaiting, forebay.StateDelayed}, {forebay.StateDead}, {forebay.StateCompleted, forebay.StateCancelled, forebay.StateExpired},
	}[l.section]
	return len(l.f.States) == 0 || slices.ContainsFunc(of, func(s forebay.State) bool { return slices.Contains(l.f.States, s) })
}

// some looks at the next rows of a section. It gives how many there were.
func (l *listing) some(ctx context.Context) (n int, err error) {
	args := []any{l.below, listAtOnce}
	var where strings.Builder
	add := func(cond string, arg any) {
		args = append(args, arg)
		where.WriteString(" AND " + cond + placeholder(len(args)))
	}
	if l.queue != 0 {
		add("x.queue = ", l.queue)
	}
	if l.f.ID != "" {
		add("b.id = ", l.f.ID)
		args = append(args, idKey(l.f.ID))
		where.WriteString(" AND x.seq = (SELECT seq FROM ~record WHERE key = " + placeholder(len(args)) + ")")
	}
	if !l.f.Since.IsZero() {
		add("x.sent >= ", l.f.Since.UnixMicro())
	}
	if !l.f.Until.IsZero() {
		add("x.sent < ", micros(l.f.Until))
	}
	if l.section <= sectionWaiting {
		return l.items(ctx, where.String(), args)
	}
	return l.endings(ctx, where.String(), args)
}

// offer takes a job that was looked at. False: the page is full.
func (l *listing) offer(j forebay.Job, place int64) bool {
	if len(l.page.Jobs) == l.limit || l.bytes > listBytes {
		return false
	}
	l.looked, l.below = l.looked+1, place
	if l.f.Match(&j) {
		l.page.Jobs, l.bytes = append(l.page.Jobs, j), l.bytes+len(j.Payload)+len(j.Result)
	}
	return true
}

func (l *listing) items(ctx context.Context, where string, args []any) (n int, err error) {
	state := "x.state = 2"
	if l.section == sectionWaiting {
		state = "x.state <> 2"
	}
	sql := `SELECT ` + strings.ReplaceAll(itemColumns, "i.", "x.") + `, b.payload FROM ~item x JOIN ~body b ON b.seq = x.seq WHERE x.job AND ` + state +
		` AND x.seq < $1` + where + ` ORDER BY x.seq DESC LIMIT $2`
	return n, l.e.read(ctx, sql, args, func(rows pgx.Rows) error {
		it := &item{}
		if err := it.scan(rows, &it.payload); err != nil {
			return err
		}
		if n++; l.e.queues.name(it.queue) == "" {
			if err := l.e.queues.learn(ctx, l.e, ""); err != nil {
				return err
			}
		}
		l.offer(l.e.waitingJob(it, l.now), it.seq)
		return nil
	})
}

func (l *listing) endings(ctx context.Context, where string, args []any) (n int, err error) {
	state := "x.dead"
	if l.section == sectionFinished {
		state = "NOT x.dead"
	}
	sql := `SELECT ` + strings.ReplaceAll(endingColumns, "n.", "x.") + `, b.payload FROM ~ended x JOIN ~body b ON b.seq = x.seq WHERE x.job AND ` + state +
		` AND x.no < $1` + where + ` ORDER BY x.no DESC LIMIT $2`
	return n, l.e.read(ctx, sql, args, func(rows pgx.Rows) error {
		d := &ending{}
		if err := d.scan(rows, &d.payload); err != nil {
			return err
		}
		if n++; l.e.queues.name(d.queue) == "" {
			if err := l.e.queues.learn(ctx, l.e, ""); err != nil {
				return err
			}
		}
		l.offer(l.e.endedJob(d), d.no)
		return nil
	})
}

// Finished counts what the ledger keeps of finished jobs; see engine.JobLister.
func (e *Engine) Finished(ctx context.Context) (map[string]map[forebay.State]int64, error) {
	if err := e.enter(); err != nil {
		return nil, err
	}
	defer e.leave()
	if err := e.catchUp(ctx); err != nil {
		return nil, err
	}
	out := make(map[string]map[forebay.State]int64)
	const sql = `SELECT q.name, n.state, count(*) FROM ~ended n JOIN ~queue q ON q.id = n.queue WHERE NOT n.dead GROUP BY q.name, n.state`
	return out, e.read(ctx, sql, nil, func(rows pgx.Rows) error {
		var name, state string
		var n int64
		err := rows.Scan(&name, &state, &n)
		if out[name] == nil {
			out[name] = make(map[forebay.State]int64)
		}
		out[name][forebay.State(state)] = n
		return err
	})
}
