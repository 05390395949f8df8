package main

import (
	"github.com/forebayhq/forebay/api"
	"github.com/forebayhq/forebay/cmd/forebay/internal/config"
	"github.com/forebayhq/forebay/event"
	"github.com/forebayhq/forebay/worker"
)

// autoOf are the bounds of a concurrency that tunes itself; nil: it is fixed.
func autoOf(q config.Queue) *worker.Concurrency {
	if q.Concurrency != 0 {
		return nil
	}
	return &worker.Concurrency{Min: int(q.ConcurrencyMin), Max: int(q.ConcurrencyMax)}
}

// autoWriters is autoOf for the writes of events, of which there are no more than
// connections.
func (s *server) autoWriters() *worker.Concurrency {
	auto, most := autoOf(s.settings.Queue(event.Queue)), s.writers()
	if auto == nil || most == 1 {
		return nil
	}
	auto.Max = min(auto.Max, most)
	auto.Min = min(auto.Min, auto.Max)
	return auto
}

// watch shows how many of a worker's slots are in use, and lets people set how many there are.
func (s *server) watch(queue string, w *worker.Worker) {
	s.monitor.Watch(queue, w)
	if s.tuned == nil {
		s.tuned = map[string]api.Tuned{}
	}
	s.tuned[queue] = w
}
