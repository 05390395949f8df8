package sqlite

import (
	"context"
	"slices"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
)

// encoded is a message made ready by its caller, so that the loop only copies it.
type encoded struct {
	name     string // its id
	queue    string
	tenant   string
	in       int64 // the number of its queue's home, or its tenant
	level    int
	due      int64
	group    uint64
	limitKey uint64
	body     []byte
	id       digest
	key      digest
	hasKey   bool
	print    uint64
	window   int64
	job      *newJob // nil: it is none
	was      *ref    // of a job that is moved: how it waits
	again    bool    // a dead letter that is sent again
	failures []byte  // of such
}

// newJob is what the loop needs to know of a job that is sent.
type newJob struct {
	kind              string
	mode              forebay.DedupMode
	expires, deadline int64  // 0: none
	payload           []byte // at the end of the body
}

// entry is what dedup remembers of the message.
func (m *encoded) entry(now int64) entry {
	n := entry{id: m.id, print: m.print, window: m.window, sentAt: now}
	if m.hasKey {
		n.hasKey, n.key, n.name = true, m.key, m.name
	}
	return n
}

// encode makes a message ready. Messages with a group share one lane: within a
// group order comes before priority.
// The body is put behind those in bodies, if there is room.
func encode(m *forebay.Message, now time.Time, bodies []byte) encoded {
	n := encoded{
		name: m.ID, queue: m.Queue, level: m.Priority.Level(), id: idDigest(m.ID),
		print: m.Fingerprint, window: int64(m.DedupWindow),
	}
	if n.print == 0 {
		n.print = xxhash.Sum64(m.Payload)
	}
	if m.NotBefore.After(now) {
		n.due = m.NotBefore.UnixNano()
	}
	if m.Group != "" {
		n.group = max(xxhash.Sum64String(m.Group)&^oneAtATime, 1)
		n.level = forebay.Priority(0).Level()
	}
	if m.LimitKey != "" {
		n.limitKey = max(xxhash.Sum64String(m.LimitKey), 1)
	}
	if m.DedupKey != "" {
		n.hasKey, n.key = true, keyDigest(m.DedupKey)
	}
	if m.Job != nil {
		n.asJob(m)
		n.tenant = m.Job.Tenant
	}
	n.body = appendBody(bodies, m, n.group, n.limitKey)[len(bodies):]
	if n.job != nil {
		n.job.payload = n.body[len(n.body)-len(m.Payload):]
	}
	return n
}

// Send stores messages; see engine.Engine.
func (e *Engine) Send(ctx context.Context, msgs []forebay.Message) ([]forebay.SendResult, error) {
	if len(msgs) > engine.MaxSend {
		return nil, tooMany("messages", engine.MaxSend)
	}
	o := newSend(len(msgs))
	now := e.cfg.Now()
	room := 0
	for i := range msgs {
		room += bodyRoom(&msgs[i])
	}
	bodies := make([]byte, 0, room)
	for i := range msgs {
		m := &msgs[i]
		o.results[i].ID = m.ID
		if err := engine.CheckMessage(m, now); err != nil {
			o.results[i].Err = err
			continue
		}
		n := encode(m, now, bodies)
		if end := len(bodies) + len(n.body); end <= cap(bodies) {
			bodies = bodies[:end]
		}
		o.msgs = append(o.msgs, n)
		o.at = append(o.at, i)
		o.bytes += int64(len(n.body))
	}
	if len(o.msgs) == 0 {
		return o.results, ctx.Err()
	}
	if err := e.submit(ctx, o); err != nil {
		return nil, err
	}
	if o.refused != nil {
		return nil, o.refused
	}
	return o.results, nil
}

// send is the op of Send.
type send struct {
	change
	msgs    []encoded
	at      []int // their places in results
	results []forebay.SendResult
	bytes   int64
	counts  []sent
	refused error // for want of space; no reason to fail the whole commit
}

// sent is what is counted for a message.
type sent struct {
	q         *queue
	duplicate bool
	conflict  bool
}

// one is the send of one message, which comes most: all of it in one piece of memory.
type one struct {
	send
	result  [1]forebay.SendResult
	message [1]encoded
	place   [1]int
	counted [1]sent
}

func newSend(n int) *send {
	if n == 1 {
		o := new(one)
		o.results, o.msgs, o.at, o.counts = o.result[:], o.message[:0], o.place[:0], o.counted[:0]
		return &o.send
	}
	return &send{results: make([]forebay.SendResult, n), msgs: make([]encoded, 0, n), at: make([]int, 0, n)}
}

func (o *send) size() int64     { return o.bytes + 256 }
func (o *send) messages() int64 { return max(int64(len(o.msgs)), 1) }

func (o *send) apply(t *tx) error {
	o.counts = slices.Grow(o.counts[:0], len(o.msgs))
	if o.refused = t.l.space(t.now); o.refused != nil {
		return nil
	}
	if len(o.msgs) > 1 {
		t.l.dedup.fetchSent(o.msgs)
	}
	for i := range o.msgs {
		m := &o.msgs[i]
		n, err := t.send(m)
		if err != nil {
			return err
		}
		q, err := t.queue(m.queue)
		if err != nil {
			return err
		}
		res := &o.results[o.at[i]]
		*res = forebay.SendResult{ID: m.name}
		if n != nil {
			res.ID, res.Duplicate, res.Replaced = n.name, true, n.replaced
			res.Conflict = n.print != m.print && !n.replaced
		}
		o.counts = append(o.counts, sent{q, res.Duplicate, res.Conflict})
	}
	return nil
}

func (o *send) publish(*tx) { countSent(o.counts) }

func countSent(counts []sent) {
	for _, c := range counts {
		switch {
		case !c.duplicate:
			c.q.sent++
		case c.conflict:
			c.q.conflict++
			c.q.duplicate++
		default:
			c.q.duplicate++
		}
	}
}

// send adds a message to the transaction, unless it is a duplicate of the entry
// that is returned.
func (t *tx) send(m *encoded) (*entry, error) {
	n, err := t.duplicate(m)
	if n != nil || err != nil {
		return n, err
	}
	q, err := t.queue(m.queue)
	if err != nil {
		return nil, err
	}
	if err := t.place(q, m); err != nil {
		return nil, err
	}
	t.add(q, m)
	if m.job != nil {
		t.added(q, m)
	}
	return nil, nil
}
