package sqs_test

import (
	"fmt"
	"net/http/httptest"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
	"github.com/forebayhq/forebay/engine/sqlite"
	"github.com/forebayhq/forebay/engine/sqs"
	"github.com/forebayhq/forebay/sqsapi"
	"github.com/forebayhq/forebay/sqsapi/queue"
)

// BenchmarkRoundTrip moves messages over TCP through the AWS SDK, our endpoint and a file:
// all are sent, then all are received and acked by four consumers, in batches.
func BenchmarkRoundTrip(b *testing.B) {
	store, err := sqlite.Open(sqlite.Config{Path: b.TempDir() + "/forebay.db"})
	if err != nil {
		b.Fatal(err)
	}
	defer store.Close()
	service, err := queue.New(queue.Config{Engine: store})
	if err != nil {
		b.Fatal(err)
	}
	front, err := sqsapi.New(sqsapi.Config{Service: service, Unsigned: true})
	if err != nil {
		b.Fatal(err)
	}
	server := httptest.NewServer(front)
	defer server.Close()
	defer front.Close()
	e, err := sqs.Open(b.Context(), sqs.Config{Endpoint: server.URL, Create: true})
	if err != nil {
		b.Fatal(err)
	}
	defer e.Close()
	msgs := make([]forebay.Message, b.N)
	for i := range msgs {
		msgs[i] = forebay.Message{ID: fmt.Sprint("m", i), Queue: "q", Kind: "k", Payload: make([]byte, 300)}
		for j := range msgs[i].Payload {
			msgs[i].Payload[j] = 'x'
		}
	}
	b.ResetTimer()
	begin := time.Now()
	for part := range slices.Chunk(msgs, 2000) {
		res, err := e.Send(b.Context(), part)
		if err != nil || res[0].Err != nil {
			b.Fatal(err, res[0].Err)
		}
	}
	b.ReportMetric(float64(b.N)/time.Since(begin).Seconds(), "sent/s")
	begin = time.Now()
	var left atomic.Int64
	left.Store(int64(b.N))
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for left.Load() > 0 {
				ds, err := e.Receive(b.Context(), engine.Receive{Queue: "q", Max: 200, Wait: time.Second})
				if err != nil {
					b.Error(err)
					return
				}
				ss := make([]forebay.Settlement, len(ds))
				for i, d := range ds {
					ss[i] = forebay.Settlement{Receipt: d.Receipt, Verdict: forebay.Ack}
				}
				if _, err := e.Settle(b.Context(), ss); err != nil {
					b.Error(err)
					return
				}
				left.Add(-int64(len(ds)))
			}
		})
	}
	all.Wait()
	b.ReportMetric(float64(b.N)/time.Since(begin).Seconds(), "worked/s")
	b.ReportMetric(e.Counters().PerMessage(), "requests/msg")
}
