package enginetest

import (
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/forebayhq/forebay"
)

func settleCases() []testCase {
	return []testCase{
		{name: "settle/ack", invariants: []int{1}, run: settleAck},
		{name: "settle/retry charges an attempt and keeps the cause", invariants: []int{5}, run: settleRetry},
		{name: "settle/only the last failures are kept", run: settleManyFailures},
		{name: "settle/retry waits", run: settleRetryAfter},
		{name: "settle/release charges nothing", invariants: []int{5}, run: settleRelease},
		{name: "settle/release waits", invariants: []int{5}, run: settleReleaseAfter},
		{name: "settle/dead", invariants: []int{12}, run: settleDead},
		{name: "settle/twice", invariants: []int{3}, run: settleTwice},
		{name: "settle/a bad item does not spoil the batch", invariants: []int{3, 8}, run: settleMixed},
		{name: "settle/one receipt, many callers", invariants: []int{3}, run: settleConcurrently},
		{name: "settle/nothing", invariants: []int{8}, run: settleNothing},
	}
}

func settleAck(v *env) {
	v.put("a", "b", "c")
	ds := v.take(2)
	v.counts(testQueue, 1, 2, 0, 0)
	v.ack(ds...)
	v.counts(testQueue, 1, 0, 0, 0)
	if s := v.stats(testQueue); s.Completed != 2 {
		v.failf("stats count %d completed, want 2", s.Completed)
	}
	v.pass(2 * v.lease())
	v.one("c")
}

func settleRetry(v *env) {
	v.put("a")
	for n := 1; n <= 4; n++ {
		d := v.one("a")
		if d.Attempt != n || d.Deliveries != n || len(d.Failures) != n-1 {
			v.failf("after %d failures: attempt %d, delivery %d, %d failures", n-1, d.Attempt, d.Deliveries, len(d.Failures))
		}
		for i, f := range d.Failures {
			v.sameCause(f, cause(fmt.Sprint("code", i+1)))
		}
		s := forebay.Settlement{Receipt: d.Receipt, Verdict: forebay.Retry, Cause: cause(fmt.Sprint("code", n))}
		v.codes(v.settle(s), "")
	}
}

func (v *env) sameCause(got, want forebay.Cause) {
	v.Helper()
	if got.Code != want.Code || got.Message != want.Message || got.Detail["column"] != want.Detail["column"] {
		v.failf("cause %+v, want %+v", got, want)
	}
}

func settleManyFailures(v *env) {
	v.put("a")
	const total = forebay.MaxFailures + 5
	for n := range total {
		s := forebay.Settlement{Receipt: v.one("a").Receipt, Verdict: forebay.Retry, Cause: cause(fmt.Sprint("code", n))}
		v.codes(v.settle(s), "")
	}
	d := v.one("a")
	if d.Attempt != total+1 || len(d.Failures) != forebay.MaxFailures {
		v.failf("attempt %d with %d failures, want %d with the last %d", d.Attempt, len(d.Failures), total+1, forebay.MaxFailures)
	}
	for i, f := range d.Failures {
		v.sameCause(f, cause(fmt.Sprint("code", total-forebay.MaxFailures+i)))
	}
}

func settleRetryAfter(v *env) {
	v.put("a", "b")
	ds := v.take(2)
	v.end(ds[0], forebay.Retry, 5*v.unit)
	v.end(ds[1], forebay.Retry, 0)
	v.counts(testQueue, 1, 0, 1, 0)
	v.one("b")
	v.pass(4 * v.unit)
	v.none()
	v.pass(2 * v.unit)
	v.counts(testQueue, 1, 1, 0, 0)
	v.one("a")
}

func settleRelease(v *env) {
	v.put("a")
	for n := 1; n <= 4; n++ {
		d := v.one("a")
		if d.Attempt != 1 || d.Deliveries != 1 || len(d.Failures) != 0 {
			v.failf("after %d releases: %+v, want attempt 1, delivery 1 and no failures", n-1, d)
		}
		v.end(d, forebay.Release, 0)
		v.counts(testQueue, 1, 0, 0, 0)
	}
}

func settleReleaseAfter(v *env) {
	v.put("a")
	v.end(v.one("a"), forebay.Release, 5*v.unit)
	v.counts(testQueue, 0, 0, 1, 0)
	v.pass(4 * v.unit)
	v.none()
	v.pass(2 * v.unit)
	if d := v.one("a"); d.Attempt != 1 {
		v.failf("a snooze cost an attempt: %d", d.Attempt)
	}
}

func settleDead(v *env) {
	v.put("a", "b")
	v.end(v.one2("a", "b")[0], forebay.Dead, 0)
	v.pass(2 * v.lease())
	v.want(v.take(10), "b")
	if v.h.Cannot[DeadLetters] == "" {
		v.counts(testQueue, 0, 1, 0, 1)
	}
}

// one2 takes exactly these two.
func (v *env) one2(first, second string) []forebay.Delivery {
	v.Helper()
	ds := v.take(10)
	v.want(ds, first, second)
	return ds
}

func settleTwice(v *env) {
	for _, verdict := range []forebay.Verdict{forebay.Ack, forebay.Retry, forebay.Release, forebay.Dead} {
		id := verdict.String()
		v.put(id)
		d := v.one(id)
		v.end(d, verdict, 100*v.unit)
		for _, again := range []forebay.Verdict{forebay.Ack, forebay.Retry, forebay.Release, forebay.Dead} {
			v.codes(v.settle(forebay.Settlement{Receipt: d.Receipt, Verdict: again}), forebay.CodeLeaseLost)
		}
		v.none()
	}
	v.put("a")
	d := v.one("a")
	s := forebay.Settlement{Receipt: d.Receipt, Verdict: forebay.Ack}
	v.codes(v.settle(s, s), "", forebay.CodeLeaseLost)
	if s := v.stats(testQueue); s.Completed != 2 {
		v.failf("stats count %d completed, want 2", s.Completed)
	}
}

func settleMixed(v *env) {
	v.put(ids("m", 6)...)
	ds := v.take(6)
	v.ack(ds[5])
	got := v.settle(
		forebay.Settlement{Receipt: ds[0].Receipt, Verdict: forebay.Ack},
		forebay.Settlement{Receipt: "", Verdict: forebay.Ack},
		forebay.Settlement{Receipt: ds[1].Receipt, Verdict: 0},
		forebay.Settlement{Receipt: ds[2].Receipt, Verdict: forebay.Retry, Cause: cause("x")},
		forebay.Settlement{Receipt: "\x00 no receipt ü", Verdict: forebay.Dead},
		forebay.Settlement{Receipt: ds[5].Receipt, Verdict: forebay.Ack},
		forebay.Settlement{Receipt: ds[3].Receipt, Verdict: 99},
		forebay.Settlement{Receipt: ds[4].Receipt, Verdict: forebay.Release, After: 5 * v.unit},
	)
	v.codes(got, "", forebay.CodeLeaseLost, forebay.CodeInvalid, "", forebay.CodeLeaseLost, forebay.CodeLeaseLost,
		forebay.CodeInvalid, "")
	v.counts(testQueue, 1, 2, 1, 0)
	v.ack(ds[1], ds[3]) // an invalid verdict left the lease alone
	v.one("m3")
	v.pass(6 * v.unit)
	v.one("m5")
}

func settleConcurrently(v *env) {
	for round := range 10 {
		id := fmt.Sprint("m", round)
		v.put(id)
		d := v.one(id)
		var done atomic.Int32
		v.each(16, func(i int) error {
			s := forebay.Settlement{Receipt: d.Receipt, Verdict: forebay.Ack}
			if i%2 == 1 {
				s.Verdict, s.After = forebay.Release, time.Hour
			}
			errs, err := v.e.Settle(v.ctx, []forebay.Settlement{s})
			if err != nil {
				return err
			}
			if errs[0] == nil {
				done.Add(1)
			} else if forebay.CodeOf(errs[0]) != forebay.CodeLeaseLost {
				return errs[0]
			}
			return nil
		})
		if n := done.Load(); n != 1 {
			v.failf("%d callers settled one receipt", n)
		}
	}
	s := v.stats(testQueue)
	if s.Completed+s.Delayed != 10 || s.Active != 0 || s.Waiting != 0 {
		v.failf("stats %+v, want 10 completed or delayed", s)
	}
}

func settleNothing(v *env) {
	if errs := v.settle(); len(errs) != 0 {
		v.failf("settle of nothing gave %v", errs)
	}
	got := slices.Repeat([]forebay.Settlement{{Receipt: "gone", Verdict: forebay.Ack}}, 3)
	v.codes(v.settle(got...), forebay.CodeLeaseLost, forebay.CodeLeaseLost, forebay.CodeLeaseLost)
}
