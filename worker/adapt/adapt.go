// Package adapt finds how many calls of a back end are best made at once, from how
// long they take, and follows when that changes.
//
// # How
//
// It goes to and fro between two limits, the lower and the upper one, and measures at
// each how much comes out. From both follows the elasticity of latency: by how many
// percent calls take longer when one percent more of them are made at once.
//
//	0            there is room: more calls, as fast as before
//	1            they only queue in the back end: what comes out stays the same
//	more than 1  it collapses: more calls, and less comes out
//
// Below the band that is aimed at, the limit rises to the upper one, which was tried
// already, and never beyond it. Above the band it falls. How many calls a decision takes
// depends on how much their times scatter: it waits until it can be sure.
//
// Two things are not waited for. Calls that take much longer than they just did lower
// the limit in proportion. Calls that the back end itself refused as too many lower it
// by their share, and the limit where that was is left alone for a while.
//
// # What it promises
//
// The limit is always within its bounds. Failures of the caller's own change nothing.
// Where fewer calls are made than the limit allows, nothing is learned and nothing rises.
//
// # What it refuses
//
// It has no clock and no goroutine: every call says what time it is. It makes nobody
// wait: who asks for Limit keeps it.
package adapt

import (
	"math"
	"sync/atomic"
	"time"
)

// Config bounds a limiter.
type Config struct {
	Min, Max int // 1 or more, and no less than Min
	Start    int // 0: 10, within the bounds
}

// End is how a call ended.
type End int

const (
	Done     End = iota // also with a failure of its own
	Overload            // the back end said that it was too much
	Ignored             // it says nothing of the back end: it was interrupted
)

// The band of elasticities that is aimed at, and how sure a decision has to be.
const (
	low      = 0.60
	high     = 0.85
	steep    = 1.15 // it collapses
	sure     = 0.20 // the standard error of the elasticity
	wide     = 0.25 // of the lower limit, how far the upper one is from it while it searches
	narrow   = 0.10 // and once it has found
	decay    = 0.95 // of what was learned, with each further pair
	jump     = 1.5  // times as long as before is a change of the back end
	sampled  = 16   // calls that a window needs
	shortest = 50 * time.Millisecond
	longest  = 15 * time.Second // of a window; one with few calls tells little, and is taken so
	backOff  = 20 * time.Second // how long a limit that was too much is left alone, at first
	mostOff  = 3 * time.Minute
)

// Limiter is owned by one goroutine, but for Limit.
type Limiter struct {
	cfg   Config
	shown atomic.Int64 // the limit that holds now

	limit float64 // the lower one
	upper bool    // the upper one holds
	span  float64 // how far the upper one is, as a share

	running int
	at      time.Time // of the last change of running
	window  window
	last    window // the one before; zero: none to compare with

	sxy, sxx float64 // of the pairs so far: what they say of the elasticity, and their weight
	scatter  float64 // of the times of calls, squared and relative; a sliding mean
	usual    float64 // how long a call takes at the lower limit; 0: not known
	rising   int     // decisions to rise, one after the other

	ceiling float64 // a limit that was too much, and is left alone until then; 0: none
	until   time.Time
	off     time.Duration // for how long the last one was
	worst   float64       // the last one
	fell    time.Time     // when it lowered the limit
}

// window is what was measured at one limit.
type window struct {
	began   time.Time // zero: none
	settled bool      // what began before it has ended
	old     int       // calls of before that still run
	upper   bool

	area    float64 // calls running × seconds
	seconds float64
	calls   int
	done    float64 // what they got done
	sum, sq float64 // of the seconds that they took
	refused int
	full    float64 // seconds in which as many ran as may
}

// New makes a limiter.
func New(c Config) *Limiter {
	c.Min = max(c.Min, 1)
	c.Max = max(c.Max, c.Min)
	if c.Start == 0 {
		c.Start = 10
	}
	l := &Limiter{cfg: c, limit: float64(min(max(c.Start, c.Min), c.Max)), span: wide, scatter: 0.25, off: backOff}
	l.show()
	return l
}

// Limit is how many calls may run now. Anybody may ask.
func (l *Limiter) Limit() int { return int(l.shown.Load()) }

// Around is the lower of the two limits that it goes to and fro between. Unlike Limit, only
// decisions move it. It is for whoever owns the limiter.
func (l *Limiter) Around() int { return l.low() }

// Begin books a call that begins.
func (l *Limiter) Begin(now time.Time) {
	l.elapse(now)
	l.running++
	if l.window.began.IsZero() {
		l.open(now)
	}
}

// End books a call that has ended: when it began, how much it got done (1, or the
// messages of a batch), and how.
func (l *Limiter) End(now, began time.Time, much int, how End) {
	l.elapse(now)
	l.running--
	w := &l.window
	if w.began.IsZero() {
		return
	}
	if began.Before(w.began) && w.old > 0 {
		w.old--
	}
	patience := max(time.Duration(2*l.usual*float64(time.Second)), shortest)
	switch how {
	case Overload:
		w.refused++
		l.overloaded(now)
	case Done:
		if w.settled {
			took := now.Sub(began).Seconds()
			w.calls++
			w.done += float64(much)
			w.sum, w.sq = w.sum+took, w.sq+took*took
		}
	}
	if !w.settled && (w.old == 0 || now.Sub(w.began) > patience) {
		w.settled = true
		w.area, w.seconds, w.full = 0, 0, 0
	}
	l.close(now)
}

// elapse counts the time since the last change.
func (l *Limiter) elapse(now time.Time) {
	if d := now.Sub(l.at).Seconds(); !l.at.IsZero() && d > 0 {
		w := &l.window
		w.area += d * float64(l.running)
		w.seconds += d
		if l.running >= l.Limit() {
			w.full += d
		}
	}
	l.at = now
}

func (l *Limiter) open(now time.Time) {
	l.window = window{began: now, old: l.running, upper: l.upper, settled: l.running == 0}
	l.show()
}

// show makes the limit of this window hold.
func (l *Limiter) show() {
	n := l.low()
	if l.upper {
		n = l.high()
	}
	l.shown.Store(int64(n))
}

// low and high are the two limits. At the top of what is allowed the lower one makes room.
func (l *Limiter) low() int {
	n := int(math.Round(l.limit))
	if n >= l.top() {
		n = min(l.top()-1, int(math.Round(float64(l.top())/(1+l.span))))
	}
	return max(n, l.cfg.Min)
}

func (l *Limiter) high() int {
	n := l.low()
	return max(n, min(max(n+1, int(math.Round(float64(n)*(1+l.span)))), l.top()))
}

// top is the highest limit that may be tried now.
func (l *Limiter) top() int {
	if l.ceiling > 0 {
		return min(max(int(l.ceiling)-1, l.cfg.Min), l.cfg.Max)
	}
	return l.cfg.Max
}
