package salvage

import (
	"errors"
	"fmt"
	"math"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"
)

// maxProbes bounds how often a walk looks into damage without finding a row.
const maxProbes = 1 << 18

// errStop ends a reading that has left the order of keys, as damage can make it.
var errStop = errors.New("salvage: stop")

// walk reads a table by its rowids: a stretch upwards from its low end and
// downwards from its high end, each up to the first damage; what is left between
// is halved, and each half read in the same way, broad stretches first.
type walk struct {
	c     *copier
	table string
	rowid string
	get   string // SELECT, with the rowid last; two bounds; open for DESC

	index  known
	damage error // the first met
	left   int64 // rowids of which nothing is known
	ended  bool  // by maxProbes, or an end of the table is not known
}

// known is what an index says of the table's rowids.
type known struct {
	n, lo, hi int64
	whole     bool
}

type stretch struct{ lo, hi int64 }

func (w *walk) run() error {
	w.index = w.ask()
	todo := []stretch{{math.MinInt64, math.MaxInt64}}
	for probes, first := 0, true; len(todo) > 0; first = false {
		s := todo[0]
		todo = todo[1:]
		if probes >= maxProbes {
			w.ended = true
			w.left = add(w.left, s)
			continue
		}
		before := w.c.saved + w.c.refused
		gap, err := w.stretch(s)
		if err != nil {
			return err
		}
		if gap != nil && first {
			gap = w.narrow(*gap)
		}
		switch {
		case w.c.saved+w.c.refused == before:
			probes++
		default:
			probes = 0
		}
		switch {
		case gap == nil:
		case gap.lo == gap.hi:
			w.left = add(w.left, *gap)
		default:
			mid := gap.lo + (gap.hi-gap.lo)/2
			todo = append(todo, stretch{gap.lo, mid}, stretch{mid + 1, gap.hi})
		}
	}
	return nil
}

func add(n int64, s stretch) int64 {
	if width := s.hi - s.lo; width >= 0 && width < math.MaxInt64-n {
		return n + width + 1
	}
	return math.MaxInt64
}

// stretch reads from both ends and gives the gap that is left; nil: there is none.
func (w *walk) stretch(s stretch) (*stretch, error) {
	gap := s
	whole, err := w.read(w.get, s, func(id int64) bool {
		ok := id >= gap.lo && id <= s.hi
		if ok && id < math.MaxInt64 {
			gap.lo = id + 1
		}
		return ok
	})
	if err != nil || whole || gap.lo > gap.hi {
		return nil, err
	}
	whole, err = w.read(w.get+" DESC", gap, func(id int64) bool {
		ok := id >= gap.lo && id <= gap.hi
		if ok && id > math.MinInt64 {
			gap.hi = id - 1
		}
		return ok
	})
	if err != nil || whole || gap.lo > gap.hi {
		return nil, err
	}
	return &gap, nil
}

// read copies rows while want says yes; whole: up to the end, without damage.
func (w *walk) read(query string, s stretch, want func(id int64) bool) (whole bool, err error) {
	var mine error
	met := sqlitex.Execute(w.c.from, query, &sqlitex.ExecOptions{Args: []any{s.lo, s.hi}, ResultFunc: func(row *sqlite.Stmt) error {
		last := row.ColumnCount() - 1
		if !want(row.ColumnInt64(last)) {
			return errStop
		}
		mine = w.c.insert(row, last)
		return mine
	}})
	if mine != nil {
		return false, mine
	}
	if met != nil && w.damage == nil {
		w.damage = met
	}
	return met == nil, nil
}

// narrow leaves out of a gap what no row can be in, as far as that is known.
func (w *walk) narrow(gap stretch) *stretch {
	k := w.index
	switch {
	case gap.lo > math.MinInt64: // the low end was read
	case k.whole:
		gap.lo = k.lo
	default:
		gap.lo = min(k.lo, 1)
	}
	switch {
	case gap.hi < math.MaxInt64:
	case k.whole:
		gap.hi = k.hi
	default: // a guess: as many again as are known of
		w.ended = true
		gap.hi = 2*min(max(k.hi, gap.lo), math.MaxInt64/4) + 1000
	}
	if gap.lo > gap.hi {
		return nil
	}
	return &gap
}

// ask reads the rowids out of an index, which is on pages of its own.
func (w *walk) ask() (best known) {
	// An index that is damaged into a ring would give rows for ever.
	most, _ := number(w.c.from, "SELECT page_count * page_size / 4 FROM pragma_page_count, pragma_page_size")
	var names []string
	_ = sqlitex.ExecuteTransient(w.c.from, "SELECT name FROM pragma_index_list(?) WHERE partial = 0", &sqlitex.ExecOptions{Args: []any{w.table},
		ResultFunc: func(row *sqlite.Stmt) error {
			names = append(names, row.ColumnText(0))
			return nil
		}}) // without one the ends are guessed
	for _, name := range names {
		k := known{}
		err := sqlitex.ExecuteTransient(w.c.from, "SELECT "+w.rowid+" FROM "+quote(w.table)+" INDEXED BY "+quote(name),
			&sqlitex.ExecOptions{ResultFunc: func(row *sqlite.Stmt) error {
				id := row.ColumnInt64(0)
				if k.n == 0 {
					k.lo, k.hi = id, id
				}
				k.n, k.lo, k.hi = k.n+1, min(k.lo, id), max(k.hi, id)
				if k.n > most {
					return errStop
				}
				return nil
			}})
		if k.whole = err == nil; k.whole {
			return k
		}
		if k.hi > best.hi || best.n == 0 {
			best = k
		}
	}
	return best
}

// lost says what was not found; empty: all was.
func (w *walk) lost() string {
	found := w.c.saved + w.c.refused
	switch {
	case w.index.whole && w.index.n > found:
		return fmt.Sprintf("%d of %d rows cannot be read", w.index.n-found, w.index.n)
	case w.damage == nil || w.index.whole && w.index.n == found:
		return ""
	case w.ended:
		return fmt.Sprintf("an unknown number of rows cannot be read (%v)", w.damage)
	default:
		return fmt.Sprintf("up to %d rows cannot be read (%v)", w.left, w.damage)
	}
}
