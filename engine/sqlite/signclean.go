package sqlite

import "zombiezen.com/go/sqlite"

// cleanSpans is how many spans of a lane one step looks at.
const cleanSpans = 256

// clean drops signatures of which nothing is left.
func (s *signer) clean(l *loop) (rest int64, err error) {
	for spans := 0; spans < cleanSpans; {
		at, first := int64(0), int64(0)
		var stored []byte
		err := l.db.each("SELECT at, first, spans FROM sig WHERE at > ? ORDER BY at LIMIT 1", func(st *sqlite.Stmt) error {
			at, first, stored = st.ColumnInt64(0), st.ColumnInt64(1), columnBytes(st, 2)
			return nil
		}, s.cleanAt)
		if err != nil {
			return 0, err
		}
		if s.cleanAt = at; at == 0 {
			s.left = 0 // once through
			return 0, nil
		}
		n, there, err := l.covers(at, first, stored)
		if err != nil {
			return 0, err
		}
		// The last of each kind says how far they go.
		if !there && s.signed[at>>signShift] != at&signMask {
			if err := l.db.exec("DELETE FROM sig WHERE at = ?", at); err != nil {
				return 0, err
			}
		}
		spans += n
	}
	return signRest, nil
}

// covers tells whether anything is there that a signature covers, and how much work
// it was to see.
func (l *loop) covers(at, first int64, stored []byte) (work int, there bool, err error) {
	table := map[int64]string{signDead: "dead", signFinished: "finished"}[at>>signShift]
	if table != "" {
		n, err := l.db.int("SELECT 1 FROM "+table+" WHERE seq >= ? AND seq <= ? LIMIT 1", first, at&signMask)
		return 4, n > 0, err
	}
	for _, p := range readSpans(stored) {
		work++
		n, err := l.db.int("SELECT 1 FROM block WHERE key >= ? AND key <= ? LIMIT 1", blockKey(p.lane, p.first), blockKey(p.lane, p.last))
		if n > 0 || err != nil {
			return work, n > 0, err
		}
	}
	return work, false, nil
}
