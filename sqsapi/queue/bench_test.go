package queue_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/forebayhq/forebay/engine/sqlite"
	"github.com/forebayhq/forebay/sqsapi/queue"
)

const benchClients = 64

// benched is a durable service with a queue.
func benched(b *testing.B, name string) *queue.Service {
	b.Helper()
	e, err := sqlite.Open(sqlite.Config{Path: filepath.Join(b.TempDir(), "queue.db")})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { e.Close() })
	s, err := queue.New(queue.Config{Engine: e})
	if err != nil {
		b.Fatal(err)
	}
	in := queue.CreateQueueInput{QueueName: name, Attributes: map[string]string{"VisibilityTimeout": "600"}}
	if strings.HasSuffix(name, ".fifo") {
		in.Attributes["FifoQueue"] = "true"
	}
	if _, err := s.CreateQueue(b.Context(), in); err != nil {
		b.Fatal(err)
	}
	b.SetParallelism(benchClients / 2) // of two cores
	return s
}

// sendTen sends a batch; n makes its groups and dedup ids.
func sendTen(b *testing.B, s *queue.Service, name string, n int64) {
	body := strings.Repeat("x", 200)
	in := queue.SendBatchInput{QueueUrl: name, Entries: make([]queue.SendInput, 10)}
	for i := range in.Entries {
		e := &in.Entries[i]
		e.ID, e.MessageBody = itoa(i), body
		if strings.HasSuffix(name, ".fifo") {
			e.MessageGroupId, e.MessageDeduplicationId = new(fmt.Sprint((n*10+int64(i))%100_000)), new(fmt.Sprint(n, "-", i)[:])
			*e.MessageDeduplicationId = strings.ReplaceAll(*e.MessageDeduplicationId, " ", "")
		}
	}
	out, err := s.SendMessageBatch(b.Context(), in)
	if err != nil || len(out.Failed) > 0 {
		b.Fatal(err, out.Failed)
	}
}

func benchmarkSend(b *testing.B, name string) {
	s := benched(b, name)
	var n atomic.Int64
	b.ResetTimer()
	b.RunParallel(func(p *testing.PB) {
		for p.Next() {
			sendTen(b, s, name, n.Add(1))
		}
	})
	b.ReportMetric(float64(10*b.N)/b.Elapsed().Seconds(), "msg/s")
}

func BenchmarkSendTen(b *testing.B)     { benchmarkSend(b, "a") }
func BenchmarkSendTenFifo(b *testing.B) { benchmarkSend(b, "a.fifo") }

func benchmarkReceive(b *testing.B, name string) {
	s := benched(b, name)
	b.StopTimer()
	for n := range b.N {
		sendTen(b, s, name, int64(n))
	}
	b.StartTimer()
	b.ResetTimer()
	var got atomic.Int64
	b.RunParallel(func(p *testing.PB) {
		for p.Next() {
			out, err := s.ReceiveMessage(b.Context(), queue.ReceiveInput{QueueUrl: name, MaxNumberOfMessages: new(10), WaitTimeSeconds: new(1)})
			if err != nil {
				b.Fatal(err)
			}
			in := queue.HandleBatchInput{QueueUrl: name}
			for i, m := range out.Messages {
				in.Entries = append(in.Entries, queue.HandleInput{ID: itoa(i), ReceiptHandle: m.ReceiptHandle})
			}
			if len(in.Entries) == 0 {
				continue
			}
			if _, err := s.DeleteMessageBatch(b.Context(), in); err != nil {
				b.Fatal(err)
			}
			got.Add(int64(len(in.Entries)))
		}
	})
	b.ReportMetric(float64(got.Load())/b.Elapsed().Seconds(), "msg/s")
}

func BenchmarkReceiveAndDeleteTen(b *testing.B)     { benchmarkReceive(b, "a") }
func BenchmarkReceiveAndDeleteTenFifo(b *testing.B) { benchmarkReceive(b, "a.fifo") }
