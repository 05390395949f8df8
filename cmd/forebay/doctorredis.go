package main

import (
	"context"
	"fmt"
	"slices"

	"github.com/dustin/go-humanize"

	"github.com/forebayhq/forebay/engine/redis"
)

// redis looks at the Redis that keeps jobs, if one does: how far it keeps what it has
// said to keep, and which queues BullMQ workers work too.
func (d *doctor) redis(ctx context.Context) []finding {
	const name = "redis"
	r := &d.settings.Redis
	if r.Address() == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, 3*redisTimeout)
	defer cancel()
	cfg := redisConfig(d.settings)
	cfg.Timeout = min(cfg.Timeout, redisTimeout)
	e, err := redis.Open(ctx, cfg)
	if err != nil {
		err = redisError(r, err)
		return []finding{fail(name, hintOf(err), err)}
	}
	defer e.Close()
	is, err := e.Server(ctx)
	if err != nil {
		return []finding{fail(name, "", err)}
	}
	memory := humanize.IBytes(uint64(is.Used)) + " of memory"
	if is.Most > 0 {
		memory += " of " + humanize.IBytes(uint64(is.Most))
	}
	all := []finding{ok(name, "%s, version %s, prefix %s, %s", redisName(r), is.Version, r.Prefix, memory)}
	if is.Most > 0 && is.Used > is.Most/10*9 {
		all = append(all, warn(name, "raise maxmemory, or let queues drain: when it is full nothing can be added", "its memory is nearly full"))
	}
	found, err := e.Audit(ctx)
	if err != nil {
		all = append(all, warn(name, "", "its settings could not be read: %v", err))
	}
	for _, f := range found {
		all = append(all, warn("redis "+f.Code, f.Hint, "%s", f.Text))
	}
	return slices.Concat(all, nodeWorkers(ctx, e), unreadable(ctx, d.settings, e))
}

// nodeWorkers says what BullMQ workers on our queues will not keep.
func nodeWorkers(ctx context.Context, e *redis.Engine) []finding {
	const name = "redis workers"
	queues, err := e.NodeWorkers(ctx)
	if err != nil {
		return []finding{warn(name, "allow CLIENT LIST to this user", "who else works the queues is not known: %v", err)}
	}
	var all []finding
	for _, q := range queues {
		text := fmt.Sprintf("queue %s is worked by %d BullMQ workers too: jobs that they take cannot be cancelled while they run, "+
			"have no timeout and no deadline, do not age by priority and are not in the history", q.Queue, q.Workers)
		if q.Limits.Rate.Count > 0 {
			text += "; they do not keep its rate"
		}
		all = append(all, warn(name, "docs/redis.md tells what holds in a mixed fleet", "%s", text))
	}
	return all
}
