package build_test

import (
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/forebayhq/forebay/flow"
	"github.com/forebayhq/forebay/flow/build"
)

// The registration of the examples, in Go.
func registration() *build.Flow {
	f := build.New("registration").Description("From the form to a workspace of one's own").
		Input(`{"type":"object","required":["email","name"],"properties":{"email":{"type":"string","format":"email"},"name":{"type":"string"}}}`)
	validate := f.Job("validate", "validate-user-data").With("${input}")
	create := f.Job("create", "create-user-record").After(validate).
		With(map[string]string{"email": "${input.email}", "name": "${input.name}"}).
		Retry(5, time.Second, time.Minute).OnFailure(flow.DeadLetter).Compensate("delete-user-record", nil)
	welcome := f.Job("welcome", "send-welcome-email").After(create).Queue("notifications").
		With(map[string]string{"to": "${input.email}", "userId": "${steps.create.output.userId}"}).
		Retry(3, 2*time.Second, 0).OnFailure(flow.Skip)
	f.Job("workspace", "initialize-workspace").After(welcome).Queue("workspace-setup").
		With(map[string]string{"userId": "${steps.create.output.userId}", "name": "${input.name}'s workspace"}).Timeout(2 * time.Minute)
	return f.Output(map[string]string{
		"userId": "${steps.create.output.userId}", "welcomed": "${steps.welcome.state == 'completed'}", "workspace": "${steps.workspace.output}",
	})
}

func load(t *testing.T, src []byte) *flow.Definition {
	t.Helper()
	d, problems := flow.Parse(src)
	if len(problems) > 0 {
		t.Fatalf("%v\n%s", problems, src)
	}
	return d
}

// What is built does what the file does.
func TestItIsTheFile(t *testing.T) {
	src, err := registration().Source()
	if err != nil {
		t.Fatal(err)
	}
	file, err := os.ReadFile("../../examples/flows/registration.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range flow.Diff(load(t, file), load(t, src)) {
		if sameLetters(c.Text) || c.Text == "backoff is not set any more; it was exponential" { // the usual one
			continue
		}
		t.Errorf("%+v", c)
	}
}

// sameLetters tells whether a change is one of order alone: maps have none in Go.
func sameLetters(text string) bool {
	_, both, _ := strings.Cut(text, " was ")
	was, is, ok := strings.Cut(both, ", and is ")
	if !ok {
		return false
	}
	count := func(s string) (n [256]int) {
		for _, c := range []byte(s) {
			n[c]++
		}
		return n
	}
	return count(was) == count(is)
}

// All that a file can say can be built, and is what the file would have said.
func TestAllOfIt(t *testing.T) {
	f := build.New("all").Timeout(time.Hour).Context(4096)
	first := f.Job("first", "x").Title("First").Priority(1).Group("${run.id}").LimitKey("k").Timeout(time.Second).ForEach("[1, 2]", 3, 1).With("${item}")
	branch := f.Branch("way", build.Case{When: "input.a > 1", To: []string{"one"}}, build.Case{To: []string{"two", "many"}}).After(first)
	one := f.Delay("one", 90*time.Second)
	two := f.Until("two", "input.at").When("has(input.at)")
	many := f.Parallel("many", "event", "yes")
	event := f.Event("event", "paid", "event.n == 1", time.Hour).OnTimeoutGo("late", 0)
	yes := f.Approval("yes", "ops", nil, time.Hour).OnTimeout(flow.Skip)
	f.Approval("anybody", "", nil, time.Hour).After(many)
	f.Approval("few", "", nil, time.Hour).Approvers("admin", "ops").After(many)
	f.Join("some", 2).After(event, yes)
	f.JoinAll("both").After(event, yes)
	f.Flow("sub", "other", 3).After(branch).OnFailureGo("first", 2)
	f.Emit("told", "all.told", map[string]int{"n": 1}).After(one).Queue("q")
	f.DeadLetter("late", "too late")
	f.Job("last", "y").After(two).Compensate("z", map[string]string{"of": "${input.a}"})
	src, err := f.Source()
	if err != nil {
		t.Fatal(err)
	}
	want := `flow: all
timeout: 1h
context: 4096
steps:
  first: {title: First, use: x, priority: 1, group: "${run.id}", limit_key: k, timeout: 1s, for_each: {in: "[1, 2]", max_in_flight: 3, max_failures: 1}, with: "${item}"}
  way: {needs: first, branch: [{when: input.a > 1, to: one}, {to: [two, many]}]}
  one: {delay: 90s}
  two: {delay: {until: input.at}, when: has(input.at)}
  many: {parallel: [event, yes]}
  event: {wait: {event: {type: paid, match: event.n == 1}, timeout: 1h}, on_timeout: {goto: late}}
  yes: {wait: {approval: {role: ops}, timeout: 1h}, on_timeout: skip}
  anybody: {wait: {approval: true, timeout: 1h}, needs: many}
  few: {wait: {approval: {approvers: [admin, ops]}, timeout: 1h}, needs: many}
  some: {join: 2, needs: [event, yes]}
  both: {join: all, needs: [event, yes]}
  sub: {flow: {name: other, version: 3}, needs: way, on_failure: {goto: first, max: 2}}
  told: {emit: {type: all.told, data: {n: 1}}, needs: one, queue: q}
  late: {dead_letter: too late}
  last: {use: y, needs: two, compensate: {use: z, with: {of: "${input.a}"}}}
`
	for _, c := range flow.Diff(load(t, []byte(want)), load(t, src)) {
		t.Errorf("%+v", c)
	}
}

func TestProblemsNameTheirStep(t *testing.T) {
	f := build.New("a b")
	f.Job("x", "x").When("input.")
	_, err := f.Source()
	var problems flow.Problems
	if !errors.As(err, &problems) || len(problems) != 2 || problems[0].Path != "flow" || problems[1].Path != "steps.x.when" {
		t.Errorf("got %v", err)
	}
}
