package sqlite

import (
	"context"
	"os"
	"syscall"
	"time"

	"zombiezen.com/go/sqlite"

	"github.com/forebayhq/forebay"
)

// spaceEvery is how often the free space of the disk is looked at for Send.
const spaceEvery = time.Second

// space tells whether Send may use more of the disk. Settle always may: what is
// kept back is for its writes, without which nothing would ever leave.
func (l *loop) space(now int64) error {
	cfg := &l.e.cfg
	if cfg.Path == "" || cfg.DiskReserve < 0 {
		return nil
	}
	if now-l.spaceAt < int64(spaceEvery) && l.spaceAt <= now {
		return l.spaceErr
	}
	_, free, err := l.size()
	low := err == nil && free < cfg.DiskReserve
	if was := l.spaceErr != nil; low && !was {
		l.log.Error("the disk is nearly full: nothing more is taken", "free", free, "reserve", cfg.DiskReserve)
	} else if was && !low {
		l.log.Info("the disk has room again", "free", free)
	}
	l.spaceAt, l.spaceErr = now, nil
	if low {
		e := forebay.Errorf(forebay.CodeFull, "sqlite: send", "%d bytes are left, and %d are kept for settling", free, cfg.DiskReserve)
		e.Hint = "free some space on the disk of the data folder"
		l.spaceErr = e
	}
	return l.spaceErr
}

// Check tells whether messages can be stored durably now, by storing something.
func (e *Engine) Check(ctx context.Context) error { return e.submit(ctx, &probe{}) }

// probe is the op of Check.
type probe struct{ change }

func (*probe) apply(t *tx) error {
	if err := t.l.space(t.now); err != nil {
		return err
	}
	return t.exec("INSERT INTO meta (name, value) VALUES ('probe', ?1) ON CONFLICT DO UPDATE SET value = ?1", t.now)
}

// size counts pages that messages have left as free: Send writes there first. So is what
// of the write-ahead log is in the database: the log keeps its length, and is written anew.
func (l *loop) size() (used, free int64, err error) {
	pages, err := l.db.int("PRAGMA page_count")
	if err != nil {
		return 0, 0, err
	}
	left, err := l.db.int("PRAGMA freelist_count")
	if err != nil {
		return 0, 0, err
	}
	size, err := l.db.int("PRAGMA page_size")
	if err != nil {
		return 0, 0, err
	}
	used, free = (pages-left)*size, left*size
	path := l.e.cfg.Path
	if path == "" {
		return used, free, nil
	}
	if info, err := os.Stat(path + "-wal"); err == nil {
		log := min(l.saver.size(), info.Size())
		used, free = used+log, free+info.Size()-log
	}
	var st syscall.Statfs_t
	if err := syscall.Statfs(path, &st); err != nil {
		return 0, 0, forebay.Errorf(forebay.CodeUnavailable, "sqlite: size", "%w", err)
	}
	free += int64(st.Bavail) * st.Bsize
	if free < l.e.cfg.keepFree() {
		// What waits in the log to be moved is room too, and who refuses for want of room
		// writes nothing that would have it moved.
		l.saver.soon = true
	}
	l.crowd(free)
	return used, free, nil
}

// keepFree is the room on the disk below which what can give way does.
func (c *Config) keepFree() int64 {
	if c.Log.KeepFree != 0 {
		return c.Log.KeepFree
	}
	return max(c.DiskReserve, 0) * 5 / 4
}

// A file that is mostly free is given back to the disk, in slices, while nobody
// waits.
const (
	shrinkFrom  = 16 << 20 / pageSize              // free pages that are worth it
	shrinkSlice = "PRAGMA incremental_vacuum(128)" // pages at a time
)

// shrink gives back a slice. It tells whether more is worth it.
func (l *loop) shrink() bool {
	pages, err := l.db.int("PRAGMA page_count")
	if err != nil {
		return false
	}
	left, err := l.db.int("PRAGMA freelist_count")
	if err != nil || left < shrinkFrom || left < pages/2 {
		return false
	}
	return l.db.each(shrinkSlice, func(*sqlite.Stmt) error { return nil }) == nil
}
