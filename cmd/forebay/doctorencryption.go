package main

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/forebayhq/forebay/cmd/forebay/internal/config"
	"github.com/forebayhq/forebay/engine/redis"
)

// encryption looks whether the keys of the settings can be read. Which of them a store needs
// its server says when it starts.
func (d *doctor) encryption(context.Context) []finding {
	const name = "encryption"
	s := d.settings
	if len(s.EncryptionKeys) == 0 {
		return nil
	}
	keys, err := masterKeys(s)
	if err != nil {
		return []finding{fail(name, "", err)}
	}
	if keys.Current() == "" {
		return []finding{warn(name, "set encryption.current", "keys are given, and nothing new is sealed")}
	}
	said := "new payloads are sealed by " + keys.Current()
	if d.server == nil {
		said = "new payloads will be sealed by " + keys.Current() + "; whether what is stored needs other keys the server says when it starts"
	}
	if plain := plainQueues(s); len(plain) > 0 {
		said += "; not sealed are those of " + strings.Join(plain, ", ")
	}
	return []finding{ok(name, "%s", said)}
}

// plainQueues are those of the settings that are not sealed.
func plainQueues(s *config.Settings) []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(s.Queues)), func(q string) bool { return s.Queues[q].Encrypt })
}

// unreadable says which queues BullMQ workers take jobs from that they cannot read.
func unreadable(ctx context.Context, s *config.Settings, e *redis.Engine) []finding {
	if s.Encryption.Current == "" {
		return nil
	}
	queues, err := e.NodeWorkers(ctx)
	if err != nil {
		return nil // nodeWorkers has told
	}
	var all []finding
	for _, q := range queues {
		if s.Queue(q.Queue).Encrypt {
			all = append(all, warn("redis workers", "set queues."+q.Queue+".encrypt: false, or let Forebay's workers alone work it",
				"queue %s is worked by BullMQ workers, and its jobs are sealed: they are given data that they cannot read", q.Queue))
		}
	}
	return all
}
