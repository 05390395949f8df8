package ledger_test

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
	"github.com/forebayhq/forebay/engine/enginetest"
	"github.com/forebayhq/forebay/engine/ledger"
	"github.com/forebayhq/forebay/engine/sqlite"
)

// stand is an engine that runs, over two real ones, in a bubble. The remote one knows
// no jobs as it is used here: whatever comes of it is a notice, or somebody else's.
type stand struct {
	testing.TB
	rows   *sqlite.Engine
	remote *sqlite.Engine
	e      *ledger.Engine
	die    func()
}

func inBubble(t *testing.T, f func(s *stand)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := &stand{TB: t, rows: memory(t), remote: memory(t)}
		s.live(s.remote, 0)
		f(s)
		s.die()
		if err := s.e.Close(); err != nil {
			t.Error(err)
		}
	})
}

func memory(t testing.TB) *sqlite.Engine {
	t.Helper()
	e, err := sqlite.Open(sqlite.Config{})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// live begins a process over the same stores. What the one before knew is forgotten.
func (s *stand) live(remote engine.Engine, window int) {
	s.Helper()
	if s.die != nil {
		s.die()
	}
	var err error
	if s.e, err = ledger.New(s.rows, remote, ledger.Config{Queues: []string{"q"}, Window: window}); err != nil {
		s.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	e := s.e
	go func() { done <- e.Run(ctx) }()
	s.die = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			s.Errorf("run: %v", err)
		}
	})
}

// faulty makes a fault of the remote engine.
func (s *stand) faulty(p enginetest.Plan) engine.Engine { return enginetest.Faulty(s.remote, p) }

func job(id string) forebay.Message {
	return forebay.Message{ID: id, Queue: "q", Kind: "k", Payload: []byte("payload of " + id), Job: &forebay.JobOptions{}}
}

func (s *stand) send(msgs ...forebay.Message) {
	s.Helper()
	sendTo(s, s.e, msgs...)
}

func sendTo(t testing.TB, e engine.Engine, msgs ...forebay.Message) {
	t.Helper()
	results, err := e.Send(context.Background(), msgs)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range results {
		if r.Err != nil {
			t.Fatal(r.Err)
		}
	}
}

// take receives up to ten.
func (s *stand) take(wait time.Duration) []forebay.Delivery {
	s.Helper()
	ds, err := s.e.Receive(context.Background(), engine.Receive{Queue: "q", Max: 10, Wait: wait, Lease: time.Minute})
	if err != nil {
		s.Fatal(err)
	}
	return ds
}

// want receives exactly these, in this order.
func (s *stand) want(wait time.Duration, ids ...string) []forebay.Delivery {
	s.Helper()
	ds := s.take(wait)
	var got []string
	for _, d := range ds {
		got = append(got, d.ID)
	}
	if !slices.Equal(got, ids) {
		s.Fatalf("received %v, want %v", got, ids)
	}
	return ds
}

func (s *stand) settle(v forebay.Verdict, after time.Duration, ds ...forebay.Delivery) {
	s.Helper()
	ss := make([]forebay.Settlement, len(ds))
	for i, d := range ds {
		ss[i] = forebay.Settlement{Receipt: d.Receipt, Verdict: v, After: after}
		if v == forebay.Dead || v == forebay.Retry {
			ss[i].Cause = forebay.Cause{Code: "test", Message: "as planned"}
		}
	}
	errs, err := s.e.Settle(context.Background(), ss)
	if err != nil {
		s.Fatal(err)
	}
	for _, err := range errs {
		if err != nil {
			s.Fatal(err)
		}
	}
}

func (s *stand) job(id string, state forebay.State) forebay.Job {
	s.Helper()
	j, err := s.rows.Job(context.Background(), id)
	if err != nil || j.State != state {
		s.Fatalf("job %s is %q, %v; want %q", id, j.State, err, state)
	}
	return j
}

// notices counts what the remote queue has.
func (s *stand) notices() (waiting, active int64) {
	s.Helper()
	all, err := s.remote.Stats(context.Background(), "q")
	if err != nil {
		s.Fatal(err)
	}
	return all[0].Waiting + all[0].Delayed, all[0].Active
}

// quiet wants that nothing is left on the remote queue, once it was looked at.
func (s *stand) quiet() {
	s.Helper()
	s.want(2 * time.Minute)
	synctest.Wait()
	if waiting, active := s.notices(); waiting+active != 0 {
		s.Fatalf("%d notices wait and %d are in flight; nothing is to do", waiting, active)
	}
}

func (s *stand) pause(yes bool) {
	if err := s.rows.SetLimits(context.Background(), "q", engine.QueueLimits{Paused: yes}); err != nil {
		s.Error(err)
	}
}

// counted counts the calls of an engine.
type counted struct {
	engine.Engine
	calls atomic.Int64
}

func (c *counted) Send(ctx context.Context, msgs []forebay.Message) ([]forebay.SendResult, error) {
	c.calls.Add(1)
	return c.Engine.Send(ctx, msgs)
}

func (c *counted) Receive(ctx context.Context, r engine.Receive) ([]forebay.Delivery, error) {
	c.calls.Add(1)
	return c.Engine.Receive(ctx, r)
}

func (c *counted) Settle(ctx context.Context, ss []forebay.Settlement) ([]error, error) {
	c.calls.Add(1)
	return c.Engine.Settle(ctx, ss)
}
