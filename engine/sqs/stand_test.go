package sqs_test

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"os"
	"sync"
	"testing"

	"github.com/forebayhq/forebay/engine"
	"github.com/forebayhq/forebay/engine/sqlite"
	"github.com/forebayhq/forebay/engine/sqs"
	"github.com/forebayhq/forebay/sqsapi"
	"github.com/forebayhq/forebay/sqsapi/queue"
)

// The AWS SDK finds its credentials in the environment here, and no file of a person.
func TestMain(m *testing.M) {
	for name, value := range map[string]string{
		"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "AWS_REGION": "us-east-1",
		"AWS_CONFIG_FILE": os.DevNull, "AWS_SHARED_CREDENTIALS_FILE": os.DevNull, "AWS_EC2_METADATA_DISABLED": "true",
	} {
		if err := os.Setenv(name, value); err != nil {
			panic(err)
		}
	}
	os.Exit(m.Run())
}

// endpoint is our own SQS endpoint over an engine in memory, behind a listener in
// memory, so that all of it lives in a bubble.
type endpoint struct {
	pipes  *pipes
	server *http.Server
	front  *sqsapi.Front
	client *http.Client
	store  *sqlite.Engine
	stop   func()
}

func newEndpoint(t testing.TB) *endpoint {
	t.Helper()
	store, err := sqlite.Open(sqlite.Config{})
	if err != nil {
		t.Fatal(err)
	}
	service, err := queue.New(queue.Config{Engine: store, Logger: slog.New(slog.NewTextHandler(t.Output(), nil))})
	if err != nil {
		t.Fatal(err)
	}
	front, err := sqsapi.New(sqsapi.Config{Service: service, Unsigned: true, Logger: slog.New(slog.NewTextHandler(t.Output(), nil))})
	if err != nil {
		t.Fatal(err)
	}
	p := &pipes{conns: make(chan net.Conn), done: make(chan struct{})}
	ep := &endpoint{pipes: p, front: front, server: &http.Server{Handler: front}, store: store}
	ep.client = &http.Client{Transport: &http.Transport{DialContext: p.dial, MaxIdleConnsPerHost: 64}}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { _ = service.Run(ctx) })
	running.Go(func() { _ = ep.server.Serve(p) })
	ep.stop = sync.OnceFunc(func() {
		front.Close()
		ep.client.CloseIdleConnections()
		_ = ep.server.Close()
		cancel()
		running.Wait()
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(ep.stop)
	return ep
}

// open gives an engine that talks to the endpoint.
func (ep *endpoint) open(t testing.TB, change func(*sqs.Config)) *sqs.Engine {
	t.Helper()
	cfg := sqs.Config{Endpoint: "http://sqs.test", HTTP: ep.client, Create: true}
	if change != nil {
		change(&cfg)
	}
	e, err := sqs.Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// remote is an engine and the endpoint behind it, which ends with it.
type remote struct {
	*sqs.Engine
	ep *endpoint
}

func (r remote) Unwrap() engine.Engine { return r.Engine }

func (r remote) Close() error {
	err := r.Engine.Close()
	r.ep.stop()
	return err
}

// pipes is a listener in memory.
type pipes struct {
	conns chan net.Conn
	done  chan struct{}
	once  sync.Once
}

// local is a connection from this machine, as the endpoint wants to see it.
type local struct{ net.Conn }

func (local) RemoteAddr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1} }
func (local) LocalAddr() net.Addr  { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 9324} }

func (p *pipes) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	ours, theirs := net.Pipe()
	select {
	case p.conns <- local{theirs}:
		return ours, nil
	case <-p.done:
		return nil, errors.New("connection refused")
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error {
	p.once.Do(func() { close(p.done) })
	return nil
}

func (p *pipes) Addr() net.Addr { return local{}.LocalAddr() }
