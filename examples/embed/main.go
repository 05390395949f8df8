// Command embed uses the queue inside a Go program, without the server: messages
// are kept in a file, handled with retries, and what fails for good is a dead
// letter with its cause.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/broker"
	"github.com/forebayhq/forebay/engine"
	"github.com/forebayhq/forebay/engine/sqlite"
	"github.com/forebayhq/forebay/worker"
)

func main() {
	if err := run(context.Background(), os.Stdout, "embed.db"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
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

	// Send returns once the messages would survive a power loss.
	sent, err := b.Send(ctx, []forebay.Message{
		{Queue: "mail", Kind: "welcome", Payload: []byte("ann@example.com")},
		{Queue: "mail", Kind: "welcome", Payload: []byte("no address")},
		{Queue: "mail", Kind: "welcome", Payload: []byte("bob@example.com")},
	})
	if err != nil {
		return err
	}
	fmt.Fprintln(out, "sent", len(sent))

	// The worker runs until its context ends; here that is after the third message.
	working, stop := context.WithCancel(ctx)
	defer stop()
	left := len(sent)
	w, err := worker.New(b, worker.Config{
		Queue:       "mail",
		Concurrency: 1,
		Handler: worker.HandlerFunc(func(_ context.Context, d forebay.Delivery) error {
			if left--; left == 0 {
				defer stop()
			}
			if string(d.Payload) == "no address" {
				return forebay.Permanent(errors.New("that is not a mail address"))
			}
			fmt.Fprintf(out, "%s to %s, attempt %d\n", d.Kind, d.Payload, d.Attempt)
			return nil
		}),
	})
	if err != nil {
		return err
	}
	if err := w.Run(working); err != nil {
		return err
	}

	dead, err := b.Dead(ctx, engine.DeadQuery{Queue: "mail"})
	if err != nil {
		return err
	}
	for _, d := range dead {
		fmt.Fprintf(out, "dead: %s: %s\n", d.Message.Payload, d.Cause.Message)
	}
	return nil
}
