package flow_test

import (
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/forebayhq/forebay/flow"
)

// TestExpressionsAreBoundedBeforeTheyAreDone: a short expression over a long input may
// ask for more memory, or work, than there is.
func TestExpressionsAreBoundedBeforeTheyAreDone(t *testing.T) {
	var numbers strings.Builder
	for i := range 60_000 { // to compare each with each would take minutes
		fmt.Fprintf(&numbers, "%d,", i)
	}
	input := json.RawMessage(fmt.Sprintf(`{"s":%q,"l":[%s4]}`, strings.Repeat("a", 20_000), numbers.String()))
	var before, after runtime.MemStats
	for _, c := range []struct{ expr, want string }{
		{"input.s.replace('a', input.s)", "replace of so much"},
		{"input.s.replace('a', input.s, 10000)", "replace of so much"},
		{"input.s.replace('a', input.s, 1).size()", ""},
		{"input.s.replace('a', 'bb').size()", ""},
		{"input.s.split('').join(input.s)", "join of so much"},
		{"lists.range(50000).map(i, input.s).join()", "join of so much"},
		{"['a', 'b'].join(input.s).size()", ""},
		{"input.l.distinct()", "cost limit exceeded"},
		{"[1, 2, 1].distinct().size()", ""},
		{"sets.equivalent(input.l, input.l)", "cost limit exceeded"},
		{"sets.contains(input.l, input.l)", "cost limit exceeded"},
		{"sets.intersects(input.l, input.l)", "cost limit exceeded"},
		{"sets.contains(input.l, [1]) && sets.intersects([4], input.l)", ""},
		{"lists.range(10000).map(i, input.l).flatten()", "flatten of so much"},
		{"lists.range(10000).map(i, [input.l]).flatten(2)", "flatten of so much"},
		{"[[1], [2, [3]]].flatten().size() + [[1, [2]]].flatten(2).size()", ""},
		{"lists.range(50000).map(i, input.s)", "gives more than 10000000 bytes"},
	} {
		plan, problems := flow.Load([]byte("flow: f\nsteps:\n  a: {use: x, with: \"${"+c.expr+"}\"}\n"), flow.Known{})
		if plan == nil {
			t.Fatal(c.expr, problems)
		}
		run := plan.Begin("r", time.Unix(0, 0))
		runtime.ReadMemStats(&before)
		plan.Advance(run, flow.NewInput(input))
		runtime.ReadMemStats(&after)
		if got := (after.TotalAlloc - before.TotalAlloc) >> 20; got > 150 {
			t.Errorf("%s took %d MB", c.expr, got)
		}
		switch f := run.Failure; {
		case c.want == "" && f != nil:
			t.Errorf("%s fails: %+v", c.expr, f)
		case c.want != "" && (f == nil || f.Code != flow.FailExpression || !strings.Contains(f.Message, c.want)):
			t.Errorf("%s: %+v; want %q", c.expr, f, c.want)
		}
	}
}
