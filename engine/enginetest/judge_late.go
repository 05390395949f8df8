package enginetest

import (
	"fmt"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
)

// keeps chooses the receives whose leases outlive the engine.
func (j *judge) keeps(n int) bool {
	return j.h.Reopen != nil && j.h.Cannot[Keeping] == "" && n/8%2 == 0
}

// late asks where the messages of some receipts are, and acts on them. It leaves out
// those of jobs that were changed, which may lead nowhere, and moments at which a
// lease or a delay ends.
func (j *judge) late(n [4]int) error {
	l, ok := engine.As[engine.Late](j.e)
	if !ok || len(j.receipts) == 0 {
		return nil
	}
	now := time.Now()
	var rs []forebay.Receipt
	var want []engine.Where
	for i := range 1 + n[3]%3 {
		r := j.receipts[(n[0]+i*n[1])%len(j.receipts)]
		e, _ := j.o.late(r)
		if w := e.where(now); !j.o.owners[r].moved && w == e.where(now.Add(-j.slack)) && w == e.where(now.Add(j.slack)) {
			rs, want = append(rs, r), append(want, w)
		}
	}
	states, err := l.Late(j.ctx, rs)
	if err != nil || len(states) != len(rs) {
		return fmt.Errorf("late gave %d states for %d receipts, %v", len(states), len(rs), err)
	}
	for i, r := range rs {
		if states[i].Where != want[i] {
			return fmt.Errorf("the message of receipt %q is at %+v, want %q", r, states[i], want[i])
		}
	}
	var errs []error
	act := j.o.ackLate
	switch n[2] % 3 {
	case 0:
		errs, err = l.AckLate(j.ctx, rs)
	case 1:
		lease := j.units(n[3] % 7)
		errs, err = l.ExtendLate(j.ctx, rs, lease)
		act = func(e *entry, now time.Time) error { return e.extendLate(lease, now) }
	default:
		return nil
	}
	if err != nil || len(errs) != len(rs) {
		return fmt.Errorf("a late step gave %d answers for %d, %v", len(errs), len(rs), err)
	}
	for i, r := range rs {
		e, _ := j.o.late(r)
		if err := act(e, now); forebay.CodeOf(err) != forebay.CodeOf(errs[i]) {
			return fmt.Errorf("a late step by %q of what was %s gave %v, want %v", r, want[i], errs[i], err)
		}
	}
	return nil
}
