package enginetest

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
)

// Benchmark measures an engine in real time, as it is used: durable sends by many,
// work at small and large backlogs, latency of a hand-over, and what idling costs.
// ENGINETEST_BACKLOG sets the large backlog; the rest follows -test.benchtime.
func Benchmark(b *testing.B, h Harness) {
	h = h.withDefaults(b)
	for _, producers := range []int{1, 8, 64, 256} {
		b.Run(fmt.Sprintf("send/producers=%d", producers), func(b *testing.B) { benchSend(b, h, producers, 1) })
	}
	for _, producers := range []int{1, 8} {
		b.Run(fmt.Sprintf("send/batch=100/producers=%d", producers), func(b *testing.B) { benchSend(b, h, producers, 100) })
	}
	for _, backlog := range []int{1000, int(setting(b, "ENGINETEST_BACKLOG", 1_000_000))} {
		b.Run(fmt.Sprintf("backlog=%d", backlog), func(b *testing.B) { benchBacklog(b, h, backlog) })
	}
	for _, limited := range []bool{false, true} {
		if h.Cannot[Limiting] != "" {
			break
		}
		b.Run(fmt.Sprintf("keys=%d/limited=%v", manyKeys, limited), func(b *testing.B) { benchKeys(b, h, limited) })
	}
	b.Run("latency", func(b *testing.B) { benchLatency(b, h) })
	b.Run("idle", func(b *testing.B) { benchIdle(b, h) })
}

// bench is an engine under measurement.
type bench struct {
	b    *testing.B
	e    engine.Engine
	ctx  context.Context // bounds the benchmark
	last atomic.Int64    // number of the last message
	keys int64           // limit keys of the messages, in turn; 0: none
}

func openBench(b *testing.B, h Harness) *bench {
	b.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	b.Cleanup(cancel)
	n := &bench{b: b, e: h.Open(b), ctx: ctx}
	b.Cleanup(func() { _ = n.e.Close() })
	return n
}

// bodyText is as long as a small event.
const bodyText = `{"screen":"home","product":"0190a8f4","price":12.5,"currency":"EUR","items":[1,2,3,4,5,6,7,8,9],"note":"as long as a small event is","locale":"de-DE","network":"wifi","os":"17.5.1","app":"4.2.0"}`

func (n *bench) messages(count int) []forebay.Message {
	msgs, body := make([]forebay.Message, count), []byte(bodyText)
	for i := range msgs {
		msgs[i] = forebay.Message{
			ID: fmt.Sprintf("0190a8f4-0000-7000-8000-%012d", n.last.Add(1)), Queue: testQueue, Kind: "kind", Payload: body,
		}
		if n.keys > 0 {
			msgs[i].LimitKey = fmt.Sprint("key", n.last.Load()%n.keys)
		}
	}
	return msgs
}

// send sends new messages; an error ends the benchmark.
func (n *bench) send(count int) {
	res, err := n.e.Send(n.ctx, n.messages(count))
	if err == nil && res[0].Err != nil {
		err = res[0].Err
	}
	if err != nil {
		n.b.Errorf("send: %v", err)
	}
}

// benchSend counts one message as one operation.
func benchSend(b *testing.B, h Harness, producers, batch int) {
	n := openBench(b, h)
	var left atomic.Int64
	left.Store(int64(b.N))
	var wg sync.WaitGroup
	b.ResetTimer()
	for range producers {
		wg.Go(func() {
			for left.Add(-int64(batch)) > -int64(batch) && !b.Failed() {
				n.send(batch)
			}
		})
	}
	wg.Wait()
	b.StopTimer()
	b.ReportMetric(float64(n.last.Load())/b.Elapsed().Seconds(), "msgs/s")
}

func benchBacklog(b *testing.B, h Harness, backlog int) {
	n := openBench(b, h)
	for sent := 0; sent < backlog; sent += 1000 {
		n.send(min(1000, backlog-sent))
	}
	var mem runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&mem)
	heap := float64(mem.HeapInuse) / (1 << 20)
	for _, batch := range []int{10, 100} {
		b.Run(fmt.Sprintf("work/batch=%d", batch), func(b *testing.B) {
			n.b = b
			n.work(batch)
			b.ReportMetric(heap, "heap-MB")
		})
	}
	if h.Reopen == nil {
		return
	}
	b.Run("reopen", func(b *testing.B) { // once, whatever b.N is: it is a matter of seconds
		begin := time.Now()
		n.e = h.Reopen(b, n.e)
		if _, err := n.e.Stats(n.ctx, testQueue); err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(time.Since(begin).Microseconds())/1000, "open-ms")
	})
}

// work receives and settles by batches, and keeps the backlog as it is. Only the
// receiving and settling is measured; one operation is one message.
func (n *bench) work(batch int) {
	var took time.Duration
	done := 0
	for done < n.b.N && !n.b.Failed() {
		begin := time.Now()
		ds, err := n.e.Receive(n.ctx, engine.Receive{Queue: testQueue, Max: batch, Wait: time.Second})
		if err != nil || len(ds) == 0 {
			n.b.Fatalf("receive gave %d, %v", len(ds), err)
		}
		if _, err := n.e.Settle(n.ctx, acks(ds)); err != nil {
			n.b.Fatalf("settle: %v", err)
		}
		took += time.Since(begin)
		done += len(ds)
		n.send(len(ds))
	}
	n.b.ReportMetric(float64(took.Nanoseconds())/float64(done), "ns/op")
	n.b.ReportMetric(float64(done)/took.Seconds(), "msgs/s")
}

// benchKeys measures what limits on many keys cost: the same work with limits that
// are looked at and hold nobody up, and with none.
func benchKeys(b *testing.B, h Harness, limited bool) {
	n := openBench(b, h)
	n.keys = manyKeys
	l, ok := engine.As[engine.Limiter](n.e)
	if !ok {
		b.Fatal("the engine has no limits, and the harness does not say so")
	}
	if limited {
		r := engine.Rate{Count: 1_000_000, Burst: 1_000_000}
		if err := l.SetLimits(n.ctx, testQueue, engine.QueueLimits{KeyActive: 1_000_000, KeyRate: r}); err != nil {
			b.Fatal(err)
		}
	}
	for range 2 * manyKeys / 1000 {
		n.send(1000)
	}
	b.ResetTimer()
	n.work(100)
}

// benchLatency measures from before the send to the return of a waiting receive.
func benchLatency(b *testing.B, h Harness) {
	n := openBench(b, h)
	begun := make(chan time.Time, 1)
	var took []time.Duration
	got := make(chan error)
	go func() {
		for range b.N {
			ds, err := n.e.Receive(n.ctx, engine.Receive{Queue: testQueue, Max: 1, Wait: engine.MaxWait})
			end := time.Now()
			if err == nil && len(ds) == 1 {
				took = append(took, end.Sub(<-begun))
				_, err = n.e.Settle(n.ctx, acks(ds))
			}
			got <- err
		}
	}()
	for range b.N {
		begun <- time.Now()
		n.send(1)
		if err := <-got; err != nil {
			b.Fatal(err)
		}
	}
	if len(took) == 0 {
		b.Fatal("nothing came")
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Nanoseconds()), "p50-ns")
	b.ReportMetric(float64(took[len(took)*99/100].Nanoseconds()), "p99-ns")
}

// benchIdle measures what four waiting receivers cost while nothing comes: one
// operation is a tenth of a second.
func benchIdle(b *testing.B, h Harness) {
	n := openBench(b, h)
	wait := time.Duration(b.N) * 100 * time.Millisecond
	before, ok := cpuTime()
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			r := engine.Receive{Queue: fmt.Sprint("q", i), Max: 1, Wait: min(wait, engine.MaxWait)}
			if _, err := n.e.Receive(n.ctx, r); err != nil {
				b.Errorf("receive: %v", err)
			}
		})
	}
	wg.Wait()
	after, _ := cpuTime()
	if ok {
		b.ReportMetric(float64((after-before).Microseconds())/min(wait, engine.MaxWait).Seconds(), "cpu-µs/s")
	}
}
