package postgres

import (
	"cmp"
	"context"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
)

const atOnce = 1000 // messages or settlements of one transaction

// sending is a message that is to be sent.
type sending struct{ m *forebay.Message }

// Send stores messages; see engine.Engine.
func (e *Engine) Send(ctx context.Context, msgs []forebay.Message) ([]forebay.SendResult, error) {
	if len(msgs) > engine.MaxSend {
		return nil, fail(forebay.CodeInvalid, "%d messages in one call; at most %d are allowed", len(msgs), engine.MaxSend)
	}
	if err := e.enter(); err != nil {
		return nil, err
	}
	defer e.leave()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	now, res := e.now(), make([]forebay.SendResult, len(msgs))
	items, of := make([]sending, 0, len(msgs)), make([]int, 0, len(msgs))
	for i := range msgs {
		res[i].ID = msgs[i].ID
		if res[i].Err = engine.CheckMessage(&msgs[i], now); res[i].Err == nil {
			items, of = append(items, sending{&msgs[i]}), append(of, i)
		}
	}
	answers, err := e.sends.submit(ctx, items, func(s sending) int { return len(s.m.Payload) + 512 })
	if err != nil {
		return nil, err
	}
	for n, a := range answers {
		res[of[n]] = a
	}
	return res, nil
}

func (e *Engine) sendAll(ctx context.Context, items []sending) ([]forebay.SendResult, error) {
	msgs := make([]*forebay.Message, len(items))
	for i := range items {
		msgs[i] = items[i].m
	}
	p := plan{seqs: len(msgs)}
	if err := e.planned(ctx, msgs, &p); err != nil {
		return nil, err
	}
	out := make([]forebay.SendResult, len(items))
	return out, e.do(ctx, p, func(ctx context.Context, w *work) error {
		if err := w.know(ctx, msgs); err != nil {
			return err
		}
		for i, m := range msgs {
			out[i] = w.send(m)
		}
		return nil
	})
}

// planned makes the queues of messages known, and adds what is to be locked for them.
func (e *Engine) planned(ctx context.Context, msgs []*forebay.Message, p *plan) error {
	if err := e.queues.ensure(ctx, e, msgs); err != nil {
		return err
	}
	for _, m := range msgs {
		if special(m) || replaces(m) {
			p.alone = append(p.alone, e.queues.id(m.Queue))
		}
	}
	return nil
}

// send stores a message whose records are known, or finds its first.
func (w *work) send(m *forebay.Message) forebay.SendResult {
	queue := w.e.queues.id(m.Queue)
	r := w.records[idKey(m.ID)]
	old := r
	if r != nil && w.now >= r.until && !w.here(r) && !w.isDead(r) {
		r = nil
	}
	if k := w.dedupKey(m); r == nil && k != "" {
		r = w.records[k]
		var replaced *item
		if r, replaced = w.sameKey(m, r); replaced != nil {
			w.replace(replaced, m)
			w.count(queue, forebay.QueueStats{Duplicate: 1})
			return forebay.SendResult{ID: replaced.id, Duplicate: true, Replaced: true}
		}
	}
	if r != nil {
		c := forebay.QueueStats{Duplicate: 1}
		conflict := r.print != printOf(m)
		if conflict {
			c.Conflict = 1
		}
		w.count(queue, c)
		return forebay.SendResult{ID: r.id, Duplicate: true, Conflict: conflict}
	}
	older := int64(0)
	if old != nil && old.finished {
		older = old.seq // it stays in the ledger, for as long as it is to be kept
	}
	w.store(m, queue, older)
	w.count(queue, forebay.QueueStats{Sent: 1})
	return forebay.SendResult{ID: m.ID}
}

// sameKey finds by which record of its dedup key a message is a duplicate, and what gets
// its payload.
func (w *work) sameKey(m *forebay.Message, r *record) (*record, *item) {
	if r == nil {
		return nil, nil
	}
	here, within := w.here(r), w.now < r.until
	dup := within || here
	switch {
	case m.Job == nil:
		dup = dup || w.isDead(r)
	case m.Job.Dedup == forebay.DedupThrottle:
		dup = within
	case m.Job.Dedup == forebay.DedupUntilFinished:
		dup = here
	case replaces(m):
		it := w.items[r.seq]
		if it == nil || it.gone || w.holds(it) || m.Job.Dedup == forebay.DedupDebounce && it.deliveries > 0 {
			return nil, nil
		}
		return r, it
	}
	if !dup {
		return nil, nil
	}
	return r, nil
}

// replace gives a job that waits the payload of another.
func (w *work) replace(it *item, m *forebay.Message) {
	it.payload, it.rewritten, it.changed = notNil(m.Payload), true, true
	it.size = int32(len(m.Payload))
	if m.Job.Dedup == forebay.DedupDebounce {
		it.due = w.byServer(m.NotBefore)
		w.enqueue(it)
	}
	w.note(it, forebay.HistoryReplaced, w.stateOf(it))
}

// store stores a message that is new.
func (w *work) store(m *forebay.Message, queue int32, older int64) {
	it := &item{
		seq: w.takeSeq(), queue: queue, sent: w.now, rank: rankOf(w.now, m.Priority), due: w.byServer(m.NotBefore), size: int32(len(m.Payload)),
		job: m.Job != nil, tenant: tenantOf(m), chain: chainOf(m), key: m.LimitKey, id: m.ID, kind: m.Kind, dedup: w.dedupKey(m),
		meta: metaOf(m), payload: m.Payload, fresh: true, older: older,
	}
	if m.Job != nil {
		it.expires, it.deadline = w.byServer(m.Job.Expires), w.byServer(m.Job.Deadline)
	}
	w.add(it)
	until := w.now + ceilMicros(cmp.Or(m.DedupWindow, forebay.DefaultDedupWindow))
	w.remember(idKey(m.ID), it, until, printOf(m))
	if it.dedup != "" {
		w.remember(it.dedup, it, until, printOf(m))
	}
	w.note(it, forebay.HistoryAdded, w.stateOf(it))
}

// add lets a new item wait.
func (w *work) add(it *item) {
	w.items[it.seq] = it
	w.order = append(w.order, it)
	w.enqueue(it)
}

func (w *work) takeSeq() int64 {
	seq := w.seqs[0]
	w.seqs = w.seqs[1:]
	return seq
}
