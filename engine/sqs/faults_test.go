package sqs_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
	"github.com/forebayhq/forebay/engine/sqs"
)

// stand is an engine on a network that spoils what a test says, in a bubble.
type stand struct {
	*testing.T
	*sqs.Engine
	ep  *endpoint
	net *tamper
}

// inBubble runs f with an engine whose requests are spoiled as spoil says; it is called
// with fresh queues.
func inBubble(t *testing.T, change func(*sqs.Config), f func(s *stand)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ep := newEndpoint(t)
		s := &stand{T: t, ep: ep, net: ep.tampered(1, func(string) fault { return none })}
		s.Engine = ep.open(t, func(c *sqs.Config) {
			c.HTTP = s.net
			if change != nil {
				change(c)
			}
		})
		f(s)
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		ep.stop()
	})
}

func fifoQueues(c *sqs.Config) { c.CreateFIFO = true }

func (s *stand) spoil(f func(action string) fault) {
	s.net.mu.Lock()
	defer s.net.mu.Unlock()
	s.net.spoil = f
}

func message(id string) forebay.Message {
	return forebay.Message{ID: id, Queue: "q", Kind: "k", Payload: []byte("payload of " + id)}
}

func (s *stand) put(msgs ...forebay.Message) {
	s.Helper()
	res, err := s.Send(s.Context(), msgs)
	if err != nil {
		s.Fatalf("send: %v", err)
	}
	for _, r := range res {
		if r.Err != nil {
			s.Fatalf("send: %v", r.Err)
		}
	}
}

func (s *stand) take(limit int, wait time.Duration) []forebay.Delivery {
	s.Helper()
	ds, err := s.Receive(s.Context(), engine.Receive{Queue: "q", Max: limit, Wait: wait, Lease: 30 * time.Second})
	if err != nil {
		s.Fatalf("receive: %v", err)
	}
	return ds
}

func (s *stand) one(id string) forebay.Delivery {
	s.Helper()
	ds := s.take(1, time.Minute)
	if len(ds) != 1 || ds[0].ID != id {
		s.Fatalf("received %+v, want %q", ds, id)
	}
	return ds[0]
}

func (s *stand) settle(d forebay.Delivery, v forebay.Verdict) error {
	s.Helper()
	errs, err := s.Settle(s.Context(), []forebay.Settlement{{Receipt: d.Receipt, Verdict: v, Cause: forebay.Cause{Code: "why", Message: "größe"}}})
	if err != nil {
		s.Fatalf("settle: %v", err)
	}
	return errs[0]
}

func (s *stand) done(d forebay.Delivery, v forebay.Verdict) {
	s.Helper()
	if err := s.settle(d, v); err != nil {
		s.Fatalf("%s: %v", v, err)
	}
}

// A half-open connection stops nothing: the poll is asked again.
func TestWatchdog(t *testing.T) {
	inBubble(t, nil, func(s *stand) {
		s.put(message("a"))
		s.spoil(first("ReceiveMessage", 1, hangs))
		begin := time.Now()
		d := s.one("a")
		if took := time.Since(begin); took < 20*time.Second || took > 26*time.Second {
			t.Errorf("polling went on after %v; a wait of 20 s and the watchdog's 5 s were to pass", took)
		}
		if n := s.Counters().PollsCut; n != 1 {
			t.Errorf("%d polls were cut", n)
		}
		if d.LeaseUntil.Sub(time.Now()) < 29*time.Second {
			t.Errorf("its lease ends at %v", d.LeaseUntil)
		}
	})
}

// A lease is whole also after a long wait, though it is counted from before the poll.
func TestLeaseIsWholeAfterALongPoll(t *testing.T) {
	inBubble(t, nil, func(s *stand) {
		s.put(message("first"))
		s.done(s.one("first"), forebay.Ack)
		go func() {
			time.Sleep(17 * time.Second)
			if _, err := s.Send(s.Context(), []forebay.Message{message("a")}); err != nil {
				s.Error(err)
			}
		}()
		d := s.one("a")
		if left := time.Until(d.LeaseUntil); left != 30*time.Second {
			t.Errorf("%v of 30s are left of its lease", left)
		}
		time.Sleep(29 * time.Second)
		if ds := s.take(1, 0); len(ds) > 0 {
			t.Errorf("it was handed out again inside its lease")
		}
		s.done(d, forebay.Ack)
	})
}

// SQS that refuses this server says nothing of who calls it, so it is unavailable to them.
func TestErrorsAreToldByCode(t *testing.T) {
	for f, want := range map[fault]forebay.Code{
		throttle: forebay.CodeLimited, over: forebay.CodeLimited, denied: forebay.CodeUnavailable,
		breaks: forebay.CodeUnavailable, resets: forebay.CodeUnavailable,
	} {
		t.Run(string(f), func(t *testing.T) {
			inBubble(t, nil, func(s *stand) {
				s.put(message("a"))
				s.spoil(func(string) fault { return f })
				res, err := s.Send(s.Context(), []forebay.Message{message("b")})
				if err != nil || forebay.CodeOf(res[0].Err) != want {
					t.Errorf("send gave %v, %v; want code %s", res, err, want)
				}
				_, err = s.Receive(s.Context(), engine.Receive{Queue: "q", Max: 1})
				if forebay.CodeOf(err) != want {
					t.Errorf("receive gave %v; want code %s", err, want)
				}
				var told *forebay.Error
				if f == denied && (!errors.As(err, &told) || !strings.Contains(told.Hint, "rights on the queue")) {
					t.Errorf("receive gave %v, which does not say what an operator is to look at", err)
				}
				if err := s.Check(s.Context()); forebay.CodeOf(err) != want {
					t.Errorf("check gave %v; want code %s", err, want)
				}
				s.spoil(func(string) fault { return none })
			})
		})
	}
}

// What failed for a while is repeated; what the sender is blamed for is not.
func TestPartialDeletes(t *testing.T) {
	inBubble(t, nil, func(s *stand) {
		s.put(message("a"))
		d := s.one("a")
		s.spoil(first("DeleteMessageBatch", 3, partial))
		s.done(d, forebay.Ack)
		if n := s.net.count("DeleteMessageBatch"); n != 4 {
			t.Errorf("%d requests to delete, want 4", n)
		}
		s.put(message("b"))
		d = s.one("b")
		s.spoil(first("DeleteMessageBatch", 1, blames))
		if err := s.settle(d, forebay.Ack); forebay.CodeOf(err) != forebay.CodeLeaseLost {
			t.Errorf("an ack that SQS refuses for good gave %v", err)
		}
		if n := s.Counters().LeaseLost; n != 1 {
			t.Errorf("%d leases were lost", n)
		}
	})
}

// An ack that SQS never took is not forgotten: the message is deleted when it comes.
func TestAckIsNotForgotten(t *testing.T) {
	inBubble(t, nil, func(s *stand) {
		s.put(message("a"))
		d := s.one("a")
		s.spoil(func(action string) fault {
			if action == "DeleteMessageBatch" {
				return breaks
			}
			return none
		})
		begin := time.Now()
		if err := s.settle(d, forebay.Ack); forebay.CodeOf(err) != forebay.CodeUnavailable {
			t.Fatalf("an ack that was never taken gave %v", err)
		}
		if took := time.Since(begin); took < 25*time.Second || took > 40*time.Second {
			t.Errorf("it was tried for %v, want the rest of a lease of 30 s", took)
		}
		s.spoil(func(string) fault { return none })
		time.Sleep(time.Minute)
		if ds := s.take(1, 5*time.Second); len(ds) != 0 {
			t.Errorf("done work was handed out again: %+v", ds)
		}
		if n := s.Counters(); n.AckLost != 1 {
			t.Errorf("counters are %+v, want one ack lost", n)
		}
		if qs, err := s.Stats(s.Context(), "q"); err != nil || qs[0].Waiting+qs[0].Active != 0 {
			t.Errorf("stats are %+v, %v; want nothing left", qs, err)
		}
	})
}

// A FIFO poll whose answer was lost is asked again for the same messages, and their
// groups do not stay locked.
func TestLostPollOfAFIFOQueue(t *testing.T) {
	inBubble(t, fifoQueues, func(s *stand) {
		m := message("a")
		m.Group = "g"
		s.put(m)
		s.spoil(first("ReceiveMessage", 1, loses))
		begin := time.Now()
		s.done(s.one("a"), forebay.Ack)
		if took := time.Since(begin); took > 2*time.Second {
			t.Errorf("its group was locked for %v", took)
		}
	})
}

// Of a group, nothing is sent after what failed.
func TestGroupStopsAtItsFirstFailure(t *testing.T) {
	inBubble(t, fifoQueues, func(s *stand) {
		var msgs []forebay.Message
		for i := range 4 {
			m := message(fmt.Sprint("m", i))
			m.Group = "g"
			msgs = append(msgs, m)
		}
		other := message("other")
		s.put(message("first"))
		n := 0
		s.spoil(func(action string) fault {
			if n++; 2 <= n && n <= 4 { // the second request, and its two repeats by the AWS SDK
				return breaks
			}
			return none
		})
		res, err := s.Send(s.Context(), append(msgs, other))
		if err != nil {
			t.Fatal(err)
		}
		for i, r := range res {
			if good := i == 0 || i == 4; good != (r.Err == nil) {
				t.Errorf("message %d: %v", i, r.Err)
			}
		}
		s.spoil(func(string) fault { return none })
		for range 3 {
			for _, d := range s.take(10, 0) {
				if d.Group == "g" && d.ID != "m0" {
					t.Errorf("%q was sent after one that had failed", d.ID)
				}
				s.done(d, forebay.Ack)
			}
		}
	})
}
