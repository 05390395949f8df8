package runner_test

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/broker"
	"github.com/forebayhq/forebay/engine/sqlite"
	"github.com/forebayhq/forebay/flow"
	"github.com/forebayhq/forebay/flow/runner"
	"github.com/forebayhq/forebay/task"
	"github.com/forebayhq/forebay/worker"
)

// A program that runs flows: a runner over its broker, a worker for each of the two
// queues of flows, and its own workers, whose handlers are wrapped by Steps.
func Example() {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	e, err := sqlite.Open(sqlite.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	b, err := broker.New(e, broker.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer b.Close()
	r, err := runner.New(b, runner.Config{Alone: true})
	if err != nil {
		fmt.Println(err)
		return
	}

	var mux task.Mux
	mux.Handle("greet", task.Func(func(_ context.Context, _ *worker.Job, name string) (string, error) {
		return "Hello " + name, nil
	}))
	mux.Handle("shout", task.Func(func(_ context.Context, _ *worker.Job, text string) (string, error) {
		return text + "!", nil
	}))
	version, problems, err := r.Put(ctx, []byte(`
flow: greeting
input: {type: object, properties: {name: {type: string}}}
steps:
  greet: {use: greet, with: "${input.name}"}
  shout: {use: shout, needs: greet, with: "${steps.greet.output}"}
output: "${steps.shout.output}"
`), flow.Known{Handlers: mux.Kinds()})
	fmt.Println("version", version, "problems", len(problems), err)

	var running sync.WaitGroup
	for _, cfg := range []worker.Config{
		{Queue: r.Queue(), Jobs: r.Handler(), Observe: worker.Observe{Settled: func(o worker.Outcome) {
			if o.Verdict == forebay.Ack && o.Delivery.Kind == runner.KindRun {
				stop() // one run is enough for an example
			}
		}}},
		{Queue: r.AdvanceQueue(), Batch: r.Advances()},
		{Queue: flow.DefaultQueue, Jobs: r.Steps(&mux)},
	} {
		w, err := worker.New(b, cfg)
		if err != nil {
			fmt.Println(err)
			return
		}
		running.Go(func() { w.Run(ctx) })
	}
	if _, err := r.Start(ctx, runner.Start{Flow: "greeting", ID: "g1", Input: json.RawMessage(`{"name":"Ada"}`)}); err != nil {
		fmt.Println(err)
	}
	running.Wait()
	view, err := r.Get(context.Background(), "g1")
	fmt.Println(view.State, string(view.Output), err)
	// Output:
	// version 1 problems 0 <nil>
	// completed "Hello Ada!" <nil>
}
