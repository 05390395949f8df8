// Package salvage opens SQLite files that may be damaged: what can be read is
// taken over into a new file, and the damaged one is kept.
//
// The life of a damaged file:
//
//  1. Opening it says CodeDamaged, or an earlier run met damage and left a mark
//     (Mark), or the running program replaces it (Replace).
//  2. From now on the file and its log are only read.
//  3. A new file is made beside it, <path>.recovering, and all rows are copied that
//     can be read. When this fails, or the process dies, the next start begins anew.
//  4. The new file is synced, the log says what was saved and what was lost, and
//     the file is renamed to <path>.recovered. From here on it counts.
//  5. The damaged file and its log are renamed to <path>.damaged-<time>, and the new
//     one takes its place. The next start finishes this when it is cut short.
//
// It promises that at any moment, power loss included, either the damaged file or
// one that holds all that could be read of it is there; that the damaged one is
// kept unchanged; and that what is lost is named, as far as it can be known.
//
// It refuses to judge what rows mean, and to touch a file that is of a newer
// version or of another program: that is told by whoever opens it.
package salvage

import (
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"github.com/forebayhq/forebay"
)

const (
	recovering = ".recovering"
	recovered  = ".recovered"
	mark       = ".is-damaged"
)

// Plan is what a recovery needs to know of a file.
type Plan struct {
	Make   func(*sqlite.Conn) error // prepares an empty file: its tables, its application_id
	Mend   func(*sqlite.Conn) error // sets right what depends on rows that were saved; may be nil
	Logger *slog.Logger             // gets one line per recovery
}

// Report tells what a recovery did.
type Report struct {
	Copy  string   // where the damaged file is kept; empty: nothing was damaged
	Saved int64    // rows that were taken over
	Lost  []string // what was not, a line for each table or other thing
}

// Open runs open, which opens the file at path. Where it says CodeDamaged, and has
// closed what it opened, the file is recovered and open runs once more.
func Open(path string, p Plan, open func() error) (Report, error) {
	rep, err := finish(path)
	if err != nil {
		return rep, err
	}
	if rep.Copy != "" {
		p.Logger.Warn("a recovery that was cut short is finished", "file", path, "copy", rep.Copy)
	}
	h := openHold(path)
	defer h.close()
	met := marked(path)
	if met == nil {
		met = open()
	}
	if forebay.CodeOf(met) != forebay.CodeDamaged {
		return rep, met
	}
	if rep, err = recoverFile(path, p, h, met); err != nil {
		return rep, err
	}
	return rep, open()
}

// Replace recovers a file that is open and has turned out to be damaged; closeOld
// closes it. The caller opens it again.
func Replace(path string, p Plan, met error, closeOld func()) (Report, error) {
	h := openHold(path)
	defer h.close()
	closeOld()
	return recoverFile(path, p, h, met)
}

// Mark makes the next Open recover the file, for damage that only a running
// program meets: opening does not read every page.
func Mark(path string, met error) error {
	f, err := os.OpenFile(path+mark, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return fileError(err)
	}
	_, err = f.WriteString(met.Error() + "\n")
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return fileError(err)
	}
	return syncFolder(path)
}

// marked gives the damage that Mark was told. A mark without a file is void.
func marked(path string) error {
	text, err := os.ReadFile(path + mark)
	if err != nil {
		return nil
	}
	if _, err := os.Stat(path); err != nil {
		return nil
	}
	return forebay.Errorf(forebay.CodeDamaged, "salvage: open", "an earlier run met damage: %s", strings.TrimSpace(string(text)))
}

// hold is a connection that only reads. While it is there no other one is the
// last: the last to close would move the log into the damaged file.
type hold struct{ conn *sqlite.Conn }

func openHold(path string) *hold {
	if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() {
		return &hold{}
	}
	conn, err := sqlite.OpenConn(path, sqlite.OpenReadOnly)
	if err != nil {
		return &hold{}
	}
	readable(conn) // takes its lock
	return &hold{conn}
}

func (h *hold) close() {
	if h.conn != nil {
		_ = h.conn.Close() // it has written nothing
		h.conn = nil
	}
}

// recoverFile makes a new file of what can be read of a damaged one, and puts it
// in its place.
func recoverFile(path string, p Plan, h *hold, met error) (rep Report, err error) {
	fresh := path + recovering
	if err := remove(fresh); err != nil {
		return rep, err
	}
	defer func() {
		if err != nil { // it may be the disk that is full
			err = errors.Join(err, remove(fresh))
		}
	}()
	if err := rebuild(path, fresh, p, h, &rep); err != nil {
		return rep, fileError(err)
	}
	if err := syncFile(fresh); err != nil {
		return rep, err
	}
	kept, err := keptName(path, fresh)
	if err != nil {
		return rep, err
	}
	p.Logger.Error("a damaged file is replaced by what can be read of it", "file", path, "damage", met,
		"copy", kept, "rowsSaved", rep.Saved, "lost", strings.Join(rep.Lost, "; "))
	if err := os.Rename(fresh, path+recovered); err != nil {
		return rep, fileError(err)
	}
	if err := syncFolder(path); err != nil {
		return rep, err
	}
	h.close()
	done, err := finish(path)
	rep.Copy = done.Copy
	return rep, err
}

// rebuild fills the new file and closes it.
func rebuild(path, fresh string, p Plan, h *hold, rep *Report) (err error) {
	if err := createLike(path, fresh); err != nil {
		return err
	}
	to, err := sqlite.OpenConn(fresh, sqlite.OpenReadWrite, sqlite.OpenCreate)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, to.Close()) }() // moves the log into the file
	if err := p.Make(to); err != nil {
		return err
	}
	// One sync at the end is enough; page 1 may be wanted before.
	for _, sql := range []string{"PRAGMA synchronous = off", "PRAGMA wal_checkpoint(TRUNCATE)"} {
		if err := sqlitex.ExecuteTransient(to, sql, nil); err != nil {
			return err
		}
	}
	from, done, err := source(path, fresh, h, to)
	if err != nil {
		return err
	}
	defer done()
	if from == nil {
		rep.Lost = append(rep.Lost, "everything")
		return nil
	}
	c := copier{from: from, to: to, rep: rep}
	if err := c.copy(); err != nil || p.Mend == nil {
		return err
	}
	return p.Mend(to)
}

// createLike makes an empty file that the same people may read.
func createLike(path, fresh string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(fresh, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	return errors.Join(f.Chmod(info.Mode().Perm()), f.Close())
}

// finish puts a recovered file in the place of the damaged one, if there is one.
// Its log goes first, and the names depend on nothing but the recovered file, so
// that it can be cut short at any point and done again.
func finish(path string) (Report, error) {
	if _, err := os.Stat(path + recovered); errors.Is(err, fs.ErrNotExist) {
		return Report{}, nil
	}
	kept, err := keptName(path, path+recovered)
	if err != nil {
		return Report{}, err
	}
	if info, err := os.Stat(path + "-wal"); err == nil && info.Size() == 0 { // made by reading
		if err := os.Remove(path + "-wal"); err != nil {
			return Report{}, fileError(err)
		}
	}
	for _, suffix := range []string{"-wal", ""} {
		if err := os.Rename(path+suffix, kept+suffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return Report{}, fileError(err)
		}
	}
	for _, suffix := range []string{"-shm", mark} {
		if err := os.Remove(path + suffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return Report{}, fileError(err)
		}
	}
	if err := syncFolder(path); err != nil {
		return Report{}, err
	}
	if err := os.Rename(path+recovered, path); err != nil {
		return Report{}, fileError(err)
	}
	return Report{Copy: kept}, syncFolder(path)
}

// keptName is where the damaged file goes: named by the time of the new one, and
// never in the place of another that is kept.
func keptName(path, fresh string) (string, error) {
	info, err := os.Stat(fresh)
	if err != nil {
		return "", fileError(err)
	}
	kept := path + ".damaged-" + info.ModTime().UTC().Format("20060102T150405.000000000Z")
	if _, err := os.Stat(path); err != nil {
		return kept, nil // moved already
	}
	for {
		if _, err := os.Stat(kept); errors.Is(err, fs.ErrNotExist) {
			return kept, nil
		}
		kept += "a"
	}
}

func remove(path string) error {
	for _, suffix := range []string{"", "-wal", "-shm", "-journal"} {
		if err := os.Remove(path + suffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fileError(err)
		}
	}
	return nil
}

// syncFile makes a closed file durable. One that still has a log is not whole.
func syncFile(path string) error {
	if info, err := os.Stat(path + "-wal"); err == nil && info.Size() > 0 {
		return forebay.Errorf(forebay.CodeUnavailable, "salvage", "the log of the new file could not be moved into it")
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return fileError(err)
	}
	if err := errors.Join(f.Sync(), f.Close()); err != nil {
		return fileError(err)
	}
	return nil
}

func syncFolder(path string) error {
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return fileError(err)
	}
	if err := errors.Join(dir.Sync(), dir.Close()); err != nil {
		return fileError(err)
	}
	return nil
}

// fileError is one of the new file or of the folder, never of the damaged file.
func fileError(err error) error {
	var ours *forebay.Error
	if errors.As(err, &ours) {
		return err
	}
	e := forebay.Errorf(forebay.CodeUnavailable, "salvage", "the damaged file cannot be replaced: %w", err)
	e.Hint = "nothing was changed; the next start tries again"
	if sqlite.ErrCode(err).ToPrimary() == sqlite.ResultFull || errors.Is(err, syscall.ENOSPC) {
		e.Code = forebay.CodeFull
		e.Hint = "nothing was changed; make room on the disk for a copy of the file, and start again"
	}
	return e
}
