package flow_test

import (
	"fmt"
	"time"

	"github.com/forebayhq/forebay/flow"
)

// All that is wrong with a file, with its place and a sentence.
func ExampleLoad() {
	_, problems := flow.Load([]byte(`flow: registration
steps:
  create: {use: create-user, retry: {attemps: 3}}
  welcome: {use: send-mail, needs: creat, when: steps.create.output.ok}
  review: {wait: {approval: true}}
`), flow.Known{Handlers: []string{"create-user", "send-mail"}})
	for _, p := range problems {
		fmt.Printf("%d:%d %s %s\n", p.Line, p.Column, p.Code, p.Path)
	}
	fmt.Println(problems[0].Text)
	// Output:
	// 3:38 unknown_field steps.create.retry.attemps
	// 4:36 unknown_step steps.welcome.needs[0]
	// 4:49 not_ancestor steps.welcome.when
	// 5:18 no_timeout steps.review.wait
	// retry has no field "attemps"; there are: attempts, backoff, base, cap, jitter; did you mean "attempts"?
}

// Decisions are pure: what was sent and what has ended give what follows.
func ExamplePlan_Advance() {
	plan, _ := flow.Load([]byte("flow: f\nsteps:\n  a: {use: x}\n  b: {use: y, needs: a, with: \"${steps.a.output.id + 1}\"}\n"), flow.Known{})
	run, input := plan.Begin("run-1", time.Unix(0, 0)), flow.NewInput(nil)
	fmt.Println(plan.Advance(run, input).Send[0].ID)
	next := plan.Advance(run, input, flow.Event{Step: "a", Item: flow.NoItem, Type: flow.EventCompleted, Output: []byte(`{"id":41}`)})
	fmt.Println(next.Send[0].ID, string(next.Send[0].Payload))
	fmt.Println(plan.Waiting(run)[0].Text)
	// Output:
	// run-1/a
	// run-1/b 42
	// its job has not ended
}
