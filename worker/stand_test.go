package worker_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/broker"
	"github.com/forebayhq/forebay/engine"
	"github.com/forebayhq/forebay/engine/enginetest"
	"github.com/forebayhq/forebay/worker"
)

const queue = "work"

// stand is a worker over a real broker and an engine in memory, in a bubble of
// synctest: time is faked, and passes as soon as everybody waits.
type stand struct {
	t      *testing.T
	model  *enginetest.Model
	hooks  *hooks
	broker *broker.Broker
	worker *worker.Worker
	stop   context.CancelFunc
	ended  chan error
	start  time.Time

	mu       sync.Mutex // guards what the observers write
	outcomes []worker.Outcome
	lost     []string
	failed   []string
	batches  []int
	left     []string
}

// hooks is the engine, with calls that a test can bend.
type hooks struct {
	engine.Engine
	receive func(ctx context.Context, r engine.Receive) ([]forebay.Delivery, error)
	extend  func(ctx context.Context, rs []forebay.Receipt, lease time.Duration) ([]error, error)
	settle  func(ctx context.Context, s []forebay.Settlement) ([]error, error)
}

func (h *hooks) Unwrap() engine.Engine { return h.Engine }

func (h *hooks) Receive(ctx context.Context, r engine.Receive) ([]forebay.Delivery, error) {
	if h.receive != nil {
		return h.receive(ctx, r)
	}
	return h.Engine.Receive(ctx, r)
}

func (h *hooks) Extend(ctx context.Context, rs []forebay.Receipt, lease time.Duration) ([]error, error) {
	if h.extend != nil {
		return h.extend(ctx, rs, lease)
	}
	return h.Engine.Extend(ctx, rs, lease)
}

func (h *hooks) Settle(ctx context.Context, s []forebay.Settlement) ([]error, error) {
	if h.settle != nil {
		return h.settle(ctx, s)
	}
	return h.Engine.Settle(ctx, s)
}

func bubble(t *testing.T, f func(s *stand)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := &stand{t: t, model: enginetest.NewModel(), ended: make(chan error, 1), start: time.Now()}
		s.open()
		f(s)
	})
}

// open puts a new broker before the model.
func (s *stand) open() {
	s.t.Helper()
	s.hooks = &hooks{Engine: s.model}
	var err error
	if s.broker, err = broker.New(s.hooks, broker.Config{Rand: func() float64 { return 1 }}); err != nil {
		s.t.Fatal(err)
	}
}

// run starts the worker; it ends by finish, or with the test.
func (s *stand) run(cfg worker.Config) {
	s.t.Helper()
	cfg.Queue = queue
	cfg.Observe = worker.Observe{
		Settled:      func(o worker.Outcome) { s.note(func() { s.outcomes = append(s.outcomes, o) }) },
		LeaseLost:    func(d forebay.Delivery) { s.note(func() { s.lost = append(s.lost, d.ID) }) },
		SettleFailed: func(d forebay.Delivery, _ error) { s.note(func() { s.failed = append(s.failed, d.ID) }) },
		LeftBehind: func(d forebay.Delivery, cause error) {
			s.note(func() { s.left = append(s.left, fmt.Sprint(d.ID, " ", ending(cause))) })
		},
		Batch: func(size, _ int, _ time.Duration) { s.note(func() { s.batches = append(s.batches, size) }) },
	}
	var err error
	if s.worker, err = worker.New(s.broker, cfg); err != nil {
		s.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(s.t.Context())
	s.stop = cancel
	go func() { s.ended <- s.worker.Run(ctx) }()
}

// ending names how a job was ended.
func ending(cause error) string {
	for name, err := range map[string]error{"cancel": forebay.ErrCancelled, "timeout": forebay.ErrTimeout, "deadline": forebay.ErrDeadline} {
		if errors.Is(cause, err) {
			return name
		}
	}
	return fmt.Sprint(cause)
}

func (s *stand) note(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
}

// finish ends the worker and wants a clean drain.
func (s *stand) finish() {
	s.t.Helper()
	s.stop()
	if err := <-s.ended; err != nil {
		s.t.Fatalf("run: %v", err)
	}
}

func (s *stand) send(msgs ...forebay.Message) {
	s.t.Helper()
	for i := range msgs {
		msgs[i].Queue = queue
	}
	results, err := s.broker.Send(s.t.Context(), msgs)
	if err != nil {
		s.t.Fatal(err)
	}
	for _, r := range results {
		if r.Err != nil {
			s.t.Fatal(r.Err)
		}
	}
}

// named makes messages with ids prefix1 to prefix<n>, all in a group, if any.
func named(prefix string, n int, group string) (msgs []forebay.Message) {
	for i := range n {
		msgs = append(msgs, forebay.Message{ID: fmt.Sprint(prefix, i+1), Group: group, Payload: []byte("12345")})
	}
	return msgs
}

// pass lets time pass, in the bubble, and everything that it brings about.
func pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

func (s *stand) since() time.Duration { return time.Since(s.start) }

func (s *stand) stats() forebay.QueueStats {
	s.t.Helper()
	all, err := s.broker.Stats(context.WithoutCancel(s.t.Context()), queue)
	if err != nil {
		s.t.Fatal(err)
	}
	return all[0]
}

// verdicts are what was observed, in order: "id:verdict".
func (s *stand) verdicts() (all []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, o := range s.outcomes {
		all = append(all, o.Delivery.ID+":"+o.Verdict.String())
	}
	return all
}

func (s *stand) want(what string, got, want any) {
	s.t.Helper()
	if fmt.Sprint(got) != fmt.Sprint(want) {
		s.t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

// journal is what handlers write down.
type journal struct {
	mu    sync.Mutex
	lines []string
}

func (j *journal) add(format string, args ...any) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.lines = append(j.lines, fmt.Sprintf(format, args...))
}

func (j *journal) all() []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.Clone(j.lines)
}

// pausing handles by waiting, or until its context ends; then it says so.
func pausing(d time.Duration) worker.HandlerFunc {
	return func(ctx context.Context, _ forebay.Delivery) error {
		select {
		case <-time.After(d):
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
