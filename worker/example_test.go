package worker_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/broker"
	"github.com/forebayhq/forebay/engine/enginetest"
	"github.com/forebayhq/forebay/worker"
)

// A worker that handles messages one by one. Here the engine is in memory; a
// program opens one that stores, engine/sqlite for example.
func ExampleWorker() {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	b, err := broker.New(enginetest.NewModel(), broker.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer b.Close()
	_, err = b.Send(ctx, []forebay.Message{{Queue: "mail", Kind: "welcome", Payload: []byte("u1")}})
	if err != nil {
		fmt.Println(err)
		return
	}

	w, err := worker.New(b, worker.Config{
		Queue: "mail",
		Handler: worker.HandlerFunc(func(ctx context.Context, d forebay.Delivery) error {
			fmt.Printf("%s for %s, attempt %d\n", d.Kind, d.Payload, d.Attempt)
			stop() // one is enough for an example; a program ends with a signal
			return nil
		}),
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("drained:", w.Run(ctx))
	// Output:
	// welcome for u1, attempt 1
	// drained: <nil>
}

// A worker that handles batches, and fails one message of them for good.
func ExampleWorker_batch() {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	b, err := broker.New(enginetest.NewModel(), broker.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer b.Close()
	_, err = b.Send(ctx, []forebay.Message{
		{Queue: "rows", Payload: []byte("1")},
		{Queue: "rows", Payload: []byte("two")},
		{Queue: "rows", Payload: []byte("3")},
	})
	if err != nil {
		fmt.Println(err)
		return
	}

	w, err := worker.New(b, worker.Config{
		Queue:    "rows",
		BatchMax: 100,
		Batch: worker.BatchFunc(func(ctx context.Context, ds []forebay.Delivery) []error {
			errs := make([]error, len(ds))
			for i, d := range ds {
				if len(d.Payload) > 1 {
					errs[i] = forebay.Permanent(errors.New("not a digit"))
				}
			}
			return errs
		}),
		Observe: worker.Observe{Settled: func(o worker.Outcome) {
			fmt.Printf("%s: %s %q\n", o.Delivery.Payload, o.Verdict, o.Cause.Message)
			if string(o.Delivery.Payload) == "3" {
				stop()
			}
		}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("drained:", w.Run(ctx))
	// Output:
	// 1: ack ""
	// two: dead "not a digit"
	// 3: ack ""
	// drained: <nil>
}
