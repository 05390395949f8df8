package monitor

import (
	"sync/atomic"
	"time"
)

// Durations are how long handlers of a queue took, minute by minute, on this server.
type Durations struct {
	From   time.Time  `json:"from" doc:"When the first minute begins."`
	Bounds []float64  `json:"bounds" nullable:"false" doc:"Seconds up to which each row of a minute counts; one more row counts what took longer."`
	Counts [][]uint32 `json:"counts" nullable:"false" doc:"By minute, the oldest first, and row."`
}

// Bounds of what is kept of each queue: 5 kB.
const (
	durationMinutes = 60
	durationRows    = 13
)

func durationBounds() []float64 {
	return []float64{.001, .003, .01, .03, .1, .3, 1, 3, 10, 30, 60, 300}
}

// minutes counts durations of the last hour. Counts of the moment in which a minute is
// taken over may be lost; nothing waits for anything.
type minutes [durationMinutes]minute

type minute struct {
	epoch  atomic.Int64
	counts [durationRows]atomic.Uint32
}

func (m *minutes) add(now time.Time, d time.Duration) {
	epoch := now.Unix() / 60
	s := &m[epoch%durationMinutes]
	if old := s.epoch.Load(); old != epoch && s.epoch.CompareAndSwap(old, epoch) {
		for i := range s.counts {
			s.counts[i].Store(0)
		}
	}
	row := 0
	for _, bound := range durationBounds() {
		if d.Seconds() > bound {
			row++
		}
	}
	s.counts[row].Add(1)
}

func (m *minutes) durations(now time.Time) Durations {
	last := now.Unix() / 60
	first := last - durationMinutes + 1
	v := Durations{From: time.Unix(first*60, 0).UTC(), Bounds: durationBounds(), Counts: make([][]uint32, durationMinutes)}
	for i := range v.Counts {
		v.Counts[i] = make([]uint32, durationRows)
		epoch := first + int64(i)
		s := &m[epoch%durationMinutes]
		if s.epoch.Load() != epoch {
			continue
		}
		for row := range v.Counts[i] {
			v.Counts[i][row] = s.counts[row].Load()
		}
	}
	return v
}

// Durations tells how long handlers of a queue took in the last hour; of one that has had
// none here, nothing.
func (m *Monitor) Durations(queue string) Durations {
	if q, ok := (*m.work.queues.known.Load())[queue]; ok {
		return q.durations.durations(m.cfg.Now())
	}
	return new(minutes).durations(m.cfg.Now())
}
