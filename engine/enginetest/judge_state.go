package enginetest

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
)

// receive holds a batch against what may be handed out.
func (j *judge) receive(r engine.Receive) error {
	ds, err := j.e.Receive(j.ctx, r)
	if err != nil || len(ds) > r.Max {
		return fmt.Errorf("receive of %d gave %d, %v", r.Max, len(ds), err)
	}
	queue := r.Queue
	if len(ds) > 0 && r.Wait > 0 && j.ledger != nil {
		j.o.sweep(time.Now()) // jobs may have ended meanwhile
	}
	now := time.Now()
	var batch []*entry
	for _, d := range ds {
		e, err := j.handedOut(d, queue, batch, r.Lease, now)
		if err != nil {
			return err
		}
		e.kept = r.Kept
		batch = append(batch, e)
	}
	w := j.rates[queue]
	if len(ds) == 0 && (w == nil || w.all.Count == 0 && w.key.Count == 0) {
		if left := j.o.next(queue, nil, now.Add(-j.slack)); left != nil && j.o.next(queue, nil, now.Add(j.slack)) != nil {
			return fmt.Errorf("nothing came, though %q is free", left.msg.ID)
		}
	}
	if len(j.receipts) > keptLast {
		j.receipts = j.receipts[len(j.receipts)-keptLast:]
	}
	return nil
}

func (j *judge) handedOut(d forebay.Delivery, queue string, batch []*entry, lease time.Duration, now time.Time) (*entry, error) {
	e := j.o.entry(d.ID)
	switch {
	case e == nil:
		return nil, fmt.Errorf("%q came and is not there: gone, dead or never sent", d.ID)
	case d.Queue != queue || e.msg.Queue != queue:
		return nil, fmt.Errorf("%q of queue %q came from %q", d.ID, e.msg.Queue, queue)
	case slices.Contains(batch, e):
		return nil, fmt.Errorf("%q came twice in a batch", d.ID)
	case !j.o.free(e, batch, now.Add(j.slack)) && !j.o.free(e, batch, now):
		return nil, fmt.Errorf("%q came and is not free: active, delayed, or its group is not at it", d.ID)
	case !j.o.within(e, now.Add(j.slack)):
		return nil, fmt.Errorf("%q came against the limits %+v", d.ID, j.o.limits[queue])
	case d.Receipt == "" || j.given[d.Receipt]:
		return nil, fmt.Errorf("%q has receipt %q, empty or given before", d.ID, d.Receipt)
	case d.Attempt != e.attempts+1 || d.Deliveries != e.deliveries+1:
		return nil, fmt.Errorf("%q came as attempt %d, delivery %d; want %d and %d",
			d.ID, d.Attempt, d.Deliveries, e.attempts+1, e.deliveries+1)
	case len(d.Failures) != len(e.failures) && !e.replayed:
		return nil, fmt.Errorf("%q came with %d failures, want %d", d.ID, len(d.Failures), len(e.failures))
	case !bytes.Equal(d.Payload, e.msg.Payload) || d.Group != e.msg.Group || d.Kind != e.msg.Kind:
		return nil, fmt.Errorf("%q came changed: %+v, want %+v", d.ID, d.Message, e.msg)
	case (d.LeaseUntil.Sub(now) - lease).Abs() > j.slack:
		return nil, fmt.Errorf("%q is leased for %v, want %v", d.ID, d.LeaseUntil.Sub(now), lease)
	}
	j.given[d.Receipt] = true
	delete(j.said, d.ID)
	j.receipts = append(j.receipts, d.Receipt)
	j.o.lease(e, d.Receipt, now.Add(lease), now)
	return e, j.started(d, now)
}

// started checks the rates: no window holds more than they allow.
func (j *judge) started(d forebay.Delivery, now time.Time) error {
	w := j.rates[d.Queue]
	if w == nil {
		return nil
	}
	w.starts = append(w.starts, start{now, d})
	check := func(r engine.Rate, same func(s start) bool) error {
		n := 0
		for _, s := range slices.Backward(w.starts) {
			if r.Count == 0 || !same(s) {
				continue
			}
			n++
			span := now.Sub(s.at) + j.slack
			most := float64(cmp.Or(r.Burst, 1)) + float64(r.Count)*float64(span)/float64(cmp.Or(r.Per, time.Second))
			if float64(n) > most {
				return fmt.Errorf("%d started within %v against the rate %+v", n, span, r)
			}
		}
		return nil
	}
	if err := check(w.all, func(start) bool { return true }); err != nil || d.LimitKey == "" {
		return err
	}
	return check(w.key, func(s start) bool { return s.d.LimitKey == d.LimitKey })
}

func (j *judge) limit(n [4]int) error {
	l, ok := engine.As[engine.Limiter](j.e)
	if !ok {
		return nil
	}
	queue, q := judgedQueue(n[0]), engine.QueueLimits{}
	switch n[1] % 6 {
	case 0:
		q.Paused = true
	case 1:
		q.Active, q.KeyActive = 1+n[2]%6, n[2]%3
	case 2:
		q.Rate = engine.Rate{Count: 1 + n[2]%3, Per: j.units(1 + n[2]%4), Burst: n[2] % 5}
	case 3:
		q.KeyRate = engine.Rate{Count: 1, Per: j.units(2), Burst: n[2] % 3}
	}
	if err := l.SetLimits(j.ctx, queue, q); err != nil {
		return fmt.Errorf("set limits %+v: %w", q, err)
	}
	// The oracle's own buckets would guess at the engine's; starts are watched instead.
	j.rates[queue] = &rateWatch{all: q.Rate, key: q.KeyRate}
	q.Rate, q.KeyRate = engine.Rate{}, engine.Rate{}
	j.o.limits[queue] = q
	return nil
}

// delay sets the delay of a queue, or lifts it.
func (j *judge) delay(n [4]int) error {
	able, ok := engine.As[engine.Delayer](j.e)
	if !ok {
		return nil
	}
	queue, d := judgedQueue(n[0]), j.units(max(n[1]%8-3, 0))
	if err := able.SetDelay(j.ctx, queue, d); err != nil {
		return fmt.Errorf("set a delay of %v: %w", d, err)
	}
	j.o.delay(queue, d)
	return nil
}

// letters replays or discards some dead letters, one of them perhaps unknown.
func (j *judge) letters(op string, n [4]int) error {
	dl, ok := engine.As[engine.DeadLetters](j.e)
	if !ok || len(j.o.letters) == 0 {
		return nil
	}
	var seqs []int64
	for i := range 1 + n[1]%3 {
		seqs = append(seqs, j.o.letters[(n[0]+i*n[2])%len(j.o.letters)].Seq)
	}
	if n[3]%4 == 0 {
		seqs = append(seqs, 1<<40)
	}
	act, known := dl.Replay, func(seq int64, now time.Time) bool {
		done := j.o.replay(seq, now)
		if done {
			j.replayed[j.o.entries[len(j.o.entries)-1].msg.Queue]++
		}
		return done
	}
	if op == "discard" {
		act, known = dl.Discard, j.o.discard
	}
	now := time.Now()
	errs, err := act(j.ctx, seqs)
	if err != nil || len(errs) != len(seqs) {
		return fmt.Errorf("%s gave %d answers for %d, %v", op, len(errs), len(seqs), err)
	}
	// Replay goes by the order of dying; of one number asked twice, one is not found.
	took := make(map[int64]int)
	for i, seq := range seqs {
		if errs[i] == nil {
			took[seq]++
		} else if forebay.CodeOf(errs[i]) != forebay.CodeNotFound {
			return fmt.Errorf("%s of %d: %w", op, seq, errs[i])
		}
	}
	slices.Sort(seqs)
	for _, seq := range slices.Compact(seqs) {
		want := 0
		if known(seq, now) {
			want = 1
		}
		if took[seq] != want {
			return fmt.Errorf("%s of dead letter %d was done %d times, want %d", op, seq, took[seq], want)
		}
	}
	return nil
}

// compare checks what can be seen without changing anything.
func (j *judge) compare(n int) error {
	j.decide()
	now := time.Now()
	for _, queue := range []string{judgedQueue(0), judgedQueue(1)} {
		got, err := j.e.Stats(j.ctx, queue)
		if err != nil || len(got) != 1 {
			return fmt.Errorf("stats of %q gave %+v, %v", queue, got, err)
		}
		early, late := j.o.stats(queue, now.Add(-j.slack)), j.o.stats(queue, now.Add(j.slack))
		if more := got[0].Sent - early.Sent; more == j.replayed[queue] {
			got[0].Sent = early.Sent
		}
		if j.o.delays[queue] > 0 { // about: what has a time of its own too may count twice
			early.Waiting, early.Delayed = early.Waiting+early.Delayed, 0
			late.Waiting, late.Delayed = 0, late.Waiting+late.Delayed
		}
		if err := between(got[0], early, late); err != nil {
			return fmt.Errorf("queue %q: %w", queue, err)
		}
	}
	if err := j.compareDead(); err != nil {
		return err
	}
	if err := j.compareJob(fmt.Sprint("m", n%judgedIDs), now); err != nil {
		return err
	}
	return j.compareLocation(fmt.Sprint("m", n%judgedIDs), now)
}

// between wants each count as it was a moment ago or will be in a moment.
func between(got, a, b forebay.QueueStats) error {
	sure := func(s forebay.QueueStats) [6]int64 {
		return [6]int64{s.Waiting + s.Active + s.Delayed, s.Dead, s.Sent, s.Duplicate, s.Conflict, s.Completed}
	}
	in := func(v, p, q int64) bool { return v >= min(p, q) && v <= max(p, q) }
	if sure(got) != sure(a) || !in(got.Active, a.Active, b.Active) || !in(got.Delayed, a.Delayed, b.Delayed) {
		return fmt.Errorf("stats count %+v, want %+v", got, a)
	}
	return nil
}

func (j *judge) compareDead() error {
	dl, ok := engine.As[engine.DeadLetters](j.e)
	if !ok {
		return nil
	}
	got, err := dl.Dead(j.ctx, engine.DeadQuery{Limit: 1000})
	if err != nil || len(got) != len(j.o.letters) {
		return fmt.Errorf("%d dead letters are listed, %v; want %d", len(got), err, len(j.o.letters))
	}
	slices.Reverse(got)
	last := int64(0)
	for i, l := range got {
		want := &j.o.letters[i]
		switch {
		case l.Message.ID != want.Message.ID || l.Message.Queue != want.Message.Queue:
			return fmt.Errorf("dead letter %d is %q, want %q", l.Seq, l.Message.ID, want.Message.ID)
		case l.Seq <= last:
			return fmt.Errorf("dead letter %d is listed after %d", l.Seq, last)
		case l.Cause.Code != want.Cause.Code || l.Deliveries != want.Deliveries:
			return fmt.Errorf("dead letter %+v, want %+v", l, *want)
		}
		last, want.Seq = l.Seq, l.Seq // numbers are the engine's
	}
	return nil
}

func (j *judge) compareLocation(id string, now time.Time) error {
	lo, ok := engine.As[engine.Locator](j.e)
	if !ok {
		return nil
	}
	got, err := lo.Locate(j.ctx, id)
	if err != nil {
		return fmt.Errorf("locate %q: %w", id, err)
	}
	if r := j.o.records["id "+id]; r != nil && !j.o.there(id) {
		if surely, perhaps := r.window(); !now.Before(surely) && now.Before(perhaps) {
			return nil // done or unknown
		}
	}
	a, b := j.o.locate(id, now.Add(-j.slack)), j.o.locate(id, now.Add(j.slack))
	if got.Where != a.Where && got.Where != b.Where {
		return fmt.Errorf("%q is %q, want %q", id, got.Where, a.Where)
	}
	if a.Where != b.Where || a.Where == engine.WhereDone || a.Where == engine.WhereUnknown || a.Where == engine.WhereDead {
		return nil
	}
	if got.Attempts != a.Attempts || got.Deliveries != a.Deliveries || got.Queue != a.Queue {
		return fmt.Errorf("%q is at %+v, want %+v", id, got, a)
	}
	return nil
}

// drain lifts the limits, lets all leases and delays end and works everything off:
// what the oracle has must come, and nothing else.
func (j *judge) drain() error {
	for n := range 2 {
		if err := j.limit([4]int{n, 5, 0, 0}); err != nil {
			return err
		}
	}
	j.pass(j.units(20))
	j.decide()
	for n := range 2 {
		queue := judgedQueue(n)
		for j.o.next(queue, nil, time.Now()) != nil {
			before := len(j.given)
			if err := j.receive(engine.Receive{Queue: queue, Max: 50, Lease: j.units(50)}); err != nil {
				return err
			}
			for _, e := range slices.Clone(j.o.entries) {
				if !e.active(time.Now()) || e.msg.Queue != queue {
					continue
				}
				errs, err := j.e.Settle(j.ctx, []forebay.Settlement{{Receipt: e.receipt, Verdict: forebay.Ack}})
				if err != nil || errs[0] != nil {
					return fmt.Errorf("ack of %q: %v, %v", e.msg.ID, errs, err)
				}
				j.o.settle(e, forebay.Settlement{Verdict: forebay.Ack}, time.Now())
			}
			if len(j.given) == before {
				return fmt.Errorf("queue %q gives no more, %d are left", queue, len(j.o.entries))
			}
		}
		if err := j.receive(engine.Receive{Queue: queue, Max: 50, Lease: j.units(50)}); err != nil {
			return err
		}
	}
	if n := len(j.o.entries); n > 0 {
		return fmt.Errorf("%d messages are left", n)
	}
	return j.compare(0)
}
