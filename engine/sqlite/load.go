package sqlite

import (
	"encoding/json"
	"errors"

	"zombiezen.com/go/sqlite"
)

// load builds the state in memory, in one transaction with what the start changes.
func (l *loop) load() error {
	t := l.newTx()
	steps := []func(*tx) error{
		l.isMarked, l.loadMeta, l.loadSealer, l.loadQueues, l.loadTenants, l.loadLogs, l.loadLanes, l.loadBuckets, l.loadLedger,
		l.loadParts, l.checkAgain, l.loadLeases, l.loadAgain, l.loadDead, l.loadDeadGroups, l.loadDedup, l.loadFree, l.startEnds, l.startRetention, l.loadDocuments, l.loadSigner, l.loadHeld,
	}
	for _, step := range steps {
		if err := step(t); err != nil {
			t.rollback()
			return err
		}
	}
	if err := t.commit(); err != nil {
		t.rollback()
		return err
	}
	t.publish()
	if l.unsynced || l.flusher == nil { // the first durable call does more
		return nil
	}
	return l.flusher.sync()
}

// loadMeta counts this start, and takes up the seqs where the last one cannot have been.
func (l *loop) loadMeta(t *tx) error {
	for _, name := range []string{"epoch", "seq"} {
		if err := t.exec("INSERT INTO meta (name, value) VALUES (?, 1) ON CONFLICT DO NOTHING", name); err != nil {
			return err
		}
	}
	if err := t.exec("UPDATE meta SET value = value + 1 WHERE name = 'epoch'"); err != nil {
		return err
	}
	epoch, err := l.db.int("SELECT value FROM meta WHERE name = 'epoch'")
	if err != nil {
		return err
	}
	l.opening = epoch
	l.seq, err = l.db.int("SELECT value FROM meta WHERE name = 'seq'")
	t.seq, l.seqKept = l.seq, l.seq-1 // the commit reserves new ones
	return err
}

func (l *loop) loadQueues(t *tx) error {
	return l.db.each("SELECT id, name, limits FROM queue", func(s *sqlite.Stmt) error {
		q := l.newQueue(s.ColumnInt64(0), s.ColumnText(1))
		var kept keptLimits
		if err := json.Unmarshal([]byte(s.ColumnText(2)), &kept); err == nil {
			q.limits, q.hold.span = kept.QueueLimits, int64(kept.Delay)
		} else {
			// A start must not fail for it: a recovery would find them no better.
			l.log.Error("the limits of a queue cannot be read and are gone", "queue", q.name, "error", err)
		}
		q.bucket, q.drainedAt = drained(q.limits.Rate, t.now), t.now
		l.addQueue(q)
		l.topID = max(l.topID, q.id)
		return nil
	})
}

// loadBuckets takes up the queues' rates where a clean end left them.
func (l *loop) loadBuckets(t *tx) error {
	err := l.db.each("SELECT CAST(substr(name, 6) AS INTEGER), value FROM meta WHERE name GLOB 'rate/*'", func(s *sqlite.Stmt) error {
		if q := l.byID[s.ColumnInt64(0)]; q != nil {
			q.bucket.full = s.ColumnInt64(1)
		}
		return nil
	})
	if err != nil {
		return err
	}
	return t.exec("DELETE FROM meta WHERE name GLOB 'rate/*'")
}

func (l *loop) loadParts(t *tx) error {
	var whole []int64
	err := l.db.each("SELECT key, settled, n, bytes FROM part JOIN block USING (key)", func(s *sqlite.Stmt) error {
		settled, err := marksOf(s.ColumnInt64(0), columnBytes(s, 1))
		if err != nil {
			return err
		}
		b := block{n: int(s.ColumnInt64(2)), bytes: s.ColumnInt64(3)}
		if tn := l.tenantOf(s.ColumnInt64(0)); tn != nil && b.n > 0 {
			q := tn.q
			q.total -= int64(settled.count())
			l.counted(tn, -int64(settled.count()))
			q.bytes -= b.remaining(0) - b.remaining(settled.count())
		}
		if settled.count() == b.n {
			whole = append(whole, s.ColumnInt64(0))
		}
		return nil
	})
	for _, key := range whole {
		err = errors.Join(err, t.exec("DELETE FROM part WHERE key = ?", key), t.dropBlock(key))
	}
	return err
}

// loadAgain takes up what left its lane, but for groups: of those their lane comes
// to each message again, so that the order is that of sending.
func (l *loop) loadAgain(*tx) error {
	with := map[*tenant]struct{}{}
	for _, which := range []string{"grp = 0", "grp <> 0"} { // as the indexes do
		err := l.db.each("SELECT DISTINCT queue FROM again WHERE "+which, func(s *sqlite.Stmt) error {
			if tn := l.tenantOf(blockKey(laneID(s.ColumnInt64(0), 0), 0)); tn != nil {
				with[tn] = struct{}{}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	for tn := range with {
		if err := tn.loadLater(l); err != nil {
			return err
		}
	}
	return nil
}

func (l *loop) loadDead(*tx) error {
	return l.db.each("SELECT queue, count(*) FROM dead GROUP BY queue", func(s *sqlite.Stmt) error {
		if q := l.byID[s.ColumnInt64(0)]; q != nil {
			q.dead = s.ColumnInt64(1)
		}
		return nil
	})
}

func (l *loop) loadDedup(*tx) error {
	return l.db.each("SELECT seq, at, ids, lane FROM dedup ORDER BY seq", func(s *sqlite.Stmt) error {
		var hashes []digest
		expires := int64(0)
		at := s.ColumnInt64(1)
		eachEntry(columnBytes(s, 2), func(_ int, n *entry) bool {
			hashes = append(hashes, n.id)
			if n.hasKey {
				hashes = append(hashes, n.key)
			}
			expires = max(expires, at+l.window(n.window))
			return true
		})
		l.dedup.fetch(hashes)
		l.dedup.add(s.ColumnInt64(0), hashes, expires)
		l.topID = max(l.topID, s.ColumnInt64(3)/levels)
		return nil
	})
}
