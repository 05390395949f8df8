package monitor

import (
	"sync/atomic"
	"time"
)

const (
	spanSlot  = time.Minute
	spanSlots = 6 // the one that fills, and five whole ones
)

// span sums what was seen in the last minutes. Like recent, it waits for nothing and
// may lose what comes in the moment in which a slot is taken over.
type span [spanSlots]struct{ epoch, sum, count atomic.Int64 }

func (s *span) add(now time.Time, v int64) {
	epoch := now.UnixNano() / int64(spanSlot)
	one := &s[epoch%spanSlots]
	if old := one.epoch.Load(); old != epoch && one.epoch.CompareAndSwap(old, epoch) {
		one.sum.Store(0)
		one.count.Store(0)
	}
	one.sum.Add(v)
	one.count.Add(1)
}

func (s *span) total(now time.Time) (sum, count int64) {
	epoch := now.UnixNano() / int64(spanSlot)
	for i := range s {
		if age := epoch - s[i].epoch.Load(); age >= 0 && age < spanSlots {
			sum, count = sum+s[i].sum.Load(), count+s[i].count.Load()
		}
	}
	return sum, count
}

// mean is how long a message of one queue takes its handler, over the last minutes,
// and what it was last, where there were none.
type mean struct {
	span
	last atomic.Int64
}

// value is 0 as long as nothing was ever measured.
func (m *mean) value(now time.Time) time.Duration {
	if sum, count := m.total(now); count > 0 {
		m.last.Store(max(1, sum/count))
	}
	return time.Duration(m.last.Load())
}
