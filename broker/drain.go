package broker

import (
	"math"
	"sync/atomic"
	"time"

	"github.com/forebayhq/forebay"
)

// DrainRate is how many messages a second left the queue for good (acked or
// dead), over the last minute or, if shorter, since the first of them left.
func (b *Broker) DrainRate(queue string) float64 {
	m, ok := b.meters.Load(queue)
	if !ok {
		return 0
	}
	return m.(*meter).rate(b.now())
}

// count adds what left for good to the meters of its queues.
func (b *Broker) count(s []forebay.Settlement, errs []error) {
	now := b.now()
	for i := 0; i < len(s); {
		queue, n := s[i].Queue, 0
		for ; i < len(s) && s[i].Queue == queue; i++ {
			if errs[i] == nil && (s[i].Verdict == forebay.Ack || s[i].Verdict == forebay.Dead) {
				n++
			}
		}
		if n > 0 && queue != "" {
			b.meter(queue).add(now, n)
		}
	}
}

func (b *Broker) meter(queue string) *meter {
	if m, ok := b.meters.Load(queue); ok {
		return m.(*meter)
	}
	m, _ := b.meters.LoadOrStore(queue, new(meter))
	return m.(*meter)
}

// meter counts by second in a ring. A slot holds the second (upper half) and
// the count (lower half) in one word, so that one compare-and-swap both counts
// and clears what an hour ago left there.
type meter [64]atomic.Uint64

const window = 60 // seconds; shorter than the ring

func (m *meter) add(now time.Time, n int) {
	second := uint32(now.Unix())
	slot := &m[second%uint32(len(m))]
	for {
		old := slot.Load()
		sum := uint64(n)
		if uint32(old>>32) == second {
			sum += old & math.MaxUint32
		}
		if slot.CompareAndSwap(old, uint64(second)<<32|min(sum, math.MaxUint32)) {
			return
		}
	}
}

func (m *meter) rate(now time.Time) float64 {
	second := uint32(now.Unix())
	var total uint64
	var oldest uint32 // age of the oldest second that counted
	for i := range m {
		slot := m[i].Load()
		age := second - uint32(slot>>32)
		if age < window && slot&math.MaxUint32 > 0 {
			total += slot & math.MaxUint32
			oldest = max(oldest, age)
		}
	}
	if total == 0 {
		return 0
	}
	part := float64(now.Nanosecond()) / float64(time.Second)
	return float64(total) / max(1, float64(oldest)+part)
}
