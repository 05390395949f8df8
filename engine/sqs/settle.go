package sqs

import (
	"context"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
)

// Settle ends deliveries, as package engine says. What follows is sent first, then a
// dead letter's copy, then the verdict is told; what fails in between may be repeated.
func (e *Engine) Settle(ctx context.Context, ss []forebay.Settlement) ([]error, error) {
	if len(ss) > engine.MaxReceive {
		return nil, forebay.Errorf(forebay.CodeInvalid, "sqs: settle", "%d settlements in one call; at most %d are allowed", len(ss), engine.MaxReceive)
	}
	call, leave, err := e.enter(ctx, e.base)
	if err != nil {
		return nil, err
	}
	defer leave()
	s := &settling{e: e, ctx: call, ss: ss, errs: make([]error, len(ss)), claimed: make([]*lease, len(ss))}
	for _, step := range []func(){s.claim, s.follow, s.bury, s.tell} {
		step()
		if call.Err() != nil {
			s.unclaim()
			return nil, e.ended(ctx)
		}
	}
	return s.errs, nil
}

// settling is one call of Settle. claimed has the leases that are still to be ended.
type settling struct {
	e       *Engine
	ctx     context.Context // a call is one step, so it may be kept
	ss      []forebay.Settlement
	errs    []error
	claimed []*lease
}

// refuse ends the work on one settlement; its lease stays.
func (s *settling) refuse(i int, err error) {
	s.errs[i] = err
	s.e.leases.unclaim(s.claimed[i])
	s.claimed[i] = nil
}

func (s *settling) unclaim() {
	for i, l := range s.claimed {
		if l != nil {
			s.refuse(i, s.ctx.Err())
		}
	}
}

func (s *settling) claim() {
	for i, one := range s.ss {
		var wait <-chan struct{}
		for {
			s.claimed[i], wait = s.e.leases.claim(one.Receipt, time.Now())
			if wait == nil {
				break
			}
			select {
			case <-wait:
			case <-s.ctx.Done():
				return
			}
		}
		switch {
		case s.claimed[i] == nil:
			s.errs[i] = void()
		case one.Verdict < forebay.Ack || one.Verdict > forebay.Expired:
			s.refuse(i, forebay.Errorf(forebay.CodeInvalid, "sqs: settle", "%s is no verdict", one.Verdict))
		case one.After < 0 || one.After > forebay.MaxDelay:
			s.refuse(i, forebay.Errorf(forebay.CodeInvalid, "sqs: settle", "a wait of %s; 0 to %s are allowed", one.After, forebay.MaxDelay))
		}
	}
}

// follow sends what follows. A settlement of which one message is refused is not done.
func (s *settling) follow() {
	var msgs []forebay.Message
	var of []int
	now, lost := time.Now(), make(unfound)
	for i, one := range s.ss {
		if s.claimed[i] == nil || len(one.Next) == 0 {
			continue
		}
		for j := range one.Next {
			if _, _, err := s.e.prepare(s.ctx, &one.Next[j], now, lost); err != nil {
				s.refuse(i, err)
				break
			}
		}
		if s.claimed[i] != nil {
			for _, m := range one.Next {
				msgs, of = append(msgs, m), append(of, i)
			}
		}
	}
	for len(msgs) > 0 {
		n := min(len(msgs), engine.MaxSend)
		res, err := s.e.send(s.ctx, msgs[:n])
		if err != nil {
			return // ctx has ended
		}
		for j, r := range res {
			if i := of[j]; r.Err != nil && s.claimed[i] != nil {
				s.refuse(i, r.Err)
			}
		}
		msgs, of = msgs[n:], of[n:]
	}
}

// tell deletes messages and makes them visible again.
func (s *settling) tell() {
	var items []*handleItem
	var of []int
	now := time.Now()
	for i, one := range s.ss {
		l := s.claimed[i]
		if l == nil {
			continue
		}
		it := &handleItem{q: l.q, handle: l.handle, deadline: s.e.leases.until(l), remove: true}
		if one.Verdict == forebay.Retry || one.Verdict == forebay.Release {
			it.remove = false
			it.seconds = seconds(max(0, min(one.After, l.end12().Sub(now).Truncate(time.Second))))
		}
		items, of = append(items, it), append(of, i)
	}
	ended := s.e.handles(s.ctx, items)
	for n, it := range items {
		i := of[n]
		l := s.claimed[i]
		err := it.outcome()
		switch {
		case err == nil:
			s.e.leases.drop(l)
			s.e.doomed.remove(l.messageID)
			s.booked(i, l, it)
			s.claimed[i] = nil
		case forebay.CodeOf(err) == forebay.CodeLeaseLost:
			s.e.leases.drop(l)
			s.e.count.leaseLost.Add(1)
			s.errs[i], s.claimed[i] = err, nil
		default:
			if it.remove {
				s.e.doomed.add(l.messageID) // done work: it must not be handed out again
			}
			if ended == nil {
				s.refuse(i, err)
			}
		}
	}
}

// booked counts a verdict.
func (s *settling) booked(i int, l *lease, it *handleItem) {
	switch s.ss[i].Verdict {
	case forebay.Ack:
		l.q.completed.Add(1)
	case forebay.Cancelled:
		l.q.cancelled.Add(1)
	case forebay.Expired:
		l.q.expired.Add(1)
	}
	if !it.remove && it.seconds > 0 {
		l.q.later.add(time.Now().Add(time.Duration(it.seconds) * time.Second))
	}
}
