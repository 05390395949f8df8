package worker_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/worker"
)

// obedient waits for its context to end, and says what it was told.
func obedient(seen *journal) worker.JobFunc {
	return func(ctx context.Context, j *worker.Job) ([]byte, error) {
		select {
		case <-ctx.Done():
			seen.add("%s %v", j.ID, context.Cause(ctx))
			return []byte("1"), nil // whatever it says: it was ended
		case <-time.After(time.Hour):
			return []byte("2"), nil
		}
	}
}

func TestJobsAreEnded(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		options forebay.JobOptions
		cancel  bool
		unheard bool
		within  time.Duration
		cause   error
		state   forebay.State
		code    string
		starts  int
	}{
		"cancelled":            {cancel: true, within: 1100 * time.Millisecond, cause: forebay.ErrCancelled, state: forebay.StateCancelled, code: "cancelled", starts: 1},
		"cancelled, by Extend": {cancel: true, unheard: true, within: 12 * time.Second, cause: forebay.ErrCancelled, state: forebay.StateCancelled, code: "cancelled", starts: 1},
		"timeout":              {options: forebay.JobOptions{Timeout: 5 * time.Second}, within: 5 * time.Second, cause: forebay.ErrTimeout, state: forebay.StateDead, code: "timeout", starts: 2},
		"deadline":             {options: forebay.JobOptions{Timeout: time.Minute, Deadline: time.Date(2000, 1, 1, 0, 0, 7, 0, time.UTC)}, within: 7 * time.Second, cause: forebay.ErrDeadline, state: forebay.StateDead, code: "deadline", starts: 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			jobBubble(t, func(s *jobStand) {
				var seen journal
				var at time.Duration
				s.unheard = c.unheard
				s.add(c.options, "a")
				stop := s.run(worker.Config{Jobs: worker.JobFunc(func(ctx context.Context, j *worker.Job) ([]byte, error) {
					defer func() {
						if at == 0 {
							at = s.since()
						}
					}()
					return obedient(&seen)(ctx, j)
				})})
				pass(time.Second)
				if c.cancel {
					s.cancel("a")
				}
				pass(time.Minute)
				j := s.job("a")
				if at == 0 || at > c.within {
					t.Errorf("the handler was told after %s", at)
				}
				if lines := seen.all(); len(lines) != c.starts || !strings.Contains(lines[0], c.cause.Error()) && !c.cancel {
					t.Errorf("seen: %q", lines)
				}
				s.want("state", j.State, c.state)
				s.want("code", j.Cause.Code, c.code)
				s.want("result", string(j.Result), "")
				if strings.Contains(j.Cause.Message, "said") { // for it said nothing
					t.Errorf("the cause says %q", j.Cause.Message)
				}
				if j.Cause.Attempt != c.starts || j.Cause.Started.IsZero() {
					t.Errorf("the cause is not whole: %+v", j.Cause)
				}
				stop()
			})
		})
	}
}

// The cause that the handler sees is the one that was named, with the reason.
func TestCauseOfACancellation(t *testing.T) {
	t.Parallel()
	jobBubble(t, func(s *jobStand) {
		var seen journal
		s.add(forebay.JobOptions{}, "a")
		stop := s.run(worker.Config{Jobs: obedient(&seen)})
		pass(time.Second)
		s.cancel("a")
		pass(10 * time.Millisecond)
		s.want("seen", seen.all(), "[a cancelled: not wanted any more]")
		if text := s.job("a").Cause.Message; !strings.Contains(text, "not wanted any more") {
			t.Errorf("the ledger says %q", text)
		}
		s.want("history", s.history("a"), "added started cancel_requested cancelled")
		stop()
	})
}

// A handler that does not return holds nobody up: its job is settled after the
// grace, it is told of, its slot stays taken, and what it says at last is dropped.
func TestHandlerThatIgnoresItsEndIsLeftBehind(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"cancel", "timeout", "deadline"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			jobBubble(t, func(s *jobStand) {
				var begun journal
				release := make(chan struct{})
				options := forebay.JobOptions{}
				switch how {
				case "timeout":
					options.Timeout = time.Second
				case "deadline":
					options.Deadline = s.start.Add(time.Second)
				}
				s.add(options, "a")
				s.add(forebay.JobOptions{}, "b", "c")
				stop := s.run(worker.Config{
					Concurrency: 2, CancelGrace: 3 * time.Second,
					Jobs: worker.JobFunc(func(_ context.Context, j *worker.Job) ([]byte, error) {
						begun.add("%s/%d %s", j.ID, j.Attempt, s.since())
						if j.ID == "a" && j.Attempt == 1 {
							<-release
							j.Progress("too late", 100, "")
						} else if j.ID != "a" {
							<-time.After(10 * time.Second)
						}
						return []byte(`"late"`), nil
					}),
				})
				pass(time.Second)
				if how == "cancel" {
					s.cancel("a")
				}
				pass(2900 * time.Millisecond)
				s.want("before the grace has passed", s.job("a").State, forebay.StateActive)
				pass(200 * time.Millisecond)
				j := s.job("a")
				s.want("left behind", s.left, "[a "+how+"]")
				switch how {
				case "cancel":
					s.want("state", j.State, forebay.StateCancelled)
				case "timeout":
					s.want("failures", fmt.Sprint(j.Attempts, j.Failures[0].Code), "1timeout")
				case "deadline":
					s.want("state", fmt.Sprint(j.State, j.Cause.Code), "deaddeadline")
				}
				pass(time.Minute) // b and c run one after the other, in the other slot
				s.want("done meanwhile", fmt.Sprint(s.job("b").State, s.job("c").State), "completedcompleted")
				if lines := begun.all(); !strings.HasPrefix(lines[2], "c/1 10s") && how != "timeout" {
					t.Errorf("begun: %q", lines)
				}
				close(release)
				pass(time.Second)
				s.want("verdicts of its lease", s.lost, "[]") // one, and no second try
				after := s.job("a")
				s.want("its progress", after.Progress.Stage, "")
				if how != "timeout" {
					s.want("its late word", fmt.Sprint(after.State, string(after.Result)), fmt.Sprint(j.State, ""))
				}
				stop()
			})
		})
	}
}

// More cancellations at once than the way of the watcher has room for are heard all
// the same: what is missed there is asked for.
func TestManyCancellationsAtOnce(t *testing.T) {
	t.Parallel()
	jobBubble(t, func(s *jobStand) {
		var ids []string
		for i := range 200 {
			ids = append(ids, fmt.Sprint("j", i))
		}
		var seen journal
		s.add(forebay.JobOptions{}, ids...)
		stop := s.run(worker.Config{Concurrency: 200, Lease: time.Hour, Jobs: obedient(&seen)})
		pass(time.Second)
		if _, err := s.broker.Cancel(s.t.Context(), ids, ""); err != nil {
			t.Fatal(err)
		}
		pass(time.Second)
		s.want("told within a second", len(seen.all()), 200)
		s.want("cancelled", s.stats().Cancelled, 200)
		stop()
	})
}

// What waits at hand for others of its group ends at once when it is cancelled, and
// its group goes on.
func TestCancelOfWhatHasNotBegun(t *testing.T) {
	t.Parallel()
	jobBubble(t, func(s *jobStand) {
		var begun journal
		for _, id := range []string{"g1", "g2", "g3"} {
			s.send(forebay.Message{ID: id, Kind: "k", Group: "g", Payload: []byte("{}"), Job: &forebay.JobOptions{}})
		}
		stop := s.run(worker.Config{Concurrency: 3, Jobs: worker.JobFunc(func(_ context.Context, j *worker.Job) ([]byte, error) {
			begun.add("%s", j.ID)
			<-time.After(10 * time.Second)
			return nil, nil
		})})
		pass(time.Second)
		s.cancel("g2")
		pass(time.Second)
		s.want("cancelled", s.job("g2").State, forebay.StateCancelled)
		pass(time.Minute)
		s.want("begun", begun.all(), "[g1 g3]")
		s.want("done", fmt.Sprint(s.job("g1").State, s.job("g3").State), "completedcompleted")
		s.want("each ends once", len(s.verdicts()), 3)
		stop()
	})
}

// What is at hand behind others of its group, and whose time is over when its turn
// comes, is not begun.
func TestTooLateToBegin(t *testing.T) {
	t.Parallel()
	jobBubble(t, func(s *jobStand) {
		var begun journal
		soon := s.start.Add(5 * time.Second)
		for i, options := range []*forebay.JobOptions{{}, {Expires: soon}, {Deadline: soon}, {}} {
			s.send(forebay.Message{ID: fmt.Sprint("g", i+1), Kind: "k", Group: "g", Payload: []byte("{}"), Job: options})
		}
		stop := s.run(worker.Config{Concurrency: 4, Jobs: worker.JobFunc(func(_ context.Context, j *worker.Job) ([]byte, error) {
			begun.add("%s", j.ID)
			<-time.After(10 * time.Second)
			return nil, nil
		})})
		pass(time.Minute)
		s.want("begun", begun.all(), "[g1 g4]")
		s.want("expired", fmt.Sprint(s.job("g2").State, " ", s.job("g2").Cause.Code), "expired expired")
		s.want("dead", fmt.Sprint(s.job("g3").State, " ", s.job("g3").Cause.Code), "dead deadline")
		s.want("each ends once", len(s.verdicts()), 4)
		stop()
	})
}

// A drain that meets a job that was ended, and does not return, keeps its verdict.
func TestDrainWhileAJobDoesNotEnd(t *testing.T) {
	t.Parallel()
	jobBubble(t, func(s *jobStand) {
		release := make(chan struct{})
		s.add(forebay.JobOptions{}, "a")
		s.unheard = true
		s.run(worker.Config{CancelGrace: time.Hour, DrainTimeout: time.Second, Lease: 3 * time.Second,
			Jobs: worker.JobFunc(func(context.Context, *worker.Job) ([]byte, error) { <-release; return nil, nil })})
		pass(time.Second)
		s.cancel("a")
		pass(4 * time.Second)
		s.stop()
		if err := <-s.ended; err == nil || !strings.Contains(err.Error(), "a (1 in its call") {
			t.Errorf("run: %v", err)
		}
		s.want("state", s.job("a").State, forebay.StateCancelled)
		close(release)
	})
}

// A handler that ends in time is done, whatever its limits were.
func TestJobWithinItsLimits(t *testing.T) {
	t.Parallel()
	jobBubble(t, func(s *jobStand) {
		s.add(forebay.JobOptions{Timeout: 10 * time.Second, Deadline: s.start.Add(time.Minute), Expires: s.start.Add(30 * time.Second)}, "a", "b", "c")
		stop := s.run(worker.Config{Jobs: worker.JobFunc(func(ctx context.Context, j *worker.Job) ([]byte, error) {
			switch j.ID {
			case "b":
				return nil, forebay.Cancel("no such user")
			case "c":
				return nil, forebay.Permanent(errors.New("no"))
			}
			<-time.After(9 * time.Second)
			return []byte(`{"n":1}`), ctx.Err()
		})})
		pass(time.Hour)
		a, b, c := s.job("a"), s.job("b"), s.job("c")
		s.want("a", fmt.Sprint(a.State, " ", string(a.Result), " ", a.FinishedAt.Sub(a.StartedAt)), `completed {"n":1} 9s`)
		s.want("b", fmt.Sprint(b.State, " ", b.Cause.Code, " ", b.Cause.Message), "cancelled cancelled cancelled: no such user")
		s.want("c", fmt.Sprint(c.State, " ", c.Cause.Code, " ", c.Cause.Attempt), "dead handler 1")
		stop()
	})
}
