package monitor

import (
	"math"
	"sync/atomic"
	"time"
)

// Latency is how long something took lately.
type Latency struct {
	Count int64   `json:"count" doc:"What the quantiles are of: the last minute."`
	P50ms float64 `json:"p50ms"`
	P99ms float64 `json:"p99ms"`
}

const (
	slotTime = 10 * time.Second
	slots    = 7 // the one that fills, and six whole ones
	bins     = 192
	binBase  = 10 * time.Microsecond
	binRatio = 1.1 // so a quantile is right within 5 %
)

// recent counts durations of the last minute in bins that grow by binRatio, from
// 10 µs to over 10 minutes. Counts of the moment in which a slot is taken over may
// be lost; nothing waits for anything.
type recent [slots]slot

type slot struct {
	epoch  atomic.Int64
	counts [bins]atomic.Int64
}

func (r *recent) add(now time.Time, d time.Duration) {
	epoch := now.UnixNano() / int64(slotTime)
	s := &r[epoch%slots]
	if old := s.epoch.Load(); old != epoch && s.epoch.CompareAndSwap(old, epoch) {
		for i := range s.counts {
			s.counts[i].Store(0)
		}
	}
	s.counts[binOf(d)].Add(1)
}

func binOf(d time.Duration) int {
	if d <= binBase {
		return 0
	}
	return min(bins-1, int(math.Log(float64(d)/float64(binBase))/math.Log(binRatio))+1)
}

func (r *recent) latency(now time.Time) Latency {
	epoch := now.UnixNano() / int64(slotTime)
	var counts [bins]int64
	var total int64
	for i := range r {
		if age := epoch - r[i].epoch.Load(); age < 0 || age >= slots {
			continue
		}
		for b := range counts {
			n := r[i].counts[b].Load()
			counts[b] += n
			total += n
		}
	}
	return Latency{Count: total, P50ms: quantile(&counts, total, 0.50), P99ms: quantile(&counts, total, 0.99)}
}

// quantile gives milliseconds.
func quantile(counts *[bins]int64, total int64, q float64) float64 {
	rank := int64(math.Ceil(q * float64(total)))
	for b, n := range counts {
		if rank -= n; rank <= 0 && n > 0 {
			middle := float64(binBase) * math.Pow(binRatio, float64(b)-0.5)
			return math.Round(middle/float64(time.Microsecond)) / 1000
		}
	}
	return 0
}
