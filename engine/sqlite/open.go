package sqlite

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"zombiezen.com/go/sqlite"

	"github.com/forebayhq/forebay"
)

// newLoop opens the store and builds what memory holds of it.
func newLoop(e *Engine) (*loop, error) {
	l := &loop{}
	l.empty(e)
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
		l.empty(l.e)
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

// empty makes it as it is before it has opened anything. It is done in its place, since
// timers remember whom they call.
func (l *loop) empty(e *Engine) {
	*l = loop{
		e: e, log: e.log,
		queues: map[string]*queue{}, byID: map[int64]*queue{}, dirty: map[*queue]struct{}{},
		clock:  clock{read: e.cfg.Now},
		leases: map[int64]*lease{}, unreadable: map[int64]bool{},
	}
	l.blocks.byKey = map[int64]*block{}
	l.history.more = make(chan struct{})
	l.logs.more = make(chan struct{})
	l.retention.check = map[*queue]struct{}{}
	l.tenants.byID = map[int64]*tenant{}
	l.tenants.timer.fire = func(now int64) { l.tenants.drop(l, now) }
	l.dedup.max = e.cfg.DedupMax
	l.dedup.timer.fire = func(int64) {}
	l.sleeper = time.NewTimer(0)
	l.sleeper.Stop()
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
		l.flusher = newFlusher(l.wal)
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
		{"synchronous", "NORMAL"}, // the flusher syncs
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

// close frees what open took. What the log still holds, SQLite moves into the
// database.
func (l *loop) close() error {
	var err error
	l.flusher.close()
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
