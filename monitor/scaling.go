package monitor

import (
	"context"
	"math"
	"time"

	"github.com/forebayhq/forebay"
)

// Target is what the workers of a queue are to keep.
type Target struct {
	Latency     time.Duration // how long a message may wait for its handler; 0: 30 s
	Concurrency int           // of one worker, where none runs in this process; 0: 10
}

const (
	targetLatency     = 30 * time.Second
	targetConcurrency = 10
	targetUse         = 0.8 // of the slots; it rises before a backlog does
)

// Slots is a worker that tells how many of its slots are in use (worker.Worker).
type Slots interface {
	Slots() (busy, all int)
}

// Watch shows the slots of a worker of a queue.
func (m *Monitor) Watch(queue string, s Slots) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.slots[queue] = append(m.slots[queue], s)
}

// Scaling is what an autoscaler follows: how many workers a queue wants.
//
//	wanted slots = max(waiting × mean time / target latency, active / 0.8)
//	desired      = wanted slots / slots of a worker, rounded up
//
// Waiting and active count over all servers that share the queue; the mean time and
// the slots are those of this process.
type Scaling struct {
	Queue          string  `json:"queue"`
	DesiredWorkers int     `json:"desiredWorkers" doc:"Workers that the queue wants, of all servers together. 0 where there is nothing to do."`
	Waiting        int64   `json:"waiting"`
	Active         int64   `json:"active" doc:"Leased, of all servers together: those that handlers work on, and those that a worker has fetched ahead."`
	MeanSeconds    float64 `json:"meanSeconds" doc:"What a message takes its handler, over the last minutes; 0: nothing was measured here yet."`
	LatencySeconds float64 `json:"latencySeconds" doc:"How long a message may wait: queues.<name>.targetLatency."`
	SlotsPerWorker int     `json:"slotsPerWorker"`
	Slots          int     `json:"slots" doc:"Of this process."`
	SlotsUsed      int     `json:"slotsUsed" doc:"Handlers at work, of this process."`

	AcceptableBacklog float64 `json:"acceptableBacklogPerWorker" doc:"Messages that may wait for each worker: the target value for tracking the backlog per worker. 0: nothing was measured here yet."`
}

// Scaling tells how many workers queues want; without names, of all that exist.
func (m *Monitor) Scaling(ctx context.Context, queues ...string) ([]Scaling, error) {
	if m.cfg.Broker == nil {
		return nil, nil
	}
	stats, err := m.cfg.Broker.Stats(ctx, queues...)
	if err != nil {
		return nil, err
	}
	all := make([]Scaling, len(stats))
	for i := range stats {
		all[i] = m.scale(&stats[i])
	}
	return all, nil
}

func (m *Monitor) scale(q *forebay.QueueStats) Scaling {
	t := m.cfg.Targets(q.Queue)
	fill(&t.Latency, targetLatency)
	fill(&t.Concurrency, targetConcurrency)
	v := Scaling{Queue: q.Queue, Waiting: q.Waiting, Active: q.Active, LatencySeconds: t.Latency.Seconds(), SlotsPerWorker: t.Concurrency}
	m.mu.Lock()
	workers := m.slots[q.Queue]
	m.mu.Unlock()
	for _, s := range workers {
		busy, all := s.Slots()
		v.SlotsUsed, v.Slots = v.SlotsUsed+busy, v.Slots+all
	}
	if v.Slots > 0 {
		v.SlotsPerWorker = v.Slots
	}
	busy := q.Active // over all servers
	if known, ok := (*m.work.queues.known.Load())[q.Queue]; ok {
		v.MeanSeconds = known.mean.value(m.cfg.Now()).Seconds()
		if known.batched.Load() { // a batch is many leases and one slot; those of others are not known
			busy = int64(v.SlotsUsed)
		}
	}
	wanted := max(float64(q.Waiting)*v.MeanSeconds/v.LatencySeconds, float64(busy)/targetUse)
	if q.Waiting > 0 {
		wanted = max(wanted, 1) // somebody has to begin, and to measure
	}
	v.DesiredWorkers = int(math.Ceil(wanted / float64(v.SlotsPerWorker)))
	if v.MeanSeconds > 0 {
		v.AcceptableBacklog = v.LatencySeconds / v.MeanSeconds * float64(v.SlotsPerWorker)
	}
	return v
}

func fill[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}
