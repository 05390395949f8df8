package sqlite

import "zombiezen.com/go/sqlite"

// loadTenants takes up the tenants.
func (l *loop) loadTenants(*tx) error {
	return l.db.each("SELECT id, queue, name FROM tenant", func(s *sqlite.Stmt) error {
		if q := l.byID[s.ColumnInt64(1)]; q != nil {
			tn := new(tenant)
			tn.start(q, s.ColumnInt64(0), s.ColumnText(2))
			l.addTenant(tn)
			l.topID = max(l.topID, tn.id)
		}
		return nil
	})
}

// loadFree finds the numbers that are not in use. The largest ever is at least that
// of any message that is remembered.
func (l *loop) loadFree(*tx) error {
	for id := l.topID - 1; id > 0; id-- {
		if l.byID[id] == nil && l.tenants.byID[id] == nil {
			l.tenants.free = append(l.tenants.free, id)
		}
	}
	return nil
}

// loadLanes finds the lanes that have blocks, one after the other.
func (l *loop) loadLanes(*tx) error {
	for from := int64(0); ; {
		key, err := l.db.int("SELECT key FROM block WHERE key >= ? ORDER BY key LIMIT 1", from)
		if err != nil {
			return err
		}
		if key == 0 {
			break
		}
		if err := l.loadLane(key); err != nil {
			return err
		}
		from = blockKey(laneOf(key)+1, 0)
	}
	for _, tn := range l.tenants.byID { // those whose rows outlived what they had
		l.counted(tn, 0)
	}
	return nil
}

func (l *loop) loadLane(first int64) error {
	tn := l.tenantOf(first)
	if tn == nil {
		return nil
	}
	return l.db.each("SELECT max(key), sum(n), sum(bytes), min(sent_at) FROM block WHERE key BETWEEN ? AND ?", func(s *sqlite.Stmt) error {
		n := tn.lane(first)
		n.tail, n.nextAt = s.ColumnInt64(0), s.ColumnInt64(3)
		tn.total += s.ColumnInt64(1)
		tn.q.total += s.ColumnInt64(1)
		tn.q.bytes += s.ColumnInt64(2)
		tn.q.enter(tn)
		return nil
	}, first, first|seqMask)
}
