package sqs_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/forebayhq/forebay"
)

// Of a group, nothing is sent after a message whose queue could not be made, though it
// could be made a moment later.
func TestGroupStopsAtAQueueThatCannotBeMade(t *testing.T) {
	inBubble(t, fifoQueues, func(s *stand) {
		var msgs []forebay.Message
		for i := range 4 {
			m := message(fmt.Sprint("m", i))
			m.Group = "g"
			msgs = append(msgs, m)
		}
		s.spoil(first("CreateQueue", 3, breaks)) // with the repeats by the AWS SDK
		res, err := s.Send(s.Context(), msgs)
		if err != nil {
			t.Fatal(err)
		}
		for i, r := range res {
			if forebay.CodeOf(r.Err) != forebay.CodeUnavailable {
				t.Errorf("message %d: %v", i, r.Err)
			}
		}
		s.put(msgs...)
		ds := s.take(10, 0)
		if len(ds) != len(msgs) {
			t.Fatalf("received %d messages", len(ds))
		}
		for i, d := range ds {
			if d.ID != msgs[i].ID {
				t.Errorf("received %q at place %d", d.ID, i)
			}
		}
	})
}

// The same for what follows on several settlements of one call.
func TestFollowersStopAtAQueueThatCannotBeMade(t *testing.T) {
	inBubble(t, fifoQueues, func(s *stand) {
		var ss []forebay.Settlement
		for i := range 2 {
			m := message(fmt.Sprint("m", i))
			m.Group = "g"
			s.put(m)
		}
		for i, d := range s.take(10, time.Second) {
			next := message(fmt.Sprint("next", i))
			next.Queue, next.Group = "r", "g"
			ss = append(ss, forebay.Settlement{Receipt: d.Receipt, Verdict: forebay.Ack, Next: []forebay.Message{next}})
		}
		if len(ss) != 2 {
			t.Fatalf("received %d messages", len(ss))
		}
		s.spoil(first("CreateQueue", 3, breaks))
		errs, err := s.Settle(s.Context(), ss)
		if err != nil {
			t.Fatal(err)
		}
		for i, err := range errs {
			if forebay.CodeOf(err) != forebay.CodeUnavailable {
				t.Errorf("settlement %d: %v", i, err)
			}
		}
	})
}
