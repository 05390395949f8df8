package redis

import (
	"cmp"
	"context"
	"encoding/base64"
	"slices"
	"strings"

	"github.com/forebayhq/forebay/engine"
)

// NodeWorkers tells of a queue that BullMQ workers work too.
type NodeWorkers struct {
	Queue   string
	Workers int
	Limits  engine.QueueLimits // as we keep them; they keep Paused and Active only
}

// NodeWorkers looks for BullMQ workers on queues of the prefix, by the names of their
// connections, as BullMQ's own getWorkers does. On a cluster one node is asked.
func (e *Engine) NodeWorkers(ctx context.Context) ([]NodeWorkers, error) {
	if err := e.enter(); err != nil {
		return nil, err
	}
	defer e.leave()
	asked, cancel := context.WithTimeout(ctx, e.cfg.Timeout)
	defer cancel()
	clients, err := e.client.ClientList(asked).Result()
	if err != nil {
		return nil, e.fault(err)
	}
	count := make(map[string]int)
	for line := range strings.Lines(clients) {
		if queue, ok := e.workerOf(line); ok {
			count[queue]++
		}
	}
	all := make([]NodeWorkers, 0, len(count))
	for queue, n := range count {
		limits, err := e.QueueLimits(ctx, queue)
		if err != nil {
			return nil, err
		}
		all = append(all, NodeWorkers{queue, n, limits})
	}
	slices.SortFunc(all, func(a, b NodeWorkers) int { return cmp.Compare(a.Queue, b.Queue) })
	return all, nil
}

// workerOf reads the queue of a worker from a line of CLIENT LIST.
func (e *Engine) workerOf(line string) (queue string, ok bool) {
	_, name, _ := strings.Cut(line, " name=")
	name, _, _ = strings.Cut(name, " ")
	name, ok = strings.CutPrefix(name, e.cfg.Prefix+":")
	if !ok {
		return "", false
	}
	encoded, suffix, _ := strings.Cut(name, ":")
	b, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil || len(b) == 0 || suffix != "" && !strings.HasPrefix(suffix, "w:") || strings.HasPrefix(suffix, oursNamed) {
		return "", false // such as QueueEvents, or one of ours
	}
	return string(b), true
}
