package sqlite

import (
	"encoding/binary"
	"fmt"
	"os"
	"syscall"
	"time"

	"zombiezen.com/go/sqlite"
)

// The write-ahead log must not grow without bound, and moving it into the
// database must not hold the writer up. So a second connection moves most of it
// while writing goes on; what came meanwhile is little, and the loop moves that
// itself, after which the log starts again at its beginning.
const (
	saveAt     = 16 << 20 // size of the log at which the second connection starts
	saveInline = 64 << 20 // size at which the loop waits for it
	pageSize   = 16 << 10 // of a new file; a file keeps its own
)

// saver is the second connection, in a goroutine of its own.
type saver struct {
	conn     *sqlite.Conn
	pageSize int64
	database *os.File // to sync; closing it earlier would free SQLite's locks
	index    *os.File // the log's index, which tells its size
	start    chan struct{}
	done     chan error // one answer for each start
	busy     bool
	soon     bool  // whatever its size: the room is wanted
	restAt   int64 // not before, since the last one failed
}

// saveRest is the wait after a checkpoint that failed, on a full disk perhaps.
const saveRest = int64(time.Second)

func newSaver(path string) (*saver, error) {
	conn, err := sqlite.OpenConn(path, sqlite.OpenReadWrite)
	if err != nil {
		return nil, storeError(err)
	}
	size, err := pragmaInt(conn, "page_size")
	if err != nil {
		conn.Close()
		return nil, storeError(err)
	}
	s := &saver{conn: conn, pageSize: size, start: make(chan struct{}), done: make(chan error, 1)}
	if s.database, err = os.OpenFile(path, os.O_RDWR, 0); err == nil {
		s.index, err = os.Open(path + "-shm")
	}
	if err != nil {
		s.closeFiles()
		return nil, folderError(err)
	}
	go s.run()
	return s, nil
}

func (s *saver) run() {
	defer close(s.done)
	for range s.start {
		err := checkpoint(db{s.conn})
		if err == nil {
			if err = syscall.Fdatasync(int(s.database.Fd())); err != nil {
				err = fmt.Errorf("%w: %w", errFlush, err)
			}
		}
		s.done <- err
	}
}

func checkpoint(d db) error {
	return d.each("PRAGMA wal_checkpoint(PASSIVE)", func(*sqlite.Stmt) error { return nil })
}

// size is that of the log, as its index says (https://sqlite.org/walformat.html);
// 0 when all of it is in the database, so that the next write starts it anew.
func (s *saver) size() int64 {
	var b [100]byte
	if _, err := s.index.ReadAt(b[:], 0); err != nil {
		return 0
	}
	frames, moved := binary.NativeEndian.Uint32(b[16:]), binary.NativeEndian.Uint32(b[96:])
	if frames == moved {
		return 0
	}
	return int64(frames) * s.pageSize
}

// wake tells the loop that a checkpoint has ended; nil in memory.
func (s *saver) wake() <-chan error {
	if s == nil {
		return nil
	}
	return s.done
}

// consider starts a checkpoint when the log has grown.
func (s *saver) consider(l *loop) {
	if s == nil || l.distrust {
		return
	}
	switch size := s.size(); {
	case !s.busy && (size >= saveAt || s.soon && size > 0) && l.now() >= s.restAt:
		s.busy, s.soon = true, false
		s.start <- struct{}{}
	case s.busy && size >= saveInline:
		l.saved(<-s.done)
	}
}

// saved finishes a checkpoint that the saver has done most of.
func (l *loop) saved(err error) {
	l.saver.busy, l.shrinking = false, true
	if err == nil {
		err = checkpoint(l.db)
	}
	l.noteFlush(err)
	if err != nil {
		l.saver.restAt = l.now() + saveRest
		l.log.Error("the write-ahead log could not be moved into the database", "error", err)
	}
}

// close ends the goroutine and its connection. The database file is closed by
// closeFiles, after all connections.
func (s *saver) close() error {
	close(s.start)
	for range s.done { // an answer may be left, if one was running
	}
	return s.conn.Close()
}

func (s *saver) closeFiles() {
	for _, f := range []*os.File{s.database, s.index} {
		if f != nil {
			f.Close()
		}
	}
}
