package enginetest

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
)

// oracle is the contract in its simplest form: a list of messages, gone through
// from end to end at each question. It decides nothing about time or chance; it
// is told the time, and says what may be. Model turns it into an engine, and the
// model test asks it whether an engine's answers are fair.
type oracle struct {
	seq     int64 // the last place in the order of sending
	deadSeq int64
	entries []*entry // messages that are there, in the order of sending
	records map[string]*record
	letters []forebay.DeadLetter // in the order of dying
	limits  map[string]engine.QueueLimits
	delays  map[string]time.Duration
	buckets map[string]*bucket // by queue, and by queue and limit key
	counts  map[string]*forebay.QueueStats
	owners  map[forebay.Receipt]*entry // of all receipts ever given
	docs    map[docName]engine.Document
	rev     int64 // the last one of a document
	ledger
}

// entry is a message that is waiting, delayed or active.
type entry struct {
	msg        forebay.Message
	seq        int64
	sentAt     time.Time
	due        time.Time // not handed out before
	heldUntil  time.Time // likewise for the first time, by the delay of the queue
	receipt    forebay.Receipt
	until      time.Time // of the lease; with an empty receipt there is none
	kept       bool      // the lease outlives the engine
	moved      bool      // its earlier receipts may lead nowhere
	attempts   int       // failed
	deliveries int
	failures   []forebay.Cause
	replayed   bool

	started  time.Time // of a job: its last hand-out
	progress forebay.Progress
	stop     bool // it was asked to, because of reason
	reason   string
}

// record remembers an id or a dedup key. It holds until its window has passed and
// the message is gone.
type record struct {
	id, queue string
	says      string // what a duplicate must say too, else it is a conflict
	until     time.Time
	later     time.Time // replayed: it may hold until then, or not
	loose     bool      // its message was discarded: it may hold on, or not
}

// bucket is the token bucket of a rate.
type bucket struct {
	tokens float64
	at     time.Time
}

func newOracle() *oracle {
	return &oracle{
		records: make(map[string]*record),
		limits:  make(map[string]engine.QueueLimits),
		delays:  make(map[string]time.Duration),
		buckets: make(map[string]*bucket),
		counts:  make(map[string]*forebay.QueueStats),
		owners:  make(map[forebay.Receipt]*entry),
		docs:    make(map[docName]engine.Document),
		ledger:  newLedger(),
	}
}

func (o *oracle) count(queue string) *forebay.QueueStats {
	if o.counts[queue] == nil {
		o.counts[queue] = &forebay.QueueStats{Queue: queue}
	}
	return o.counts[queue]
}

// there tells whether a message is waiting, delayed, active or dead.
func (o *oracle) there(id string) bool {
	return o.entry(id) != nil || o.letter(id) != nil
}

func (o *oracle) entry(id string) *entry {
	for _, e := range o.entries {
		if e.msg.ID == id {
			return e
		}
	}
	return nil
}

func (o *oracle) letter(id string) *forebay.DeadLetter {
	for i := range o.letters {
		if o.letters[i].Message.ID == id {
			return &o.letters[i]
		}
	}
	return nil
}

// first finds what a message would be a duplicate of.
func (o *oracle) first(m forebay.Message, now time.Time) *record {
	for _, name := range recordNames(m) {
		if m.Job != nil && name == keyName(m) {
			continue // sameKey judges it
		}
		if r := o.records[name]; r != nil && (now.Before(r.until) || o.there(r.id)) {
			return r
		}
	}
	return nil
}

func recordNames(m forebay.Message) []string {
	names := []string{"id " + m.ID}
	if m.DedupKey != "" {
		names = append(names, keyName(m))
	}
	return names
}

// says is the content of a message, as far as Conflict compares it.
func says(m forebay.Message) string {
	if m.Fingerprint != 0 {
		return fmt.Sprint("fingerprint ", m.Fingerprint)
	}
	return "payload " + string(m.Payload)
}

// send stores a valid message, or finds its first.
func (o *oracle) send(m forebay.Message, now time.Time) forebay.SendResult {
	stats := o.count(m.Queue)
	r := o.first(m, now)
	if r == nil && m.Job != nil {
		var e *entry
		if r, e = o.sameKey(m, now); e != nil {
			o.replace(e, m, now)
			stats.Duplicate++
			return forebay.SendResult{ID: r.id, Duplicate: true, Replaced: true}
		}
	}
	if r != nil {
		conflict := r.says != says(m)
		stats.Duplicate++
		if conflict {
			stats.Conflict++
		}
		return forebay.SendResult{ID: r.id, Duplicate: true, Conflict: conflict}
	}
	o.store(m, now)
	stats.Sent++
	return forebay.SendResult{ID: m.ID}
}

func (o *oracle) store(m forebay.Message, now time.Time) {
	m.Payload, m.Headers = bytes.Clone(m.Payload), maps.Clone(m.Headers)
	if m.Job != nil {
		options := *m.Job
		options.Tags = slices.Clone(options.Tags)
		m.Job = &options
	}
	r := &record{
		id: m.ID, queue: m.Queue, says: says(m),
		until: now.Add(cmp.Or(m.DedupWindow, forebay.DefaultDedupWindow)),
	}
	for _, name := range recordNames(m) {
		o.records[name] = r
	}
	m.Fingerprint = 0 // not delivered
	o.seq++
	e := &entry{msg: m, seq: o.seq, sentAt: now, due: m.NotBefore, heldUntil: now.Add(o.delays[m.Queue])}
	o.entries = append(o.entries, e)
	o.note(e, forebay.HistoryAdded, e.state(now), now, nil)
}

func (e *entry) active(now time.Time) bool  { return e.receipt != "" && now.Before(e.until) }
func (e *entry) delayed(now time.Time) bool { return !e.active(now) && now.Before(e.freeAt()) }

// freeAt is when it may be handed out, by its own time and its queue's delay.
func (e *entry) freeAt() time.Time {
	if e.deliveries == 0 && e.heldUntil.After(e.due) {
		return e.heldUntil
	}
	return e.due
}

// free tells whether a message may be handed out in a batch that has these
// already, but for limits.
func (o *oracle) free(e *entry, batch []*entry, now time.Time) bool {
	if e.active(now) || e.delayed(now) {
		return false
	}
	if e.chain() == "" {
		return true
	}
	for _, other := range o.entries {
		if other.msg.Queue != e.msg.Queue || other.chain() != e.chain() ||
			e.msg.Group != "" && slices.Contains(batch, other) { // without a name they come one at a time
			continue
		}
		if other.seq < e.seq || e.msg.Group == "" && other.active(now) {
			return false
		}
	}
	return true
}

// within tells whether the limits let another one start.
func (o *oracle) within(e *entry, now time.Time) bool {
	l := o.limits[e.msg.Queue]
	if l.Paused || l == (engine.QueueLimits{}) {
		return !l.Paused
	}
	all, sameKey := 0, 0
	for _, other := range o.entries {
		if other.msg.Queue == e.msg.Queue && other.active(now) {
			all++
			if other.msg.LimitKey == e.msg.LimitKey {
				sameKey++
			}
		}
	}
	if l.Active > 0 && all >= l.Active || o.tokens(e.msg.Queue, "", l.Rate, now) < 1 {
		return false
	}
	key := e.msg.LimitKey
	return key == "" || (l.KeyActive == 0 || sameKey < l.KeyActive) && o.tokens(e.msg.Queue, key, l.KeyRate, now) >= 1
}

func bucketName(queue, key string) string { return queue + "\x00" + key }

// tokens says what is in a bucket now; without a rate there is always enough.
func (o *oracle) tokens(queue, key string, r engine.Rate, now time.Time) float64 {
	if r.Count == 0 {
		return 1
	}
	burst := float64(cmp.Or(r.Burst, 1))
	b := o.buckets[bucketName(queue, key)]
	if b == nil {
		return burst
	}
	per := cmp.Or(r.Per, time.Second)
	// A hair of rounding must not cost a whole token's time.
	return min(burst, b.tokens+1e-9+float64(r.Count)*float64(now.Sub(b.at))/float64(per))
}

func (o *oracle) spend(queue, key string, r engine.Rate, now time.Time) {
	if r.Count > 0 {
		o.buckets[bucketName(queue, key)] = &bucket{tokens: o.tokens(queue, key, r, now) - 1, at: now}
	}
}

// next is the best message to add to a batch: of the tenant whose turn it is, by
// priority, then age. Nil: none.
func (o *oracle) next(queue string, batch []*entry, now time.Time) *entry {
	var best *entry
	for _, e := range o.entries {
		if e.msg.Queue != queue || best != nil && !o.before(e, best) {
			continue
		}
		if o.free(e, batch, now) && o.within(e, now) {
			best = e
		}
	}
	return best
}

// before orders two of one queue. It is asked for each pair of a large batch.
func (o *oracle) before(a, b *entry) bool {
	if tenantOf(&a.msg) != tenantOf(&b.msg) {
		if x, y := o.turns[turnName(&a.msg)], o.turns[turnName(&b.msg)]; x != y {
			return x < y
		}
	}
	if x, y := a.msg.Priority.Level(), b.msg.Priority.Level(); x == y {
		return a.sentAt.Before(b.sentAt)
	}
	return a.rank().Before(b.rank())
}

func (e *entry) rank() time.Time {
	return e.sentAt.Add(engine.Ageing * time.Duration(e.msg.Priority.Level()))
}

// lease hands a message out.
func (o *oracle) lease(e *entry, receipt forebay.Receipt, until, now time.Time) forebay.Delivery {
	l := o.limits[e.msg.Queue]
	o.spend(e.msg.Queue, "", l.Rate, now)
	if e.msg.LimitKey != "" {
		o.spend(e.msg.Queue, e.msg.LimitKey, l.KeyRate, now)
	}
	e.receipt, e.until, e.kept = receipt, until, false
	o.owners[receipt] = e
	e.deliveries++
	o.turn++
	o.turns[turnName(&e.msg)] = o.turn
	e.started = now
	o.note(e, forebay.HistoryStarted, forebay.StateActive, now, nil)
	return forebay.Delivery{
		Message: e.msg, Receipt: receipt, Attempt: e.attempts + 1, Deliveries: e.deliveries,
		SentAt: e.sentAt, LeaseUntil: until, Failures: slices.Clone(e.failures),
	}
}

// holder finds the message whose lease a receipt is, while it is live.
func (o *oracle) holder(r forebay.Receipt, now time.Time) *entry {
	for _, e := range o.entries {
		if r != "" && e.receipt == r && e.active(now) {
			return e
		}
	}
	return nil
}

// settle ends the lease of a message by a valid settlement.
func (o *oracle) settle(e *entry, s forebay.Settlement, now time.Time) {
	if e.job() {
		o.settleJob(e, s, now)
	} else {
		o.settleMessage(e, s, now)
	}
	for _, m := range s.Next {
		o.send(m, now)
	}
}

func (o *oracle) settleMessage(e *entry, s forebay.Settlement, now time.Time) {
	e.receipt, e.until, e.due = "", time.Time{}, now.Add(s.After)
	switch s.Verdict {
	case forebay.Ack:
		o.remove(e)
		o.count(e.msg.Queue).Completed++
	case forebay.Cancelled:
		o.remove(e)
		o.count(e.msg.Queue).Cancelled++
	case forebay.Expired:
		o.remove(e)
		o.count(e.msg.Queue).Expired++
	case forebay.Release:
		e.deliveries--
	case forebay.Retry:
		e.fail(s.Cause)
	case forebay.Dead:
		e.uncharge(s)
		o.bury(e, s.Cause, now)
	}
}

// delay sets the delay of a queue, and until when it holds what is there.
func (o *oracle) delay(queue string, d time.Duration) {
	o.delays[queue] = d
	for _, e := range o.entries {
		if e.msg.Queue == queue {
			e.heldUntil = e.sentAt.Add(d)
		}
	}
}

func (o *oracle) remove(e *entry) {
	o.entries = slices.DeleteFunc(o.entries, func(other *entry) bool { return other == e })
}

// window tells until when a record holds by its window: surely, and perhaps.
func (r *record) window() (surely, perhaps time.Time) {
	if !r.loose {
		surely = r.until
	}
	perhaps = r.until
	if r.later.After(perhaps) {
		perhaps = r.later
	}
	return surely, perhaps
}

func (o *oracle) purge(queue string, now time.Time) int64 {
	gone := make(map[string]bool)
	o.entries = slices.DeleteFunc(o.entries, func(e *entry) bool {
		drop := e.msg.Queue == queue && !e.active(now)
		if drop {
			gone[e.msg.ID] = true
		}
		return drop
	})
	maps.DeleteFunc(o.records, func(_ string, r *record) bool { return gone[r.id] })
	return int64(len(gone))
}

// restart frees all leases that are not kept, and counts from zero what counts since
// the opening.
func (o *oracle) restart(now time.Time) {
	for _, e := range slices.Clone(o.entries) {
		if e.kept && e.active(now) {
			continue
		}
		if e.job() && e.receipt != "" {
			o.lapse(e, now)
		}
		e.receipt, e.until = "", time.Time{}
	}
	o.buckets = make(map[string]*bucket)
	o.counts = make(map[string]*forebay.QueueStats)
}

func (o *oracle) stats(queue string, now time.Time) forebay.QueueStats {
	s := forebay.QueueStats{Queue: queue}
	if c := o.counts[queue]; c != nil {
		s = *c
	}
	for _, e := range o.entries {
		if e.msg.Queue != queue {
			continue
		}
		s.Bytes += int64(len(e.msg.Payload))
		switch {
		case e.active(now):
			s.Active++
		case e.delayed(now):
			s.Delayed++
		default:
			s.Waiting++
			if s.Oldest.IsZero() || e.sentAt.Before(s.Oldest) {
				s.Oldest = e.sentAt
			}
		}
	}
	for _, l := range o.letters {
		if l.Message.Queue == queue {
			s.Dead++
		}
	}
	return s
}

func (o *oracle) locate(id string, now time.Time) engine.Location {
	if e := o.entry(id); e != nil {
		l := engine.Location{
			Where: engine.WhereWaiting, Queue: e.msg.Queue, SentAt: e.sentAt,
			Attempts: e.attempts, Deliveries: e.deliveries,
		}
		switch {
		case e.active(now):
			l.Where = engine.WhereActive
		case e.delayed(now):
			l.Where, l.NotBefore = engine.WhereDelayed, e.freeAt()
		}
		if n := len(e.failures); n > 0 {
			l.Last = &e.failures[n-1]
		}
		return l
	}
	if d := o.letter(id); d != nil {
		return engine.Location{
			Where: engine.WhereDead, Queue: d.Message.Queue, SentAt: d.SentAt, Attempts: d.Attempts,
			Deliveries: d.Deliveries, Last: &d.Cause, DeadSeq: d.Seq,
		}
	}
	if r := o.records["id "+id]; r != nil && now.Before(r.until) {
		return engine.Location{Where: engine.WhereDone, Queue: r.queue}
	}
	return engine.Location{Where: engine.WhereUnknown}
}
