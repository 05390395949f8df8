package stream_test

import (
	"net"
	"runtime"
	"testing"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/stream"
)

// BenchmarkClients holds a thousand streams open and tells what each costs the
// server, and what telling progress costs without and with them. The clients are
// bare connections that nobody reads for as long as their buffers hold: all memory
// that is counted is the server's.
func BenchmarkClients(b *testing.B) {
	const clients = 1000
	for b.Loop() {
		s := start(b, open(b, ""), func(_ *stand, c *stream.Config) { c.PerCaller = clients })
		s.add("j1")
		d := s.begin()
		alone := tell(s, d)
		before := memory()
		conns := make([]net.Conn, clients)
		for i := range conns {
			conns[i] = s.get("j1", "").conn
		}
		for s.streams.Open() < clients {
			<-tick()
		}
		each := float64(memory()-before) / clients / 1024
		b.ReportMetric(each, "KiB/client")
		if each > 64 {
			b.Errorf("a client costs %.1f KiB; at most 64 are promised", each)
		}
		b.ReportMetric(float64(alone.Microseconds()), "µs/progress-alone")
		b.ReportMetric(float64(tell(s, d).Microseconds()), "µs/progress-watched")
		s.settle(d, forebay.Ack)
		s.stop()
		for _, c := range conns {
			c.Close()
		}
	}
}

// tell tells progress a hundred times a second for a while, as a handler would, and
// gives the time of one.
func tell(s *stand, d forebay.Delivery) (each time.Duration) {
	const times = 300
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for i := range times {
		began := time.Now()
		s.progress(d, float64(i%100))
		each += time.Since(began) / times
		<-tick.C
	}
	return each
}

func memory() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapInuse + m.StackInuse
}
