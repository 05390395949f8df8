// Package estimate tells how long a job will take, from what it saw others take:
// how long handlers run, how fast a queue moves, and how wrong it was before.
//
// It promises a range, not a number: about eight in ten jobs finish within it once
// there are samples enough, since the ends of the range are where eight in ten of
// the jobs before ended, relative to what was expected of them. Coverage says how
// many really did. Its memory is bounded, whatever kinds of jobs there are.
//
// It refuses to know where its numbers come from: it is fed with events, does no
// I/O, starts no goroutine and has no clock.
package estimate

import (
	"sync"
	"time"
)

// Range is an estimate. The zero value means that nothing is known yet.
type Range struct {
	Low, Likely, High time.Duration
	Samples           int // finished jobs that it rests on
}

// Stated is the share of jobs that a Range is meant to hold for.
const Stated = 0.8

const (
	lowEnd  = (1 - Stated) / 2
	highEnd = 1 - lowEnd

	maxQueues = 200
	maxKinds  = 500
	maxJobs   = 50_000 // in flight that are followed; those beyond are not measured

	window      = 500 // samples that matter
	enoughRatio = 20  // samples before the range trusts its own errors
	enoughRuns  = 10  // before it is good for saying that a job is late
	paceWeight  = 1.0 / 30
)

// Estimator is safe for concurrent use.
type Estimator struct {
	mu     sync.Mutex
	queues map[string]*queue
	kinds  map[key]*kind
	jobs   map[string]*job
	cover  Coverage
}

type key struct{ queue, kind string }

type queue struct {
	waiting, active int64
	started         int64     // hand-outs ever seen
	pace            float64   // seconds between two of them while something waits; 0: unknown
	last            time.Time // of the last, where something waited then
	slots           float64   // most active at once, lately
}

// kind is what is known of one kind of job in one queue.
type kind struct {
	run     sketch // seconds from its hand-out to its end, of completed ones
	quick   sketch // real by expected time, of jobs that were to begin soon
	queued  sketch // the same, of those that were to wait longer than to run
	samples int

	ends ends // of the sketches, as of so many samples
	as   int
}

// ends are the quantiles that ranges are made of.
type ends struct{ run, quick, queued [3]float64 }

// quantiles cost more than counting does, so they may be a few samples old.
func (k *kind) quantiles() *ends {
	if k.as == 0 || k.samples-k.as >= min(16, 1+k.samples/50) {
		k.as = k.samples
		k.ends = ends{k.run.ends(), k.quick.ends(), k.queued.ends()}
	}
	return &k.ends
}

// job in flight.
type job struct {
	key
	ready    time.Time // from when it could have begun; zero: unknown
	started  time.Time // zero: it waits
	ahead    int64     // how many waited before it
	seen     int64     // hand-outs of the queue when it came
	expected float64   // seconds from ready to the end; 0: nothing was known
	queued   bool      // mostly of waiting
	stated   Range
	told     bool // that it is late
}

// Coverage says how good the ranges were.
type Coverage struct {
	Jobs  int // completed, with a range that rested on samples enough
	Below int // ended before its low end
	Above int // ended after its high end
}

// Share of the jobs that ended within their range; 0 without jobs.
func (c Coverage) Share() float64 {
	if c.Jobs == 0 {
		return 0
	}
	return float64(c.Jobs-c.Below-c.Above) / float64(c.Jobs)
}

// New makes an estimator that knows nothing.
func New() *Estimator {
	return &Estimator{queues: make(map[string]*queue), kinds: make(map[key]*kind), jobs: make(map[string]*job)}
}

// Coverage of all jobs so far.
func (e *Estimator) Coverage() Coverage {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.cover
}

// Depth corrects what was counted by events: jobs that become due make none, and
// events may be missed.
func (e *Estimator) Depth(name string, waiting, active int64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	q := e.queue(name)
	q.waiting, q.active = waiting, active
	q.slots = max(q.slots, float64(active))
}

// Estimate is from now to the end of a job that is sent now.
func (e *Estimator) Estimate(queueName, kindName string) Range {
	e.mu.Lock()
	defer e.mu.Unlock()
	k := e.key(queueName, kindName)
	r, _, _ := e.estimate(k, e.queue(queueName).waiting)
	return r
}

// Pending is a job whose rest is asked for.
type Pending struct {
	ID, Queue, Kind string
	Due             time.Time // delayed: until when
	Started         time.Time // zero: it waits
	Percent         float64   // of its progress
}

// Remaining is from now to the end of a job.
func (e *Estimator) Remaining(p Pending, now time.Time) Range {
	e.mu.Lock()
	defer e.mu.Unlock()
	k := e.key(p.Queue, p.Kind)
	if !p.Started.IsZero() {
		return e.restOfRun(k, now.Sub(p.Started).Seconds(), p.Percent)
	}
	q := e.queue(p.Queue)
	ahead := q.waiting
	if j := e.jobs[p.ID]; j != nil && j.started.IsZero() {
		ahead = max(0, j.ahead-(q.started-j.seen))
	}
	r, _, _ := e.estimate(k, ahead)
	if delay := p.Due.Sub(now); !p.Due.IsZero() && delay > 0 && r.Samples > 0 {
		r.Low, r.Likely, r.High = r.Low+delay, r.Likely+delay, r.High+delay
	}
	return r
}

// restOfRun is of a job that runs since so many seconds.
func (e *Estimator) restOfRun(id key, elapsed, percent float64) Range {
	k := e.kinds[id]
	if percent >= 5 && percent <= 100 && elapsed >= 1 {
		left, samples := elapsed*(100-percent)/percent, 1
		if k != nil {
			samples = max(samples, k.samples)
		}
		return seconds(left/2, left, 2*left, samples)
	}
	if k == nil || k.samples == 0 {
		return Range{}
	}
	if k.run.tail(0.5, elapsed) == 0 { // nothing ran that long yet
		return seconds(0, elapsed/4, elapsed, k.samples)
	}
	left := func(q float64) float64 { return max(0, k.run.tail(q, elapsed)-elapsed) }
	return seconds(left(lowEnd), left(0.5), left(highEnd), k.samples)
}

// estimate of a job with so many ahead of it.
func (e *Estimator) estimate(id key, ahead int64) (r Range, expected float64, queued bool) {
	k := e.kinds[id]
	if k == nil || k.samples == 0 {
		return Range{}, 0, false
	}
	q := k.quantiles()
	run := q.run[1]
	wait := e.queue(id.queue).wait(ahead, run)
	expected, queued = max(wait+run, binFirst), wait > run
	ratios, known := q.quick, k.quick.total
	if queued {
		ratios, known = q.queued, k.queued.total
	}
	if known >= enoughRatio {
		return seconds(expected*ratios[0], expected*ratios[1], expected*ratios[2], k.samples), expected, queued
	}
	return seconds(wait/2+q.run[0]/2, expected, 2*wait+2*q.run[2], k.samples), expected, queued
}

// wait of a job until its hand-out, in seconds.
func (q *queue) wait(ahead int64, run float64) float64 {
	slots := max(1, q.slots)
	if ahead == 0 && float64(q.active) < slots {
		return 0
	}
	pace := q.pace
	if pace == 0 {
		pace = run / slots
	}
	return float64(ahead+1) * pace
}

func seconds(low, likely, high float64, samples int) Range {
	d := func(s float64) time.Duration { return time.Duration(min(s, 1e8) * float64(time.Second)) }
	return Range{Low: d(low), Likely: d(min(max(low, likely), high)), High: d(high), Samples: samples}
}
