package adapt_test

import (
	"testing"
	"time"

	"github.com/forebayhq/forebay/worker/adapt"
)

// line is a caller that keeps calls running and ends the oldest first, each as long after its
// begin as takes says for how many run.
type line struct {
	l       *adapt.Limiter
	now     time.Time
	running []time.Time
	takes   func(running int) time.Duration
	ends    func(n int) adapt.End
	n       int
	most    int // that ran at once
}

func newLine(c adapt.Config, takes func(int) time.Duration) *line {
	return &line{l: adapt.New(c), now: time.Unix(1e9, 0), takes: takes, ends: func(int) adapt.End { return adapt.Done }}
}

// run makes calls; no more than wanted are asked for at once.
func (c *line) run(calls, wanted int) {
	for range calls {
		for len(c.running) < min(c.l.Limit(), wanted) {
			c.l.Begin(c.now)
			c.running = append(c.running, c.now)
		}
		c.most = max(c.most, len(c.running))
		began := c.running[0]
		c.running = c.running[1:]
		c.now = c.now.Add(c.takes(len(c.running)+1) / time.Duration(len(c.running)+1))
		c.n++
		c.l.End(c.now, began, 1, c.ends(c.n))
	}
}

func free(int) time.Duration { return 20 * time.Millisecond }

func TestTheLimitStaysWithinItsBounds(t *testing.T) {
	t.Parallel()
	for _, c := range []adapt.Config{{Min: 1, Max: 1}, {Min: 3, Max: 3}, {Min: 1, Max: 2}, {Min: 4, Max: 9}, {Min: 2, Max: 100, Start: 50}, {}} {
		for name, takes := range map[string]func(int) time.Duration{
			"room": free, "queue": func(n int) time.Duration { return time.Duration(n) * 10 * time.Millisecond },
			"collapse": func(n int) time.Duration { return time.Duration(n*n*n) * time.Millisecond },
		} {
			for _, end := range []adapt.End{adapt.Done, adapt.Overload, adapt.Ignored} {
				s := newLine(c, takes)
				s.ends = func(n int) adapt.End { return []adapt.End{adapt.Done, end}[n%2] }
				for range 300 {
					s.run(10, 1000)
					if n := s.l.Limit(); n < max(c.Min, 1) || n > max(c.Max, c.Min, 1) {
						t.Fatalf("%+v, %s, %d: the limit is %d", c, name, end, n)
					}
				}
			}
		}
	}
}

// It finds where more calls bring no more, and rises to the top where there is none.
func TestItFindsTheKnee(t *testing.T) {
	t.Parallel()
	s := newLine(adapt.Config{Min: 1, Max: 40}, free)
	s.run(5_000, 1000)
	if n := s.l.Limit(); n < 36 {
		t.Errorf("with room for all, the limit is %d of 40", n)
	}
	s.takes = func(n int) time.Duration { return max(20*time.Millisecond, time.Duration(n)*2*time.Millisecond) } // ten at once
	s.run(20_000, 1000)
	if n := s.l.Around(); n < 8 || n > 12 {
		t.Errorf("where ten are best, it is around %d", n)
	}
}

// Where little is asked for, nothing is learned: it neither rises nor falls.
func TestNothingIsLearnedOfLittle(t *testing.T) {
	t.Parallel()
	s := newLine(adapt.Config{Min: 1, Max: 100}, free)
	s.run(5_000, 3)
	if n := s.l.Limit(); n != 10 {
		t.Errorf("the limit of 10 is %d, though three calls run at once at most", n)
	}
}

// Refused calls lower it at once, and where that was is left alone for a while; what was
// interrupted does not.
func TestOverloadLowersIt(t *testing.T) {
	t.Parallel()
	s := newLine(adapt.Config{Min: 1, Max: 100}, free)
	refuse := func(int) adapt.End {
		if len(s.running) >= 16 {
			return adapt.Overload
		}
		return adapt.Done
	}
	s.ends = refuse
	s.run(3_000, 1000)
	if n := s.l.Limit(); n < 12 || n > 18 {
		t.Errorf("where 16 are let in, the limit is %d", n)
	}
	s.most = 0
	at := s.now
	for s.now.Sub(at) < 15*time.Second {
		s.run(1, 1000)
	}
	if s.most > 17 {
		t.Errorf("soon after, %d were tried", s.most)
	}
	other := newLine(adapt.Config{Min: 1, Max: 100}, free)
	other.ends = func(n int) adapt.End { return []adapt.End{adapt.Done, adapt.Ignored}[n%2] }
	other.run(500, 1000)
	if n := other.l.Limit(); n < 10 {
		t.Errorf("interrupted calls brought the limit to %d", n)
	}
}

// A back end that suddenly takes three times as long gets fewer calls at once, before
// anybody knows why; when that is how it is now, and there is room, it gets more again.
func TestAJumpLowersItAtOnce(t *testing.T) {
	t.Parallel()
	s := newLine(adapt.Config{Min: 1, Max: 50}, free)
	s.run(5_000, 1000)
	before := s.l.Limit()
	s.takes = func(int) time.Duration { return 60 * time.Millisecond }
	least := before
	for range 10 * before {
		s.run(1, 1000)
		least = min(least, s.l.Limit())
	}
	if least > before*2/3 {
		t.Errorf("the limit of %d fell to %d", before, least)
	}
	s.run(10_000, 1000)
	if n := s.l.Limit(); n < 45 {
		t.Errorf("with room for all again, the limit is %d of 50", n)
	}
}
