package sqs_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
	"github.com/forebayhq/forebay/engine/outbox"
	"github.com/forebayhq/forebay/engine/sqlite"
)

// SQS hangs, throttles and breaks for a while; an outbox in front of it goes on taking
// messages, and all of them arrive in order.
func TestOutageBehindAnOutbox(t *testing.T) {
	for _, f := range []fault{hangs, stalls, throttle, breaks, loses} {
		t.Run(string(f), func(t *testing.T) {
			inBubble(t, fifoQueues, func(s *stand) {
				local, err := sqlite.Open(sqlite.Config{})
				if err != nil {
					s.Fatal(err)
				}
				box, err := outbox.New(s.Engine, local, outbox.Config{})
				if err != nil {
					s.Fatal(err)
				}
				ctx, cancel := context.WithCancel(s.Context())
				done := make(chan error)
				go func() { done <- box.Run(ctx) }()
				var want []string
				for i := range 60 {
					switch i {
					case 10:
						s.spoil(func(string) fault { return f })
					case 40:
						s.spoil(func(string) fault { return none })
					}
					m := message(fmt.Sprint("m", i))
					m.Group = "g"
					begin := time.Now()
					res, err := box.Send(s.Context(), []forebay.Message{m})
					if err != nil || res[0].Err != nil {
						s.Fatalf("send %d: %v, %v", i, res, err)
					}
					if took := time.Since(begin); took > 0 && (i < 10 || i > 10) || took > 2*time.Second {
						s.Errorf("send %d took %v", i, took)
					}
					want = append(want, m.ID)
				}
				time.Sleep(time.Minute)
				s.arrive(box, want)
				cancel()
				if err := <-done; err != nil {
					s.Error(err)
				}
				if err := local.Close(); err != nil {
					s.Error(err)
				}
			})
		})
	}
}

func (s *stand) arrive(e engine.Engine, want []string) {
	s.Helper()
	var got []string
	for {
		ds, err := e.Receive(s.Context(), engine.Receive{Queue: "q", Max: 30, Lease: time.Minute, Wait: 2 * time.Second})
		if err != nil {
			s.Fatal(err)
		}
		if len(ds) == 0 {
			break
		}
		var ss []forebay.Settlement
		for _, d := range ds {
			got = append(got, d.ID)
			ss = append(ss, forebay.Settlement{Receipt: d.Receipt, Verdict: forebay.Ack})
		}
		if _, err := e.Settle(s.Context(), ss); err != nil {
			s.Fatal(err)
		}
	}
	if !slices.Equal(got, want) {
		s.Errorf("%v arrived, want %v", got, want)
	}
}
