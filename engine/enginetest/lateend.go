package enginetest

import (
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
)

func (v *env) endActive(queue string) int64 {
	v.Helper()
	n, err := able[engine.Late](v).EndActive(v.ctx, queue)
	if err != nil {
		v.failf("ending what is active in %q: %v", queue, err)
	}
	return n
}

func lateEndActive(v *env) {
	v.putGroup("g", "g1", "g2")
	held := v.take(1)[0] // g1
	v.put("a")
	also := v.take(1)[0] // a
	v.send(msg("late", notBefore(time.Now().Add(5*v.unit))), msg("other", inQueue("r")))
	elsewhere := v.takeAll("r")
	if n := v.endActive(testQueue); n != 2 {
		v.failf("%d were ended, want 2", n)
	}
	v.codes(v.extend(v.lease(), held.Receipt, also.Receipt, elsewhere[0].Receipt), forebay.CodeLeaseLost, forebay.CodeLeaseLost, "")
	v.codes(v.ackLate(held.Receipt, also.Receipt), "", "")
	v.late(engine.WhereGone, held, also)
	v.ack(v.one("g2")) // its group goes on
	v.none()
	v.pass(6 * v.unit)
	v.one("late")
	jobs := v.jobToo()
	if n := v.endActive(testQueue); n != 1 {
		v.failf("%d were ended, want 1, and no job", n)
	}
	v.ack(jobs...)
	if n := v.endActive("nobody"); n != 0 {
		v.failf("of an unknown queue %d were ended", n)
	}
}

// jobToo gives a job that is active, where the engine has jobs.
func (v *env) jobToo() []forebay.Delivery {
	if v.h.Cannot[Ledger] != "" {
		return nil
	}
	v.add("job")
	return v.take(1)
}
