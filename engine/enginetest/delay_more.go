package enginetest

import (
	"fmt"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
)

// delayGroups changes the delay while a group's messages wait behind one that is active,
// and outside their lane.
func delayGroups(v *env) {
	v.putGroup("g", "g1", "g2", "g3")
	v.putGroup("h", "h1")
	d := v.take(1)[0]
	v.want([]forebay.Delivery{d}, "g1")
	v.wantSet(v.take(10), "h1") // g2 and g3 are looked at, and left
	v.delay(10 * v.unit)
	v.end(d, forebay.Retry, 2*v.unit)
	v.none()
	v.pass(3 * v.unit)
	d = v.one("g1")
	v.ack(d)
	v.none()
	v.pass(5 * v.unit)
	v.none()
	v.pass(3 * v.unit)
	ds := v.take(10)
	v.want(ds, "g2", "g3")
	v.ack(ds...)
	v.putGroup("i", "i1")
	v.pass(5 * v.unit)
	v.putGroup("i", "i2")
	v.pass(6 * v.unit)
	v.want(v.receive(engine.Receive{Queue: testQueue, Max: 10, Lease: v.lease(), Together: true}), "i1")
}

func delayBoth(v *env) {
	v.delay(10 * v.unit)
	at := time.Now()
	v.send(msg("early", notBefore(at.Add(5*v.unit))), msg("late", notBefore(at.Add(15*v.unit))),
		msg("g1", inGroup("g"), notBefore(at.Add(5*v.unit))))
	v.none()
	v.pass(6 * v.unit)
	v.none()
	v.pass(5 * v.unit)
	v.wantSet(v.take(10), "early", "g1")
	v.none()
	v.pass(5 * v.unit)
	v.one("late")
}

func delayKeys(v *env) {
	v.limit(engine.QueueLimits{KeyActive: 1})
	v.send(msg("a1", withLimit("k")), msg("a2", withLimit("k")), msg("b1", withLimit("l"), inGroup("g")))
	d := v.take(1)[0]
	v.wantSet(v.take(10), "b1") // a2 is looked at, and waits for its key
	v.delay(10 * v.unit)
	v.ack(d)
	v.none()
	v.send(msg("a3", withLimit("k")))
	v.pass(11 * v.unit)
	d = v.one("a2")
	v.none()
	v.ack(d)
	v.one("a3")
}

// delayTurns has a key's turn come to what is delayed, while something else of it is not.
func delayTurns(v *env) {
	v.put("other")
	v.send(msg("a1", withLimit("k")), msg("a2", withLimit("k")), msg("a3", withLimit("k")))
	ds := v.take(4)
	v.want(ds, "other", "a1", "a2", "a3")
	v.limit(engine.QueueLimits{KeyActive: 1})
	v.end(ds[2], forebay.Release, 0) // it never was handed out
	v.end(ds[3], forebay.Retry, 0)
	v.none()
	v.delay(50 * v.unit)
	v.ack(ds[1])
	v.one("a3")
}

// delayMany moves the delay to and fro over many messages of many groups, of which some
// are in flight.
func delayMany(v *env) {
	const n, groups = 3000, 500
	for i := range n / 100 {
		var msgs []forebay.Message
		for k := range 100 {
			at := i*100 + k
			msgs = append(msgs, msg(fmt.Sprint("m", at), inGroup(fmt.Sprint("g", at%groups))))
		}
		v.send(msgs...)
	}
	busy := v.take(300)
	v.counts(testQueue, n-300, 300, 0, 0)
	for range 3 {
		v.delay(50 * v.unit)
		v.none()
		v.counts(testQueue, 0, 300, n-300, 0)
		v.delay(0)
		v.counts(testQueue, n-300, 300, 0, 0)
		v.delay(40 * v.unit)
	}
	v.none()
	v.ack(busy...)
	v.none()
	v.pass(41 * v.unit)
	last := map[string]int{}
	for left := n - 300; left > 0; {
		ds := v.take(1000)
		if len(ds) == 0 {
			v.failf("%d are missing", left)
		}
		for _, d := range ds {
			var at int
			if _, err := fmt.Sscanf(d.ID, "m%d", &at); err != nil || at < last[d.Group] {
				v.failf("of group %s message %d came after %d", d.Group, at, last[d.Group])
			}
			last[d.Group] = at
		}
		v.ack(ds...)
		left -= len(ds)
	}
	v.counts(testQueue, 0, 0, 0, 0)
}
