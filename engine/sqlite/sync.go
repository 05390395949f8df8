package sqlite

import (
	"errors"
	"os"
	"time"

	"zombiezen.com/go/sqlite"

	"github.com/forebayhq/forebay"
)

// A flush that fails, its life story:
//
//  1. The transaction is committed, so it is true in memory as well; but its callers
//     are told that it may not be durable, and so are those of all that was
//     committed while the flush ran (flusher.go).
//  2. The kernel takes the pages that it could not write for clean. A later flush
//     would succeed without them, and the log ends at its first hole. So the log can
//     not be trusted any more, and no durable call is taken (unsynced).
//  3. resync moves the whole log into the database, from the kernel's memory, and
//     syncs that; the log then begins anew. When this has worked, all is as before.
//  4. A process that ends before is followed by one that finds a log, which does
//     the same before its first durable call.
//  5. When it is the database whose flush fails, in a checkpoint, the log must stay,
//     since it alone is sure to have what the kernel has dropped. Nothing moves it
//     any more, and no durable call is taken (distrust). The next process takes all
//     of it anew, as in 4.

// noteUnsynced takes note of a flush of the log that failed.
func (l *loop) noteUnsynced(err error) {
	l.unsynced, l.resyncAt = true, 0
	l.noteStore(true, err)
}

func errUnsynced() *forebay.Error {
	return forebay.Errorf(forebay.CodeUnavailable, "sqlite: sync", "what was written is not known to be on the disk yet")
}

// errFlush is what a failed flush of the database by the saver wraps.
var errFlush = errors.New("the database could not be flushed")

// resyncRest is the wait after a resync that failed.
const resyncRest = int64(time.Second)

// trust tells whether durable calls can be taken, if there are any. After a flush
// that failed it first makes the store trustworthy again.
func (l *loop) trust(reqs []request) error {
	if !l.unsynced && !l.distrust || !anyDurable(reqs) {
		return nil
	}
	now := l.now()
	switch {
	case l.distrust:
		e := errUnsynced()
		e.Hint = "look at the disk of the data folder, then start again"
		return e
	case now < l.resyncAt && l.resyncAt-now <= resyncRest:
		return errUnsynced()
	}
	l.resyncAt = now + resyncRest
	return l.resync()
}

// resync makes the store trustworthy again.
func (l *loop) resync() error {
	whole := false
	err := l.db.each("PRAGMA wal_checkpoint(RESTART)", func(s *sqlite.Stmt) error {
		whole = s.ColumnInt64(0) == 0 && s.ColumnInt64(1) == s.ColumnInt64(2)
		return nil
	})
	l.noteFlush(err)
	if err != nil {
		return err
	}
	if !whole {
		return errUnsynced()
	}
	l.unsynced = false
	l.flusher.mend()
	return nil
}

// noteFlush looks whether a checkpoint failed to flush.
func (l *loop) noteFlush(err error) {
	if sqlite.ErrCode(err) == sqlite.ResultIOErrFsync || errors.Is(err, errFlush) {
		l.distrust = true
	}
}

// refuse answers the durable calls, and gives those that can be done.
func refuse(calls []*call, err error) (rest []*call) {
	for _, c := range calls {
		if c.op.durable() {
			c.finish(err)
		} else {
			rest = append(rest, c)
		}
	}
	return rest
}

func anyDurable(reqs []request) bool {
	for _, r := range reqs {
		if c, ok := r.(*call); ok && c.op.durable() {
			return true
		}
	}
	return false
}

// leftLog tells whether a former process left its log behind.
func leftLog(path string) bool {
	info, err := os.Stat(path + "-wal")
	return err == nil && info.Size() > 0
}
