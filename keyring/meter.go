package keyring

import (
	"math"
	"sync"
	"time"

	"github.com/forebayhq/forebay"
)

// meter counts the events of one key: a token bucket for its rate and a counter
// for its UTC day.
type meter struct {
	mu     sync.Mutex
	tokens float64
	at     time.Time // when tokens was right; zero: the bucket is full
	day    int64
	today  int64
}

// Spend takes events from the rate and the daily quota of a key, all or none. Over
// one of them it gives CodeLimited and how long to wait before the same call may
// succeed.
//
// A batch larger than the burst passes when the bucket is full and leaves it in
// debt; else it could never pass. So in no window of length w do more events pass
// than burst + rate×w and one batch.
func (r *Ring) Spend(keyID string, events int) (wait time.Duration, err error) {
	e := r.view.Load().byID[keyID]
	if e == nil {
		return 0, forebay.Errorf(forebay.CodeNotFound, "keyring: spend", "no key has the id %q", keyID)
	}
	if events <= 0 {
		return 0, nil
	}
	wait, err = e.meter.spend(&e.Key, float64(events), r.cfg.Now())
	if err == nil {
		r.changed()
	}
	return wait, err
}

// Refund gives back what Spend took for events that could not be stored then: an
// outage must not use up the quota of a client that tries again and again.
func (r *Ring) Refund(keyID string, events int) {
	e := r.view.Load().byID[keyID]
	if e == nil || events <= 0 {
		return
	}
	m := e.meter
	m.mu.Lock()
	defer m.mu.Unlock()
	m.turn(r.cfg.Now())
	m.today = max(0, m.today-int64(events))
	m.tokens += float64(events) // refill keeps it within the burst
	r.changed()
}

func (m *meter) spend(k *Key, n float64, now time.Time) (time.Duration, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.turn(now)
	if k.DailyQuota > 0 && m.today > k.DailyQuota-int64(n) {
		midnight := time.Unix((m.day+1)*86400, 0)
		return midnight.Sub(now), forebay.Errorf(forebay.CodeLimited, "keyring: spend",
			"the key %s (%s) has used %d of its %d events of this day (UTC)", k.ID, k.Name, m.today, k.DailyQuota)
	}
	if k.Rate > 0 {
		burst := float64(k.Burst)
		if burst == 0 {
			burst = math.Max(1, k.Rate)
		}
		m.refill(k.Rate, burst, now)
		if need := math.Min(n, burst); m.tokens < need {
			wait := time.Duration(math.Ceil((need - m.tokens) / k.Rate * float64(time.Second)))
			return wait, forebay.Errorf(forebay.CodeLimited, "keyring: spend",
				"the key %s (%s) is over its %g events per second", k.ID, k.Name, k.Rate)
		}
		m.tokens -= n
	}
	m.today += int64(n)
	return 0, nil
}

// turn begins a new count when the UTC day has changed. A clock that goes back
// over midnight changes nothing, so that no quota is given twice; one that goes back
// further was wrong before, and must not hold a key to a day years ahead.
func (m *meter) turn(now time.Time) {
	if d := day(now); d > m.day || d < m.day-1 {
		m.day, m.today = d, 0
	}
}

func (m *meter) refill(rate, burst float64, now time.Time) {
	if m.at.IsZero() {
		m.tokens, m.at = burst, now
	}
	if passed := now.Sub(m.at); passed > 0 {
		m.tokens = math.Min(burst, m.tokens+passed.Seconds()*rate)
		m.at = now
	}
}

// UsedToday is how many events a key has spent on this UTC day.
func (r *Ring) UsedToday(keyID string) int64 {
	e := r.view.Load().byID[keyID]
	if e == nil {
		return 0
	}
	e.meter.mu.Lock()
	defer e.meter.mu.Unlock()
	e.meter.turn(r.cfg.Now())
	return e.meter.today
}

// day is the UTC day of a time, counted from 1970.
func day(t time.Time) int64 { return t.Unix() / 86400 }
