// Command jobs runs jobs inside a Go program, without the server: handlers of its
// own with types of its own, progress, a result, and what became of each.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync/atomic"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/broker"
	"github.com/forebayhq/forebay/engine/sqlite"
	"github.com/forebayhq/forebay/task"
	"github.com/forebayhq/forebay/worker"
)

func main() {
	if err := run(context.Background(), os.Stdout, "jobs.db"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

type order struct {
	Customer string `json:"customer"`
	Cents    int    `json:"cents"`
}

type receipt struct {
	Number string `json:"number"`
}

// handlers are the ten lines: a kind, and a function with its data and result.
func handlers() *task.Mux {
	var mux task.Mux
	mux.Handle("charge", task.Func(func(ctx context.Context, j *worker.Job, o order) (receipt, error) {
		if o.Cents <= 0 {
			return receipt{}, task.BadData("cents", "%d; more than 0 is allowed", o.Cents)
		}
		j.Progress("charge", 50, "asking the bank")
		return receipt{"R-" + o.Customer}, nil
	}))
	return &mux
}

func run(ctx context.Context, out io.Writer, path string) (err error) {
	e, err := sqlite.Open(sqlite.Config{Path: path})
	if err != nil {
		return err
	}
	b, err := broker.New(e, broker.Config{})
	if err != nil {
		return errors.Join(err, e.Close())
	}
	defer func() { err = errors.Join(err, b.Close()) }()

	// A message with options is a job: the ledger knows what becomes of it.
	jobs := []forebay.Message{
		{ID: "order-1", Queue: "orders", Kind: "charge", Payload: []byte(`{"customer":"ann","cents":1999}`), Job: &forebay.JobOptions{}},
		{ID: "order-2", Queue: "orders", Kind: "charge", Payload: []byte(`{"customer":"bob","cents":0}`), Job: &forebay.JobOptions{}},
		{ID: "order-3", Queue: "orders", Kind: "charge", Payload: []byte(`{"customer":7}`), Job: &forebay.JobOptions{Timeout: time.Minute}},
	}
	sent, err := b.Send(ctx, jobs)
	if err != nil {
		return err
	}
	for _, s := range sent {
		err = errors.Join(err, s.Err)
	}
	if err != nil {
		return err
	}

	// The worker runs until its context ends; here that is when all are settled.
	working, stop := context.WithCancel(ctx)
	defer stop()
	var settled atomic.Int64
	w, err := worker.New(b, worker.Config{
		Queue: "orders", Concurrency: 1, Jobs: handlers(),
		Observe: worker.Observe{Settled: func(worker.Outcome) {
			if settled.Add(1) == int64(len(jobs)) {
				stop()
			}
		}},
	})
	if err != nil {
		return err
	}
	if err := w.Run(working); err != nil {
		return err
	}

	for _, m := range jobs {
		j, err := b.Job(ctx, m.ID)
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "%s: %s", j.ID, j.State)
		if j.State == forebay.StateCompleted {
			fmt.Fprintf(out, ", result %s\n", j.Result)
		} else {
			fmt.Fprintf(out, ", %s: %s\n", j.Cause.Code, j.Cause.Message)
		}
	}
	return nil
}
