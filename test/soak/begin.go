//go:build linux

package main

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

// How much later than its hand-out a run may come to its handler while the machine is busy.
// A rule that depends on it holds from outside only with this much doubt.
const doubt = 100 * time.Millisecond

// How long after a jump of the clock workers may still begin what they had leased before it: the
// jump has ended those leases, and nobody has told them yet.
const afterJump = 6 * time.Second

// begin notes that a handler was called, and judges what may be judged at once.
func (b *book) begin(id, queue string, p plan, attempt int, now time.Time) *run {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.n++
	b.counts.Runs++
	r := &run{n: b.n, attempt: attempt, begun: now}
	j := b.jobs[id]
	if j == nil {
		if _, ended := b.over[id]; ended {
			b.judgeAgain(id, now)
			return r
		}
		j = &job{id: id, queue: queue, plan: p, foreign: true, acked: true, sent: now}
		b.jobs[id] = j
		if strings.HasPrefix(id, "schedule:") {
			b.counts.ScheduleTicks++
		}
	}
	if len(j.runs) > 0 && j.runs[len(j.runs)-1].verdict != failed {
		b.counts.RunsAgain++
	}
	b.judgeBegin(j, r)
	j.runs = append(j.runs, r)
	if limitOf[j.queue] != nil {
		b.queues[j.queue] = append(b.queues[j.queue], r)
		b.keys[r] = j.key
	}
	return r
}

func (b *book) judgeAgain(id string, now time.Time) {
	if !b.jumpedBetween(now.Add(-afterJump), now) { // what a lease that the jump has ended leaves behind
		b.find(now, "ends once", id, "it ran again after its end was told")
	}
}

func (b *book) judgeBegin(j *job, r *run) {
	now := r.begun
	switch {
	case j.cancelled:
		b.find(now, "cancel", j.id, "it ran after the server had answered that it is cancelled")
	case j.delay == 0 || !now.Before(j.sent.Add(j.delay-doubt/2)):
	case b.jumpedBetween(j.sent.Add(-doubt), now): // it is due by the time of day, which came sooner
		b.counts.EarlyAfterJump++
	default:
		b.find(now, "delay", j.id, "it ran %s after it was sent, with a delay of %s", now.Sub(j.sent), j.delay)
	}
	if r.attempt > j.failures+1 {
		b.find(now, "attempts", j.id, "it is told to be attempt %d, and %d have failed", r.attempt, j.failures)
	}
	if j.group != nil {
		b.judgeOrder(j, now)
	}
}

// judgeOrder: whoever begins has behind it those before it, and none after it.
func (b *book) judgeOrder(j *job, now time.Time) {
	g := j.group
	b.counts.OrdersChecked++
	if j.place < g.begun {
		later := g.jobs[g.begun]
		b.find(now, "order", j.id, "it ran (before: %s) after %s (%s), which was added after it to their group", cmp.Or(j.story(), "never"), later.id, later.story())
		b.findings[len(b.findings)-1].Beside = later.id
		return
	}
	for ; g.begun < j.place; g.begun++ {
		if g.begun >= 0 && !g.jobs[g.begun].final {
			b.find(now, "order", j.id, "it ran before %s, which was added before it to their group, had ended", g.jobs[g.begun].id)
		}
	}
}

// end notes what a handler answers, before it does.
func (b *book) end(id string, r *run, v verdict, now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	r.ended, r.verdict = now, v
	j := b.jobs[id]
	if j == nil {
		return
	}
	switch v {
	case failed:
		j.failures++
		b.counts.RunsFailed++
		j.final = j.final || !j.foreign && j.failures >= j.attempts
	case done, refused:
		j.final = true
	}
}

// superseded tells whether another run of the job has begun after this one.
func (b *book) superseded(id string, r *run) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	j := b.jobs[id]
	return j != nil && slices.Index(j.runs, r) < len(j.runs)-1
}

// stale notes that a worker settled with a lease whose time was up, and what it was told.
func (b *book) stale(id string, r *run, again, taken bool, now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.counts.StaleSettles++
	if !taken {
		b.counts.StaleRefused++
	}
	if taken && again {
		b.find(now, "fence", id, "run %d was let end it, after another run had begun", r.n)
	}
}
