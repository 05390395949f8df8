package bench

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
)

// Payload is the 300 bytes of JSON that every benchmark sends.
func Payload() []byte {
	const head, tail = `{"screen":"home","build":"5.12.1","locale":"en-GB","session":"`, `"}`
	b := make([]byte, 0, 300)
	b = append(b, head...)
	for len(b) < 300-len(tail) {
		b = append(b, "0123456789abcdef"[len(b)%16])
	}
	return append(b, tail...)
}

// Messages makes n messages of one queue. Ids of one run never meet another's.
func Messages(run string, n int) []forebay.Message {
	payload := Payload()
	msgs := make([]forebay.Message, n)
	for i := range msgs {
		msgs[i] = forebay.Message{ID: fmt.Sprintf("%s-%08d", run, i), Queue: "bench", Kind: "bench", Payload: payload}
	}
	return msgs
}

// Send sends the messages from so many producers, size at a time; each producer
// waits until its own are durable.
func Send(ctx context.Context, e engine.Engine, producers, size int, msgs []forebay.Message) (Result, error) {
	return Load(ctx, producers, len(msgs)/size, size, func(ctx context.Context, _, i int) error {
		results, err := e.Send(ctx, msgs[i*size:(i+1)*size])
		if err != nil {
			return err
		}
		for _, r := range results {
			if r.Err != nil {
				return r.Err
			}
			if r.Duplicate {
				return fmt.Errorf("bench: %s is a duplicate", r.ID)
			}
		}
		return nil
	})
}

// Drain receives and acks n messages of Messages, size at a time, with so many consumers.
func Drain(ctx context.Context, e engine.Engine, consumers, size, n int) (Result, error) {
	return DrainQueue(ctx, e, "bench", consumers, size, n)
}

// DrainQueue is Drain, of any queue.
func DrainQueue(ctx context.Context, e engine.Engine, queue string, consumers, size, n int) (Result, error) {
	var left atomic.Int64
	left.Store(int64(n))
	group, ctx := errgroup.WithContext(ctx)
	start := time.Now()
	for range consumers {
		group.Go(func() error {
			for left.Add(-int64(size)) >= 0 {
				if err := drainOne(ctx, e, queue, size); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return Result{}, err
	}
	return Result{N: n / size * size, Took: time.Since(start)}, nil
}

// drainOne takes exactly size messages and acks them.
func drainOne(ctx context.Context, e engine.Engine, queue string, size int) error {
	settle := make([]forebay.Settlement, 0, size)
	for len(settle) < size {
		got, err := e.Receive(ctx, engine.Receive{Queue: queue, Max: size - len(settle), Wait: 10 * time.Second})
		if err != nil {
			return err
		}
		if len(got) == 0 {
			return fmt.Errorf("bench: the queue ran dry")
		}
		for _, d := range got {
			settle = append(settle, forebay.Settlement{Receipt: d.Receipt, Verdict: forebay.Ack})
		}
	}
	errs, err := e.Settle(ctx, settle)
	if err != nil {
		return err
	}
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
