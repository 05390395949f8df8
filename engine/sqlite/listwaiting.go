package sqlite

import (
	"cmp"
	"slices"

	"zombiezen.com/go/sqlite"
)

// waiting lists what waits or is delayed, newest first: by turns what signatures do
// not exclude, and blocks that have none.
func (w *walk) waiting() (end bool, err error) {
	signed := signs{w: w, kind: signLive}
	if err := signed.start(); err != nil {
		return false, err
	}
	fresh := freshBlocks{w: w, from: w.at.seq}
	for !w.spent() {
		if err := fresh.fill(); err != nil {
			return false, err
		}
		if err := signed.fill(); err != nil {
			return false, err
		}
		switch {
		case signed.next == nil && len(fresh.next) == 0:
			if signed.end {
				return true, nil
			}
		case signed.next == nil || len(fresh.next) > 0 && fresh.next[0].seq > signed.next.last:
			switch {
			case signed.next != nil:
				err = fresh.open(signed.next.last)
			case signed.end:
				err = fresh.open(-1)
			} // else the page ends before it is known what comes next
		case len(fresh.next) > 0 && fresh.next[0].seq >= signed.next.first:
			fresh.next = fresh.next[1:] // it is read with the others of the signature
		default:
			err = w.cover(signed.next)
			signed.next = nil
		}
		if err != nil {
			return false, err
		}
	}
	return false, nil
}

// signs gives the signatures of one kind that do not exclude what is looked for, the
// newest first.
type signs struct {
	w    *walk
	kind int64
	from int64 // number of the next, at most
	next *signature
	end  bool
}

type signature struct {
	first, last int64
	spans       []span
}

// start begins with the signature that covers the place of the walk.
func (s *signs) start() error {
	seq := min(s.w.at.seq, signMask)
	from, err := ask(s.w.ctx, s.w.e, func(t *tx) (from int64, err error) {
		from = s.kind<<signShift | seq
		err = t.l.db.each("SELECT at, first FROM sig WHERE at >= ? ORDER BY at LIMIT 1", func(st *sqlite.Stmt) error {
			if at := st.ColumnInt64(0); at>>signShift == s.kind && st.ColumnInt64(1) <= seq {
				from = at
			}
			return nil
		}, from)
		return from, err
	})
	s.from = from
	return err
}

// fill looks for the next one, within the bounds of the page.
func (s *signs) fill() error {
	for s.next == nil && !s.end && !s.w.spent() {
		if err := s.slice(); err != nil {
			return err
		}
	}
	return nil
}

// slice looks at some.
func (s *signs) slice() error {
	type found struct {
		next *signature
		from int64
		n    int
	}
	f := s.w.filter
	got, err := ask(s.w.ctx, s.w.e, func(t *tx) (found, error) {
		got := found{from: s.from}
		err := t.l.db.each("SELECT at, first, since, until, open, spans, bits FROM sig WHERE at <= ? AND at >= ? ORDER BY at DESC LIMIT ?", func(st *sqlite.Stmt) error {
			got.n++
			at := st.ColumnInt64(0)
			got.from = at - 1
			since, until := st.ColumnInt64(2), st.ColumnInt64(3)
			switch {
			case !f.Since.IsZero() && until < nanos(f.Since):
			case !f.Until.IsZero() && s.kind != signLive && since >= nanos(f.Until):
			case s.w.sieve.mayBe(s.kind, columnBytes(st, 6), st.ColumnInt64(4) != 0):
				got.next = &signature{first: st.ColumnInt64(1), last: at & signMask, spans: readSpans(columnBytes(st, 5))}
				return errStop
			}
			return nil
		}, s.from, s.kind<<signShift, int64(sliceRows))
		if err == errStop {
			err = nil
		}
		return got, err
	})
	s.next, s.from = got.next, got.from
	s.w.signs += got.n
	s.end = err == nil && got.next == nil && got.n < sliceRows
	return err
}

// freshBlocks gives blocks that have no signature, the newest first.
type freshBlocks struct {
	w    *walk
	from int64 // seq of the next, at most
	next []freshBlock
	end  bool
}

func (s *freshBlocks) fill() (err error) {
	if len(s.next) > 0 || s.end {
		return nil
	}
	s.next, err = ask(s.w.ctx, s.w.e, func(t *tx) (next []freshBlock, err error) {
		err = t.l.db.each("SELECT seq, lane FROM fresh WHERE seq <= ? ORDER BY seq DESC LIMIT ?", func(st *sqlite.Stmt) error {
			next = append(next, freshBlock{st.ColumnInt64(0), st.ColumnInt64(1)})
			return nil
		}, s.from, int64(sliceBlocks))
		return next, err
	})
	if s.end = len(s.next) < sliceBlocks; err == nil && !s.end {
		s.from = s.next[len(s.next)-1].seq - 1
	}
	return err
}

// open reads some of them, down to a seq that is not among them.
func (s *freshBlocks) open(down int64) error {
	var keys []int64
	for _, f := range s.next {
		if f.seq <= down {
			break
		}
		keys = append(keys, blockKey(f.lane, f.seq))
	}
	n, err := s.w.blocks(keys)
	s.next = s.next[n:]
	return err
}

// cover reads the blocks that a signature covers.
func (w *walk) cover(s *signature) error {
	var keys []int64
	for spans := s.spans; len(spans) > 0; {
		some := spans[:min(len(spans), sliceBlocks)]
		spans = spans[len(some):]
		more, err := ask(w.ctx, w.e, func(t *tx) (keys []int64, err error) {
			for _, p := range some {
				err := t.l.db.each("SELECT key FROM block WHERE key >= ? AND key <= ?", func(st *sqlite.Stmt) error {
					keys = append(keys, st.ColumnInt64(0))
					return nil
				}, blockKey(p.lane, p.first), blockKey(p.lane, min(p.last, w.at.seq)))
				if err != nil {
					return nil, err
				}
			}
			return keys, nil
		})
		if err != nil {
			return err
		}
		keys = append(keys, more...)
	}
	slices.SortFunc(keys, func(a, b int64) int { return cmp.Compare(seqOf(b), seqOf(a)) })
	for len(keys) > 0 {
		n, err := w.blocks(keys)
		if err != nil || w.spent() {
			return err
		}
		keys = keys[n:]
	}
	w.pass(s.first)
	return nil
}
