package config

import "time"

// Health settings: when a queue is no longer healthy.
type Health struct {
	Dead    int64
	Waiting int64
	Age     time.Duration
	Drain   time.Duration
	Idle    time.Duration
}

func (s *Settings) healthTable() []*setting {
	h := &s.Health
	return []*setting{
		{key: "payloads.mask", value: words(&s.Mask),
			doc: "What of payloads, results, inputs and outputs only admin keys and those with the scope payload see: a name such as password, wherever it stands; a path such as user.email or items.*.card, at any depth; * alone: all. Others see ***."},
		{key: "health.dead", value: number(&h.Dead, 100, 0, 1_000_000_000),
			doc: "With more dead letters than this a queue is critical (/api/health)."},
		{key: "health.waiting", value: number(&h.Waiting, 1000, 0, 1_000_000_000),
			doc: "With more waiting messages than this a queue has a warning."},
		{key: "health.age", value: duration(&h.Age, 10*time.Minute, time.Second, 365*day),
			doc: "With a message that has waited longer than this a queue has a warning."},
		{key: "health.drain", value: duration(&h.Drain, time.Hour, time.Second, 365*day),
			doc: "With a backlog that takes longer than this, at the rate of the last minute, a queue has a warning."},
		{key: "health.idle", value: duration(&h.Idle, time.Minute, time.Second, 365*day),
			doc: "With a message that has waited longer than this, and nobody who takes any, a queue is critical."},
	}
}
