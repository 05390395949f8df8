package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"slices"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/bench"
	"github.com/forebayhq/forebay/broker"
	"github.com/forebayhq/forebay/engine"
	"github.com/forebayhq/forebay/stream"
)

const (
	streamClients = 1_000
	tellings      = 300 // of progress, a hundred a second
)

// streams measures what a call of progress takes without and with a thousand
// streams of that job, and what each holds. The clients are bare connections that
// nobody reads for as long as their buffers hold, so that what is counted is the
// server's alone.
func streams(ctx context.Context, o options, t *table) error {
	return onBroker(ctx, o, "streams", 0, nil, func(ctx context.Context, b *broker.Broker) (err error) {
		s, err := stream.New(stream.Config{Broker: b, Watcher: b.Watcher(), PerCaller: streamClients})
		if err != nil {
			return err
		}
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return err
		}
		server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { s.ServeJob(w, r, "watched", nil) })}
		ended := make(chan error, 1)
		go func() { ended <- server.Serve(l) }()
		defer func() {
			s.Close()
			if e := errors.Join(server.Close(), <-ended); !errors.Is(e, http.ErrServerClosed) {
				err = errors.Join(err, e)
			}
		}()
		if err := addJob(ctx, b, forebay.Message{ID: "watched", Kind: "k", Payload: []byte("{}")}); err != nil {
			return err
		}
		ds, err := b.Receive(ctx, engine.Receive{Queue: "bench", Max: 1, Lease: time.Hour})
		if err != nil || len(ds) != 1 {
			return errors.Join(err, errors.New("the job was not handed out"))
		}
		alone, err := tell(ctx, b, ds[0])
		if err != nil {
			return err
		}
		before := heap()
		conns, err := watch(ctx, s, l.Addr().String())
		defer func() {
			for _, c := range conns {
				_ = c.Close() // its stream has ended
			}
		}()
		if err != nil {
			return err
		}
		each := float64(heap()-before) / streamClients / 1024
		watched, err := tell(ctx, b, ds[0])
		if err != nil {
			return err
		}
		for _, f := range []struct {
			name  string
			times []time.Duration
		}{{"progress, nobody watches", alone}, {"progress, 1,000 streams", watched}} {
			for _, q := range []float64{0.5, 0.99} {
				t.figure(fmt.Sprintf("%s, p%.0f", f.name, q*100), "ms", bench.Series{bench.Quantile(f.times, q).Seconds() * 1000})
			}
		}
		t.target("memory of a stream", each, "KiB", "≤ 64", each <= 64)
		return nil
	})
}

// watch opens the streams, and waits until all are open.
func watch(ctx context.Context, s *stream.Streams, addr string) (conns []net.Conn, err error) {
	for range streamClients {
		c, err := net.Dial("tcp", addr)
		if err != nil {
			return conns, err
		}
		conns = append(conns, c)
		if _, err := io.WriteString(c, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"); err != nil {
			return conns, err
		}
	}
	for s.Open() < streamClients {
		if err := pause(ctx, 10*time.Millisecond); err != nil {
			return conns, err
		}
	}
	return conns, pause(ctx, time.Second) // for the first events to be out
}

// tell tells progress as a handler would, and gives the time of each call, sorted.
func tell(ctx context.Context, b *broker.Broker, d forebay.Delivery) ([]time.Duration, error) {
	var times []time.Duration
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for i := range tellings {
		p := forebay.Progress{Stage: "work", Percent: float64(i % 100), At: time.Now()}
		began := time.Now()
		errs, err := b.Progress(ctx, []forebay.ProgressUpdate{{Receipt: d.Receipt, Progress: &p}})
		if err = errors.Join(err, errors.Join(errs...)); err != nil {
			return nil, err
		}
		times = append(times, time.Since(began))
		<-tick.C
	}
	slices.Sort(times)
	return times, nil
}

func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapInuse + m.StackInuse
}
