package enginetest

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
)

// judge plays steps on an engine and holds each answer against the oracle. Where
// the contract leaves an engine free, it takes the engine's answer and goes on
// from there. Moments closer than slack to the end of a lease, a delay or a window
// may be answered either way.
type judge struct {
	t        testing.TB
	h        Harness
	e        engine.Engine
	o        *oracle
	ctx      context.Context
	slack    time.Duration
	receipts []forebay.Receipt // given lately, live or not
	given    map[forebay.Receipt]bool
	rates    map[string]*rateWatch
	ledger   engine.Jobs      // nil: messages only
	said     map[string]bool  // jobs with progress of this hand-out
	replayed map[string]int64 // since the opening; Sent may count them or not
}

// rateWatch checks the rate of one queue from the outside.
type rateWatch struct {
	all, key engine.Rate
	starts   []start
}

const (
	judgedIDs = 120
	keptLast  = 30 // receipts that steps may name
)

func judgedQueue(n int) string { return fmt.Sprint("q", n%2) }

// judge gives the first unfairness, or nil.
func (h Harness) judge(t testing.TB, steps []step) (err error) {
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Hour)
	defer cancel()
	j := &judge{
		t: t, h: h, e: h.Open(t), o: newOracle(), ctx: ctx, slack: time.Millisecond,
		given: make(map[forebay.Receipt]bool), rates: make(map[string]*rateWatch),
		replayed: make(map[string]int64), said: make(map[string]bool),
	}
	if h.Pass != nil {
		j.slack = h.Unit / 4
	}
	defer func() { _ = j.e.Close() }()
	for i, s := range steps {
		j.decide()
		if err := j.step(s); err != nil {
			return fmt.Errorf("step %d, %v: %w", i+1, s, err)
		}
		if err := j.compare(s.n[3]); err != nil {
			return fmt.Errorf("after step %d, %v: %w", i+1, s, err)
		}
	}
	if err := j.drain(); err != nil {
		return fmt.Errorf("draining after %d steps: %w", len(steps), err)
	}
	return nil
}

func (j *judge) step(s step) error {
	n := s.n
	switch s.op {
	case "send":
		return j.send(n)
	case "receive":
		return j.receive(engine.Receive{Queue: judgedQueue(n[0]), Max: 1 + n[1]%8, Lease: j.units(1 + n[2]%6), Kept: j.keeps(n[1])})
	case "wait":
		return j.receive(engine.Receive{Queue: judgedQueue(n[0]), Max: 1 + n[1]%8, Wait: j.units(1 + n[3]%9), Lease: j.units(1 + n[2]%6), Kept: j.keeps(n[1])})
	case "settle":
		return j.settle(n)
	case "extend":
		return j.extend(n)
	case "late":
		return j.late(n)
	case "pass":
		j.pass(j.units(1 + n[0]%5))
	case "reopen":
		j.reopen()
	case "replay", "discard":
		return j.letters(s.op, n)
	case "limit":
		return j.limit(n)
	case "purge":
		return j.purge(n)
	case "delay":
		return j.delay(n)
	case "jobs", "cancel", "change", "progress", "remove":
		return j.jobStep(s)
	default:
		return fmt.Errorf("no such step")
	}
	return nil
}

func (j *judge) units(n int) time.Duration { return time.Duration(n) * j.h.Unit }

func (j *judge) pass(d time.Duration) {
	if j.h.Pass != nil {
		j.h.Pass(j.t, d)
		return
	}
	<-time.After(d)
}

// message makes the message of a number: the same routing each time.
func (j *judge) message(k int) forebay.Message {
	k %= judgedIDs
	m := forebay.Message{
		ID: fmt.Sprint("m", k), Queue: judgedQueue(k / 3), Kind: fmt.Sprint("k", k%3), Payload: []byte(fmt.Sprint("payload ", k)),
		DedupWindow: j.units([]int{3, 20, 0}[k/14%3]),
	}
	if k%5 > 1 {
		m.Group = fmt.Sprint("g", k%3)
	}
	if k%4 == 0 {
		m.LimitKey = fmt.Sprint("l", k%8)
	}
	if j.h.Cannot[Priorities] == "" {
		m.Priority = forebay.Priority(k % 11)
	}
	if k%7 == 0 && j.h.Cannot[DedupKeys] == "" {
		m.DedupKey = fmt.Sprint("key", k/14) // shared by two numbers
	}
	if j.ledger != nil && k%4 != 1 {
		m.Job = &forebay.JobOptions{}
	}
	return m
}

func (j *judge) send(n [4]int) error {
	now := time.Now()
	msgs := make([]forebay.Message, 1+n[0]%5)
	for i := range msgs {
		m := j.message(n[1] + i*n[2])
		if n[2]%6 == 0 {
			m.Payload = append(m.Payload, " another"...)
			m.Fingerprint = uint64(n[2] % 12 / 6) // 0 or 1
		}
		if n[3]%5 == 0 {
			m.NotBefore = now.Add(j.units(n[3] % 11))
		}
		msgs[i] = m
	}
	res, err := j.e.Send(j.ctx, msgs)
	if err != nil || len(res) != len(msgs) {
		return fmt.Errorf("send gave %d results for %d messages, %v", len(res), len(msgs), err)
	}
	for i, m := range msgs {
		if err := j.sent(m, res[i], now); err != nil {
			return err
		}
	}
	return nil
}

// sent holds one result of a send against what may be.
func (j *judge) sent(m forebay.Message, res forebay.SendResult, now time.Time) error {
	if res.Err != nil {
		return fmt.Errorf("send of %q: %w", m.ID, res.Err)
	}
	must, firsts := false, []*record(nil)
	for _, name := range recordNames(m) {
		r := j.o.records[name]
		if r == nil {
			continue
		}
		here := j.o.there(r.id)
		if m.Job != nil && name == keyName(m) {
			here = j.o.entry(r.id) != nil // it has not finished
		}
		surely, perhaps := r.window()
		must = must || here || now.Before(surely.Add(-j.slack))
		if here || now.Before(perhaps.Add(j.slack)) {
			firsts = append(firsts, r)
		}
	}
	stats := j.o.count(m.Queue)
	if !res.Duplicate {
		if must {
			return fmt.Errorf("%q was stored again, though it was sent before", m.ID)
		}
		if res.ID != m.ID || res.Conflict {
			return fmt.Errorf("send of new %q gave %+v", m.ID, res)
		}
		j.o.store(m, now)
		stats.Sent++
		return nil
	}
	i := slices.IndexFunc(firsts, func(r *record) bool { return r.id == res.ID })
	if i < 0 {
		return fmt.Errorf("%q is called a duplicate of %q, and is not", m.ID, res.ID)
	}
	stats.Duplicate++
	if conflict := firsts[i].says != says(m); conflict != res.Conflict {
		return fmt.Errorf("duplicate %q says conflict %v, want %v", m.ID, res.Conflict, conflict)
	}
	if res.Conflict {
		stats.Conflict++
	}
	return nil
}

func (j *judge) settle(n [4]int) error {
	if len(j.receipts) == 0 {
		return nil
	}
	ss := make([]forebay.Settlement, 1+n[3]%4)
	for i := range ss {
		s := &ss[i]
		s.Receipt = j.receipts[(n[0]+i)%len(j.receipts)]
		s.Verdict = forebay.Ack + forebay.Verdict((n[1]+i)%4)
		if j.ledger != nil {
			s.Verdict = forebay.Ack + forebay.Verdict((n[1]+i)%6)
		}
		if n[2]%3 == 0 {
			s.After = j.units(n[2] % 7)
		}
		if s.Verdict == forebay.Ack && n[1]%3 == 0 {
			s.Verdict = forebay.Release
		}
		if s.Verdict == forebay.Retry || s.Verdict == forebay.Dead {
			s.Cause = cause(fmt.Sprint("code", n[2]%3))
		}
	}
	if n[3]%9 == 0 && j.h.Cannot[Following] == "" {
		// A fresh id each time, so that Next is never an ambiguous duplicate.
		m := j.message(n[2])
		m.ID, m.DedupKey = fmt.Sprintf("next%d", j.o.seq+1), ""
		ss[0].Next = []forebay.Message{m}
	}
	now := time.Now()
	errs, err := j.e.Settle(j.ctx, ss)
	if err != nil || len(errs) != len(ss) {
		return fmt.Errorf("settle gave %d answers for %d, %v", len(errs), len(ss), err)
	}
	for i, s := range ss {
		e, err := j.held(s.Receipt, errs[i], now)
		if err != nil {
			return err
		}
		if e != nil {
			j.o.settle(e, s, now)
		}
	}
	return nil
}

// held finds the message of a receipt if the engine took it, and checks that it
// was right to take or refuse it.
func (j *judge) held(r forebay.Receipt, err error, now time.Time) (*entry, error) {
	must, may := j.o.holder(r, now.Add(j.slack)), j.o.holder(r, now.Add(-j.slack))
	switch {
	case err == nil && may == nil:
		return nil, fmt.Errorf("receipt %q was void and taken", r)
	case err == nil:
		return may, nil
	case forebay.CodeOf(err) == forebay.CodeCancelled && may != nil && may.stop:
		return may, nil
	case forebay.CodeOf(err) != forebay.CodeLeaseLost:
		return nil, fmt.Errorf("receipt %q: %w", r, err)
	case must != nil:
		return nil, fmt.Errorf("receipt %q of %q was live and refused: %w", r, must.msg.ID, err)
	case may != nil:
		may.receipt, may.until = "", time.Time{}
	}
	return nil, nil
}

func (j *judge) extend(n [4]int) error {
	if len(j.receipts) == 0 {
		return nil
	}
	now, lease := time.Now(), j.units(n[2]%9)
	rs := []forebay.Receipt{j.receipts[n[0]%len(j.receipts)], j.receipts[n[1]%len(j.receipts)]}
	errs, err := j.e.Extend(j.ctx, rs, lease)
	if err != nil || len(errs) != len(rs) {
		return fmt.Errorf("extend gave %d answers for %d, %v", len(errs), len(rs), err)
	}
	for i, r := range rs {
		e, err := j.held(r, errs[i], now)
		if err != nil {
			return err
		}
		if e != nil {
			e.until = now.Add(lease)
			if e.stop && errs[i] == nil {
				return fmt.Errorf("%q was asked to stop, and extend does not say so", e.msg.ID)
			}
		}
	}
	return nil
}

func (j *judge) reopen() {
	if j.h.Reopen == nil {
		return
	}
	j.e = j.h.Reopen(j.t, j.e)
	if j.ledger != nil {
		j.ledger, _ = engine.As[engine.Jobs](j.e)
	}
	j.o.restart(time.Now())
	clear(j.replayed)
	clear(j.said)
	for _, w := range j.rates {
		w.starts = nil // what was started before a restart may be forgotten
	}
}

func (j *judge) purge(n [4]int) error {
	p, ok := engine.As[engine.Purger](j.e)
	if !ok {
		return nil
	}
	queue, now := judgedQueue(n[0]), time.Now()
	s := j.o.stats(queue, now)
	if s.Active != j.o.stats(queue, now.Add(j.slack)).Active || s.Active != j.o.stats(queue, now.Add(-j.slack)).Active {
		return nil // a lease ends at this very moment
	}
	want := j.o.purge(queue, now)
	if got, err := p.Purge(j.ctx, queue); err != nil || got != want {
		return fmt.Errorf("purge dropped %d, %v; want %d", got, err, want)
	}
	return nil
}
