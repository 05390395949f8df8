package runner_test

import (
	"strings"
	"testing"
	"time"

	"github.com/forebayhq/forebay/flow"
)

// Flows that run each other end at once, and say how they come to run themselves. Before, only the length of ids ended
// them, with a for_each after more jobs than there is room for.
func TestFlowsThatRunEachOther(t *testing.T) {
	t.Parallel()
	bubble(t, func(s *stand) {
		s.open()
		s.put("flow: c\nsteps:\n  z: {use: z}\n")
		s.put("flow: a\nsteps:\n  x: {flow: c}\n")
		s.put("flow: b\nsteps:\n  y: {flow: a, for_each: {in: '[1,2]'}}\n")
		s.put("flow: c\nsteps:\n  z: {flow: b}\n")
		s.start("a", "run", "null")
		s.wait(time.Minute)
		s.want("run", "failed x:failed")
		why := s.get("run").Failure
		if why == nil || !strings.Contains(why.Message, "the flow a would run itself without an end: a runs c runs b runs a") {
			t.Errorf("it failed by %+v", why)
		}
		if why != nil && why.Code == flow.FailTimeout {
			t.Error("it ended by its time only")
		}
	})
}
