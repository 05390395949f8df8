package sqlite

import (
	"slices"

	"github.com/cespare/xxhash/v2"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
)

// asJob makes the rest of a job ready. Jobs of one key of which the last is kept run
// one after the other, so they are a group, even if it has no name.
func (m *encoded) asJob(msg *forebay.Message) {
	o := msg.Job
	m.job = &newJob{kind: msg.Kind, mode: o.Dedup, expires: instant(o.Expires), deadline: instant(o.Deadline)}
	if !m.hasKey {
		return
	}
	m.key = queueKeyDigest(msg.Queue, msg.DedupKey)
	if o.Dedup == forebay.DedupKeepLast && m.group == 0 {
		m.group = xxhash.Sum64(m.key[:]) | oneAtATime
		m.level = forebay.Priority(0).Level()
	}
}

// builtAt is where a transaction has put a message.
type builtAt struct {
	b *builder
	i int
}

// sameKey finds the earlier job of the key of m that makes a duplicate of m, as its
// mode says, and gives that one the payload of m where the mode says so.
func (t *tx) sameKey(m *encoded) (*entry, error) {
	replaces := m.job.mode == forebay.DedupDebounce || m.job.mode == forebay.DedupKeepLast
	if at, ok := t.keyed[m.key]; ok {
		n := t.entries[t.ids[m.key]]
		if !replaces {
			return &n, nil
		}
		n.replaced = true
		return &n, t.replaceBuilt(at, &n, m)
	}
	hit, ok, err := t.l.lookup(m.key, true)
	if !ok || err != nil {
		return nil, err
	}
	stored, err := t.isStored(hit.key, hit.idx)
	if err != nil {
		return nil, err
	}
	if replaces {
		if !stored {
			return nil, nil
		}
		return t.replaceStored(hit, m)
	}
	within := t.now-hit.sentAt < t.l.window(hit.window)
	if m.job.mode != forebay.DedupThrottle && stored || m.job.mode != forebay.DedupUntilFinished && within {
		n := hit.entry
		return &n, nil
	}
	return nil, nil
}

// replaceStored gives a job that waits the payload of m; nil: it does not wait, or,
// for debounce, has begun, and m is a job of its own.
func (t *tx) replaceStored(hit found, m *encoded) (*entry, error) {
	job := liveJob{}
	err := t.l.waits(&job, hit.key, hit.idx)
	if err != nil || job.q == nil {
		return nil, err
	}
	debounce := m.job.mode == forebay.DedupDebounce
	if job.it != nil || job.moving || debounce && job.ref.deliveries > 0 {
		return nil, nil
	}
	job.body, job.g, err = t.l.bodyOf(&job.ref)
	if err == errUnreadable {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	job.ref.group, job.ref.limitKey = routing(job.body)
	n := hit.entry
	n.replaced = true
	due := job.ref.due
	if debounce {
		due = m.due
	}
	t.noteReplaced(n.name, job.g.kind, job.q.name, due)
	if err := t.replacePayload(&job, &engine.JobChange{Payload: m.job.payload}); err != nil {
		return nil, err
	}
	if debounce && (m.due != 0 || job.ref.due != 0) {
		return &n, t.delay(&job, m.due)
	}
	return &n, nil
}

func (t *tx) noteReplaced(id string, kind []byte, queue string, due int64) {
	e := note{typ: evReplaced, state: stWaiting, id: []byte(id), kind: kind, queue: queue}
	if due > t.now {
		e.state, e.due = stDelayed, due
	}
	t.record(&e)
}

// replaceBuilt gives a job that this transaction has sent the payload of m.
func (t *tx) replaceBuilt(at builtAt, n *entry, m *encoded) error {
	b := at.b
	was, err := decodeBody(b.body(at.i), m.queue)
	if err != nil {
		return err
	}
	was.Payload = m.job.payload
	group, limitKey := routing(b.body(at.i))
	b.replace(at.i, appendBody(make([]byte, 0, bodyRoom(&was)), &was, group, limitKey))
	if m.job.mode == forebay.DedupDebounce {
		b.delay(at.i, &ref{key: b.key, idx: at.i, ord: m.due, due: m.due, sentAt: t.now, group: group, limitKey: limitKey, stored: true}, t.now)
	}
	t.noteReplaced(n.name, []byte(was.Kind), m.queue, b.dueOf(at.i))
	return nil
}

func (b *builder) body(i int) []byte { return b.data[b.recs[i][0]:b.recs[i][1]] }

// replace puts a new body in the place of message i.
func (b *builder) replace(i int, body []byte) {
	data, recs := make([]byte, 1, len(b.data)+len(body)), make([][2]int32, len(b.recs), cap(b.recs))
	data[0] = blockVersion
	for k := range b.recs {
		one := b.body(k)
		if k == i {
			one = body
		}
		data = appendRecord(data, k, one)
		recs[k] = [2]int32{int32(len(data) - len(one)), int32(len(data))}
	}
	b.data, b.recs = data, recs
}

// delay gives message i another due time.
func (b *builder) delay(i int, r *ref, now int64) {
	b.delayed = slices.DeleteFunc(b.delayed, func(r *ref) bool { return r.idx == i })
	if r.due > now {
		b.delayed = append(b.delayed, r)
	}
}

func (b *builder) dueOf(i int) int64 {
	for _, r := range b.delayed {
		if r.idx == i {
			return r.due
		}
	}
	return 0
}
