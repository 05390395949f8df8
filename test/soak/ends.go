//go:build linux

package main

import (
	"encoding/json"
	"slices"
	"sort"
	"strings"
	"time"
)

// ended is what the server tells of a job.
type ended struct {
	JobID, State, FailedReason string
	Attempts, Deliveries       int
	Result                     json.RawMessage
	Cause                      *struct{ Code, Message string }
}

func (e *ended) over() bool {
	switch e.State {
	case "completed", "dead", "cancelled", "expired":
		return true
	}
	return false
}

// acknowledged gives the jobs that were acknowledged or have run.
func (b *book) acknowledged() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	var ids []string
	for id, j := range b.jobs {
		if j.acked {
			ids = append(ids, id)
		}
	}
	sort.Strings(ids)
	return ids
}

// judgeEnd compares the end of a job with what it had to be. nil: the server does not know it.
func (b *book) judgeEnd(id string, e *ended, now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	j := b.jobs[id]
	if e == nil {
		b.find(now, "lost", id, "the server acknowledged it and does not know it")
		return
	}
	if !e.over() {
		b.find(now, "stuck", id, "it has not ended: it is %s after %d runs", e.State, len(j.runs))
		return
	}
	switch e.State {
	case "completed":
		b.counts.Completed++
	case "dead":
		b.counts.Dead++
	case "cancelled":
		b.counts.Cancelled++
	}
	b.judgeState(j, e, now)
}

func (b *book) judgeState(j *job, e *ended, now time.Time) {
	cause := ""
	if e.Cause != nil {
		cause = e.Cause.Code
	}
	if e.State == "cancelled" && j.cancelAsked {
		return
	}
	if j.cancelled && e.State != "cancelled" {
		b.find(now, "cancel", j.id, "the server had answered that it is cancelled, and it is %s", e.State)
		return
	}
	want := "completed"
	if j.plan.Perm || !j.foreign && j.plan.Fail >= j.attempts {
		want = "dead"
	}
	switch {
	case e.State != want:
		b.find(now, "end", j.id, "it ended as %s (%s), and had to be %s: %d of its %d runs failed", e.State, cause, want, j.failures, len(j.runs))
	case want == "completed":
		b.judgeResult(j, e, now)
	case !j.plan.Perm && j.failures < j.attempts:
		b.find(now, "attempts", j.id, "it is dead (%s) after %d failed attempts of %d", cause, j.failures, j.attempts)
	}
}

// judgeResult: what has ended it is the last run that began. An earlier one had lost its
// lease when the last one was begun.
func (b *book) judgeResult(j *job, e *ended, now time.Time) {
	if len(j.runs) == 0 {
		b.find(now, "fence", j.id, "it is completed and no handler has seen it")
		return
	}
	var by struct{ Run int }
	if err := json.Unmarshal(e.Result, &by); err != nil {
		b.find(now, "end", j.id, "its result is %.100s", e.Result)
		return
	}
	last := j.runs[len(j.runs)-1]
	if by.Run == last.n {
		return
	}
	if !b.jumpedBetween(last.begun.Add(-afterJump), last.begun) {
		b.find(now, "fence", j.id, "run %d has ended it, and run %d had begun after that", by.Run, last.n)
	}
}

// limit is what a queue is told at the start of a round.
type limit struct {
	Active, KeyActive, Rate, Burst int
}

// limitOf are the queues with limits; the rate is of a second.
var limitOf = map[string]*limit{"limited": {Active: 6, KeyActive: 2, Rate: 12, Burst: 4}}

// judgeLimits goes over all runs of a round.
func (b *book) judgeLimits(now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for queue, runs := range b.queues {
		l := limitOf[queue]
		b.judgeActive(queue, "", runs, l.Active, now)
		byKey := map[string][]*run{}
		for _, r := range runs {
			byKey[b.keys[r]] = append(byKey[b.keys[r]], r)
		}
		for key, some := range byKey {
			b.judgeActive(queue, key, some, l.KeyActive, now)
		}
		b.judgeRate(queue, runs, l, now)
	}
}

// judgeActive counts how many ran at once. A run that its caller has left counts for nothing:
// its lease was over at some moment before the handler could know. So does one whose lease a
// jump of the clock has ended.
func (b *book) judgeActive(queue, key string, runs []*run, most int, now time.Time) {
	type edge struct {
		at time.Time
		by int
	}
	var edges []edge
	for _, r := range runs {
		if r.verdict == open || r.verdict == gone || b.jumpedBetween(r.begun, r.ended) {
			continue
		}
		edges = append(edges, edge{r.begun, 1}, edge{r.ended, -1})
	}
	slices.SortFunc(edges, func(a, b edge) int {
		if c := a.at.Compare(b.at); c != 0 {
			return c
		}
		return a.by - b.by
	})
	active, worst, at := 0, 0, time.Time{}
	for _, e := range edges {
		active += e.by
		b.counts.WindowsChecked++
		if active > worst {
			worst, at = active, e.at
		}
	}
	if worst > most {
		b.find(now, "limit", queue, "%d runs at once at %s, with a limit of %d (key %q)", worst, at.Format(time.StampMilli), most, key)
	}
}

// judgeRate looks at each window of a second and of ten. Of what comes to a handler in a window,
// as many as may be active were handed out before it, at most.
func (b *book) judgeRate(queue string, runs []*run, l *limit, now time.Time) {
	begun := make([]time.Time, len(runs))
	for i, r := range runs {
		begun[i] = r.begun
	}
	slices.SortFunc(begun, time.Time.Compare)
	for _, window := range []time.Duration{time.Second, 10 * time.Second} {
		most := l.Rate*int(window/time.Second) + l.Burst - 1 + l.Active
		from := 0
		for i, at := range begun {
			for at.Sub(begun[from]) > window {
				from++
			}
			b.counts.WindowsChecked++
			if n := i - from + 1; n > most && !b.jumpedBetween(begun[from].Add(-window), at) {
				b.find(now, "limit", queue, "%d starts within %s before %s, with a rate of %d a second, a burst of %d and %d at once",
					n, window, at.Format(time.StampMilli), l.Rate, l.Burst, l.Active)
				break
			}
		}
	}
}

// judgeSchedule: the ticks of a schedule have no gap.
func (b *book) judgeSchedule(name string, every time.Duration, now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	var ticks []time.Time
	prefix := "schedule:" + name + ":"
	for id := range b.jobs {
		rest, ok := strings.CutPrefix(id, prefix)
		if !ok {
			continue
		}
		at, err := time.Parse("20060102T150405Z", rest)
		if err != nil {
			b.find(now, "schedule", id, "the tick in its id is no time: %v", err)
			continue
		}
		ticks = append(ticks, at)
	}
	slices.SortFunc(ticks, time.Time.Compare)
	for i := 1; i < len(ticks); i++ {
		if gap := ticks[i].Sub(ticks[i-1]); gap != every {
			b.find(now, "schedule", name, "between the ticks %s and %s are %s, want %s", ticks[i-1], ticks[i], gap, every)
		}
	}
}
