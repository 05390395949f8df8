package sqlite

import "context"

// Int gives the number that a query selects.
func (e *Engine) Int(sql string) (int64, error) {
	return ask(context.Background(), e, func(t *tx) (int64, error) { return t.l.db.int(sql) })
}

// Tenants is how many of them memory knows.
func (e *Engine) Tenants() (n int) {
	_ = e.submit(context.Background(), question(func(t *tx) error {
		n = len(t.l.tenants.byID)
		return nil
	}))
	return n
}

// AheadBytes is what the blocks ahead of the cursors take.
func (e *Engine) AheadBytes() (n int) {
	_ = e.submit(context.Background(), question(func(t *tx) error {
		n = t.l.blocks.ahead
		return nil
	}))
	return n
}

// Sign makes all signatures that can be made, of so many jobs each, and of what is young, too.
func (e *Engine) Sign(jobs int) error {
	for {
		more, err := ask(context.Background(), e, func(t *tx) (int64, error) {
			s := &t.l.signer
			s.size = jobs
			for kind := signLive; kind < signKinds; kind++ {
				if s.waiting[kind] > 0 {
					s.waiting[kind] = max(s.waiting[kind], jobs)
				}
			}
			return s.step(t.l, t.now+2*signDelay)
		})
		if more == 0 || err != nil {
			return err
		}
	}
}
