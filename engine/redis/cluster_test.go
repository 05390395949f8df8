package redis_test

import (
	"strings"
	"testing"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
	"github.com/forebayhq/forebay/engine/redis"
	"github.com/forebayhq/forebay/internal/redistest"
)

// On a cluster all keys of a prefix are in one slot, by a hash tag that Open sets.
func TestCluster(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, redistest.Config{Settings: map[string]string{"cluster-enabled": "yes"}})
	cfg := redis.Config{URL: "redis://" + s.Addr(), Cluster: true, Timeout: 2 * time.Second}
	if _, err := redis.Open(t.Context(), cfg); forebay.CodeOf(err) != forebay.CodeUnavailable {
		t.Fatalf("open of a cluster without slots gave %v, want code unavailable", err)
	}
	command(t, s, "cluster", "addslotsrange", "0", "16383")
	var e *redis.Engine
	for end := time.Now().Add(20 * time.Second); e == nil; {
		var err error
		if e, err = redis.Open(t.Context(), cfg); err != nil && time.Now().After(end) {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { _ = e.Close() })
	m := forebay.Message{ID: "a", Queue: "q", Group: "g", Payload: []byte("1"), Job: &forebay.JobOptions{Tenant: "t"}}
	p := &pair{t: t, s: s, e: e}
	p.send(m)
	ds, err := e.Receive(t.Context(), engine.Receive{Queue: "q", Max: 1, Wait: 5 * time.Second})
	if err != nil || len(ds) != 1 {
		t.Fatalf("receive gave %v, %v", ds, err)
	}
	p.settle(ds[0], forebay.Ack, "1")
	if ds, err := e.Receive(t.Context(), engine.Receive{Queue: "q", Max: 1, Wait: 100 * time.Millisecond}); err != nil || len(ds) > 0 {
		t.Fatalf("a wait for nothing gave %v, %v", ds, err)
	}
	keys, err := client(t, s).Keys(t.Context(), "*").Result()
	if err != nil || len(keys) == 0 {
		t.Fatalf("keys: %v, %v", keys, err)
	}
	for _, k := range keys {
		if !strings.HasPrefix(k, "{bull}:") {
			t.Errorf("key %s is not in the slot of the others", k)
		}
	}
}
