package enginetest

import (
	"fmt"
	"time"

	"github.com/forebayhq/forebay"
)

func modeDebounce(v *env) {
	in := func(id string, d time.Duration) forebay.Message {
		return keyed(forebay.DedupDebounce, id, notBefore(time.Now().Add(d)))
	}
	v.stores(in("1", 10*v.unit))
	v.pass(8 * v.unit)
	v.replaces(in("2", 10*v.unit), "1")
	v.pass(8 * v.unit)
	v.none() // its delay began anew
	v.counts(testQueue, 0, 0, 1, 0)
	v.replaces(in("3", 10*v.unit), "1")
	v.pass(11 * v.unit)
	v.replaces(keyed(forebay.DedupDebounce, "4"), "1") // due, and not begun
	d := v.one("1")
	v.body(d, "1", "4")
	v.ack(d)
	v.counts(testQueue, 0, 0, 0, 0)
	v.stores(in("5", 10*v.unit))
	v.replaces(keyed(forebay.DedupDebounce, "6"), "5") // no delay now
	v.body(v.one("5"), "5", "6")
	v.story("1", forebay.HistoryAdded, forebay.HistoryReplaced, forebay.HistoryReplaced, forebay.HistoryReplaced, forebay.HistoryStarted, forebay.HistoryCompleted)
}

func modeDebounceBegun(v *env) {
	debounced := func(id string) forebay.Message { return keyed(forebay.DedupDebounce, id) }
	v.stores(debounced("1"))
	first := v.one("1")
	v.stores(debounced("2"))
	v.replaces(debounced("3"), "2")
	v.end(first, forebay.Retry, 5*v.unit)
	v.replaces(debounced("4"), "2") // the first waits again, and has begun
	second := v.one("2")
	v.body(second, "2", "4")
	v.stores(debounced("5"))
	v.ack(second)
	v.replaces(debounced("6"), "5")
	v.cancelled(forebay.StateCancelled, "5")
	v.stores(debounced("7"))
	v.pass(6 * v.unit)
	ds := v.take(10)
	v.wantSet(ds, "1", "7")
	for _, d := range ds {
		v.body(d, d.ID, d.ID)
	}
}

func modeKeepLast(v *env) {
	last := func(id string) forebay.Message { return keyed(forebay.DedupKeepLast, id) }
	v.stores(last("1"))
	v.replaces(last("2"), "1") // it waits, so it is the one that waits
	first := v.one("1")
	v.body(first, "1", "2")
	v.stores(last("3"))
	v.none() // behind the active one
	v.replaces(last("4"), "3")
	v.replaces(last("5"), "3")
	v.none()
	v.ack(first)
	second := v.one("3")
	v.body(second, "3", "5")
	v.stores(last("6"))
	v.none()
	v.ack(second)
	v.ack(v.one("6"))
	v.none()
	v.stores(last("7"))
	v.ack(v.one("7"))
}

func modeKeepLastEnds(v *env) {
	last := func(id string) forebay.Message { return keyed(forebay.DedupKeepLast, id) }
	v.stores(last("1"))
	d := v.one("1")
	v.stores(last("2"))
	v.end(d, forebay.Retry, 5*v.unit)
	v.none() // the one before waits for its retry
	v.replaces(last("3"), "2")
	v.pass(6 * v.unit)
	v.endAs(v.one("1"), forebay.Dead)
	d = v.one("2")
	v.body(d, "2", "3")
	v.stores(last("4"))
	v.cancelled(forebay.StateCancelled, "4")
	v.stores(last("5"))
	v.cancelled(forebay.StateActive, "2")
	v.none()
	v.endAs(d, forebay.Cancelled)
	v.ack(v.one("5"))
	v.counts(testQueue, 0, 0, 0, 1)
}

func modeQueues(v *env) {
	for _, mode := range dedupModes[1:] {
		for _, queue := range []string{"one", "two"} {
			v.stores(keyed(mode, fmt.Sprint(mode, queue), inQueue(queue)))
		}
	}
}

func modeOneCall(v *env) {
	for _, mode := range dedupModes {
		first, second := keyed(mode, string(mode)+"1"), keyed(mode, string(mode)+"2")
		res := v.send(first, job("between "+string(mode)), second)
		replaces := mode == forebay.DedupDebounce || mode == forebay.DedupKeepLast
		if res[0].Duplicate || res[1].Duplicate || !res[2].Duplicate || res[2].ID != first.ID || res[2].Replaced != replaces {
			v.failf("two with one key in a call of mode %q gave %+v", mode, res)
		}
		want := first.Payload
		if replaces {
			want = second.Payload
		}
		if got := v.job(first.ID).Payload; string(got) != string(want) {
			v.failf("mode %q: the payload is %s, want %s", mode, got, want)
		}
	}
	v.counts(testQueue, int64(2*len(dedupModes)), 0, 0, 0)
}

func modeConcurrently(v *env) {
	const callers = 12
	for _, mode := range dedupModes {
		results := make([]forebay.SendResult, callers)
		v.each(callers, func(i int) error {
			res, err := v.e.Send(v.ctx, []forebay.Message{keyed(mode, fmt.Sprint(mode, i))})
			if err == nil {
				results[i], err = res[0], res[0].Err
			}
			return err
		})
		first, stored := "", 0
		for _, r := range results {
			if !r.Duplicate {
				first, stored = r.ID, stored+1
			}
		}
		for _, r := range results {
			if stored != 1 || r.ID != first {
				v.failf("mode %q: %d callers with one key got %+v", mode, callers, results)
			}
		}
	}
	v.counts(testQueue, int64(len(dedupModes)), 0, 0, 0)
	if ds := v.takeAll(testQueue); len(ds) != len(dedupModes) {
		v.failf("%v came", idsOf(ds))
	}
}

func modeReopen(v *env) {
	second := func(mode forebay.DedupMode) forebay.Message { return keyed(mode, string(mode)+"2") }
	for _, mode := range dedupModes {
		v.stores(keyed(mode, string(mode)+"1"))
	}
	v.reopen()
	for _, mode := range dedupModes {
		if mode == forebay.DedupDebounce || mode == forebay.DedupKeepLast {
			v.replaces(second(mode), string(mode)+"1")
		} else {
			v.refusedFor(second(mode), string(mode)+"1")
		}
	}
	v.reopen()
	ds := v.takeAll(testQueue)
	for _, d := range ds {
		switch d.Job.Dedup {
		case forebay.DedupDebounce, forebay.DedupKeepLast:
			v.body(d, string(d.Job.Dedup)+"1", string(d.Job.Dedup)+"2")
		default:
			v.body(d, string(d.Job.Dedup)+"1", string(d.Job.Dedup)+"1")
		}
	}
	v.ack(ds...)
	v.reopen()
	for _, mode := range dedupModes {
		if m := keyed(mode, string(mode)+"3"); mode == forebay.DedupWindowed || mode == forebay.DedupThrottle {
			v.refusedFor(m, string(mode)+"1")
		} else {
			v.stores(m)
		}
	}
}
