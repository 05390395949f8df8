package worker

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/worker/adapt"
)

// item is one delivery at hand. It comes from a receive and leaves through the
// settler, always.
type item struct {
	d  forebay.Delivery
	at time.Time // when it came

	lost  atomic.Bool // its lease; it is not settled then
	again bool        // its verdict brings it back; owned by the loop
	over  bool        // its handler has returned, or will never begin; owned by the dispatcher
	gone  bool        // it has left the settler; owned by the dispatcher
	voice *voice      // of a job handler's; nil: it has none. Set before the handler begins

	// Guarded by keeper.mu.
	work      *work     // what handles it; nil: not begun
	deadline  time.Time // when its lease ends
	due       time.Time // when to renew it
	extending bool      // it is in the call that is under way
	settled   bool      // not begun, and has its verdict
}

// work is one call of a handler.
type work struct {
	all     []*item // as dispatched
	items   []*item // those whose leases were not lost before it began, nor settled
	unbegun []*item // the others
	began   time.Time

	ctx    context.Context
	cancel context.CancelCauseFunc
	live   int // items whose lease is not lost; guarded by keeper.mu

	clock  clock
	follow atomic.Pointer[Follow] // of a job's handler; nil: none

	auto *adapt.Limiter // that knows of it; nil: none does

	left bool // behind: it has its verdict, and its handler has not returned; owned by the loop
}

// result of a work.
type result struct {
	work *work
	errs []error // by item
	data []byte  // what a job handler gave
	run  time.Duration
}

func wrap(ds []forebay.Delivery, lease time.Duration) []*item {
	now := time.Now()
	all := make([]item, len(ds))
	items := make([]*item, len(ds))
	for i, d := range ds {
		items[i] = &all[i]
		items[i].d, items[i].at = d, now
		items[i].deadline = now.Add(min(lease, d.LeaseUntil.Sub(now)))
	}
	return items
}
