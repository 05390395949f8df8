package enginetest

import (
	"fmt"
	"math/rand/v2"
	"sync"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
)

func soakCases() []testCase {
	return []testCase{
		{name: "soak/all at once, everything ends once", invariants: []int{1, 2, 3, 4, 6, 8}, run: soak},
	}
}

// tally is what the consumers of a soak saw, by message id.
type tally struct {
	mu    sync.Mutex
	ended map[string]int // acked or dead, by which delivery
	count map[string]int // the highest delivery seen
}

// soak has senders, and consumers that ack, fail, give back, kill and forget.
func soak(v *env) {
	const senders, consumers, each = 6, 6, 120
	total := senders * each
	seen := &tally{ended: make(map[string]int), count: make(map[string]int)}
	v.each(senders+consumers, func(i int) error {
		rng := rand.New(rand.NewPCG(7, uint64(i)))
		if i < senders {
			return v.soakSend(i, each, rng)
		}
		return v.soakConsume(seen, total, rng)
	})
	if len(seen.ended) != total {
		v.failf("%d of %d messages ended", len(seen.ended), total)
	}
	for id, n := range seen.ended {
		if n != seen.count[id] {
			v.failf("%q ended with delivery %d, and was handed out %d times", id, n, seen.count[id])
		}
	}
	s := v.stats(testQueue)
	if s.Waiting+s.Active+s.Delayed != 0 || s.Sent != int64(total) {
		v.failf("stats %+v after all %d had ended", s, total)
	}
}

func (v *env) soakSend(sender, n int, rng *rand.Rand) error {
	for j := 0; j < n; {
		var batch []forebay.Message
		for range min(1+rng.IntN(20), n-j) {
			m := msg(fmt.Sprintf("%d-%d", sender, j))
			if j%3 == 0 {
				m.Group = fmt.Sprint("g", sender)
			}
			batch = append(batch, m)
			j++
		}
		for range 1 + rng.IntN(2) { // some calls are repeated, as clients do
			res, err := v.e.Send(v.ctx, batch)
			if err != nil {
				return err
			}
			for _, r := range res {
				if r.Err != nil {
					return r.Err
				}
			}
		}
	}
	return nil
}

func (v *env) soakConsume(seen *tally, total int, rng *rand.Rand) error {
	for {
		seen.mu.Lock()
		done := len(seen.ended) == total
		seen.mu.Unlock()
		if done {
			return nil
		}
		ds, err := v.e.Receive(v.ctx, engine.Receive{Queue: testQueue, Max: 1 + rng.IntN(30), Wait: v.unit, Lease: 3 * v.unit})
		if err != nil {
			return err
		}
		var ss []forebay.Settlement
		for _, d := range ds {
			s := forebay.Settlement{Receipt: d.Receipt, Cause: cause("x"), Verdict: forebay.Ack}
			switch rng.IntN(10) {
			case 0:
				s.Verdict, s.After = forebay.Retry, v.unit
			case 1:
				s.Verdict = forebay.Release
			case 2:
				s.Verdict = forebay.Dead
			case 3:
				continue // forgotten: the lease runs out
			}
			ss = append(ss, s)
		}
		errs, err := v.e.Settle(v.ctx, ss)
		if err != nil {
			return err
		}
		if err := seen.note(ds, ss, errs); err != nil {
			return err
		}
	}
}

func (t *tally) note(ds []forebay.Delivery, ss []forebay.Settlement, errs []error) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	byReceipt := make(map[forebay.Receipt]forebay.Delivery)
	for _, d := range ds {
		byReceipt[d.Receipt] = d
		t.count[d.ID] = max(t.count[d.ID], d.Deliveries)
	}
	for i, s := range ss {
		if errs[i] != nil || s.Verdict == forebay.Retry || s.Verdict == forebay.Release {
			continue
		}
		d := byReceipt[s.Receipt]
		if t.ended[d.ID] != 0 {
			return fmt.Errorf("%q ended by delivery %d and again by %d", d.ID, t.ended[d.ID], d.Deliveries)
		}
		t.ended[d.ID] = d.Deliveries
	}
	return nil
}
