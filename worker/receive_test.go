package worker_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
	"github.com/forebayhq/forebay/worker"
)

func TestReceivingIsTriedAgain(t *testing.T) {
	t.Parallel()
	bubble(t, func(s *stand) {
		var log bytes.Buffer
		var tries []time.Duration
		s.hooks.receive = func(ctx context.Context, r engine.Receive) ([]forebay.Delivery, error) {
			if s.since() < 5*time.Minute {
				tries = append(tries, s.since())
				return nil, forebay.Errorf(forebay.CodeUnavailable, "test", "no route")
			}
			return s.model.Receive(ctx, r)
		}
		s.send(named("m", 1, "")...)
		s.run(worker.Config{Handler: pausing(0), Logger: slog.New(slog.NewTextHandler(&log, nil))})
		pass(6 * time.Minute)
		s.finish()
		s.want("completed", s.stats().Completed, 1)
		// 0.2 s, 0.4 s, … 25.6 s, 30 s, 30 s …, each by half or more.
		if len(tries) < 15 || len(tries) > 30 {
			t.Errorf("%d tries: %v", len(tries), tries)
		}
		for i := 1; i < len(tries); i++ {
			if gap := tries[i] - tries[i-1]; gap < 100*time.Millisecond || gap > 30*time.Second {
				t.Errorf("try %d came after %s", i, gap)
			}
		}
		lines := strings.Split(strings.TrimSpace(log.String()), "\n")
		if len(lines) != 3 || !strings.Contains(lines[0], "no route") || !strings.Contains(lines[1], "works again") || !strings.Contains(lines[2], "draining") {
			t.Errorf("one line per change of state, please:\n%s", log.String())
		}
	})
}

// An engine that does not answer, as over a half-open connection, is asked again.
func TestWatchdog(t *testing.T) {
	t.Parallel()
	bubble(t, func(s *stand) {
		var calls atomic.Int32
		s.hooks.receive = func(ctx context.Context, r engine.Receive) ([]forebay.Delivery, error) {
			if calls.Add(1) == 1 {
				<-ctx.Done()
				return nil, ctx.Err()
			}
			return s.model.Receive(ctx, r)
		}
		s.send(named("m", 1, "")...)
		s.run(worker.Config{Handler: pausing(0)})
		pass(29 * time.Second)
		s.want("completed", s.stats().Completed, 0)
		pass(3 * time.Second)
		s.want("completed", s.stats().Completed, 1)
		s.finish()
	})
}

func TestErrorsThatCannotHealEndTheRun(t *testing.T) {
	t.Parallel()
	bubble(t, func(s *stand) {
		s.send(named("m", 2, "")...)
		s.run(worker.Config{Handler: pausing(time.Second), Concurrency: 3})
		pass(time.Second / 2)
		if err := s.broker.Close(); err != nil {
			t.Fatal(err)
		}
		if err := <-s.ended; forebay.CodeOf(err) != forebay.CodeClosed {
			t.Errorf("run: %v", err)
		}
		s.want("verdicts that had no engine any more", len(s.failed), 2)
	})
}

// Idle means no polling: a receive waits for as long as it may.
func TestIdle(t *testing.T) {
	t.Parallel()
	bubble(t, func(s *stand) {
		var calls atomic.Int32
		s.hooks.receive = func(ctx context.Context, r engine.Receive) ([]forebay.Delivery, error) {
			calls.Add(1)
			return s.model.Receive(ctx, r)
		}
		s.run(worker.Config{Handler: pausing(0)})
		pass(time.Hour)
		s.want("receives in an hour", calls.Load(), 181)
		s.send(named("m", 1, "")...)
		pass(0)
		s.want("completed at once", s.stats().Completed, 1)
		s.finish()
	})
}
