package runner_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
	"github.com/forebayhq/forebay/flow"
	"github.com/forebayhq/forebay/worker"
)

// Who retries a run, or skips its step, leaves no dead letter behind that would do the
// step once more.
func TestNoLetterIsLeftOfWhatWasBegunAgain(t *testing.T) {
	for _, c := range []struct {
		name, policy string
		command      flow.Command
		runs         int
	}{
		{"retried when the run has failed", "", flow.Command{Do: flow.DoRetry}, 2},
		{"retried while the run waits", ", on_failure: dead_letter", flow.Command{Do: flow.DoRetry, Step: "a"}, 2},
		{"skipped", ", on_failure: dead_letter", flow.Command{Do: flow.DoSkip, Step: "a"}, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(s *stand) {
				broken := true
				s.handle("charge", func(*worker.Job) (any, error) {
					if broken {
						return nil, forebay.Permanent(errNo)
					}
					return nil, nil
				})
				s.open()
				s.put("flow: f\nsteps:\n  a: {use: charge" + c.policy + "}\n")
				s.start("f", "r", "1")
				s.wait(time.Minute)
				broken = false
				s.do("r", c.command)
				s.wait(time.Minute)
				if got := s.get("r").State; got != flow.RunCompleted {
					t.Fatalf("the run is %s", got)
				}
				if n := s.began["r/a"] + s.began["r/a@1"]; n != c.runs {
					t.Errorf("the step ran %d times, want %d", n, c.runs)
				}
				letters, err := s.broker.Dead(s.t.Context(), engine.DeadQuery{})
				if err != nil || len(letters) > 0 {
					t.Errorf("left is %v, %v", letters, err)
				}
			})
		})
	}
}

// A failure that ends a run leaves the step's dead letter and the run's. Whichever is
// replayed, or both, the run goes on, the step runs once more, and neither is left; of
// the failure there was one alert.
func TestOneFailureIsMendedOnce(t *testing.T) {
	for _, c := range []struct {
		name   string
		replay func(s *stand, step, run int64) error
	}{
		{"the step's", func(s *stand, step, _ int64) error { return s.replay(step) }},
		{"the run's", func(s *stand, _, run int64) error { return s.replay(run) }},
		{"both, the newest first", func(s *stand, step, run int64) error { return s.replay(run, step) }},
		{"the run's, then the step's", func(s *stand, step, run int64) error {
			err := s.replay(run)
			if second := s.replay(step); forebay.CodeOf(second) != forebay.CodeNotFound {
				return fmt.Errorf("the step's was there still: %w", second)
			}
			return err
		}},
		{"the run's job is retried", func(s *stand, _, _ int64) error {
			results, err := s.broker.Retry(s.t.Context(), []string{"r"})
			return errors.Join(err, results[0].Err)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(s *stand) {
				broken := true
				s.handle("charge", func(*worker.Job) (any, error) {
					if broken {
						return nil, forebay.Permanent(errNo)
					}
					<-time.After(time.Second) // it is under way when the run's is replayed
					return nil, nil
				})
				s.alerts = "alerts" // that nobody works
				s.open()
				s.put("flow: f\nsteps:\n  a: {use: charge}\n")
				s.start("f", "r", "1")
				s.wait(time.Minute)
				letters, err := s.broker.Dead(s.t.Context(), engine.DeadQuery{})
				if err != nil || len(letters) != 2 || letters[0].Message.ID != "r" || letters[1].Message.ID != "r/a" {
					t.Fatalf("dead letters are %+v, %v", letters, err)
				}
				alerts, err := s.broker.Receive(s.t.Context(), engine.Receive{Queue: "alerts", Max: 10})
				if err != nil || len(alerts) != 1 || !strings.Contains(string(alerts[0].Payload), `"charge"`) {
					t.Errorf("alerts are %+v, %v", alerts, err)
				}
				broken = false
				if err := c.replay(s, letters[1].Seq, letters[0].Seq); err != nil {
					t.Fatal(err)
				}
				s.wait(time.Minute)
				if got := s.get("r").State; got != flow.RunCompleted {
					t.Errorf("the run is %s", got)
				}
				if n := s.began["r/a"] + s.began["r/a@1"]; n != 2 {
					t.Errorf("the step ran %d times, want 2: %v", n, s.began)
				}
				if left, err := s.broker.Dead(s.t.Context(), engine.DeadQuery{}); err != nil || len(left) > 0 {
					t.Errorf("left is %v, %v", left, err)
				}
				if j, err := s.broker.Job(s.t.Context(), "r"); err != nil || j.State != forebay.StateCompleted {
					t.Errorf("the run's job is %+v, %v", j, err)
				}
			})
		})
	}
}

func (s *stand) replay(seqs ...int64) error {
	results, err := s.broker.ReplayDead(s.t.Context(), seqs)
	for _, r := range results {
		err = errors.Join(err, r.Err)
	}
	return err
}
