package worker_test

import (
	"context"
	"fmt"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/broker"
	"github.com/forebayhq/forebay/engine/sqlite"
	"github.com/forebayhq/forebay/worker"
)

// BenchmarkWorker drains a queue that was filled before, with handlers that do
// nothing: what the loop, the leases and the settling cost, per message.
func BenchmarkWorker(b *testing.B) {
	for name, cfg := range map[string]worker.Config{
		"single-10":  {Concurrency: 10},
		"single-100": {Concurrency: 100},
		"batch-100":  {BatchMax: 100},
		"batch-500":  {BatchMax: 500},
	} {
		for _, groups := range []int{0, 1000} {
			b.Run(fmt.Sprintf("%s/groups-%d", name, groups), func(b *testing.B) { drain(b, cfg, groups, nil) })
		}
	}
	// Jobs, with all that is kept of them, and the watcher that reads it.
	b.Run("jobs-100", func(b *testing.B) { drain(b, worker.Config{Concurrency: 100}, 0, &forebay.JobOptions{}) })
}

func drain(b *testing.B, cfg worker.Config, groups int, options *forebay.JobOptions) {
	e, err := sqlite.Open(sqlite.Config{Path: filepath.Join(b.TempDir(), "forebay.db")})
	if err != nil {
		b.Fatal(err)
	}
	br, err := broker.New(e, broker.Config{})
	if err != nil {
		b.Fatal(err)
	}
	defer br.Close()
	payload := make([]byte, 300)
	for left := b.N; left > 0; {
		msgs := make([]forebay.Message, min(left, 1000))
		for i := range msgs {
			msgs[i] = forebay.Message{Queue: queue, Payload: payload, Job: options}
			if groups > 0 {
				msgs[i].Group = fmt.Sprint("g", (left-i)%groups)
			}
		}
		left -= len(msgs)
		if _, err := br.Send(b.Context(), msgs); err != nil {
			b.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancel(b.Context())
	defer cancel()
	var done atomic.Int64
	cfg.Queue = queue
	cfg.Observe.Settled = func(worker.Outcome) {
		if done.Add(1) == int64(b.N) {
			cancel()
		}
	}
	if options != nil {
		cfg.Jobs = worker.JobFunc(func(context.Context, *worker.Job) ([]byte, error) { return nil, nil })
		watched := make(chan error, 1)
		watching, endWatch := context.WithCancel(b.Context())
		go func() { watched <- br.Watcher().Run(watching) }()
		<-br.Watcher().Ready()
		defer func() {
			endWatch()
			if err := <-watched; err != nil {
				b.Error(err)
			}
		}()
	} else if cfg.BatchMax > 0 {
		cfg.Batch = worker.BatchFunc(func(context.Context, []forebay.Delivery) []error { return nil })
	} else {
		cfg.Handler = worker.HandlerFunc(func(context.Context, forebay.Delivery) error { return nil })
	}
	w, err := worker.New(br, cfg)
	if err != nil {
		b.Fatal(err)
	}
	b.ResetTimer()
	start := time.Now()
	if err := w.Run(ctx); err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(b.N)/time.Since(start).Seconds(), "msg/s")
}
