package sqs_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
)

// After a long poll the leases of what it brought are set anew. Where that fails for one
// message of a group, those that come after it are not handed out without it.
func TestNothingOvertakesWhatCannotBeRenewed(t *testing.T) {
	inBubble(t, fifoQueues, func(s *stand) {
		settle := func(ds ...forebay.Delivery) {
			var ss []forebay.Settlement
			for _, d := range ds {
				ss = append(ss, forebay.Settlement{Receipt: d.Receipt, Verdict: forebay.Ack})
			}
			if _, err := s.Settle(s.Context(), ss); err != nil {
				s.Error(err)
			}
		}
		receive := func(lease time.Duration) []forebay.Delivery {
			ds, err := s.Receive(s.Context(), engine.Receive{Queue: "q", Max: 10, Wait: 20 * time.Second, Lease: lease})
			if err != nil {
				s.Fatal(err)
			}
			return ds
		}
		for round := range 10 {
			var msgs []forebay.Message
			for i := range 7 {
				m := message(fmt.Sprint(round, "-", i))
				m.Group = fmt.Sprint(round)
				msgs = append(msgs, m)
			}
			s.put(msgs[0])
			held := receive(time.Minute) // the others wait for it
			s.put(msgs[1:]...)
			s.spoil(first("ChangeMessageVisibilityBatch", 1, partial))
			over := make(chan bool)
			go func() {
				defer close(over)
				time.Sleep(10 * time.Second)
				settle(held...)
			}()
			for next := 1; next < 7; {
				ds := receive(4 * time.Second)
				for _, d := range ds {
					if want := fmt.Sprint(round, "-", next); d.ID != want {
						s.Fatalf("received %s, want %s", d.ID, want)
					}
					next++
				}
				settle(ds...)
			}
			<-over
		}
	})
}
