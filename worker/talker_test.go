package worker_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine/sqlite"
	"github.com/forebayhq/forebay/worker"
)

// What a job tells is in the history before its verdict, each stage of it, the
// latest of a stage only, and in bounded time while it runs.
func TestProgressIsStoredInOrder(t *testing.T) {
	t.Parallel()
	jobBubble(t, func(s *jobStand) {
		s.add(forebay.JobOptions{}, "a")
		stop := s.run(worker.Config{Jobs: worker.JobFunc(func(_ context.Context, j *worker.Job) ([]byte, error) {
			j.Progress("load", 0, "")
			<-time.After(time.Second)
			s.want("seen while it runs", s.job("a").Progress.Stage, "load")
			j.Logf("%d bytes", 100)
			for i := range 10 {
				j.Progress("resize", float64(10+i), "so far")
			}
			j.Tell(forebay.Progress{Stage: "store", Percent: 99, Data: []byte(`{"n":1}`)})
			j.Logf("done")
			return nil, nil
		})})
		pass(time.Minute)
		stop()
		s.want("history", s.history("a"), "added started progress(load 0) progress(resize 19) progress(store 99) log(100 bytes) log(done) completed")
		s.want("kept", string(s.job("a").Progress.Data), `{"n":1}`)
	})
}

// A handler that tells far more than can be stored is not slowed, and memory and
// calls are bounded.
func TestTellingNeverBlocks(t *testing.T) {
	t.Parallel()
	jobBubble(t, func(s *jobStand) {
		l := &slowLedger{Engine: s.engine, delay: time.Second}
		s.bend(l)
		s.add(forebay.JobOptions{}, "a")
		stop := s.run(worker.Config{Jobs: worker.JobFunc(func(_ context.Context, j *worker.Job) ([]byte, error) {
			began := time.Now()
			for i := range 100_000 {
				j.Progress("x", float64(i)/1000, "")
				j.Logf("line %d %s", i, strings.Repeat("x", 5000))
			}
			s.want("time that telling took", time.Since(began), time.Duration(0))
			<-time.After(10 * time.Second)
			return nil, nil
		})})
		pass(time.Minute)
		stop()
		s.want("percent", s.job("a").Progress.Percent, 99.999)
		h := s.history("a")
		if n := strings.Count(h, "log("); n > 250 || !strings.Contains(h, "lines dropped") {
			t.Errorf("%d lines, dropped: %t", n, strings.Contains(h, "lines dropped"))
		}
		s.want("calls", l.calls < 5, true)
	})
}

// A ledger that fails loses nothing but what does not fit, and delays no verdict
// for long.
func TestProgressThroughFailures(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		outage  time.Duration
		history string
	}{
		"for a while": {3 * time.Second, "added started progress(one 1) progress(two 2) log(hello) completed"},
		"for ever":    {time.Hour, "added started completed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			jobBubble(t, func(s *jobStand) {
				s.bend(&slowLedger{Engine: s.engine, fail: func() error {
					if s.since() < c.outage {
						return forebay.Errorf(forebay.CodeUnavailable, "test", "no answer")
					}
					return nil
				}})
				s.add(forebay.JobOptions{}, "a")
				stop := s.run(worker.Config{Jobs: worker.JobFunc(func(_ context.Context, j *worker.Job) ([]byte, error) {
					j.Progress("one", 1, "")
					<-time.After(time.Second)
					j.Progress("two", 2, "")
					j.Logf("hello")
					<-time.After(9 * time.Second)
					return nil, nil
				})})
				pass(time.Minute)
				stop()
				s.want("history", s.history("a"), c.history)
				j := s.job("a")
				s.want("run", j.FinishedAt.Sub(j.StartedAt), 10*time.Second)
			})
		})
	}
}

// What a handler tells wrongly is cut to what is allowed: it goes on.
func TestWhatIsToldIsMadeToFit(t *testing.T) {
	t.Parallel()
	jobBubble(t, func(s *jobStand) {
		s.add(forebay.JobOptions{}, "a")
		stop := s.run(worker.Config{Jobs: worker.JobFunc(func(_ context.Context, j *worker.Job) ([]byte, error) {
			j.Tell(forebay.Progress{Stage: strings.Repeat("ü", 100), Percent: 250, Message: "two\nlines", Data: []byte("{")})
			return nil, nil
		})})
		pass(time.Second)
		stop()
		p := s.job("a").Progress
		s.want("stage", p.Stage, strings.Repeat("ü", 32))
		s.want("rest", fmt.Sprint(p.Percent, " ", p.Message, " ", len(p.Data)), "100 two lines 0")
	})
}

// A job that is told of its cancellation by the answer to its progress.
func TestProgressTellsOfCancellation(t *testing.T) {
	t.Parallel()
	jobBubble(t, func(s *jobStand) {
		s.unheard = true
		s.add(forebay.JobOptions{}, "a")
		stop := s.run(worker.Config{Lease: time.Hour, Jobs: worker.JobFunc(func(ctx context.Context, j *worker.Job) ([]byte, error) {
			for i := 0; ctx.Err() == nil; i++ {
				j.Progress("x", float64(i), "")
				<-time.After(100 * time.Millisecond)
			}
			return nil, ctx.Err()
		})})
		pass(time.Second)
		s.cancel("a")
		pass(time.Second)
		s.want("state", s.job("a").State, forebay.StateCancelled)
		stop()
	})
}

// A job that outruns its estimate finds a line about it in its log.
func TestOverdueIsLogged(t *testing.T) {
	t.Parallel()
	jobBubble(t, func(s *jobStand) {
		stop := s.run(worker.Config{Jobs: worker.JobFunc(func(_ context.Context, j *worker.Job) ([]byte, error) {
			d := time.Second
			if j.ID == "slow" {
				d = 5 * time.Minute
			}
			<-time.After(d)
			return nil, nil
		})})
		for i := range 20 {
			s.add(forebay.JobOptions{}, fmt.Sprint("j", i))
			pass(2 * time.Second)
		}
		s.add(forebay.JobOptions{}, "slow")
		pass(10 * time.Minute)
		h := s.history("slow")
		if strings.Count(h, "log(overdue: not finished after") != 1 || !strings.HasSuffix(h, " completed") {
			t.Errorf("history: %s", h)
		}
		s.want("alerts", len(s.alerts()), 1)
		s.want("of another", s.history("j3"), "added started completed")
		stop()
	})
}

// slowLedger delays or fails what jobs tell.
type slowLedger struct {
	*sqlite.Engine
	delay time.Duration
	fail  func() error
	calls int
}

func (l *slowLedger) Progress(ctx context.Context, us []forebay.ProgressUpdate) ([]error, error) {
	l.calls++
	if l.delay > 0 {
		<-time.After(l.delay)
	}
	if l.fail != nil {
		if err := l.fail(); err != nil {
			return nil, err
		}
	}
	return l.Engine.Progress(ctx, us)
}
