package enginetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
)

// testQueue is where a case sends unless it needs several queues.
const testQueue = "q"

// env is what a case works with: an engine, and short words to use it by. Its
// methods end the case on any error that the case does not ask for.
type env struct {
	testing.TB
	h     Harness
	e     engine.Engine
	ctx   context.Context // bounds the case; a case is one call, so it may be kept
	unit  time.Duration
	about string
}

func (v *env) failf(format string, args ...any) {
	v.Helper()
	v.Fatalf("%s: %s", v.about, fmt.Sprintf(format, args...))
}

// msg makes a message for testQueue; each change alters it.
func msg(id string, changes ...func(*forebay.Message)) forebay.Message {
	m := forebay.Message{ID: id, Queue: testQueue, Kind: "kind", Payload: []byte("payload of " + id)}
	for _, change := range changes {
		change(&m)
	}
	return m
}

func inQueue(q string) func(*forebay.Message)   { return func(m *forebay.Message) { m.Queue = q } }
func inGroup(g string) func(*forebay.Message)   { return func(m *forebay.Message) { m.Group = g } }
func withKey(k string) func(*forebay.Message)   { return func(m *forebay.Message) { m.DedupKey = k } }
func withLimit(k string) func(*forebay.Message) { return func(m *forebay.Message) { m.LimitKey = k } }
func atLevel(level int) func(*forebay.Message) {
	return func(m *forebay.Message) { m.Priority = forebay.At(level) }
}
func withBody(body string) func(*forebay.Message) {
	return func(m *forebay.Message) { m.Payload = []byte(body) }
}
func withWindow(d time.Duration) func(*forebay.Message) {
	return func(m *forebay.Message) { m.DedupWindow = d }
}
func notBefore(at time.Time) func(*forebay.Message) {
	return func(m *forebay.Message) { m.NotBefore = at }
}

// ids makes n ids: prefix1, prefix2, …
func ids(prefix string, n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = fmt.Sprintf("%s%d", prefix, i+1)
	}
	return out
}

// send sends and wants every item stored or known as a duplicate.
func (v *env) send(msgs ...forebay.Message) []forebay.SendResult {
	v.Helper()
	res, err := v.e.Send(v.ctx, msgs)
	if err != nil {
		v.failf("send: %v", err)
	}
	if len(res) != len(msgs) {
		v.failf("send of %d messages gave %d results", len(msgs), len(res))
	}
	for i, r := range res {
		if r.Err != nil {
			v.failf("send of %q: %v", msgs[i].ID, r.Err)
		}
	}
	return res
}

// put sends new messages with these ids to testQueue.
func (v *env) put(ids ...string) {
	v.Helper()
	v.putWith(nil, ids...)
}

func (v *env) putWith(changes []func(*forebay.Message), ids ...string) {
	v.Helper()
	msgs := make([]forebay.Message, len(ids))
	for i, id := range ids {
		msgs[i] = msg(id, changes...)
	}
	for i, r := range v.send(msgs...) {
		if r.Duplicate || r.ID != ids[i] {
			v.failf("send of new %q gave id %q, duplicate %v", ids[i], r.ID, r.Duplicate)
		}
	}
}

// lease is long enough for any case that does not wait for its end.
func (v *env) lease() time.Duration { return 60 * v.unit }

// take receives what is there now.
func (v *env) take(limit int) []forebay.Delivery {
	v.Helper()
	return v.receive(engine.Receive{Queue: testQueue, Max: limit, Lease: v.lease()})
}

func (v *env) receive(r engine.Receive) []forebay.Delivery {
	v.Helper()
	ds, err := v.e.Receive(v.ctx, r)
	if err != nil {
		v.failf("receive: %v", err)
	}
	if len(ds) > r.Max {
		v.failf("receive of at most %d gave %d", r.Max, len(ds))
	}
	return ds
}

// takeAll receives until nothing is left to hand out.
func (v *env) takeAll(queue string) []forebay.Delivery {
	v.Helper()
	var all []forebay.Delivery
	for {
		ds := v.receive(engine.Receive{Queue: queue, Max: 1000, Lease: v.lease()})
		if len(ds) == 0 {
			return all
		}
		all = append(all, ds...)
	}
}

// one takes the single message that must be there.
func (v *env) one(id string) forebay.Delivery {
	v.Helper()
	ds := v.take(10)
	v.want(ds, id)
	return ds[0]
}

func (v *env) none() {
	v.Helper()
	if ds := v.take(10); len(ds) > 0 {
		v.failf("received %v, want nothing", idsOf(ds))
	}
}

func idsOf(ds []forebay.Delivery) []string {
	out := make([]string, len(ds))
	for i, d := range ds {
		out[i] = d.ID
	}
	return out
}

// want wants these messages in this order.
func (v *env) want(ds []forebay.Delivery, ids ...string) {
	v.Helper()
	if got := idsOf(ds); !slices.Equal(got, ids) {
		v.failf("received %v, want %v", got, ids)
	}
}

// wantSet wants these messages in any order.
func (v *env) wantSet(ds []forebay.Delivery, ids ...string) {
	v.Helper()
	got, want := idsOf(ds), slices.Clone(ids)
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		v.failf("received %v, want in any order %v", got, want)
	}
}

// settle gives the answers of one call, as many as settlements.
func (v *env) settle(ss ...forebay.Settlement) []error {
	v.Helper()
	errs, err := v.e.Settle(v.ctx, ss)
	if err != nil {
		v.failf("settle: %v", err)
	}
	if len(errs) != len(ss) {
		v.failf("settle of %d gave %d answers", len(ss), len(errs))
	}
	return errs
}

func (v *env) end(d forebay.Delivery, verdict forebay.Verdict, after time.Duration) {
	v.Helper()
	s := forebay.Settlement{Receipt: d.Receipt, Verdict: verdict, After: after}
	if verdict == forebay.Retry || verdict == forebay.Dead {
		s.Cause = cause("because")
	}
	v.codes(v.settle(s), "")
}

func cause(code string) forebay.Cause {
	return forebay.Cause{Code: code, Message: "it " + code, Detail: map[string]string{"column": "größe"}}
}

func (v *env) ack(ds ...forebay.Delivery) {
	v.Helper()
	if len(ds) == 0 {
		return
	}
	v.codes(v.settle(acks(ds)...), make([]forebay.Code, len(ds))...)
}

func acks(ds []forebay.Delivery) []forebay.Settlement {
	ss := make([]forebay.Settlement, len(ds))
	for i, d := range ds {
		ss[i] = forebay.Settlement{Receipt: d.Receipt, Verdict: forebay.Ack}
	}
	return ss
}

func receiptsOf(ds []forebay.Delivery) []forebay.Receipt {
	out := make([]forebay.Receipt, len(ds))
	for i, d := range ds {
		out[i] = d.Receipt
	}
	return out
}

// extend gives the answers of one call.
func (v *env) extend(lease time.Duration, receipts ...forebay.Receipt) []error {
	v.Helper()
	errs, err := v.e.Extend(v.ctx, receipts, lease)
	if err != nil {
		v.failf("extend: %v", err)
	}
	if len(errs) != len(receipts) {
		v.failf("extend of %d gave %d answers", len(receipts), len(errs))
	}
	return errs
}

// codes wants these codes, item by item; empty: done.
func (v *env) codes(errs []error, codes ...forebay.Code) {
	v.Helper()
	if len(errs) != len(codes) {
		v.failf("%d answers, want %d", len(errs), len(codes))
	}
	for i, err := range errs {
		if forebay.CodeOf(err) != codes[i] {
			v.failf("item %d of %d: error %v, want code %q", i, len(errs), err, codes[i])
		}
	}
}

// stats counts one queue.
func (v *env) stats(queue string) forebay.QueueStats {
	v.Helper()
	qs, err := v.e.Stats(v.ctx, queue)
	if err != nil {
		v.failf("stats: %v", err)
	}
	if len(qs) != 1 || qs[0].Queue != queue {
		v.failf("stats of %q gave %+v", queue, qs)
	}
	return qs[0]
}

// counts wants what a queue holds: waiting, active, delayed, dead.
func (v *env) counts(queue string, waiting, active, delayed, dead int64) {
	v.Helper()
	s := v.stats(queue)
	got, want := [4]int64{s.Waiting, s.Active, s.Delayed, s.Dead}, [4]int64{waiting, active, delayed, dead}
	if got != want {
		v.failf("queue %q has waiting, active, delayed, dead %v, want %v", queue, got, want)
	}
}

// pass lets time pass for the engine.
func (v *env) pass(d time.Duration) {
	v.Helper()
	if v.h.Pass != nil {
		v.h.Pass(v.TB, d)
		return
	}
	<-time.After(d)
}

func (v *env) reopen() {
	v.Helper()
	v.e = v.h.Reopen(v.TB, v.e)
}

// each runs f(0) … f(n-1) side by side and wants no error.
func (v *env) each(n int, f func(i int) error) {
	v.Helper()
	errs := make([]error, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { errs[i] = f(i) })
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		v.failf("%v", err)
	}
}

// able finds an optional ability, which must be there.
func able[T any](v *env) T {
	v.Helper()
	t, ok := engine.As[T](v.e)
	if !ok {
		v.failf("the engine has no %T, and the harness does not say so", (*T)(nil))
	}
	return t
}

func lacks[T any](v *env) {
	v.Helper()
	if _, ok := engine.As[T](v.e); ok {
		v.failf("the engine has %T, and the harness says that it cannot", (*T)(nil))
	}
}

// refuses wants an item that asks for the ability refused as unsupported, and
// nothing done.
func refuses(v *env, a Ability) {
	v.Helper()
	switch a {
	case Priorities:
		v.refusesItem(msg("a", atLevel(0)))
	case DedupKeys:
		v.refusesItem(msg("a", withKey("k")))
	case Keeping:
		v.put("a")
		_, err := v.e.Receive(v.ctx, engine.Receive{Queue: testQueue, Max: 1, Kept: true})
		if forebay.CodeOf(err) != forebay.CodeUnsupported {
			v.failf("receive of kept leases gave %v, want it refused as unsupported", err)
		}
		v.ack(v.one("a"))
	case Following:
		v.put("a")
		d := v.one("a")
		s := forebay.Settlement{Receipt: d.Receipt, Verdict: forebay.Ack, Next: []forebay.Message{msg("b")}}
		v.codes(v.settle(s), forebay.CodeUnsupported)
		v.ack(d)
	}
}

func (v *env) refusesItem(m forebay.Message) {
	v.Helper()
	res, err := v.e.Send(v.ctx, []forebay.Message{m})
	if err != nil || len(res) != 1 || forebay.CodeOf(res[0].Err) != forebay.CodeUnsupported {
		v.failf("send gave %+v, %v; want the item refused as unsupported", res, err)
	}
	v.none()
}
