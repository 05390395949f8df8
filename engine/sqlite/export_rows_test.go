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
