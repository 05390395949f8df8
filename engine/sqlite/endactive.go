package sqlite

import (
	"context"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
)

// EndActive ends what is active in a queue; see engine.Late. It notes once what is
// leased, and ends that by its receipts, some at a time, as whoever holds them would.
func (e *Engine) EndActive(ctx context.Context, queue string) (ended int64, err error) {
	if err := engine.CheckQueue(queue); err != nil {
		return 0, err
	}
	all, err := ask(ctx, e, func(t *tx) (all []forebay.Settlement, err error) {
		for _, ls := range t.l.leases {
			for i := range ls.items {
				if it := &ls.items[i]; ls.q.name == queue && it.state == itemLeased && !it.job {
					all = append(all, forebay.Settlement{Receipt: e.sealer.receipt(ls.ticket(i)), Verdict: forebay.Cancelled})
				}
			}
		}
		return all, nil
	})
	for len(all) > 0 && err == nil {
		n := min(len(all), engine.MaxReceive)
		var errs []error
		if errs, err = e.Settle(ctx, all[:n]); err != nil {
			break
		}
		for _, refused := range errs {
			if refused == nil { // else it was settled meanwhile
				ended++
			}
		}
		all = all[n:]
	}
	return ended, err
}
