package enginetest

import (
	"bytes"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
)

func verdictCases() []testCase {
	return []testCase{
		{name: "verdict/each is in the ledger when settle returns", invariants: []int{1}, needs: Ledger, run: verdictEach},
		{name: "verdict/cancelled and expired messages that are no jobs are gone", needs: Ledger, run: verdictNoJob},
		{name: "verdict/results of every size", needs: Ledger, run: verdictResults},
		{name: "verdict/a bad result refuses its item only", invariants: []int{8}, needs: Ledger, run: verdictBadResult},
		{name: "verdict/a late one changes nothing", invariants: []int{3}, needs: Ledger, run: verdictLate},
		{name: "verdict/one receipt, many callers", invariants: []int{3}, needs: Ledger, run: verdictConcurrently},
		{name: "verdict/next appears with it", invariants: []int{9}, needs: Ledger, run: verdictNext},
		{name: "verdict/dead jobs are dead letters too", invariants: []int{12}, needs: Ledger, run: verdictDeadLetter},
		{name: "verdict/jobs and messages in one batch", invariants: []int{8}, needs: Ledger, run: verdictMixed},
	}
}

func verdictEach(v *env) {
	for verdict, state := range map[forebay.Verdict]forebay.State{
		forebay.Ack: forebay.StateCompleted, forebay.Dead: forebay.StateDead,
		forebay.Cancelled: forebay.StateCancelled, forebay.Expired: forebay.StateExpired,
	} {
		id := verdict.String()
		v.add(id)
		d := v.one(id)
		v.pass(v.unit)
		begin := time.Now()
		s := forebay.Settlement{Receipt: d.Receipt, Verdict: verdict}
		if verdict == forebay.Ack {
			s.Result = []byte(`{"url":"größe","n":[1,2.50]}`)
		} else {
			s.Cause = cause(id)
		}
		v.codes(v.settle(s), "")
		j := v.job(id)
		if j.State != state || !bytes.Equal(j.Result, s.Result) {
			v.failf("after %s the job is %s with result %q", verdict, j.State, j.Result)
		}
		v.sameCause(j.Cause, s.Cause)
		v.near("the finish", j.FinishedAt, begin, time.Now())
		v.codes(v.settle(s), forebay.CodeLeaseLost)
		v.none()
	}
	if s := v.stats(testQueue); s.Completed != 1 || s.Cancelled != 1 || s.Expired != 1 {
		v.failf("stats count %+v, want one completed, cancelled, expired", s)
	}
	v.counts(testQueue, 0, 0, 0, 1)
}

func verdictNoJob(v *env) {
	v.put("a", "b")
	ds := v.one2("a", "b")
	v.endAs(ds[0], forebay.Cancelled)
	v.endAs(ds[1], forebay.Expired)
	v.pass(2 * v.lease())
	v.none()
	v.counts(testQueue, 0, 0, 0, 0)
	v.noJob("a", "b")
}

func verdictResults(v *env) {
	text := func(n int) []byte { // a JSON string of n bytes
		return append(append([]byte{'"'}, bytes.Repeat([]byte{'x'}, n-2)...), '"')
	}
	results := [][]byte{nil, []byte("null"), []byte("0"), text(2), text(1000), text(16 << 10), text(16<<10 + 1), text(100_000), text(forebay.MaxResultBytes)}
	names := ids("r", len(results))
	v.add(names...)
	for i, d := range v.take(len(results)) {
		v.codes(v.settle(forebay.Settlement{Receipt: d.Receipt, Verdict: forebay.Ack, Result: results[i]}), "")
	}
	for i, id := range names {
		if got := v.job(id).Result; !bytes.Equal(got, results[i]) {
			v.failf("a result of %d bytes came back as %d bytes", len(results[i]), len(got))
		}
	}
	for _, e := range v.events(engine.HistoryQuery{Types: []forebay.HistoryType{forebay.HistoryCompleted}}) {
		if want := results[len(results)-1]; e.Job == names[len(names)-1] && e.Result != nil && !bytes.Equal(e.Result, want) {
			v.failf("the history has a part of a result: %d bytes", len(e.Result))
		}
	}
}

func verdictBadResult(v *env) {
	v.add("a", "b", "c", "d")
	ds := v.take(4)
	ss := acks(ds)
	ss[0].Result = []byte("{")
	ss[1].Result = []byte(`{"ok":true}`)
	ss[2].Result = append(append([]byte{'"'}, make([]byte, forebay.MaxResultBytes)...), '"')
	ss[3].Result = []byte("{} {}")
	v.codes(v.settle(ss...), forebay.CodeInvalid, "", forebay.CodeTooLarge, forebay.CodeInvalid)
	v.is(forebay.StateActive, "a", "c", "d")
	v.is(forebay.StateCompleted, "b")
	v.ack(ds[0], ds[2], ds[3]) // their leases were left alone
}

func verdictLate(v *env) {
	v.add("a")
	old := v.one("a")
	v.pass(v.lease() + v.unit)
	now := v.one("a")
	for _, verdict := range []forebay.Verdict{forebay.Ack, forebay.Retry, forebay.Release, forebay.Dead, forebay.Cancelled, forebay.Expired} {
		s := forebay.Settlement{Receipt: old.Receipt, Verdict: verdict, Cause: cause("late")}
		v.codes(v.settle(s), forebay.CodeLeaseLost)
		v.told("a", forebay.StateActive, 0, 2)
	}
	v.codes(v.settle(forebay.Settlement{Receipt: now.Receipt, Verdict: forebay.Ack, Result: []byte("1")}), "")
	v.codes(v.settle(forebay.Settlement{Receipt: old.Receipt, Verdict: forebay.Ack, Result: []byte("2")}), forebay.CodeLeaseLost)
	if j := v.job("a"); string(j.Result) != "1" {
		v.failf("the result is %s, want that of the live receipt", j.Result)
	}
	v.story("a", forebay.HistoryAdded, forebay.HistoryStarted, forebay.HistoryLeaseLost, forebay.HistoryStarted, forebay.HistoryCompleted)
}

func verdictConcurrently(v *env) {
	verdicts := []forebay.Verdict{forebay.Ack, forebay.Dead, forebay.Cancelled, forebay.Expired}
	for round := range 8 {
		id := fmt.Sprint("m", round)
		v.add(id)
		d := v.one(id)
		var won atomic.Int32
		v.each(12, func(i int) error {
			s := forebay.Settlement{Receipt: d.Receipt, Verdict: verdicts[i%4]}
			if s.Verdict != forebay.Ack {
				s.Cause = cause("x")
			}
			errs, err := v.e.Settle(v.ctx, []forebay.Settlement{s})
			if err != nil {
				return err
			}
			if errs[0] == nil {
				won.Add(1)
			} else if forebay.CodeOf(errs[0]) != forebay.CodeLeaseLost {
				return errs[0]
			}
			return nil
		})
		finals := v.events(engine.HistoryQuery{Job: id, Types: []forebay.HistoryType{
			forebay.HistoryCompleted, forebay.HistoryDead, forebay.HistoryCancelled, forebay.HistoryExpired,
		}})
		if won.Load() != 1 || len(finals) != 1 || finals[0].State != v.job(id).State {
			v.failf("%d callers settled one receipt; the history has %+v, the ledger %s", won.Load(), finals, v.job(id).State)
		}
	}
}

func verdictNext(v *env) {
	v.add("a")
	d := v.one("a")
	child := job("child", opts(func(o *forebay.JobOptions) { o.Parent = "a" }))
	bad := job("bad", opts(func(o *forebay.JobOptions) { o.Timeout = -1 }))
	s := forebay.Settlement{Receipt: d.Receipt, Verdict: forebay.Ack, Next: []forebay.Message{child, bad}}
	v.codes(v.settle(s), forebay.CodeInvalid)
	v.noJob("child", "bad")
	v.is(forebay.StateActive, "a")
	s.Next = []forebay.Message{child}
	v.codes(v.settle(s), "")
	v.is(forebay.StateCompleted, "a")
	if j := v.told("child", forebay.StateWaiting, 0, 0); j.Job.Parent != "a" {
		v.failf("the parent of what follows is %q", j.Job.Parent)
	}
	s.Next = []forebay.Message{job("other")}
	v.codes(v.settle(s), forebay.CodeLeaseLost)
	v.noJob("other")
	v.story("child", forebay.HistoryAdded)
}

func verdictDeadLetter(v *env) {
	v.add("a", "b")
	ds := v.one2("a", "b")
	v.end(ds[0], forebay.Dead, 0)
	v.end(ds[1], forebay.Dead, 0)
	letters := v.wantDead(engine.DeadQuery{}, "b", "a")
	j := v.told("a", forebay.StateDead, 1, 1)
	if j.DeadSeq != letters[1].Seq || letters[1].Message.Job == nil {
		v.failf("the job says dead letter %d, the letter is %+v", j.DeadSeq, letters[1])
	}
	v.codes(v.replay(j.DeadSeq), "")
	v.told("a", forebay.StateWaiting, 0, 0)
	v.ack(v.one("a"))
	v.told("a", forebay.StateCompleted, 0, 1)
	errs, err := able[engine.DeadLetters](v).Discard(v.ctx, []int64{letters[0].Seq})
	if err != nil {
		v.failf("discard: %v", err)
	}
	v.codes(errs, "")
	v.noJob("b")
	v.story("b", forebay.HistoryAdded, forebay.HistoryStarted, forebay.HistoryDead, forebay.HistoryDiscarded)
	v.story("a", forebay.HistoryAdded, forebay.HistoryStarted, forebay.HistoryDead, forebay.HistoryReplayed, forebay.HistoryStarted, forebay.HistoryCompleted)
}

func verdictMixed(v *env) {
	v.send(job("a"), msg("b"), job("c"), msg("d"), job("e"))
	ds := v.take(5)
	v.want(ds, "a", "b", "c", "d", "e")
	ss := acks(ds)
	ss[1].Verdict, ss[1].Cause = forebay.Dead, cause("x")
	ss[2].Verdict = forebay.Release
	ss[4].Verdict, ss[4].Cause = forebay.Dead, cause("x")
	v.codes(v.settle(ss...), "", "", "", "", "")
	v.is(forebay.StateCompleted, "a")
	v.is(forebay.StateWaiting, "c")
	v.is(forebay.StateDead, "e")
	v.noJob("b", "d")
	v.counts(testQueue, 1, 0, 0, 2)
}
