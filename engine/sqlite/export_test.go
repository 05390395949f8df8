package sqlite

import (
	"context"
	"os"
)

// Exec runs SQL on the engine's own connection.
func (e *Engine) Exec(sql string) error {
	return e.submit(context.Background(), question(func(t *tx) error { return t.l.db.exec(sql) }))
}

// BreakSync makes the log's flush fail, until mend is called.
func (e *Engine) BreakSync() (mend func() error, err error) {
	broken, _, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	swap := func(to *os.File) (was *os.File, err error) {
		err = e.submit(context.Background(), question(func(t *tx) error {
			was, t.l.wal = t.l.wal, to
			return nil
		}))
		return was, err
	}
	log, err := swap(broken)
	return func() error {
		_, err := swap(log)
		broken.Close()
		return err
	}, err
}
