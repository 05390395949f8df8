package enginetest

import (
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
)

func changeCases() []testCase {
	return []testCase{
		{name: "change/promoted: it may be handed out now", needs: Ledger, run: changePromote},
		{name: "change/promoted: a receiver that waits is woken", invariants: []int{11}, needs: Ledger, run: changeWakes},
		{name: "change/put off", needs: Ledger, run: changeDelay},
		{name: "change/priority", needs: Ledger, run: changePriority},
		{name: "change/payload", needs: Ledger, run: changePayload},
		{name: "change/all else stays", needs: Ledger, run: changeRest},
		{name: "change/only what waits", invariants: []int{8}, needs: Ledger, run: changeRefused},
		{name: "change/a group keeps its order", invariants: []int{6}, needs: Ledger, run: changeGroup},
		{name: "change/again and again", needs: Ledger, run: changeOften},
		{name: "change/beside a receive one of them wins", needs: Ledger, run: changeConcurrently},
		{name: "change/outlives a restart", invariants: []int{1}, needs: Ledger, reopens: true, run: changeReopen},
	}
}

// moved changes one job, and wants it done.
func (v *env) moved(c engine.JobChange) {
	v.Helper()
	v.codes(v.change(c), "")
}

func promoted(id string) engine.JobChange { return engine.JobChange{ID: id, Due: new(time.Time)} }

func putOff(id string, d time.Duration) engine.JobChange {
	at := time.Now().Add(d)
	return engine.JobChange{ID: id, Due: &at}
}

func ofLevel(id string, level int) engine.JobChange {
	p := forebay.At(level)
	return engine.JobChange{ID: id, Priority: &p}
}

func changePromote(v *env) {
	v.send(jobsOf([]string{"a", "b"}, notBefore(time.Now().Add(time.Hour)))...)
	v.add("retried")
	v.end(v.one("retried"), forebay.Retry, time.Hour)
	v.none()
	v.moved(promoted("a"))
	v.is(forebay.StateWaiting, "a")
	v.counts(testQueue, 1, 0, 2, 0)
	v.ack(v.one("a"))
	v.moved(promoted("retried"))
	if d := v.one("retried"); d.Attempt != 2 || len(d.Failures) != 1 {
		v.failf("the promoted retry came as %+v", d)
	}
	v.pass(time.Hour + v.unit)
	v.wantSet(v.take(10), "b", "retried") // whose lease has ended meanwhile
	v.story("a", forebay.HistoryAdded, forebay.HistoryChanged, forebay.HistoryStarted, forebay.HistoryCompleted)
}

func changeWakes(v *env) {
	v.send(job("a", notBefore(time.Now().Add(time.Hour))))
	wait := v.afterAWhile(func() { v.moved(promoted("a")) })
	begin := time.Now()
	ds := v.receive(engine.Receive{Queue: testQueue, Max: 1, Wait: 100 * v.unit, Lease: v.lease()})
	wait()
	v.want(ds, "a")
	v.exactly("a wait for what is promoted", time.Since(begin), v.unit)
}

func changeDelay(v *env) {
	v.add("a", "b")
	v.moved(putOff("a", 10*v.unit))
	v.is(forebay.StateDelayed, "a")
	v.counts(testQueue, 1, 0, 1, 0)
	v.ack(v.one("b"))
	v.pass(5 * v.unit)
	v.none()
	v.moved(putOff("a", 10*v.unit)) // once more
	v.pass(6 * v.unit)
	v.none()
	v.pass(5 * v.unit)
	v.is(forebay.StateWaiting, "a")
	v.ack(v.one("a"))
	got := v.story("a", forebay.HistoryAdded, forebay.HistoryChanged, forebay.HistoryChanged, forebay.HistoryStarted, forebay.HistoryCompleted)
	if got[1].State != forebay.StateDelayed || !got[2].Due.After(got[1].Due) {
		v.failf("what was put off is told as %+v", got)
	}
}

func changePriority(v *env) {
	v.add("a", "b", "c", "d")
	v.moved(ofLevel("c", 0))
	v.moved(ofLevel("a", 9))
	if got := v.job("c").Priority.Level(); got != 0 {
		v.failf("the level is told as %d, want 0", got)
	}
	ds := v.take(10)
	v.want(ds, "c", "b", "d", "a")
	if ds[0].Priority.Level() != 0 || ds[3].Priority.Level() != 9 {
		v.failf("they came with levels %d and %d", ds[0].Priority.Level(), ds[3].Priority.Level())
	}
	v.ack(ds...)
	v.counts(testQueue, 0, 0, 0, 0)
}

func changePayload(v *env) {
	v.send(job("late", notBefore(time.Now().Add(5*v.unit))))
	v.add("a", "b")
	for id, body := range map[string]string{"a": `{"longer":"than the one before it, by a lot"}`, "late": `1`} {
		v.moved(engine.JobChange{ID: id, Payload: []byte(body)})
		if got := string(v.job(id).Payload); got != body {
			v.failf("the payload of %q is %s, want %s", id, got, body)
		}
	}
	ds := v.one2("a", "b")
	v.same(ds[0].Message, job("a", withBody(`{"longer":"than the one before it, by a lot"}`)))
	v.same(ds[1].Message, job("b"))
	v.ack(ds...)
	v.pass(6 * v.unit)
	v.same(v.one("late").Message, job("late", withBody("1")))
}

func changeRest(v *env) {
	m := fullJob("a")
	m.Group = ""
	v.send(m)
	v.end(v.one("a"), forebay.Retry, 0)
	before := v.job("a")
	v.pass(v.unit)
	v.moved(ofLevel("a", 2))
	v.moved(putOff("a", 5*v.unit))
	v.moved(promoted("a"))
	after := v.job("a")
	before.Priority = after.Priority
	before.Due, after.Due = time.Time{}, time.Time{}
	v.sameJob(after, before)
	v.sameOptions(after.Job, m.Job)
	v.refusedFor(job("other", withKey("k"), opts(func(o *forebay.JobOptions) { o.Dedup = forebay.DedupUntilFinished })), "a")
	d := v.one("a")
	if d.Attempt != 2 || d.Deliveries != 2 || !d.SentAt.Equal(before.SentAt) {
		v.failf("after the changes it came as %+v", d)
	}
	v.ack(d)
	v.pass(v.unit)
	v.stores(job("other", withKey("k"), opts(func(o *forebay.JobOptions) { o.Dedup = forebay.DedupUntilFinished })))
}

func changeRefused(v *env) {
	v.put("message")
	v.add("active", "done", "dead", "waits")
	for _, d := range v.take(4) {
		switch d.ID {
		case "done", "message":
			v.ack(d)
		case "dead":
			v.endAs(d, forebay.Dead)
		}
	}
	v.put("message 2")
	bad := promoted("waits")
	far := time.Now().Add(forebay.MaxDelay + time.Hour)
	bad.Due = &far
	v.codes(v.change(promoted("active"), promoted("done"), ofLevel("waits", 3), promoted("nobody"), promoted("dead"), promoted(""),
		bad, promoted("message"), promoted("message 2"), engine.JobChange{ID: "waits", Payload: make([]byte, forebay.MaxPayloadBytes+1)}),
		forebay.CodeConflict, forebay.CodeConflict, "", forebay.CodeNotFound, forebay.CodeConflict, forebay.CodeInvalid,
		forebay.CodeInvalid, forebay.CodeNotFound, forebay.CodeNotFound, forebay.CodeTooLarge)
	if j := v.told("waits", forebay.StateWaiting, 0, 0); j.Priority.Level() != 3 {
		v.failf("the good one of the call was not done: %+v", j)
	}
	v.wantSet(v.take(10), "waits", "message 2")
}

func changeGroup(v *env) {
	v.send(jobsOf(ids("g", 4), inGroup("g"))...)
	v.codes(v.change(ofLevel("g3", 0)), forebay.CodeInvalid)
	v.moved(engine.JobChange{ID: "g3", Payload: []byte("3")})
	v.moved(putOff("g2", 10*v.unit))
	v.want(v.take(10), "g1")
	v.pass(v.lease() + v.unit)
	v.want(v.take(10), "g1", "g2", "g3", "g4")
}

func changeOften(v *env) {
	v.add(ids("m", 6)...)
	for round := range 30 {
		id := ids("m", 6)[round%6]
		v.moved(ofLevel(id, round%10))
		switch round % 3 {
		case 0:
			v.moved(putOff(id, time.Duration(round+1)*v.unit))
		case 1:
			v.moved(promoted(id))
		}
		if s := v.stats(testQueue); s.Waiting+s.Delayed != 6 {
			v.failf("after %d changes stats are %+v, want 6 that wait", round+1, s)
		}
	}
	v.pass(40 * v.unit)
	ds := v.take(20)
	v.wantSet(ds, ids("m", 6)...)
	v.ack(ds...)
	v.pass(2 * v.lease())
	v.none()
	v.counts(testQueue, 0, 0, 0, 0)
}

func changeConcurrently(v *env) {
	v.add(ids("m", 20)...)
	v.each(6, func(i int) error {
		if i > 2 {
			_, err := able[engine.Jobs](v).Change(v.ctx, []engine.JobChange{ofLevel("m7", i), {ID: "m9", Payload: []byte{'0' + byte(i)}}, ofLevel("m20", 3*i-9)})
			return err
		}
		ds, err := v.e.Receive(v.ctx, engine.Receive{Queue: testQueue, Max: 5, Lease: v.lease()})
		if err == nil {
			_, err = v.e.Settle(v.ctx, acks(ds))
		}
		return err
	})
	done := v.stats(testQueue).Completed
	ds := v.takeAll(testQueue)
	seen := make(map[string]bool)
	for _, d := range ds {
		seen[d.ID] = true
	}
	if len(seen) != len(ds) || done+int64(len(ds)) != 20 {
		v.failf("%d were done, then came %v", done, idsOf(ds))
	}
}

func changeReopen(v *env) {
	v.send(job("promoted", notBefore(time.Now().Add(time.Hour))))
	v.add("level", "body", "late")
	v.moved(promoted("promoted"))
	v.moved(ofLevel("level", 0))
	v.moved(engine.JobChange{ID: "body", Payload: []byte("2")})
	v.moved(putOff("late", 10*v.unit))
	for range 2 {
		v.reopen()
		v.counts(testQueue, 3, 0, 1, 0)
	}
	ds := v.take(10)
	v.wantSet(ds, "promoted", "level", "body")
	if ds[0].ID != "level" {
		v.failf("%v came, want the most urgent first", idsOf(ds))
	}
	for _, d := range ds {
		if d.ID == "body" {
			v.same(d.Message, job("body", withBody("2")))
		}
	}
	v.pass(11 * v.unit)
	v.one("late")
}
