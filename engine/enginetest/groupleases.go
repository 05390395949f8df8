package enginetest

import "github.com/forebayhq/forebay"

// groupLeases has the messages of a batch come back one by one, while others of it are
// still leased.
func groupLeases(v *env) {
	v.putGroup("g", ids("g", 5)...)
	ds := v.take(3)
	v.want(ds, "g1", "g2", "g3")
	v.end(ds[1], forebay.Release, 0)
	v.none() // g1 is before it
	v.end(ds[0], forebay.Retry, 0)
	first := v.take(1)
	v.want(first, "g1")
	v.none() // g1 is before g2
	v.ack(first...)
	second := v.take(10)
	v.want(second, "g2") // g3 is still leased, so g4 waits
	v.putGroup("g", "g6")
	v.ack(ds[2])
	v.none() // what was sent later waits for the last of them
	v.ack(second...)
	v.want(v.take(10), "g4", "g5", "g6")
}

func groupEnded(v *env) {
	v.putGroup("g", ids("g", 4)...)
	ds := v.take(3)
	v.want(ds, "g1", "g2", "g3")
	v.codes(v.extend(0, ds[0].Receipt), "")
	again := v.take(10)
	v.want(again, "g1")
	v.none()
	v.codes(v.extend(0, ds[2].Receipt, again[0].Receipt), "", "")
	again = v.take(10)
	v.want(again, "g1")
	v.codes(v.extend(0, ds[1].Receipt, again[0].Receipt), "", "")
	v.want(v.take(10), "g1", "g2", "g3", "g4")
}

func groupExtended(v *env) {
	v.putGroup("g", ids("g", 4)...)
	ds := v.short(3)
	v.want(ds, "g1", "g2", "g3")
	v.codes(v.extend(20*v.unit, ds[1].Receipt), "")
	v.pass(4 * v.unit)
	again := v.take(10)
	v.want(again, "g1") // g3 is back too, and behind g2
	v.ack(again...)
	v.none()
	v.pass(17 * v.unit)
	v.want(v.take(10), "g2", "g3", "g4")
}
