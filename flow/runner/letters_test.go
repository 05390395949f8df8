package runner_test

import (
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
