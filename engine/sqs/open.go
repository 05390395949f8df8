package sqs

import (
	"context"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/smithy-go/logging"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
)

// Engine keeps messages on SQS. Make one with Open.
type Engine struct {
	cfg    Config
	log    *slog.Logger
	client *awssqs.Client
	fresh  func() // makes the next requests use new connections
	count  counters
	leases *leases
	doomed *doomed

	base    context.Context // of calls that no caller's context ends; ends last in Close
	end     context.CancelFunc
	closing context.Context // ends first in Close: who waits is woken
	shut    context.CancelFunc
	making  chan struct{} // a token: one at a time makes queues

	mu     sync.Mutex // guards those below
	queues map[string]*queue
	closed bool
	calls  sync.WaitGroup // running calls; added to under mu while not closed
	done   chan struct{}  // closed when Close has finished
}

var (
	_ engine.Engine   = (*Engine)(nil)
	_ engine.Checker  = (*Engine)(nil)
	_ engine.Purger   = (*Engine)(nil)
	_ engine.Redriver = (*Engine)(nil)
)

// Open gives an engine. It asks SQS nothing, so that a program starts while SQS is
// out of reach; ctx is for reading the AWS SDK's settings.
func Open(ctx context.Context, cfg Config) (*Engine, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	settings, err := config.LoadDefaultConfig(ctx, func(o *config.LoadOptions) error {
		o.Region = cfg.Region
		return nil
	})
	if err != nil {
		return nil, forebay.Errorf(forebay.CodeInvalid, "sqs: open", "the settings of the AWS SDK: %w", err)
	}
	e := &Engine{
		cfg: cfg, log: cfg.Logger, leases: newLeases(), doomed: newDoomed(),
		making: make(chan struct{}, 1), queues: make(map[string]*queue), done: make(chan struct{}),
	}
	if e.log == nil {
		e.log = slog.New(slog.DiscardHandler)
	}
	if err := e.connect(settings); err != nil {
		return nil, err
	}
	e.base, e.end = context.WithCancel(context.Background())
	e.closing, e.shut = context.WithCancel(e.base)
	for name, url := range cfg.Queues {
		e.queues[name] = e.newQueue(name, url)
	}
	if cfg.Logger != nil {
		e.calls.Go(e.auditAtOpen)
	}
	return e, nil
}

func (e *Engine) connect(settings aws.Config) error {
	doer := e.cfg.HTTP
	if doer == nil {
		doer = httpClient(settings)
	}
	e.fresh = func() {}
	if c, ok := doer.(interface{ CloseIdleConnections() }); ok {
		e.fresh = c.CloseIdleConnections
	}
	endpoint := e.cfg.Endpoint
	options := func(o *awssqs.Options) {
		o.HTTPClient = &counting{doer, &e.count}
		o.Logger = logging.Nop{} // it would write to the standard error; what matters is an error here
		if endpoint != "" {
			o.BaseEndpoint = &endpoint
		}
	}
	e.client = awssqs.NewFromConfig(settings, options)
	if e.client.Options().BaseEndpoint == nil {
		if endpoint = e.cfg.endpointOfURLs(); endpoint != "" {
			e.client = awssqs.NewFromConfig(settings, options)
		}
	}
	if region := e.client.Options().Region; region == "" {
		if endpoint == "" && e.client.Options().BaseEndpoint == nil {
			err := forebay.Errorf(forebay.CodeInvalid, "sqs: open", "no region is known")
			err.Field, err.Hint = "region", "set AWS_REGION, or the region beside the queue's URL"
			return err
		}
		settings.Region = "us-east-1" // signatures need one; an endpoint of our own takes any
		e.client = awssqs.NewFromConfig(settings, options)
	}
	return nil
}

// httpClient is the AWS SDK's own, with room for polls, and with HTTP/1.1 only: a poll
// that hangs then hangs alone, and its connection is dropped with it.
func httpClient(settings aws.Config) *http.Client {
	base, ok := settings.HTTPClient.(*awshttp.BuildableClient)
	if !ok {
		base = awshttp.NewBuildableClient()
	}
	transport := base.GetTransport()
	transport.MaxIdleConnsPerHost = 128
	transport.MaxIdleConns = 256
	transport.ReadBufferSize, transport.WriteBufferSize = 16<<10, 8<<10 // ten messages in one read
	transport.ForceAttemptHTTP2 = false
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	transport.Protocols = protocols
	return &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse
	}}
}

func errClosed() error { return forebay.Errorf(forebay.CodeClosed, "sqs", "the engine is closed") }

// enter begins a call. The context that it gives ends with ctx and with that of the
// engine: closing for who waits, base for who is to finish. leave must be called.
func (e *Engine) enter(ctx, own context.Context) (call context.Context, leave func(), err error) {
	if err := ctx.Err(); err != nil {
		return nil, nil, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return nil, nil, errClosed()
	}
	e.calls.Add(1)
	call, cancel := context.WithCancel(ctx)
	unhook := context.AfterFunc(own, cancel)
	return call, func() {
		unhook()
		cancel()
		e.calls.Done()
	}, nil
}

// ended is the error of a call whose own context, or the engine, has ended.
func (e *Engine) ended(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if e.closing.Err() != nil {
		return errClosed()
	}
	return nil
}

// closeTimeout bounds what Close waits for.
const closeTimeout = 5 * time.Second

// Close wakes who waits, waits for running calls, and gives back what is leased, so
// that others have it at once. It is bounded also where SQS does not answer.
func (e *Engine) Close() error {
	e.mu.Lock()
	if e.closed {
		e.mu.Unlock()
		<-e.done
		return nil
	}
	e.closed = true
	e.mu.Unlock()
	defer close(e.done)
	e.shut()
	timer := time.AfterFunc(closeTimeout, e.end)
	defer timer.Stop()
	e.calls.Wait()
	e.giveBack()
	e.end()
	for _, q := range e.known() {
		q.wait()
	}
	e.fresh()
	return nil
}

// giveBack releases what is still leased.
func (e *Engine) giveBack() {
	if left := e.leases.live(); len(left) > 0 {
		e.release(left)
	}
}

func (e *Engine) known() []*queue {
	e.mu.Lock()
	defer e.mu.Unlock()
	out := make([]*queue, 0, len(e.queues))
	for _, q := range e.queues {
		out = append(out, q)
	}
	return out
}

func isFIFO(s string) bool { return strings.HasSuffix(s, ".fifo") }
