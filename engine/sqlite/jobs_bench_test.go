package sqlite_test

import (
	"context"
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
	"github.com/forebayhq/forebay/engine/sqlite"
)

// BenchmarkJobs adds, hands out and settles, all at once and each with its fsync,
// as messages and as jobs, which have a ledger and a history.
func BenchmarkJobs(b *testing.B) {
	for _, kind := range []string{"messages", "jobs"} {
		for _, batch := range []int{1, 20} {
			b.Run(fmt.Sprint(kind, "/batch=", batch), func(b *testing.B) { benchmarkJobs(b, kind == "jobs", batch) })
		}
	}
}

func benchmarkJobs(b *testing.B, tracked bool, batch int) {
	e := open(b, sqlite.Config{Path: filepath.Join(b.TempDir(), "forebay.db")})
	left := atomic.Int64{}
	left.Store(int64(b.N))
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var done sync.WaitGroup
	b.ReportAllocs()
	before := cpuTime(b)
	b.ResetTimer()
	for range 32 {
		done.Go(func() { takeJobs(ctx, b, e, &left, cancel) })
	}
	var next atomic.Int64
	var opts *forebay.JobOptions
	if tracked {
		opts = &forebay.JobOptions{Keep: forebay.Retention{Finished: forebay.Keep{Age: time.Hour}}}
	}
	for range 64 {
		done.Go(func() {
			for {
				from := next.Add(int64(batch)) - int64(batch)
				if from >= int64(b.N) {
					return
				}
				msgs := make([]forebay.Message, min(int64(batch), int64(b.N)-from))
				for i := range msgs {
					n := from + int64(i)
					id := fmt.Sprintf("%08x-%04x-7%03x-8000-%012x", n>>16, n&0xffff, n%0x1000, n)
					msgs[i] = forebay.Message{ID: id, Queue: "q", Kind: "k", Payload: payload, Job: opts}
				}
				if _, err := e.Send(ctx, msgs); err != nil {
					b.Error(err)
				}
			}
		})
	}
	done.Wait()
	b.StopTimer()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "jobs/s")
	b.ReportMetric((cpuTime(b)-before)/float64(b.N), "cpu-ns/job")
}

// takeJobs works until none is left.
func takeJobs(ctx context.Context, b *testing.B, e *sqlite.Engine, left *atomic.Int64, cancel func()) {
	for ctx.Err() == nil {
		ds, err := e.Receive(ctx, engine.Receive{Queue: "q", Max: 20, Wait: time.Minute})
		if err != nil {
			return
		}
		s := make([]forebay.Settlement, len(ds))
		for i := range ds {
			s[i] = forebay.Settlement{Receipt: ds[i].Receipt, Verdict: forebay.Ack}
		}
		if _, err := e.Settle(context.WithoutCancel(ctx), s); err != nil {
			b.Error(err)
		}
		if left.Add(-int64(len(ds))) <= 0 {
			cancel()
		}
	}
}
