package sqlite

import (
	"encoding/json"
	"time"

	"github.com/forebayhq/forebay"
)

// ledger is what a transaction has to say of jobs.
type ledger struct {
	events      events        // that its calls brought
	written     []*historyRow // these and the pending ones, as they were stored
	eventSeq    int64
	finishing   map[finishedKey]*finishing // the row that is being filled, by what its jobs have in common
	finished    []*finishing               // all of them
	finishedSeq int64
	tallies     map[*queue]*tally
	ends        []end
	historyLess historyDrop // what retention takes
	retain      []retained  // dead jobs that leave by themselves
}

// retained is a dead job that leaves by itself.
type retained struct {
	q   *queue
	age int64 // 0: none
}

func (t *tx) writeLedger() error {
	if err := t.writeFinished(); err != nil {
		return err
	}
	if err := t.writeTallies(); err != nil {
		return err
	}
	if err := t.writeEnds(); err != nil {
		return err
	}
	return t.writeHistory()
}

func (t *tx) publishLedger() {
	l := t.l
	l.history.publish(t)
	t.publishEnds()
	l.finishedKept = keptAfter(t.finishedSeq, l.finishedKept)
	l.finishedSeq = t.finishedSeq
	for q, c := range t.tallies {
		q.tally = *c
	}
	for _, f := range t.finished {
		l.retainSoonFor(f, t.now)
	}
	for _, r := range t.retain {
		l.retainSoon(r.q, t.now)
		if r.age > 0 {
			l.timers.sooner(&l.retention.timer, t.now+r.age)
		}
	}
	if l.history.total > l.e.cfg.HistoryMax || l.history.stored > historyMaxBytes {
		l.timers.sooner(&l.retention.timer, t.now+int64(retainRest))
	}
}

// added notes that a job was sent.
func (t *tx) added(q *queue, m *encoded) {
	n := note{typ: evAdded, state: stWaiting, id: []byte(m.name), kind: []byte(m.job.kind), queue: q.name}
	if m.due > t.now {
		n.state, n.due = stDelayed, m.due
	}
	t.record(&n)
}

// begin notes that a job is handed out, unless it is too late for it.
func (l *loop) begin(t *tx, q *queue, r *ref, body []byte) bool {
	g, err := glanceAt(body)
	if g.late(r, t.now) {
		return false
	}
	r.job, r.started = true, t.now
	if err != nil {
		return true // whoever decodes it says so
	}
	l.history.recordLater(&note{typ: evStarted, state: stActive, attempt: r.attempts + 1, id: g.id, kind: g.kind, queue: q.name})
	return true
}

// endAgain is the wait after an end that the store refused.
const endAgain = time.Second

// mustEnd tells whether a job whose lease runs out is not to wait again, since it
// was asked to stop, or its deadline has passed. Then the same cycle ends it; until
// that is committed it stays leased.
func (l *loop) mustEnd(ls *lease, it *item, now int64) bool {
	o, g := l.lapse(ls, it, now)
	switch {
	case o != nil:
		l.own = append(l.own, o)
	case g != nil:
		l.history.recordLater(&note{typ: evLeaseLost, state: stWaiting, attempt: it.attempts + 1, id: g.id, kind: g.kind, queue: ls.q.name})
	}
	return o != nil
}

// lapse gives the op that ends a job whose lease runs out; nil: it is to wait again,
// or cannot be read, and then nothing is known of it.
func (l *loop) lapse(ls *lease, it *item, now int64) (*lapse, *glance) {
	_, g, err := l.bodyOf(&it.ref)
	if err != nil {
		return nil, nil
	}
	s := forebay.Settlement{Verdict: forebay.Release}
	if !it.override(&s, &g, now) {
		return nil, &g
	}
	return &lapse{ls: ls, it: it, s: s}, &g
}

// lapse ends a job whose lease ran out.
type lapse struct {
	change
	ls   *lease
	it   *item
	s    forebay.Settlement
	done settled
}

func (*lapse) durable() bool { return false }

func (o *lapse) apply(t *tx) error {
	o.done = settled{}
	if o.it.state != itemLeased {
		return nil
	}
	o.it.state = itemSettling
	t.touch(o.ls)
	o.done = settled{ls: o.ls, it: o.it, v: o.s.Verdict}
	s := o.s
	return t.settleJob(o.ls.q, &s, &o.done)
}

func (o *lapse) publish(t *tx) {
	if o.done.it != nil {
		o.done.publish(t)
	}
}

func (o *lapse) abort() {
	if o.done.it != nil {
		o.it.state = itemLeased
	}
}

// takeOwn adds the engine's own ops to the calls of a cycle. Nobody waits for them.
func (l *loop) takeOwn(calls []*call) []*call {
	for i, o := range l.own {
		calls = append(calls, &call{op: o, done: make(chan error, 1), msgs: 1})
		l.own[i] = nil
	}
	l.own = l.own[:0]
	return calls
}

// override changes a verdict by which a job would wait again, where it must not:
// it was asked to stop, or its deadline has passed.
func (it *item) override(s *forebay.Settlement, g *glance, now int64) bool {
	switch {
	case s.Verdict != forebay.Retry && s.Verdict != forebay.Release:
		return false
	case it.told != nil && it.told.stop:
		s.Verdict, s.Cause = forebay.Cancelled, cancelCause(it.told.reason)
	case g.deadline != 0 && g.deadline <= now:
		s.Verdict, s.Cause = forebay.Dead, deadlineCause()
	default:
		return false
	}
	return true
}

func cancelCause(reason string) forebay.Cause {
	if reason == "" {
		reason = "cancelled on request"
	}
	return forebay.Cause{Code: string(forebay.CodeCancelled), Message: reason}
}

func deadlineCause() forebay.Cause {
	return forebay.Cause{Code: "deadline", Message: "its deadline has passed"}
}

func expiredCause() forebay.Cause {
	return forebay.Cause{Code: "expired", Message: "it was not begun in time"}
}

// settleJob writes what becomes of a leased job: in the store, the ledger and the history.
func (t *tx) settleJob(q *queue, s *forebay.Settlement, d *settled) error {
	it := d.it
	body, g, err := t.l.bodyOf(&it.ref)
	if err != nil {
		return err
	}
	attempts := it.attempts
	if s.Verdict == forebay.Retry || s.Verdict == forebay.Dead {
		attempts += charge(s)
	}
	it.override(s, &g, t.now)
	d.v, d.keeps = s.Verdict, g.expires != 0
	n := note{attempt: it.attempts + 1, id: g.id, kind: g.kind, queue: q.name}
	switch s.Verdict {
	case forebay.Retry, forebay.Release:
		return t.jobBack(q, s, d, &n)
	case forebay.Dead:
		if err := t.jobDead(q, it.asDead(s), s.Cause, attempts, &n); err != nil {
			return err
		}
	default:
		if err := t.jobFinished(q, &it.ref, &ending{state: finalState(s.Verdict), cause: s.Cause, result: s.Result, note: n}, body, &g); err != nil {
			return err
		}
	}
	if err := t.unstop(&it.ref); err != nil {
		return err
	}
	if err := t.dropDeadline(&it.ref, &g); err != nil {
		return err
	}
	return t.finish(it)
}

func finalState(v forebay.Verdict) byte {
	switch v {
	case forebay.Cancelled:
		return stCancelled
	case forebay.Expired:
		return stExpired
	}
	return stCompleted
}

// jobBack lets a job wait again.
func (t *tx) jobBack(q *queue, s *forebay.Settlement, d *settled, n *note) (err error) {
	if n.cause, err = t.back(q, s, d); err != nil {
		return err
	}
	n.typ, n.state = evRetry, stWaiting
	if s.Verdict == forebay.Release {
		n.typ = evReleased
	}
	if d.back.due > t.now {
		n.state, n.due = stDelayed, d.back.due
	}
	t.record(n)
	return nil
}

// jobDead buries a job.
func (t *tx) jobDead(q *queue, r *ref, cause forebay.Cause, attempts int, n *note) error {
	why, err := t.bury(q, r, cause, attempts)
	if err != nil {
		return err
	}
	n.typ, n.state, n.cause = evDead, stDead, why
	t.record(n)
	return nil
}

// ending is how a job leaves the store for the ledger.
type ending struct {
	state  byte
	cause  forebay.Cause
	result []byte
	note   note
}

const noteResultBytes = 16 << 10 // larger results are not in the history

// jobFinished puts a job into the ledger and the history.
func (t *tx) jobFinished(q *queue, r *ref, e *ending, body []byte, g *glance) error {
	o := outcome{state: e.state, attempts: r.attempts, deliveries: r.deliveries, sentAt: r.sentAt, started: r.started, result: e.result}
	failures, err := t.failuresOf(r)
	if err != nil {
		return err
	}
	if len(failures) > len("[]") {
		o.failures = []byte(failures)
	}
	if r.told != nil {
		o.progress = r.told.progress
	}
	n := &e.note
	n.state = e.state
	switch e.state {
	case stCompleted:
		n.typ = evCompleted
		if len(e.result) <= noteResultBytes {
			n.result = e.result
		}
	case stCancelled:
		n.typ = evCancelled
	case stExpired:
		n.typ = evExpired
	}
	if e.state != stCompleted {
		if e.cause.At.IsZero() {
			e.cause.At = unix(t.now)
		}
		if o.cause, err = json.Marshal(e.cause); err != nil {
			return err
		}
		n.cause = o.cause
	}
	t.keepFinished(q, g, &o, body)
	t.record(n)
	return nil
}
