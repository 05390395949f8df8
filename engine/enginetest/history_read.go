package enginetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
)

func historyPages(v *env) {
	for i := range 10 {
		v.add(ids(fmt.Sprint("m", i, "-"), 17)...)
	}
	all := v.events(engine.HistoryQuery{})
	if len(all) != 170 {
		v.failf("%d events, want 170", len(all))
	}
	for _, limit := range []int{1, 7, 17, 170, 171} {
		var got []int64
		q := engine.HistoryQuery{Limit: limit}
		for {
			page := v.historyPage(q)
			if len(page.Events) > limit || page.More && len(page.Events) == 0 {
				v.failf("a page of at most %d has %d events, more %v", limit, len(page.Events), page.More)
			}
			if page.Oldest > all[0].Seq || page.Epoch == "" {
				v.failf("the page says oldest %d, epoch %q; its first place is %d", page.Oldest, page.Epoch, all[0].Seq)
			}
			for _, e := range page.Events {
				got = append(got, e.Seq)
			}
			if q.After = page.Next; !page.More {
				break
			}
		}
		if len(got) != 170 || !slices.IsSorted(got) || got[0] != all[0].Seq || got[169] != all[169].Seq {
			v.failf("by pages of %d there are %d events", limit, len(got))
		}
	}
	if got := v.historyPage(engine.HistoryQuery{After: all[169].Seq}); len(got.Events) > 0 || got.More || got.Next < all[169].Seq {
		v.failf("after the last there is %+v", got)
	}
}

func historyFilters(v *env) {
	v.send(job("a"), job("b", inQueue("other")), job("c"))
	v.ack(v.take(1)...)
	for _, c := range []struct {
		q    engine.HistoryQuery
		want int
	}{
		{engine.HistoryQuery{}, 5},
		{engine.HistoryQuery{Job: "a"}, 3},
		{engine.HistoryQuery{Job: "nobody"}, 0},
		{engine.HistoryQuery{Queue: "other"}, 1},
		{engine.HistoryQuery{Queue: testQueue}, 4},
		{engine.HistoryQuery{Types: []forebay.HistoryType{forebay.HistoryAdded}}, 3},
		{engine.HistoryQuery{Types: []forebay.HistoryType{forebay.HistoryStarted, forebay.HistoryCompleted}}, 2},
		{engine.HistoryQuery{Job: "c", Queue: testQueue, Types: []forebay.HistoryType{forebay.HistoryAdded}}, 1},
		{engine.HistoryQuery{Job: "c", Queue: "other"}, 0},
		{engine.HistoryQuery{Job: "a", Limit: 1}, 3}, // page by page
	} {
		if got := v.events(c.q); len(got) != c.want {
			v.failf("history %+v has %d events, want %d: %+v", c.q, len(got), c.want, got)
		}
	}
}

func historyTimes(v *env) {
	var starts []time.Time
	for _, id := range ids("m", 4) {
		v.pass(2 * v.unit)
		starts = append(starts, time.Now().Add(-v.unit))
		v.add(id)
	}
	for from := range 4 {
		if got := v.events(engine.HistoryQuery{Since: starts[from]}); len(got) != 4-from || got[0].Job != fmt.Sprint("m", from+1) {
			v.failf("since the start of %d there are %+v", from+1, got)
		}
		if got := v.events(engine.HistoryQuery{Until: starts[from]}); len(got) != from {
			v.failf("until the start of %d there are %+v", from+1, got)
		}
	}
	if got := v.events(engine.HistoryQuery{Since: starts[1], Until: starts[3]}); len(got) != 2 || got[0].Job != "m2" {
		v.failf("between two moments there are %+v", got)
	}
}

func historyFromNow(v *env) {
	v.add("a")
	page := v.historyPage(engine.HistoryQuery{After: -1})
	if len(page.Events) > 0 {
		v.failf("from now on there is already %+v", page.Events)
	}
	v.add("b")
	if got := v.events(engine.HistoryQuery{After: page.Next}); len(got) != 1 || got[0].Job != "b" {
		v.failf("from then on there is %+v, want the adding of b", got)
	}
}

func historyWaits(v *env) {
	v.add("a")
	after := v.historyPage(engine.HistoryQuery{After: -1}).Next
	wait := v.afterAWhile(func() { v.add("b") })
	begin := time.Now()
	page := v.historyPage(engine.HistoryQuery{After: after, Wait: 100 * v.unit})
	wait()
	if len(page.Events) != 1 || page.Events[0].Job != "b" || time.Since(begin) > 50*v.unit {
		v.failf("a wait gave %+v after %v, want the adding of b at once", page, time.Since(begin))
	}
	begin = time.Now()
	after = page.Next
	page = v.historyPage(engine.HistoryQuery{After: after, Wait: 5 * v.unit})
	v.exactly("a wait for nothing", time.Since(begin), 5*v.unit)
	if len(page.Events) > 0 || page.Next < after {
		v.failf("a wait for nothing gave %+v", page)
	}
	// Only what is asked for ends a wait.
	wait = v.afterAWhile(func() { v.ack(v.take(1)...) })
	page = v.historyPage(engine.HistoryQuery{After: after, Types: []forebay.HistoryType{forebay.HistoryCompleted}, Wait: 100 * v.unit})
	wait()
	if len(page.Events) != 1 || page.Events[0].Type != forebay.HistoryCompleted {
		v.failf("a wait for a completion gave %+v", page)
	}
}

func historyWaitEnds(v *env) {
	h := able[engine.History](v)
	ctx, cancel := context.WithCancel(v.ctx)
	wait := v.afterAWhile(cancel)
	if _, err := h.History(ctx, engine.HistoryQuery{After: -1, Wait: 100 * v.unit}); !errors.Is(err, context.Canceled) {
		v.failf("a wait whose context ended gave %v", err)
	}
	wait()
	wait = v.afterAWhile(func() { _ = v.e.Close() })
	if _, err := h.History(v.ctx, engine.HistoryQuery{After: -1, Wait: 100 * v.unit}); forebay.CodeOf(err) != forebay.CodeClosed {
		v.failf("a wait on an engine that was closed gave %v", err)
	}
	wait()
}

func historyBounds(v *env) {
	for _, q := range []engine.HistoryQuery{{Limit: -1}, {Limit: engine.MaxHistory + 1}, {Wait: -1}, {Wait: engine.MaxWait + 1}} {
		if _, err := able[engine.History](v).History(v.ctx, q); forebay.CodeOf(err) != forebay.CodeInvalid {
			v.failf("history %+v gave %v, want code invalid", q, err)
		}
	}
	v.historyPage(engine.HistoryQuery{After: 1 << 62, Limit: engine.MaxHistory})
}

// Readers see each event once, in order, however many write.
func historyConcurrently(v *env) {
	const writers, each = 4, 20
	v.each(writers+3, func(i int) error {
		if i < writers {
			for n := range each {
				res, err := v.e.Send(v.ctx, []forebay.Message{job(fmt.Sprintf("m%d.%d", i, n))})
				if err != nil || res[0].Err != nil {
					return fmt.Errorf("send: %v, %v", res, err)
				}
			}
			return nil
		}
		seen, q := make(map[string]bool), engine.HistoryQuery{Limit: 7, Wait: 50 * v.unit}
		for len(seen) < writers*each {
			page, err := able[engine.History](v).History(v.ctx, q)
			if err != nil || len(page.Events) == 0 {
				return fmt.Errorf("after %d of %d events: %+v, %v", len(seen), writers*each, page, err)
			}
			for _, e := range page.Events {
				if seen[e.Job] || e.Seq <= q.After {
					return fmt.Errorf("event %+v came again, or before its turn", e)
				}
				seen[e.Job], q.After = true, e.Seq
			}
			q.After = page.Next
		}
		return nil
	})
}
