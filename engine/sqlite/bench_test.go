package sqlite_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
	"github.com/forebayhq/forebay/engine/sqlite"
)

var payload = make([]byte, 300)

// BenchmarkLog is the bare log: an append and an fdatasync for all that wait. It
// is the measure for BenchmarkSend.
func BenchmarkLog(b *testing.B) {
	f, err := os.Create(filepath.Join(b.TempDir(), "log"))
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	calls := make(chan chan error, 1024)
	var done sync.WaitGroup
	done.Go(func() {
		var buf []byte
		var group []chan error
		for c := range calls {
			group, buf = append(group[:0], c), append(buf[:0], payload...)
			for more := true; more; {
				select {
				case c, ok := <-calls:
					if more = ok; ok {
						group, buf = append(group, c), append(buf, payload...)
					}
				default:
					more = false
				}
			}
			_, err := f.Write(buf)
			if err == nil {
				err = syscall.Fdatasync(int(f.Fd()))
			}
			for _, c := range group {
				c <- err
			}
		}
	})
	produce(b, 64, b.N, func(int) error {
		c := make(chan error, 1)
		calls <- c
		return <-c
	})
	close(calls)
	done.Wait()
}

// produce runs f n times in so many goroutines.
func produce(b *testing.B, producers, n int, f func(i int) error) {
	var next atomic.Int64
	var done sync.WaitGroup
	b.ResetTimer()
	for range producers {
		done.Go(func() {
			for i := next.Add(1); i <= int64(n); i = next.Add(1) {
				if err := f(int(i)); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	done.Wait()
	b.StopTimer()
	b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "msgs/s")
}

func BenchmarkSend(b *testing.B) {
	for _, producers := range []int{1, 8, 64, 256} {
		b.Run(fmt.Sprint("full/producers=", producers), func(b *testing.B) { benchmarkSend(b, producers, sqlite.DurabilityFull) })
		b.Run(fmt.Sprint("process/producers=", producers), func(b *testing.B) { benchmarkSend(b, producers, sqlite.DurabilityProcess) })
	}
}

func benchmarkSend(b *testing.B, producers int, d sqlite.Durability) {
	e := open(b, sqlite.Config{Path: filepath.Join(b.TempDir(), "forebay.db"), Durability: d})
	produce(b, producers, b.N, func(i int) error { return sendOne(e, i) })
}

// BenchmarkSendBatch sends 100 at a time, as an edge does; n counts messages.
func BenchmarkSendBatch(b *testing.B) {
	e := open(b, sqlite.Config{Path: filepath.Join(b.TempDir(), "forebay.db")})
	var next atomic.Int64
	b.ReportAllocs()
	produce(b, 16, b.N/100, func(int) error {
		msgs := make([]forebay.Message, 100)
		for i := range msgs {
			msgs[i] = forebay.Message{ID: fmt.Sprintf("%032d", next.Add(1)), Queue: "q", Kind: "k", Payload: payload}
		}
		_, err := e.Send(context.Background(), msgs)
		return err
	})
	b.ReportMetric(cpuTime(b)/float64(b.N), "cpu-ns/msg")
}

// cpuTime is what the process has used so far, in nanoseconds.
func cpuTime(b *testing.B) float64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return float64(u.Utime.Nano() + u.Stime.Nano())
}

func sendOne(e *sqlite.Engine, i int) error {
	res, err := e.Send(context.Background(), []forebay.Message{
		{ID: fmt.Sprintf("%032d", i), Queue: "q", Kind: "k", Payload: payload},
	})
	if err != nil {
		return err
	}
	return res[0].Err
}

func fill(b *testing.B, e *sqlite.Engine, n int) {
	for i := 0; i < n; {
		msgs := make([]forebay.Message, min(1000, n-i))
		for j := range msgs {
			msgs[j] = forebay.Message{ID: fmt.Sprintf("%032d", i), Queue: "q", Kind: "k", Payload: payload}
			i++
		}
		send(b, e, msgs...)
	}
}

// BenchmarkDrain receives and settles in batches of 100, with a backlog.
func BenchmarkDrain(b *testing.B) {
	for _, backlog := range []int{1_000, 1_000_000} {
		b.Run(fmt.Sprint("backlog=", backlog), func(b *testing.B) {
			e := open(b, sqlite.Config{Path: filepath.Join(b.TempDir(), "forebay.db")})
			fill(b, e, max(backlog, b.N))
			var left atomic.Int64
			left.Store(int64(b.N))
			var done sync.WaitGroup
			b.ResetTimer()
			for range 8 {
				done.Go(func() {
					for left.Add(-100) > -100 {
						ds, err := e.Receive(context.Background(), engine.Receive{Queue: "q", Max: 100})
						if err != nil {
							b.Error(err)
						}
						settle(b, e, forebay.Ack, ds...)
					}
				})
			}
			done.Wait()
			b.StopTimer()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "msgs/s")
		})
	}
}

// BenchmarkKept is what an SQS consumer does: ten at a time under kept leases, acked by
// whatever receipt.
func BenchmarkKept(b *testing.B) {
	e := open(b, sqlite.Config{Path: filepath.Join(b.TempDir(), "forebay.db")})
	fill(b, e, b.N)
	produce(b, 16, b.N/10, func(int) error {
		ds, err := e.Receive(context.Background(), engine.Receive{Queue: "q", Max: 10, Kept: true})
		if err != nil {
			return err
		}
		receipts := make([]forebay.Receipt, len(ds))
		for i, d := range ds {
			receipts[i] = d.Receipt
		}
		errs, err := e.AckLate(context.Background(), receipts)
		return errors.Join(append(errs, err)...)
	})
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "msgs/s")
}

// BenchmarkOpen opens a store with a backlog, and tells the memory that it takes.
func BenchmarkOpen(b *testing.B) {
	for _, kind := range []struct {
		name    string
		n, each int
	}{{"batches", 1_000_000, 1000}, {"singles", 1_000_000, 1}} {
		b.Run(kind.name, func(b *testing.B) {
			cfg := sqlite.Config{Path: filepath.Join(b.TempDir(), "forebay.db"), Durability: sqlite.DurabilityProcess}
			e := mustOpen(b, cfg)
			if kind.each == 1 {
				produce(b, 8, kind.n, func(i int) error { return sendOne(e, i) })
			} else {
				fill(b, e, kind.n)
			}
			if err := e.Close(); err != nil {
				b.Fatal(err)
			}
			debug.FreeOSMemory()
			b.ResetTimer()
			for range b.N {
				e = mustOpen(b, cfg)
				b.StopTimer()
				settle(b, e, forebay.Ack, receive(b, e, 100)...)
				b.ReportMetric(residentMB(b), "MB")
				if err := e.Close(); err != nil {
					b.Fatal(err)
				}
				b.StartTimer()
			}
		})
	}
}

// residentMB is the memory of this process that is in use.
func residentMB(b *testing.B) float64 {
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		b.Fatal(err)
	}
	var size, resident int
	if _, err := fmt.Sscan(string(text), &size, &resident); err != nil {
		b.Fatal(err)
	}
	return float64(resident*os.Getpagesize()) / 1e6
}
