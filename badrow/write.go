package badrow

import (
	"context"
	"time"

	"github.com/forebayhq/forebay"
)

// op is one call that waits for the writer: rows to store, rows to remove, a
// damage that a reader has met, or nothing, which is to be written all the same.
type op struct {
	rows   []Row
	seqs   []int64
	damage error

	missing []error    // for seqs: per item
	done    chan error // capacity 1
}

const (
	maxGroup   = 4 << 20 // bytes of one commit; a single larger call is one group
	pruneSlice = 1000    // rows dropped in one commit
	pruneEvery = time.Hour
)

// do hands an op to the writer and waits for its commit.
func (s *Store) do(ctx context.Context, o *op) error {
	o.done = make(chan error, 1)
	closed := func() error { return forebay.Errorf(forebay.CodeClosed, "badrow: write", "the store is closed") }
	select {
	case <-s.stop: // first, so that a closed store never takes a call by chance
		return closed()
	default:
	}
	select {
	case s.ops <- o:
	case <-s.stop:
		return closed()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	select {
	case err := <-o.done:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// write is the writer. It commits at once when idle; callers that come while a
// commit runs wait for each other and share the next one.
func (s *Store) write() {
	defer close(s.ended)
	tick := time.NewTicker(pruneEvery)
	defer tick.Stop()
	for {
		select {
		case first := <-s.ops:
			group := s.gather(first)
			err := s.commit(group)
			for _, o := range group {
				o.done <- err
			}
			if err == nil { // else it would fail, too, and log that for each call
				s.prune()
			}
		case <-tick.C:
			s.prune()
		case <-s.stop:
			return
		}
	}
}

// gather takes the calls that wait already, up to maxGroup bytes.
func (s *Store) gather(first *op) []*op {
	group := []*op{first}
	size := first.size()
	for size < maxGroup {
		select {
		case o := <-s.ops:
			group = append(group, o)
			size += o.size()
		default:
			return group
		}
	}
	return group
}

func (o *op) size() (n int) {
	for i := range o.rows {
		n += len(o.rows[i].Bytes)
	}
	return n
}

// commit stores a group in one transaction; on a damaged file it sets that aside
// and does it once more on the new one.
func (s *Store) commit(group []*op) error {
	f, err := s.current()
	for _, o := range group {
		// A damage that was mended since the reader met it is reported by nobody.
		if o.damage != nil && err == nil {
			err = f.check(o.damage)
		}
	}
	if err == nil {
		err = f.apply(group)
	}
	if f == nil || forebay.CodeOf(err) != forebay.CodeDamaged {
		return err
	}
	if f, err = s.swap(err); err != nil {
		return err
	}
	return f.apply(group)
}

// prune drops the oldest rows until the store is within its bounds, in slices.
func (s *Store) prune() {
	for {
		why, n := s.over()
		if n == 0 {
			return
		}
		f, err := s.current()
		var dropped int64
		if err == nil {
			dropped, err = f.drop(why, n, s.cfg.Now().Add(-s.cfg.MaxAge))
		}
		if err != nil {
			s.cfg.Logger.Warn("badrow: old rows cannot be dropped", "error", err)
			return
		}
		if dropped == 0 {
			return
		}
		select {
		case <-s.stop:
			return
		default:
		}
	}
}

// over says which bound is exceeded and how many rows to drop next.
func (s *Store) over() (Why, int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.file == nil {
		return "", 0
	}
	t := &s.file.totals
	if n := t.rows - s.cfg.MaxRows; n > 0 {
		return GoneRows, min(n, pruneSlice)
	}
	if extra := t.bytes - s.cfg.MaxBytes; extra > 0 {
		// Rows of the mean size; the next slice corrects the guess.
		return GoneBytes, min(extra*t.rows/t.bytes+1, pruneSlice)
	}
	oldest, err := s.file.oldest()
	if err != nil || oldest.IsZero() || !oldest.Before(s.cfg.Now().Add(-s.cfg.MaxAge)) {
		return "", 0 // an error shows itself at the next call of a user
	}
	return GoneAge, pruneSlice
}

// current is the file; one that could not be replaced before is tried again. Only
// the writer replaces it, so the writer may use its writing half without the lock.
func (s *Store) current() (*file, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.file != nil {
		return s.file, nil
	}
	if err := s.open(); err != nil {
		return nil, err
	}
	return s.file, nil
}
