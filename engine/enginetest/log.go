package enginetest

import (
	"fmt"
	"slices"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
)

// logQueue is the queue of the cases of engine.Log: the engine must keep a log of it.
const logQueue = "logged"

func logCases() []testCase {
	return []testCase{
		{name: "log/once and in order, whatever becomes of a message", invariants: []int{12}, needs: Logging, run: logOrder},
		{name: "log/whole messages", needs: Logging, run: logWhole},
		{name: "log/page by page, by kind, id and time", needs: Logging, run: logPages},
		{name: "log/waits for more, without polling", invariants: []int{11}, needs: Logging, run: logWaits},
		{name: "log/leaves by age; what waits is worked all the same", invariants: []int{12}, needs: Logging, run: logAge},
		{name: "log/bounds", invariants: []int{8}, needs: Logging, run: logBounds},
		{name: "log/places outlive a reopening", needs: Logging, reopens: true, run: logReopen},
	}
}

// log reads all that is asked for, page by page.
func (v *env) log(q engine.LogQuery) (all []engine.LogEntry, last engine.LogPage) {
	v.Helper()
	q.Queue = logQueue
	for {
		page, err := able[engine.Log](v).ReadLog(v.ctx, q)
		if err != nil || q.Limit > 0 && len(page.Entries) > q.Limit || page.More && page.Next <= q.After {
			v.failf("log %+v gave %d, next %d, more %v, %v", q, len(page.Entries), page.Next, page.More, err)
		}
		all = append(all, page.Entries...)
		if q.After = page.Next; !page.More {
			return all, page
		}
	}
}

// logged wants these messages in the log, each once, with places that grow.
func (v *env) logged(ids ...string) []engine.LogEntry {
	v.Helper()
	all, _ := v.log(engine.LogQuery{})
	got := make([]string, len(all))
	for i, e := range all {
		got[i] = e.Message.ID
		if i > 0 && e.Seq <= all[i-1].Seq {
			v.failf("place %d follows %d", e.Seq, all[i-1].Seq)
		}
	}
	if !slices.Equal(got, ids) {
		v.failf("the log has %v, want %v", got, ids)
	}
	return all
}

func (v *env) takeLogged(limit int) []forebay.Delivery {
	v.Helper()
	return v.receive(engine.Receive{Queue: logQueue, Max: limit, Lease: v.lease()})
}

func logOrder(v *env) {
	sent := ids("m", 8)
	in := []func(*forebay.Message){inQueue(logQueue)}
	v.putWith(in, sent[:3]...)
	v.put("elsewhere")
	v.putWith(in, sent[3:7]...)
	v.putWith([]func(*forebay.Message){inQueue(logQueue), atLevel(0)}, sent[7])
	v.duplicate(v.send(msg("m1", inQueue(logQueue)))[0], "m1", false)
	v.logged(sent...)
	ds := v.takeLogged(8)
	v.ack(ds[:3]...)
	v.end(ds[3], forebay.Retry, 0)
	v.end(ds[4], forebay.Release, 0)
	v.end(ds[5], forebay.Dead, 0)
	v.ack(v.takeLogged(2)...)
	v.logged(sent...)
	letters := v.dead(engine.DeadQuery{Queue: logQueue})
	v.codes(v.replay(letters[0].Seq), "")
	v.ack(v.takeLogged(1)...)
	v.logged(sent...)
	v.ack(ds[6:]...)
	v.putWith(in, "purged")
	if _, err := able[engine.Purger](v).Purge(v.ctx, logQueue); err != nil {
		v.failf("purge: %v", err)
	}
	v.logged(append(sent, "purged")...)
}

func logWhole(v *env) {
	m := msg("a", inQueue(logQueue), inGroup("g"), withLimit("l"), withKey("k"), atLevel(3))
	m.Headers = map[string]string{"trace": "1"}
	m.Limits = forebay.Limits{Attempts: 3}
	v.send(m)
	sent := time.Now()
	v.ack(v.takeLogged(1)...)
	got := v.logged("a")[0]
	v.near("the time of sending", got.SentAt, sent, sent)
	g := got.Message
	if g.Queue != logQueue || g.Kind != m.Kind || string(g.Payload) != string(m.Payload) || g.Headers["trace"] != "1" || g.Group != "g" ||
		g.LimitKey != "l" || g.DedupKey != "k" || g.Priority != m.Priority || g.Limits != m.Limits {
		v.failf("the log has %+v, want %+v", g, m)
	}
}

func logPages(v *env) {
	var starts []time.Time
	for i := range 5 {
		v.pass(2 * v.unit)
		starts = append(starts, time.Now().Add(-v.unit))
		var msgs []forebay.Message
		for _, id := range ids(fmt.Sprint("m", i, "-"), 20) {
			m := msg(id, inQueue(logQueue))
			m.Kind = fmt.Sprint("kind", len(msgs)%2)
			msgs = append(msgs, m)
		}
		v.send(msgs...)
		v.ack(v.takeLogged(30)...)
	}
	for _, c := range []struct {
		q    engine.LogQuery
		want int
	}{
		{engine.LogQuery{}, 100},
		{engine.LogQuery{Limit: 1}, 100}, {engine.LogQuery{Limit: 7}, 100}, {engine.LogQuery{Limit: 100}, 100},
		{engine.LogQuery{Kinds: []string{"kind0"}}, 50}, {engine.LogQuery{Kinds: []string{"kind0", "kind1"}, Limit: 3}, 100},
		{engine.LogQuery{Kinds: []string{"other"}}, 0}, {engine.LogQuery{ID: "m2-3"}, 1},
		{engine.LogQuery{Since: starts[2]}, 60}, {engine.LogQuery{Until: starts[2], Limit: 9}, 40},
		{engine.LogQuery{Since: starts[1], Until: starts[3], Kinds: []string{"kind1"}, Limit: 4}, 20},
	} {
		if got, _ := v.log(c.q); len(got) != c.want {
			v.failf("log %+v has %d messages, want %d", c.q, len(got), c.want)
		}
	}
	infos, err := able[engine.Log](v).Logs(v.ctx)
	at := slices.IndexFunc(infos, func(i engine.LogInfo) bool { return i.Queue == logQueue })
	if err != nil || at < 0 || infos[at].Messages != 100 || infos[at].Bytes == 0 || infos[at].Newest.Before(infos[at].Oldest) {
		v.failf("the logs are %+v, %v", infos, err)
	}
}

func logWaits(v *env) {
	v.putWith([]func(*forebay.Message){inQueue(logQueue)}, "a")
	_, page := v.log(engine.LogQuery{After: -1})
	if len(page.Entries) > 0 {
		v.failf("from now on there is already %+v", page.Entries)
	}
	wait := v.afterAWhile(func() { v.putWith([]func(*forebay.Message){inQueue(logQueue)}, "b") })
	begin := time.Now()
	got, page := v.log(engine.LogQuery{After: page.Next, Wait: 100 * v.unit})
	wait()
	if len(got) != 1 || got[0].Message.ID != "b" || time.Since(begin) > 50*v.unit {
		v.failf("a wait gave %+v after %v, want b at once", got, time.Since(begin))
	}
	begin = time.Now()
	got, _ = v.log(engine.LogQuery{After: page.Next, Wait: 5 * v.unit})
	v.exactly("a wait for nothing", time.Since(begin), 5*v.unit)
	if len(got) > 0 {
		v.failf("a wait for nothing gave %+v", got)
	}
}

func logAge(v *env) {
	in := []func(*forebay.Message){inQueue(logQueue)}
	v.putWith(in, "old", "waits")
	v.ack(v.takeLogged(1)...)
	first := v.logged("old", "waits")
	infos, err := able[engine.Log](v).Logs(v.ctx)
	if err != nil || len(infos) == 0 {
		v.failf("the logs are %+v, %v", infos, err)
	}
	v.pass(infos[0].Age / 2)
	v.putWith(in, "new")
	v.logged("old", "waits", "new")
	v.pass(infos[0].Age/2 + infos[0].Age/4)
	v.logged("new")
	if _, page := v.log(engine.LogQuery{}); page.Oldest < first[1].Seq {
		v.failf("the oldest place is %d; what was at %d has left", page.Oldest, first[1].Seq)
	}
	ds := v.takeLogged(5)
	v.want(ds, "waits", "new")
	if string(ds[0].Payload) != "payload of waits" {
		v.failf("what left the log is handed out as %+v", ds[0])
	}
	v.ack(ds...)
	v.logged("new")
}

func logBounds(v *env) {
	for _, q := range []engine.LogQuery{
		{Queue: logQueue, Limit: -1}, {Queue: logQueue, Limit: engine.MaxLog + 1}, {Queue: logQueue, Wait: -1},
		{Queue: logQueue, Wait: engine.MaxWait + 1}, {},
	} {
		if _, err := able[engine.Log](v).ReadLog(v.ctx, q); forebay.CodeOf(err) != forebay.CodeInvalid {
			v.failf("log %+v gave %v", q, err)
		}
	}
	v.logged()
}

func logReopen(v *env) {
	in := []func(*forebay.Message){inQueue(logQueue)}
	v.putWith(in, "a", "b")
	v.ack(v.takeLogged(1)...)
	before := v.logged("a", "b")
	_, page := v.log(engine.LogQuery{})
	v.reopen()
	_, again := v.log(engine.LogQuery{})
	if after := v.logged("a", "b"); after[1].Seq != before[1].Seq || again.Epoch != page.Epoch {
		v.failf("after a reopening the log is %+v of %s, before %+v of %s", after, again.Epoch, before, page.Epoch)
	}
	v.putWith(in, "c")
	got, _ := v.log(engine.LogQuery{After: page.Next})
	if len(got) != 1 || got[0].Message.ID != "c" {
		v.failf("who goes on after a reopening reads %+v, want c", got)
	}
	v.want(v.takeLogged(5), "b", "c")
}
