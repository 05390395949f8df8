package broker

import (
	"sync"
	"testing"
	"time"
)

func TestMeter(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)
	at := func(s float64) time.Time { return start.Add(time.Duration(s * float64(time.Second))) }
	type count struct {
		at float64
		n  int
	}
	steady := func(from, to, n int) (all []count) {
		for s := from; s < to; s++ {
			all = append(all, count{float64(s), n})
		}
		return all
	}
	for name, c := range map[string]struct {
		counts []count
		now    float64
		rate   float64
	}{
		"nothing":             {now: 5, rate: 0},
		"at once":             {counts: []count{{0, 40}, {0.5, 10}}, now: 0.5, rate: 50},
		"some seconds":        {counts: steady(0, 10, 100), now: 10, rate: 100},
		"an hour":             {counts: steady(0, 3600, 7), now: 3600, rate: 7},
		"begun after a pause": {counts: append(steady(0, 100, 50), steady(3000, 3010, 9)...), now: 3010, rate: 9},
		"stopped":             {counts: steady(0, 60, 60), now: 90, rate: 30},
		"stopped for long":    {counts: steady(0, 60, 60), now: 121, rate: 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var m meter
			for _, n := range c.counts {
				m.add(at(n.at), n.n)
			}
			if got := m.rate(at(c.now)); got < 0.96*c.rate || got > 1.04*c.rate {
				t.Errorf("got %v, want about %v", got, c.rate)
			}
		})
	}
}

func TestMeterLosesNothing(t *testing.T) {
	t.Parallel()
	var m meter
	now := time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 10_000 {
				m.add(now, 1)
			}
		})
	}
	wg.Wait()
	if got := m.rate(now); got != 80_000 {
		t.Errorf("counted %v, want 80000", got)
	}
}
