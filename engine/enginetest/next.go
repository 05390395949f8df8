package enginetest

import (
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
)

func nextCases() []testCase {
	return []testCase{
		{name: "next/appears with the verdict", invariants: []int{9}, needs: Following, run: nextAppears},
		{name: "next/with every verdict", invariants: []int{9}, needs: Following, run: nextVerdicts},
		{name: "next/not when the receipt is refused", invariants: []int{3, 9}, needs: Following, run: nextRefused},
		{name: "next/not when one is invalid, nor the verdict", invariants: []int{8, 9}, needs: Following, run: nextInvalid},
		{name: "next/a duplicate is harmless", invariants: []int{2, 9}, needs: Following, run: nextDuplicate},
		{name: "next/with the id of what it follows, which is remembered no longer", invariants: []int{2, 9}, needs: Following, run: nextSame},
		{name: "next/wakes a receiver", invariants: []int{9, 11}, needs: Following, run: nextWakes},
	}
}

func follow(d forebay.Delivery, next ...forebay.Message) forebay.Settlement {
	return forebay.Settlement{Receipt: d.Receipt, Verdict: forebay.Ack, Next: next}
}

func nextAppears(v *env) {
	v.put("a")
	b, c := msg("b", inQueue("r"), inGroup("g")), msg("c", notBefore(time.Now().Add(5*v.unit)))
	v.codes(v.settle(follow(v.one("a"), b, c)), "")
	ds := v.takeAll("r")
	v.want(ds, "b")
	v.same(ds[0].Message, b)
	v.counts(testQueue, 0, 0, 1, 0)
	v.pass(6 * v.unit)
	v.one("c")
	v.duplicate(v.send(b)[0], "b", false)
}

func nextVerdicts(v *env) {
	for _, verdict := range []forebay.Verdict{forebay.Ack, forebay.Retry, forebay.Release, forebay.Dead} {
		id := verdict.String()
		v.put(id)
		s := forebay.Settlement{Receipt: v.one(id).Receipt, Verdict: verdict, After: 10 * v.lease(), Cause: cause("x")}
		s.Next = []forebay.Message{msg("after "+id, inQueue("r"))}
		v.codes(v.settle(s), "")
		v.want(v.takeAll("r"), "after "+id)
	}
}

// nextSame sends a message to another queue, in one step with its end in its own.
func nextSame(v *env) {
	v.send(msg("a", withWindow(v.unit)))
	v.pass(2 * v.unit)
	v.codes(v.settle(follow(v.one("a"), msg("a", inQueue("r")))), "")
	v.want(v.takeAll("r"), "a")
	v.counts(testQueue, 0, 0, 0, 0)
}

func nextRefused(v *env) {
	v.put("a")
	late := v.short(1)[0]
	v.pass(4 * v.unit)
	v.codes(v.settle(follow(late, msg("b"))), forebay.CodeLeaseLost)
	d := v.one("a")
	v.codes(v.settle(follow(late, msg("b"))), forebay.CodeLeaseLost)
	v.codes(v.settle(follow(d, msg("c")), follow(d, msg("e"))), "", forebay.CodeLeaseLost)
	v.one("c")
	v.none()
	v.fresh(v.send(msg("b"))[0], "b") // refused: not even a dedup record
}

func nextInvalid(v *env) {
	v.put("a", "b")
	ds := v.one2("a", "b")
	got := v.settle(follow(ds[0], msg("c"), msg("")), follow(ds[1], msg("d")))
	v.codes(got, forebay.CodeInvalid, "")
	v.counts(testQueue, 1, 1, 0, 0)
	v.one("d")
	v.codes(v.settle(follow(ds[0], msg("c"))), "")
	v.one("c")
}

func nextDuplicate(v *env) {
	v.put("a", "b")
	ds := v.one2("a", "b")
	v.codes(v.settle(follow(ds[0], msg("c"), msg("c"), msg("a")), follow(ds[1], msg("c"), msg("d"))), "", "")
	v.want(v.takeAll(testQueue), "c", "d")
}

func nextWakes(v *env) {
	v.put("a")
	d := v.one("a")
	start := time.Now()
	wait := v.afterAWhile(func() {
		if errs, err := v.e.Settle(v.ctx, []forebay.Settlement{follow(d, msg("b", inQueue("r")))}); err != nil || errs[0] != nil {
			v.Errorf("settle: %v, %v", errs, err)
		}
	})
	ds := v.receive(engine.Receive{Queue: "r", Max: 1, Wait: 60 * v.unit, Lease: v.lease()})
	wait()
	v.want(ds, "b")
	v.exactly("a wait for what follows", time.Since(start), v.unit)
}
