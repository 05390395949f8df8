package main

import (
	"context"
	"log/slog"
	"testing"

	"github.com/forebayhq/forebay/cmd/forebay/internal/config"
)

// All workers of a server show their slots, also those of flows and of jobs over SQS, and
// those that tune themselves begin within their bounds.
func TestAllWorkersShowTheirSlots(t *testing.T) {
	t.Parallel()
	given := map[string]string{
		"data.dir": t.TempDir(), "server.listen": "127.0.0.1:0", "sqsApi.listen": "off", "sqs.region": "eu-central-1", "sqs.endpoint": "http://127.0.0.1:1",
		"queues.work.sqs": "http://127.0.0.1:1/000000000000/work", "queues.work.concurrency": "auto", "queues.work.concurrencyMax": "40",
		"handlers.nothing.queue": "work", "handlers.nothing.command": "true", "queues.images.concurrency": "3",
	}
	var flags []config.Flag
	for key, value := range given {
		flags = append(flags, config.Flag{Name: key, Key: key, Value: value})
	}
	settings, err := config.Load(config.Sources{Flags: flags, Env: func(string) (string, bool) { return "", false }})
	if err != nil {
		t.Fatal(err)
	}
	s, err := openServer(settings, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.close(); err != nil {
			t.Error(err)
		}
	}()
	want := map[string]int{"flows": runsAtOnce, "flows-advance": advancesAtOnce, "work": 10, "images": 3, "events": 1}
	for queue, slots := range want {
		all, err := s.monitor.Scaling(context.WithoutCancel(t.Context()), queue)
		if err != nil || len(all) != 1 || all[0].Slots != slots {
			t.Errorf("%s: %+v, %v; want %d slots", queue, all, err, slots)
		}
	}
}
