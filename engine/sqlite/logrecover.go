package sqlite

import "zombiezen.com/go/sqlite"

// withData gives the row of a block the data that the log has of it, so that it needs
// no other row from now on. It tells whether there is any.
func (c *copier) withData(row []any) bool {
	data, ok := row[5].([]byte)
	if !ok {
		return false
	}
	key, _ := row[0].(int64)
	if len(data) > 0 {
		return true
	}
	queue, err := c.to.int("SELECT queue FROM tenant WHERE id = ?", laneOf(key)/levels)
	if err != nil || queue == 0 {
		queue = laneOf(key) / levels
	}
	err = c.from.each("SELECT data FROM log WHERE key = ?", func(s *sqlite.Stmt) error {
		row[5] = columnBytes(s, 0)
		return nil
	}, logKey(queue, seqOf(key)))
	return err == nil && len(row[5].([]byte)) > 0
}
