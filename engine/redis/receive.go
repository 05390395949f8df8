package redis

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
)

const claimsAtOnce = 500 // messages of one script

// recheck is when a waiting receive looks by itself, should every signal be lost.
const recheck = 30 * time.Second

func checkReceive(r *engine.Receive) error {
	if err := engine.CheckQueue(r.Queue); err != nil {
		return err
	}
	r.Lease = cmp.Or(r.Lease, forebay.DefaultLease)
	switch {
	case r.Max < 1 || r.Max > engine.MaxReceive:
		return fail(forebay.CodeInvalid, "receive of %d; 1 to %d are allowed", r.Max, engine.MaxReceive)
	case r.Wait < 0 || r.Wait > engine.MaxWait:
		return fail(forebay.CodeInvalid, "a wait of %v; 0 to %v are allowed", r.Wait, engine.MaxWait)
	}
	return checkLease(r.Lease)
}

func checkLease(d time.Duration) error {
	if d < engine.MinLease || d > engine.MaxLease {
		return fail(forebay.CodeInvalid, "a lease of %v; %v to %v are allowed", d, engine.MinLease, engine.MaxLease)
	}
	return nil
}

// Receive leases messages; see engine.Engine.
func (e *Engine) Receive(ctx context.Context, r engine.Receive) ([]forebay.Delivery, error) {
	if err := checkReceive(&r); err != nil {
		return nil, err
	}
	if err := e.enter(); err != nil {
		return nil, err
	}
	defer e.leave()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	end := time.Now().Add(r.Wait)
	var w *waiter
	defer func() { e.waits.leave(w) }()
	for {
		ds, next, err := e.claim(r)
		if err != nil {
			return nil, err
		}
		if err := ctx.Err(); err != nil {
			e.giveBack(ds)
			return nil, err
		}
		left := time.Until(end)
		if len(ds) > 0 || left <= 0 {
			return ds, nil
		}
		if w == nil {
			w = e.waits.join(r.Queue)
		}
		e.waits.due(r.Queue, next)
		if err := e.rest(ctx, w, min(left, recheck)); err != nil {
			return nil, err
		}
		if time.Until(end) <= 0 && !e.waits.ripe(w) {
			return nil, nil // many that find nothing would else look twice each time
		}
	}
}

// rest waits for a signal, at most a time.
func (e *Engine) rest(ctx context.Context, w *waiter, most time.Duration) error {
	t := time.NewTimer(most)
	defer t.Stop()
	select {
	case <-w.signal:
	case <-t.C:
	case <-ctx.Done():
		return ctx.Err()
	case <-e.closing:
		return fail(forebay.CodeClosed, "the engine was closed")
	}
	return nil
}

// claim asks once, and lets schedules go on of which it has got a run. next is in how long the queue may have something by time alone; 0:
// never. The caller's context does not bound it: what it leases must be known.
func (e *Engine) claim(r engine.Receive) (ds []forebay.Delivery, next time.Duration, err error) {
	token, v, err := e.receiveScript(r)
	if err != nil {
		return nil, 0, err
	}
	e.keeper.uses(r.Queue)
	e.listed.works(r.Queue)
	until := atMillis(e.byHere(v.now)).Add(r.Lease)
	all := handedOut(token, v)
	ds = make([]forebay.Delivery, len(all))
	for i, f := range all {
		ds[i] = delivery(r.Queue, until, token+"."+strconv.Itoa(i+1), f)
		if len(f) > 11 && f[11] != "" {
			if err := e.goOn(r.Queue, f[11], f[0]); forebay.CodeOf(err) == forebay.CodeUnavailable {
				// Given back, so that whoever takes it tries again: else the schedule ends. A
				// pattern that cannot be read is no reason not to work this run.
				e.giveBack(ds[i : i+1])
				ds[i].Receipt = ""
			}
		}
	}
	ds = slices.DeleteFunc(ds, func(d forebay.Delivery) bool { return d.Receipt == "" })
	if !r.Kept {
		e.held.Add(ds, r.Lease)
	}
	if at := e.lastNumber(v); at > 0 {
		next = max(time.Duration(at-v.now)*time.Millisecond, time.Millisecond)
	}
	return ds, next, nil
}

// receiveScript leases; the tokens begin with token.
func (e *Engine) receiveScript(r engine.Receive) (token string, v reply, err error) {
	token = e.instance + "." + strconv.FormatInt(e.calls.Add(1), 36)
	args := []any{r.Queue, min(r.Max, claimsAtOnce), ceilMillis(r.Lease), token + plainMark, e.cfg.Name}
	if e.plain.likely(r.Queue) {
		v, done, err := e.runPlain(context.Background(), "receive", args...)
		if err != nil || done {
			return token + plainMark, v, err
		}
		if number(v.extra[1]) == 1 {
			e.plain.not(r.Queue)
		}
	}
	args[3] = token
	v, err = e.run(context.Background(), "receive", args...)
	return token, v, err
}

// handedOut gives the strings of each delivery, as receive.lua gives them.
func handedOut(token string, v reply) [][]string {
	if !isPlain(token) {
		all := make([][]string, len(v.out))
		for i, one := range v.out {
			all[i] = unpackStrings(text(one))
		}
		return all
	}
	heads := make([][]string, len(v.extra))
	for i := 1; i < len(heads); i++ {
		heads[i] = unpackStrings(text(v.extra[i]))
	}
	all := make([][]string, len(v.out)/4)
	for i := range all {
		one := v.out[4*i : 4*i+4]
		h := heads[number(one[3])]
		all[i] = []string{text(one[0]), "1", h[0], text(one[2]), text(one[1]), "0", h[1], "0", h[2]}
	}
	return all
}

func (e *Engine) lastNumber(v reply) int64 {
	if len(v.extra) == 0 {
		return 0
	}
	return number(v.extra[0])
}

// delivery makes one of what receive.lua gives.
func delivery(queue string, until time.Time, token string, v []string) forebay.Delivery {
	s := stored{queue: queue, id: v[0], name: v[2], data: v[3], priority: number(v[5]), fb: v[6], enc: v[8]}
	var causes []string
	if len(v) > 11 {
		s.opts, s.deid, causes = v[9], v[10], v[12:]
	}
	d := forebay.Delivery{
		Message: s.message(), Receipt: receipt(token, queue, s.id), Attempt: int(number(v[7])) + 1, Deliveries: int(number(v[1])),
		SentAt: atMillis(number(v[4])), LeaseUntil: until,
	}
	d.Failures = failures(causes, d.Job != nil)
	return d
}

// failures are the last causes, oldest first.
func failures(vs []string, job bool) []forebay.Cause {
	type numbered struct {
		forebay.Cause
		attempt int64
	}
	all := make([]numbered, 0, len(vs))
	for _, v := range vs {
		c, n := readFailure(v, job)
		all = append(all, numbered{c, n})
	}
	slices.SortFunc(all, func(a, b numbered) int { return cmp.Compare(a.attempt, b.attempt) })
	if len(all) == 0 {
		return nil
	}
	out := make([]forebay.Cause, len(all))
	for i, c := range all {
		out[i] = c.Cause
	}
	return out
}

// giveBack returns what nobody waits for any more, as if it had not been handed out.
func (e *Engine) giveBack(ds []forebay.Delivery) {
	items := make([]settleItem, 0, len(ds))
	for _, d := range ds {
		if it, ok := e.itemOfSettlement(&forebay.Settlement{Receipt: d.Receipt, Verdict: forebay.Release}); ok {
			items = append(items, it)
		}
	}
	// What cannot be given back now comes again when its lease ends.
	_, _ = e.settles.submit(context.Background(), once(items), sizeOfSettlement)
}
