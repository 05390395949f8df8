package adapt

import (
	"math"
	"time"
)

// close ends a window that has seen enough, and begins the next.
func (l *Limiter) close(now time.Time) {
	w := &l.window
	if !w.settled {
		return
	}
	need := max(sampled, 3*l.Limit())
	if w.upper && l.high() == l.top() && l.rising > 0 {
		need *= 4 // there is room, and no more is allowed: it need not look down so often
	}
	if (w.calls < need || w.seconds < shortest.Seconds()) && w.seconds < longest.Seconds() {
		return
	}
	l.learn(now, *w)
	l.open(now)
}

// learn takes over what a window tells, and decides.
func (l *Limiter) learn(now time.Time, w window) {
	if l.ceiling > 0 && !now.Before(l.until) {
		l.ceiling = 0
	}
	if w.calls == 0 || w.full < 0.8*w.seconds {
		l.last, l.upper = window{}, false // too little was asked for
		return
	}
	took := w.sum / float64(w.calls)
	if l.changed(took, &w) {
		return
	}
	l.scatter += (min(max(w.sq/float64(w.calls)/(took*took)-1, 0.01), 4) - l.scatter) / 8
	if !w.upper {
		l.usual = mean(l.usual, took)
	}
	if before := l.last; !before.began.IsZero() && before.upper != w.upper {
		l.compare(&before, &w)
		l.decide()
	}
	l.last, l.upper = w, !w.upper
}

func mean(so, v float64) float64 {
	if so == 0 {
		return v
	}
	return so + (v-so)/4
}

// changed tells that the back end is another one than before: calls take much longer or
// shorter. Then all that was learned is void.
func (l *Limiter) changed(took float64, w *window) bool {
	if l.usual == 0 {
		return false
	}
	usual := l.usual
	if w.upper {
		usual *= 1 + l.span
	}
	switch {
	case took > jump*usual && w.calls >= sampled/2:
		l.set(l.limit * max(usual/took, 0.4))
	case took < usual/jump:
	default:
		return false
	}
	l.forget(wide)
	l.usual = 0
	return true
}

// compare adds a pair of windows to what is known of the elasticity.
func (l *Limiter) compare(a, b *window) {
	if a.upper {
		a, b = b, a
	}
	na, nb := a.area/a.seconds, b.area/b.seconds
	x := math.Log(nb / na)
	if x < 0.01 || a.done == 0 || b.done == 0 {
		return
	}
	y := x - math.Log(b.done/b.seconds*a.seconds/a.done) // Little: time = running / what comes out
	ka, kb := float64(a.calls), float64(b.calls)
	weight := ka * kb / (ka + kb)
	l.sxx = l.sxx*decay + weight*x*x
	l.sxy = l.sxy*decay + weight*x*y
}

// decide moves the limit, if it can be sure enough of where to.
func (l *Limiter) decide() {
	if l.sxx == 0 {
		return
	}
	e, doubt := l.sxy/l.sxx, math.Sqrt(l.scatter/l.sxx)
	const middle = (low + high) / 2
	switch {
	case e < low && e+1.3*doubt < middle:
		l.rising = max(l.rising, 0) + 1
		l.set(float64(l.high()))
	case e > high && e-1.3*doubt > middle:
		l.rising = min(l.rising, 0) - 1
		down := 1 + narrow
		if e-doubt > steep {
			down = 1 + wide
		}
		l.set(l.limit / down)
	case doubt < sure:
		l.rising = 0
		l.span = narrow
		return
	default:
		return
	}
	span := narrow
	if (l.rising > 1 || l.rising < -1) && l.limit < float64(l.top()) {
		span = wide // there is some way to go
	}
	l.forget(span)
}

// forget begins to learn anew, with another span.
func (l *Limiter) forget(span float64) {
	l.sxx, l.sxy, l.last, l.upper, l.span = 0, 0, window{}, false, span
}

// set moves the limit within its bounds. One that was too much is left alone.
func (l *Limiter) set(n float64) {
	l.limit = min(max(n, float64(l.cfg.Min)), float64(l.top()))
}

// overloaded lowers the limit by the share of calls that were refused.
func (l *Limiter) overloaded(now time.Time) {
	again := max(time.Duration(l.usual*float64(time.Second)), 2*shortest)
	if now.Sub(l.fell) < again {
		return // it was begun before the limit fell
	}
	w := &l.window
	keep := 0.9
	if all := w.refused + w.calls; all >= sampled {
		keep = min(max(1-float64(w.refused)/float64(all), 0.5), keep)
	}
	was := float64(l.Limit())
	l.off = min(2*l.off, mostOff)
	if math.Abs(was-l.worst) > 0.1*was+1 {
		l.off = backOff // another one than the last
	}
	l.worst, l.ceiling, l.until, l.fell = was, was, now.Add(l.off), now
	l.rising = 0
	l.set(min(l.limit, was*keep))
	l.forget(narrow)
	l.open(now)
}
