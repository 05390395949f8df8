package broker_test

import (
	"strings"
	"testing"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/broker"
	"github.com/forebayhq/forebay/engine"
	"github.com/forebayhq/forebay/engine/redis"
	"github.com/forebayhq/forebay/internal/redistest"
)

// What takes its worker down again and again is among the causes as poison, on every
// engine that keeps dead letters; a replay of it may be handed out as often once more.
func TestPoisonIsACauseOnEveryEngine(t *testing.T) {
	t.Parallel()
	whole, portable := letters(t)
	server := redistest.Start(t, redistest.Config{})
	onRedis := open(t, must[*redis.Engine](t)(redis.Open(t.Context(), redis.Config{URL: server.URL(0)})), broker.Config{})
	for name, b := range map[string]*broker.Broker{"sqlite": whole, "one that only lists": portable, "redis": onRedis} {
		m := message("poison")
		m.Limits.Deliveries, m.Job = 2, &forebay.JobOptions{}
		must[[]forebay.SendResult](t)(b.Send(t.Context(), []forebay.Message{m}))
		for range 2 {
			if ds := receiveOf(t, b, engine.Receive{Queue: "q", Max: 1, Lease: 100 * time.Millisecond, Wait: 20 * time.Second}); len(ds) != 1 {
				t.Fatalf("%s: handed out %+v", name, ds)
			}
		}
		next := message("next")
		next.NotBefore = time.Now().Add(time.Second)
		must[[]forebay.SendResult](t)(b.Send(t.Context(), []forebay.Message{next}))
		if ds := receiveOf(t, b, engine.Receive{Queue: "q", Max: 1, Wait: 20 * time.Second}); len(ds) != 1 || ds[0].ID != "next" {
			t.Fatalf("%s: handed out %+v", name, ds)
		}
		page, _, err := b.DeadGroups(t.Context(), engine.DeadGroupQuery{Code: "poison"})
		if err != nil || len(page.Groups) != 1 || page.Groups[0].Count != 1 || page.Groups[0].Kind != m.Kind || page.Groups[0].Text == "" || strings.Contains(page.Groups[0].Text, "2") {
			t.Errorf("%s: the causes are %+v, %v", name, page, err)
			continue
		}
		results := must[[]broker.ReplayResult](t)(b.ReplayDead(t.Context(), []int64{page.Groups[0].Sample}))
		ds := receiveOf(t, b, engine.Receive{Queue: "q", Max: 1, Wait: 20 * time.Second})
		if results[0].Err != nil || len(ds) != 1 || ds[0].Deliveries != 1 || ds[0].Headers[broker.HeaderReplayOf] != "poison" {
			t.Errorf("%s: the replay %+v is handed out as %+v", name, results, ds)
		}
	}
}
