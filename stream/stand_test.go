package stream_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/broker"
	"github.com/forebayhq/forebay/engine"
	"github.com/forebayhq/forebay/engine/sqlite"
	"github.com/forebayhq/forebay/stream"
)

// stand is a server of streams over real parts.
type stand struct {
	t       testing.TB
	broker  *broker.Broker
	streams *stream.Streams
	http    *http.Server
	dial    func() (net.Conn, error)
	stop    func()
}

func open(t testing.TB, path string) *broker.Broker {
	t.Helper()
	e, err := sqlite.Open(sqlite.Config{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	b, err := broker.New(e, broker.Config{})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// start serves b until the test ends, or stop is called.
func start(t testing.TB, b *broker.Broker, change func(*stand, *stream.Config)) *stand {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return startOn(t, b, l, func(s *stand, c *stream.Config) {
		s.dial = func() (net.Conn, error) { return net.Dial("tcp", l.Addr().String()) }
		if change != nil {
			change(s, c)
		}
	})
}

func startOn(t testing.TB, b *broker.Broker, l net.Listener, change func(*stand, *stream.Config)) *stand {
	t.Helper()
	s := &stand{t: t, broker: b, http: &http.Server{}}
	cfg := stream.Config{Broker: b, Watcher: b.Watcher()}
	if change != nil {
		change(s, &cfg)
	}
	var err error
	if s.streams, err = stream.New(cfg); err != nil {
		t.Fatal(err)
	}
	if s.http.Handler == nil {
		s.http.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			s.streams.ServeJob(w, r, strings.TrimPrefix(r.URL.Path, "/"), nil)
		})
	}
	s.http.RegisterOnShutdown(s.streams.Close)
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		if err := b.Watcher().Run(ctx); err != nil {
			t.Error(err)
		}
	})
	running.Go(func() {
		if err := s.http.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	})
	<-b.Watcher().Ready()
	s.stop = sync.OnceFunc(func() {
		if err := s.http.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
		cancel()
		running.Wait()
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(s.stop)
	return s
}

// add adds a job to the queue q.
func (s *stand) add(id string) {
	s.t.Helper()
	results, err := s.broker.Send(context.Background(), []forebay.Message{{
		ID: id, Queue: "q", Kind: "k", Payload: []byte(`{"a":1}`), Job: &forebay.JobOptions{},
	}})
	if err != nil || results[0].Err != nil || results[0].Duplicate {
		s.t.Fatal(err, results)
	}
}

// begin hands the next job of q out.
func (s *stand) begin() forebay.Delivery {
	s.t.Helper()
	ds, err := s.broker.Receive(context.Background(), engine.Receive{Queue: "q", Max: 1, Lease: time.Hour})
	if err != nil || len(ds) != 1 {
		s.t.Fatal(err, ds)
	}
	return ds[0]
}

func (s *stand) progress(d forebay.Delivery, percent float64) {
	s.t.Helper()
	p := forebay.Progress{Stage: "work", Percent: percent, At: time.Now()}
	s.noted(s.broker.Progress(context.Background(), []forebay.ProgressUpdate{{Receipt: d.Receipt, Progress: &p}}))
}

func (s *stand) log(d forebay.Delivery, text string) {
	s.t.Helper()
	line := forebay.LogLine{At: time.Now(), Text: text}
	s.noted(s.broker.Progress(context.Background(), []forebay.ProgressUpdate{{Receipt: d.Receipt, Log: []forebay.LogLine{line}}}))
}

func (s *stand) settle(d forebay.Delivery, v forebay.Verdict) {
	s.t.Helper()
	one := forebay.Settlement{Receipt: d.Receipt, Queue: "q", Verdict: v}
	switch v {
	case forebay.Ack:
		one.Result = []byte(`{"done":true}`)
	case forebay.Dead, forebay.Retry:
		one.Cause = forebay.Cause{Code: "test", Message: "it broke", Attempt: d.Attempt, At: time.Now()}
	}
	s.noted(s.broker.Settle(context.Background(), []forebay.Settlement{one}))
}

func (s *stand) noted(errs []error, err error) {
	s.t.Helper()
	if err = errors.Join(append(errs, err)...); err != nil {
		s.t.Fatal(err)
	}
}

// reader is a client that knows no more of the protocol than curl.
type reader struct {
	t      testing.TB
	conn   net.Conn
	in     *bufio.Reader
	status int
	header http.Header
	body   io.Reader
	lines  *bufio.Reader
}

func (s *stand) get(id, last string) *reader {
	s.t.Helper()
	conn, err := s.dial()
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { conn.Close() })
	return request(s.t, conn, id, last)
}

func request(t testing.TB, conn net.Conn, id, last string) *reader {
	t.Helper()
	header := ""
	if last != "" {
		header = "Last-Event-ID: " + last + "\r\n"
	}
	if _, err := io.WriteString(conn, "GET /"+id+" HTTP/1.1\r\nHost: test\r\n"+header+"\r\n"); err != nil {
		t.Fatal(err)
	}
	r := &reader{t: t, conn: conn, in: bufio.NewReader(conn)}
	resp, err := http.ReadResponse(r.in, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.status, r.header, r.body, r.lines = resp.StatusCode, resp.Header, resp.Body, bufio.NewReader(resp.Body)
	return r
}

// event is one as it stands in the stream.
type event struct {
	name, id string
	data     struct {
		V        int
		JobID    string
		State    forebay.State
		Progress struct{ Percent float64 }
		Result   json.RawMessage
		Text     string
		Attempts int
		Failures []forebay.Cause
	}
}

// next reads one event; false: the stream has ended, as HTTP says it should.
func (r *reader) next() (event, bool) {
	r.t.Helper()
	var e event
	for {
		line, err := r.lines.ReadString('\n')
		if err == io.EOF && line == "" && e.name == "" {
			return e, false
		}
		if err != nil {
			r.t.Fatalf("the stream breaks off after %q: %v", line, err)
		}
		field, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
		switch {
		case field == "event":
			e.name = value
		case field == "id":
			e.id = value
		case field == "data":
			if err := json.Unmarshal([]byte(value), &e.data); err != nil || e.data.V != 1 {
				r.t.Fatalf("data %q: %v", value, err)
			}
		case line == "\n" && e.name != "":
			return e, true
		}
	}
}

// want reads events, told as name or name:state or name:percent or log:text.
func (r *reader) want(all ...string) (ids []string) {
	r.t.Helper()
	for _, want := range all {
		e, ok := r.next()
		if !ok {
			r.t.Fatalf("the stream has ended; want %s", want)
		}
		got := e.name
		if _, detail, _ := strings.Cut(want, ":"); detail != "" {
			switch e.name {
			case "log":
				got += ":" + e.data.Text
			case "progress":
				got += ":" + strconv.Itoa(int(e.data.Progress.Percent))
			default:
				got += ":" + string(e.data.State)
			}
		}
		if got != want {
			r.t.Fatalf("got %s (%+v), want %s", got, e, want)
		}
		ids = append(ids, e.id)
	}
	return ids
}

func (r *reader) end() {
	r.t.Helper()
	if e, ok := r.next(); ok {
		r.t.Fatalf("got %+v, want the end", e)
	}
}

// tick is a moment's pause between two looks.
func tick() <-chan time.Time { return time.After(time.Millisecond) }
