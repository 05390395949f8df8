//go:build linux

package main

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// watch looks at what the processes hold: now and then under load, and when they are idle.
type watch struct {
	s *stand

	mu      sync.Mutex // guards all below
	samples map[string][]sample
	base    map[string]size // idle, by process
	atRest  []idleSize
}

type sample struct {
	at time.Time
	size
}

// idleSize is what a process held after a round, when nothing was under way.
type idleSize struct {
	Process string `json:"process"`
	size
	BaseFiles      int `json:"baseFiles"`
	BaseGoroutines int `json:"baseGoroutines"`
}

func newWatch(s *stand) *watch {
	return &watch{s: s, samples: map[string][]sample{}, base: map[string]size{}}
}

func (w *watch) run(ctx context.Context) {
	for rest(ctx, 2*time.Second) {
		for _, n := range w.s.all() {
			m, err := n.measure(ctx)
			if err != nil {
				continue // it is down
			}
			w.mu.Lock()
			w.samples[n.name] = append(w.samples[n.name], sample{time.Now(), m})
			w.mu.Unlock()
		}
	}
}

// What an idle process may hold beyond what it held when it was first idle: connections that
// are kept for the next call, and the goroutines that serve them.
const (
	moreGoroutines = 40
	moreFiles      = 24
	idleWithin     = 90 * time.Second
)

// first measures each process before there is any load.
func (w *watch) first(ctx context.Context) error {
	rest(ctx, 3*time.Second)
	for _, n := range w.s.all() {
		m, err := n.measure(ctx)
		if err != nil {
			return err
		}
		w.base[n.name] = m
	}
	return nil
}

// idle waits until each process has let go of what a round took.
func (w *watch) idle(ctx context.Context, b *book) error {
	client.CloseIdleConnections()
	for _, n := range w.s.all() {
		base := w.base[n.name]
		deadline := time.Now().Add(idleWithin)
		for {
			m, err := n.measure(ctx)
			if err != nil {
				return err
			}
			fat := m.Goroutines > base.Goroutines+moreGoroutines || m.Files > base.Files+moreFiles
			if fat && time.Now().Before(deadline) && rest(ctx, time.Second) {
				continue
			}
			if fat {
				b.mu.Lock()
				b.find(time.Now(), "process", n.name, "idle for %s it has %d goroutines and %d files; before any load it had %d and %d",
					idleWithin, m.Goroutines, m.Files, base.Goroutines, base.Files)
				b.mu.Unlock()
			}
			w.mu.Lock()
			w.atRest = append(w.atRest, idleSize{n.name, m, base.Files, base.Goroutines})
			w.mu.Unlock()
			break
		}
	}
	return nil
}

// growth is how the memory of a process went in its last life.
type growth struct {
	Process   string  `json:"process"`
	Seconds   float64 `json:"seconds"` // that were looked at: the second half of its last life
	FromKiB   int     `json:"fromKiB"` // a straight line through all that was measured
	ToKiB     int     `json:"toKiB"`
	PeakKiB   int     `json:"peakKiB"`
	KiBPerMin float64 `json:"kibPerMinute"`
	Short     bool    `json:"tooShort,omitempty"` // to be judged
}

// Less than this says nothing of whether memory grows.
const leastLife = 4 * time.Minute

// memory judges the last life of each process.
func (w *watch) memory(b *book) (all []growth) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, n := range w.s.all() {
		g, ok := grown(w.samples[n.name])
		if !ok {
			continue
		}
		g.Process = n.name
		all = append(all, g)
		if more := g.ToKiB - g.FromKiB; !g.Short && more > 16<<10+g.FromKiB/10 {
			b.mu.Lock()
			b.find(time.Now(), "process", n.name, "its memory grew from %d to %d KiB within %.0f s under an even load", g.FromKiB, g.ToKiB, g.Seconds)
			b.mu.Unlock()
		}
	}
	return all
}

// grown fits a line through the second half of the last life.
func grown(all []sample) (g growth, ok bool) {
	from := len(all)
	for from > 0 && all[from-1].Life == all[len(all)-1].Life {
		from--
	}
	life := all[from:]
	if len(life) < 4 {
		return g, false
	}
	g.Short = life[len(life)-1].at.Sub(life[0].at) < leastLife
	half := life[len(life)/2:]
	var n, sx, sy, sxx, sxy float64
	for _, s := range half {
		x, y := s.at.Sub(half[0].at).Seconds(), float64(s.RSS)
		n, sx, sy, sxx, sxy = n+1, sx+x, sy+y, sxx+x*x, sxy+x*y
		g.PeakKiB = max(g.PeakKiB, s.RSS)
	}
	spread := n*sxx - sx*sx
	if spread == 0 {
		return g, false
	}
	slope := (n*sxy - sx*sy) / spread
	start := (sy - slope*sx) / n
	g.Seconds = half[len(half)-1].at.Sub(half[0].at).Seconds()
	g.FromKiB, g.ToKiB, g.KiBPerMin = int(start), int(start+slope*g.Seconds), slope*60
	return g, true
}

func (g growth) String() string {
	return fmt.Sprintf("%s %d → %d MiB in %.0f s", g.Process, g.FromKiB>>10, g.ToKiB>>10, g.Seconds)
}
