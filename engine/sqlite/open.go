package sqlite

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"zombiezen.com/go/sqlite"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
)

// newLoop opens the store and builds what memory holds of it.
func newLoop(e *Engine) (*loop, error) {
	l := emptyLoop(e)
	err := l.start()
	if forebay.CodeOf(err) == forebay.CodeDamaged && l.lock != nil {
		err = l.startRecovered(err)
	}
	if err != nil {
		l.close()
		return nil, err
	}
	return l, nil
}

func (l *loop) start() error {
	if err := l.open(); err != nil {
		return err
	}
	return l.load()
}

// startRecovered starts once more, with what can be read of a damaged file.
func (l *loop) startRecovered(damage error) error {
	l.log.Error("the database is damaged", "file", l.e.cfg.Path, "error", damage)
	rec, err := recoverFile(l.e.cfg.Path, l.e.cfg.MaxBytes, func() {
		lock := l.lock
		l.lock = nil // kept
		l.close()    // it is damaged, whatever this says
		*l = *emptyLoop(l.e)
		l.lock = lock
	})
	if err != nil {
		return err
	}
	l.e.recovery = rec
	for _, lost := range rec.Lost {
		l.log.Error("lost to damage", "table", lost)
	}
	l.log.Warn("the database was recovered", "rows", rec.Saved)
	return l.start()
}

func emptyLoop(e *Engine) *loop {
	l := &loop{
		e: e, log: e.log,
		queues: map[string]*queue{}, byID: map[int64]*queue{}, dirty: map[*queue]struct{}{},
		clock:  clock{read: e.cfg.Now},
		leases: map[int64]*lease{}, unreadable: map[int64]bool{},
	}
	l.blocks.byKey = map[int64]*block{}
	l.dedup.max = e.cfg.DedupMax
	l.dedup.timer.fire = func(int64) {}
	l.sleeper = time.NewTimer(0)
	l.sleeper.Stop()
	return l
}

// open opens the connections, and makes or migrates the database.
func (l *loop) open() error {
	path := l.e.cfg.Path
	if path == "" {
		conn, err := sqlite.OpenConn(":memory:", sqlite.OpenReadWrite, sqlite.OpenCreate)
		if err != nil {
			return storeError(err)
		}
		l.db = db{conn}
		return migrate(conn)
	}
	if err := checkHeader(path); err != nil {
		return err
	}
	var err error
	if l.lock == nil {
		if l.lock, err = takeLock(path); err != nil {
			return err
		}
	}
	kept, err := takeRecovered(path)
	if err != nil {
		return err
	}
	if err := removeDatabase(path + recovering); err != nil {
		return err
	}
	if kept != "" {
		l.e.recovery.Copy = kept
		l.log.Warn("a recovered database takes the place of the damaged one", "copy", kept)
	}
	l.unsynced = l.e.cfg.Durability == DurabilityFull && leftLog(path)
	if l.db.conn, err = openFile(path, l.e.cfg.MaxBytes); err != nil {
		return err
	}
	if l.saver, err = newSaver(path); err != nil {
		return err
	}
	if l.e.cfg.Durability == DurabilityFull {
		if l.wal, err = os.OpenFile(path+"-wal", os.O_RDWR, 0); err != nil {
			return folderError(err)
		}
		return syncFolder(path)
	}
	return nil
}

// openFile opens the database file with our settings.
func openFile(path string, maxBytes int64) (*sqlite.Conn, error) {
	conn, err := sqlite.OpenConn(path, sqlite.OpenReadWrite, sqlite.OpenCreate)
	if err != nil {
		return nil, storeError(err)
	}
	settings := []struct {
		name  string
		value any
	}{
		{"page_size", pageSize},
		{"auto_vacuum", "INCREMENTAL"},
		{"journal_mode", "WAL"},
		{"synchronous", "NORMAL"}, // the loop syncs, see sync
		{"wal_autocheckpoint", 0}, // see saver
		{"journal_size_limit", saveAt},
		{"cache_size", -8 << 10}, // KiB
		{"temp_store", "MEMORY"},
	}
	for _, s := range settings {
		if err := pragma(conn, s.name, s.value); err != nil {
			conn.Close()
			return nil, storeError(err)
		}
	}
	if err := limitPages(conn, maxBytes); err != nil {
		conn.Close()
		return nil, storeError(err)
	}
	if err := migrate(conn); err != nil {
		conn.Close()
		var e *forebay.Error
		if errors.As(err, &e) {
			return nil, err
		}
		return nil, storeError(err)
	}
	return conn, nil
}

// limitPages bounds the file. A file keeps the page size that it was made with.
func limitPages(conn *sqlite.Conn, bytes int64) error {
	const most = 4294967294 // SQLite's own bound
	size, err := pragmaInt(conn, "page_size")
	if err != nil {
		return err
	}
	if bytes <= 0 {
		return pragma(conn, "max_page_count", most)
	}
	return pragma(conn, "max_page_count", min(bytes/size, most))
}

func syncFolder(path string) error {
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return folderError(err)
	}
	defer dir.Close()
	if err := dir.Sync(); err != nil {
		return folderError(err)
	}
	return nil
}

// load builds the state in memory, in one transaction with what the start changes.
func (l *loop) load() error {
	t := l.newTx()
	steps := []func(*tx) error{
		l.isMarked, l.loadMeta, l.loadQueues, l.loadParts, l.freeLeases, l.loadAgain, l.loadDead, l.loadDedup,
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
	if l.unsynced { // the first durable call does more
		return nil
	}
	return l.sync()
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
	l.epoch = strconv.FormatInt(epoch, 36)
	l.seq, err = l.db.int("SELECT value FROM meta WHERE name = 'seq'")
	t.seq, l.seqKept = l.seq, l.seq-1 // the commit reserves new ones
	return err
}

func (l *loop) loadQueues(t *tx) error {
	err := l.db.each("SELECT id, name, limits FROM queue", func(s *sqlite.Stmt) error {
		q := l.newQueue(s.ColumnInt64(0), s.ColumnText(1))
		if err := json.Unmarshal([]byte(s.ColumnText(2)), &q.limits); err != nil {
			// A start must not fail for it: a recovery would find them no better.
			q.limits = engine.QueueLimits{}
			l.log.Error("the limits of a queue cannot be read and are gone", "queue", q.name, "error", err)
		}
		q.bucket, q.drainedAt = drained(q.limits.Rate, t.now), t.now
		l.addQueue(q)
		return nil
	})
	if err != nil {
		return err
	}
	for _, q := range l.byID {
		for level := range levels {
			if err := l.loadLane(q, level); err != nil {
				return err
			}
		}
	}
	return l.loadBuckets(t)
}

func (l *loop) loadLane(q *queue, level int) error {
	from := blockKey(laneID(q.id, level), 0)
	return l.db.each("SELECT max(key), sum(n), sum(bytes) FROM block WHERE key BETWEEN ? AND ?", func(s *sqlite.Stmt) error {
		if tail := s.ColumnInt64(0); tail > 0 {
			q.lane(tail).tail = tail
			q.total += s.ColumnInt64(1)
			q.bytes += s.ColumnInt64(2)
		}
		return nil
	}, from, from|seqMask)
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
		settled := readBitmap(columnBytes(s, 1))
		b := block{n: int(s.ColumnInt64(2)), bytes: s.ColumnInt64(3)}
		if q := l.byID[laneOf(s.ColumnInt64(0))/levels]; q != nil && b.n > 0 {
			q.total -= int64(settled.count())
			q.bytes -= b.remaining(0) - b.remaining(settled.count())
		}
		if settled.count() == b.n {
			whole = append(whole, s.ColumnInt64(0))
		}
		return nil
	})
	for _, key := range whole {
		err = errors.Join(err, t.exec("DELETE FROM part WHERE key = ?", key), t.exec("DELETE FROM block WHERE key = ?", key))
	}
	return err
}

// freeLeases makes the messages wait again that a process held when it died.
func (l *loop) freeLeases(t *tx) error {
	var held []leaseItem
	err := l.db.each("SELECT items FROM lease", func(s *sqlite.Stmt) error {
		items, _ := decodeLease(columnBytes(s, 0)) // a damaged row costs a count of deliveries only
		held = append(held, items...)
		return nil
	})
	if err != nil {
		return err
	}
	for _, it := range held {
		if err := l.freeLease(t, it); err != nil {
			return err
		}
	}
	return t.exec("DELETE FROM lease")
}

func (l *loop) freeLease(t *tx, it leaseItem) error {
	q := l.byID[laneOf(it.key)/levels]
	if q == nil || it.idx >= blockMessages {
		return nil
	}
	b, err := l.block(it.key)
	if err != nil || b == nil || it.idx >= b.n || b.settled.has(it.idx) {
		return err
	}
	r := &ref{key: it.key, idx: it.idx, ord: b.sentAt, sentAt: b.sentAt}
	r.group, r.limitKey = routing(b.body(it.idx))
	if r.group != 0 {
		b.noted.set(it.idx)
	} else {
		b.skip.set(it.idx)
	}
	return t.exec(`INSERT INTO again (key, idx, queue, due, ord, sent_at, attempts, deliveries, grp, lim)
		VALUES (?1, ?2, ?3, 0, ?4, ?5, 0, ?6, ?7, ?8)
		ON CONFLICT DO UPDATE SET deliveries = max(deliveries, ?6)`,
		r.key, int64(r.idx), q.id, r.ord, r.sentAt, int64(it.deliveries), int64(r.group), int64(r.limitKey))
}

// loadAgain takes up what left its lane, but for groups: of those their lane comes
// to each message again, so that the order is that of sending.
func (l *loop) loadAgain(*tx) error {
	for _, q := range l.byID {
		if err := q.loadLater(l); err != nil {
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
	return l.db.each("SELECT seq, at, ids FROM dedup ORDER BY seq", func(s *sqlite.Stmt) error {
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
		l.dedup.add(s.ColumnInt64(0), hashes, expires)
		return nil
	})
}

// close frees what open took. What the log still holds, SQLite moves into the
// database.
func (l *loop) close() error {
	var err error
	if l.distrust { // closing the connections would move the log; the process ends anyway
		l.lock.free()
		return errUnsynced()
	}
	if l.saver != nil {
		err = l.saver.close()
	}
	if l.db.conn != nil {
		err = errors.Join(err, l.db.conn.Close())
	}
	if l.saver != nil {
		l.saver.closeFiles()
	}
	if l.wal != nil {
		l.wal.Close()
	}
	l.lock.free()
	return err
}

// keepBuckets stores how far the queues' rates are used up.
func (l *loop) keepBuckets() error {
	for _, q := range l.byID {
		if q.limits.Rate.Count == 0 {
			continue
		}
		err := l.db.exec("INSERT INTO meta (name, value) VALUES (?1, ?2) ON CONFLICT DO UPDATE SET value = ?2",
			"rate/"+strconv.FormatInt(q.id, 10), q.bucket.full)
		if err != nil {
			return err
		}
	}
	return nil
}
