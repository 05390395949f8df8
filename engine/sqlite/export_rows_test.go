package sqlite

import "context"

// Int gives the number that a query selects.
func (e *Engine) Int(sql string) (int64, error) {
	return ask(context.Background(), e, func(t *tx) (int64, error) { return t.l.db.int(sql) })
}
