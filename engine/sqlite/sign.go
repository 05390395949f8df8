package sqlite

import (
	"math"
	"slices"

	"github.com/forebayhq/forebay"
)

// Signatures let a search pass over what it need not read. Each stands for about a
// thousand jobs that were sent, died or finished one after the other, and is a Bloom
// filter of their terms (terms.go). They are made afterwards, in small steps between
// the cycles of the loop, and only of what is still there then: so neither sending
// nor finishing waits for them, and a job that is done quickly costs none. What has
// no signature yet is read.
//
// Jobs that have not finished are covered by block: fresh has a row for each block
// with jobs that has none, or was written anew since. Dead and finished ones are
// covered by the numbers of their rows, up to the last that a signature has.

// What a signature is of. It is the upper part of its number; the lower is the last
// seq that it covers.
const (
	signLive = iota + 1
	signDead
	signFinished
	signKinds

	signShift = 56
	signMask  = 1<<signShift - 1
)

const (
	signJobs  = 1024    // of one signature
	signBytes = 1 << 20 // of what is to be read where one says that something may be there

	signStepJobs  = 256       // that one step reads
	signStepBytes = 256 << 10 // likewise
	signStepRows  = 128       // likewise

	signRest    = int64(8e6)  // between steps
	signDelay   = int64(2e9)  // what is younger may yet be done quickly
	signTrouble = int64(60e9) // until the next try of a step that failed
)

// signer makes signatures.
type signer struct {
	timer   timer
	size    int               // jobs of one signature
	waiting [signKinds]int    // jobs without a signature, about
	signed  [signKinds]int64  // the last seq that has one
	drafts  [signKinds]*draft // what the next is made of
	left    int               // blocks that left since the last look for signatures of nothing
	cleanAt int64             // number of the last signature that was looked at
}

// draft is a signature in the making.
type draft struct {
	terms
	size         int   // jobs that are enough
	first, last  int64 // seqs; last: up to which all was read
	jobs, bytes  int
	since, until int64 // when they were sent, at the earliest and the latest
	spans        []span
	waits        bool // what comes next is too young
}

func newDraft(size int, after int64) *draft {
	return &draft{size: size, terms: terms{set: map[uint64]struct{}{}}, last: after, since: math.MaxInt64}
}

func (d *draft) full() bool { return d.jobs >= d.size || d.bytes >= signBytes }

func (d *draft) sent(at int64) {
	d.since, d.until = min(d.since, at), max(d.until, at)
}

// loadSigner takes up where the last process was.
func (l *loop) loadSigner(*tx) error {
	s := &l.signer
	s.size = signJobs
	s.timer.fire = func(now int64) { s.fire(l, now) }
	for kind := signLive; kind < signKinds; kind++ {
		last, err := l.db.int("SELECT max(at) FROM sig WHERE at < ?", int64(kind+1)<<signShift)
		if err != nil {
			return err
		}
		if last>>signShift == int64(kind) {
			s.signed[kind] = last & signMask
		}
		s.waiting[kind] = s.size // to be looked at
	}
	l.timers.set(&s.timer, l.now()+signDelay)
	return nil
}

// note counts what a transaction brings. finished and dead are jobs.
func (s *signer) note(l *loop, kind, jobs int) {
	if s.waiting[kind] += jobs; s.waiting[kind] >= s.size && s.timer.i == 0 {
		l.timers.set(&s.timer, l.now()+signDelay)
	}
}

// noted takes note of a committed transaction.
func (s *signer) noted(t *tx) {
	for _, b := range t.made {
		if b.jobs > 0 {
			s.note(t.l, signLive, b.jobs)
		}
	}
	for _, f := range t.finished {
		s.note(t.l, signFinished, len(f.states))
	}
	if t.buried > 0 {
		s.note(t.l, signDead, t.buried)
	}
}

// writeFresh stores that a block has no signature of what it says now.
func (t *tx) writeFresh(key int64) error {
	return t.exec("INSERT INTO fresh (seq, lane) VALUES (?, ?) ON CONFLICT DO NOTHING", seqOf(key), laneOf(key))
}

// rewrote takes note of a block that a committed transaction has written anew.
func (s *signer) rewrote(l *loop, key int64) {
	if d := s.drafts[signLive]; d != nil && seqOf(key) <= d.last {
		s.drafts[signLive] = nil
	}
	s.note(l, signLive, s.size) // it is to be looked at soon
}

// fire makes one step.
func (s *signer) fire(l *loop, now int64) {
	if l.damaged || l.refusing {
		l.timers.set(&s.timer, now+signTrouble)
		return
	}
	more, err := s.step(l, now)
	if err != nil {
		l.log.Error("signatures for the search could not be made", "error", err)
		s.drafts = [signKinds]*draft{}
		l.timers.set(&s.timer, now+signTrouble)
		return
	}
	if more > 0 {
		l.timers.set(&s.timer, now+more)
	}
}

// step does a bounded piece of what there is to do. It tells when to go on; 0: not
// before something comes.
func (s *signer) step(l *loop, now int64) (rest int64, err error) {
	for kind := signLive; kind < signKinds; kind++ {
		if s.waiting[kind] < s.size {
			continue
		}
		d := s.drafts[kind]
		if d == nil {
			d = newDraft(s.size, s.signed[kind])
			s.drafts[kind] = d
		}
		var end bool
		switch kind {
		case signLive:
			end, err = s.readFresh(l, d, now)
		case signDead:
			end, err = s.readDead(l, d)
		default:
			end, err = s.readFinished(l, d)
		}
		if err != nil {
			return 0, err
		}
		if d.full() {
			if err := s.write(l, kind, d); err != nil {
				return 0, err
			}
		} else if end {
			s.waiting[kind] = d.jobs
		}
		if s.waiting[kind] >= s.size {
			return s.restOf(kind), nil
		}
	}
	if s.left >= signJobs {
		return s.clean(l)
	}
	return 0, nil
}

// restOf is the wait before the next step.
func (s *signer) restOf(kind int) int64 {
	if d := s.drafts[kind]; kind == signLive && d != nil && d.waits {
		d.waits = false
		return signDelay
	}
	return signRest
}

// between runs a transaction of its own between those of the cycles. Nobody waits for
// it, and memory has no part in it.
func (l *loop) between(f func(*tx) error) error {
	t := l.newTx()
	err := f(t)
	if err == nil && t.began {
		err = l.db.exec("COMMIT")
	}
	if err != nil {
		t.rollback()
	}
	return err
}

// write stores a signature, and with it that its blocks have one.
func (s *signer) write(l *loop, kind int, d *draft) error {
	var spans []byte
	for _, p := range d.spans {
		spans = appendSpan(spans, p)
	}
	open := int64(0)
	if d.open {
		open = 1
	}
	err := l.between(func(t *tx) error {
		err := t.exec("INSERT INTO sig (at, first, since, until, open, spans, bits) VALUES (?, ?, ?, ?, ?, ?, ?)",
			int64(kind)<<signShift|d.last, d.first, d.since, d.until, open, spans, makeBloom(d.set))
		if err == nil && kind == signLive {
			err = t.dropFresh(s.signed[kind]+1, d.last)
		}
		return err
	})
	if err != nil {
		return err
	}
	s.signed[kind] = d.last
	s.waiting[kind] = max(s.waiting[kind]-d.jobs, s.size) // whether there is more, the next step sees
	s.drafts[kind] = nil
	s.left += signJobs / 8 // so that old ones go as new ones come
	return nil
}

// readSpans reads those of a signature; of a damaged row, what there is.
func readSpans(stored []byte) (spans []span) {
	for r := (reader{b: stored}); len(r.b) > 0; {
		p := r.span()
		if r.bad {
			break
		}
		spans = append(spans, p)
	}
	return spans
}

// cover adds a block to the spans of a draft.
func (d *draft) cover(lane, seq int64) {
	at := slices.IndexFunc(d.spans, func(p span) bool { return p.lane == lane })
	if at < 0 {
		d.spans = append(d.spans, span{lane, seq, seq})
		return
	}
	d.spans[at].last = seq
}

// code adds the term of why a job failed.
func (d *draft) code(cause *forebay.Cause, failures []forebay.Cause) {
	c := cause.Code
	if c == "" && cause.Message == "" && len(failures) > 0 {
		c = failures[len(failures)-1].Code
	}
	d.add(termCode, c)
}
