package enginetest

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
)

func jobLimitCases() []testCase {
	return []testCase{
		{name: "job limit/ten a second never lets eleven start in any one", invariants: []int{7}, needs: Ledger, run: jobLimitRate},
		{name: "job limit/nor by many receivers, retries and releases", invariants: []int{7}, needs: Ledger, run: jobLimitMany},
		{name: "job limit/nor by key", invariants: []int{7}, needs: Ledger, run: jobLimitKey},
		{name: "job limit/many keys, one active of each", invariants: []int{7, 10}, needs: Ledger, run: jobLimitKeys},
		{name: "job limit/what is in use is counted from live leases", invariants: []int{7}, needs: Ledger, run: jobLimitLeases},
		{name: "job limit/outlives a restart", invariants: []int{7}, needs: Ledger, reopens: true, run: jobLimitReopen},
	}
}

// manyKeys is how many keys the limits are tried on.
const manyKeys = 10_000

// apart wants no more than count starts in any window of per, its end not included.
func (v *env) apart(got []time.Time, count int, per time.Duration) {
	v.Helper()
	slices.SortFunc(got, time.Time.Compare)
	for i := range len(got) - count {
		w := got[i+count].Sub(got[i])
		if v.h.Pass != nil {
			w += time.Millisecond // of a clock that is not ours
		}
		if w < per {
			v.failf("starts %d to %d, %d of them, lie within %v; only %d may in %v", i+1, i+count+1, count+1, w, count, per)
		}
	}
}

// startsOf gives the starts of all jobs by the history.
func (v *env) startsOf() []time.Time {
	v.Helper()
	var got []time.Time
	for _, e := range v.events(engine.HistoryQuery{Types: []forebay.HistoryType{forebay.HistoryStarted}}) {
		got = append(got, e.At)
	}
	return got
}

func jobLimitRate(v *env) {
	v.limit(engine.QueueLimits{Rate: engine.Rate{Count: 10, Per: v.unit}})
	v.add(ids("m", 45)...)
	var got []time.Time
	for _, s := range v.drain(45) {
		got = append(got, s.at)
	}
	v.apart(got, 10, v.unit)
	v.pass(10 * v.unit) // an idle time saves nothing up
	v.add(ids("n", 25)...)
	for _, s := range v.drain(25) {
		got = append(got, s.at)
	}
	v.apart(got, 10, v.unit)
	v.apart(v.startsOf(), 10, v.unit)
}

func jobLimitMany(v *env) {
	const jobs = 60
	v.limit(engine.QueueLimits{Rate: engine.Rate{Count: 10, Per: v.unit}})
	v.add(ids("m", jobs)...)
	var mu sync.Mutex
	done, starts := 0, []time.Time(nil)
	v.each(5, func(i int) error {
		for {
			ds, err := v.e.Receive(v.ctx, engine.Receive{Queue: testQueue, Max: 3, Wait: 5 * v.unit, Lease: v.lease()})
			at := time.Now()
			if err != nil || len(ds) == 0 {
				return err
			}
			ss := acks(ds)
			mu.Lock()
			for k := range ds {
				starts = append(starts, at)
				switch {
				case len(starts)%7 == 0:
					ss[k].Verdict, ss[k].Cause = forebay.Retry, cause("x")
				case len(starts)%5 == 0:
					ss[k].Verdict = forebay.Release
				default:
					done++
				}
			}
			mu.Unlock()
			errs, err := v.e.Settle(v.ctx, ss)
			if err != nil {
				return err
			}
			for _, err := range errs {
				if err != nil {
					return err
				}
			}
		}
	})
	if done != jobs {
		v.failf("%d of %d were done", done, jobs)
	}
	v.apart(starts, 10, v.unit)
	v.apart(v.startsOf(), 10, v.unit)
}

func jobLimitKey(v *env) {
	v.limit(engine.QueueLimits{KeyRate: engine.Rate{Count: 10, Per: v.unit}})
	for i := range 90 {
		v.send(job(fmt.Sprint("m", i), withLimit(fmt.Sprint("k", i%3)), ofTenant(fmt.Sprint("t", i%2))))
	}
	byKey := make(map[string][]time.Time)
	for _, s := range v.drain(90) {
		byKey[s.d.LimitKey] = append(byKey[s.d.LimitKey], s.at)
	}
	for key, got := range byKey {
		if len(got) != 30 {
			v.failf("%d came of key %q, want 30", len(got), key)
		}
		v.apart(got, 10, v.unit)
	}
}

func jobLimitKeys(v *env) {
	n := min(manyKeys, int(setting(v, "ENGINETEST_KEYS", manyKeys)))
	v.limit(engine.QueueLimits{KeyActive: 1, KeyRate: engine.Rate{Count: 1, Per: v.unit}})
	for _, round := range []string{"a", "b"} {
		for from := 0; from < n; from += 1000 {
			var batch []forebay.Message
			for i := from; i < min(from+1000, n); i++ {
				batch = append(batch, job(fmt.Sprint(round, i), withLimit(fmt.Sprint("key", i))))
			}
			v.send(batch...)
		}
	}
	first := v.takeAll(testQueue)
	v.oneOfEach(first, n)
	v.none()
	for from := 0; from < n; from += 1000 {
		v.ack(first[from:min(from+1000, n)]...)
	}
	v.pass(2 * v.unit)
	v.oneOfEach(v.takeAll(testQueue), n)
	v.counts(testQueue, 0, int64(n), 0, 0)
}

// oneOfEach wants n deliveries with n keys.
func (v *env) oneOfEach(ds []forebay.Delivery, n int) {
	v.Helper()
	keys := make(map[string]bool)
	for _, d := range ds {
		if keys[d.LimitKey] {
			v.failf("two of key %q are active", d.LimitKey)
		}
		keys[d.LimitKey] = true
	}
	if len(ds) != n {
		v.failf("%d came, want one of each of %d keys", len(ds), n)
	}
}

func jobLimitLeases(v *env) {
	v.limit(engine.QueueLimits{Active: 3})
	v.add(ids("m", 12)...)
	ds := v.take(10)
	if len(ds) != 3 {
		v.failf("received %v, want three", idsOf(ds))
	}
	v.endAs(ds[0], forebay.Dead)
	v.endAs(ds[1], forebay.Cancelled)
	more := v.take(10)
	if len(more) != 2 {
		v.failf("received %v after two ended, want two", idsOf(more))
	}
	v.end(more[0], forebay.Retry, time.Hour)
	if got := v.take(10); len(got) != 1 {
		v.failf("received %v after a retry, want one", idsOf(got))
	}
	v.pass(v.lease() + v.unit)
	if got := v.take(10); len(got) != 3 {
		v.failf("received %v after all leases ended, want three", idsOf(got))
	}
}

func jobLimitReopen(v *env) {
	l := engine.QueueLimits{Active: 4, KeyActive: 1, Rate: engine.Rate{Count: 10, Per: v.unit, Burst: 10}}
	v.limit(l)
	for i := range 20 {
		v.send(job(fmt.Sprint("m", i), withLimit(fmt.Sprint("k", i%6))))
	}
	v.take(20)
	v.reopen()
	v.pass(2 * v.unit)
	ds := v.takeAll(testQueue)
	v.oneOfEach(ds, 4)
	v.ack(ds...)
	v.oneOfEach(v.takeAll(testQueue), 4)
}
