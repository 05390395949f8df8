package badrow

import (
	"errors"
	"time"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"github.com/forebayhq/forebay"
)

const (
	columns = "seq, at, key_id, dialect, item, event_id, code, pointer, reason, cut, bytes"
	insert  = "INSERT INTO bad (seq, at, key_id, dialect, item, event_id, code, pointer, reason, cut, bytes, size) " +
		"VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"

	// rowOverhead is what a row takes beside its words and bytes, roughly.
	rowOverhead = 128
)

// errEnough ends a reading that has what it wants.
var errEnough = errors.New("badrow: enough")

// transact runs fn in one transaction and counts its change once it is durable.
func (f *file) transact(fn func(*change) error) (err error) {
	c := newChange()
	end, err := sqlitex.ImmediateTransaction(f.writer)
	if err != nil {
		return classify("badrow: write", f.path, err)
	}
	defer func() {
		end(&err)
		if err != nil {
			err = classify("badrow: write", f.path, err)
			return
		}
		f.totals.apply(c)
	}()
	if err = fn(c); err != nil {
		return err
	}
	for why, n := range c.gone {
		err = sqlitex.Execute(f.writer, "INSERT INTO gone VALUES (?1, ?2) ON CONFLICT DO UPDATE SET n = n + ?2",
			&sqlitex.ExecOptions{Args: []any{string(why), n}})
		if err != nil {
			return err
		}
	}
	return nil
}

// apply does a group of calls in one transaction.
func (f *file) apply(group []*op) error {
	return f.transact(func(c *change) error {
		for _, o := range group {
			if len(o.rows) == 0 && len(o.seqs) == 0 { // as it is already; still a write to the disk
				if err := sqlitex.Execute(f.writer, "PRAGMA user_version = 1", nil); err != nil {
					return err
				}
			}
			for i := range o.rows {
				if err := f.insert(c, &o.rows[i], 0); err != nil {
					return err
				}
			}
			o.missing = make([]error, len(o.seqs))
			for i, seq := range o.seqs {
				n, err := f.remove(c, GoneDeleted, "DELETE FROM bad WHERE seq = ? RETURNING code, size", seq)
				if err != nil {
					return err
				}
				if n == 0 {
					o.missing[i] = notFound(seq)
				}
			}
		}
		return nil
	})
}

// insert stores a row; with seq 0 it gets the next one.
func (f *file) insert(c *change, r *Row, seq int64) error {
	st, err := f.writer.Prepare(insert)
	if err != nil {
		return err
	}
	bytes, cut := r.Bytes, r.Cut
	if len(bytes) > MaxRowBytes {
		bytes, cut = bytes[:MaxRowBytes], true
	}
	size := int64(rowOverhead + len(bytes))
	st.BindNull(1)
	if seq != 0 {
		st.BindInt64(1, seq)
	}
	st.BindInt64(2, r.At.UnixMicro())
	st.BindInt64(5, int64(r.Index))
	code := clip(r.Code)
	for i, s := range map[int]string{3: clip(r.KeyID), 4: clip(r.Dialect), 6: clip(r.EventID), 7: code, 8: clip(r.Pointer), 9: clip(r.Reason)} {
		st.BindText(i, s)
		size += int64(len(s))
	}
	st.BindBool(10, cut)
	st.BindBytes(11, bytes)
	if len(bytes) == 0 {
		st.BindZeroBlob(11, 0) // an empty slice would be bound as NULL
	}
	st.BindInt64(12, size)
	if _, err := st.Step(); err != nil {
		st.Reset()
		return err
	}
	if err := st.Reset(); err != nil {
		return err
	}
	c.add(code, 1, size)
	return nil
}

// remove runs a DELETE that returns code and size, and counts.
func (f *file) remove(c *change, why Why, query string, args ...any) (n int64, err error) {
	err = sqlitex.Execute(f.writer, query, &sqlitex.ExecOptions{Args: args, ResultFunc: func(st *sqlite.Stmt) error {
		c.add(st.ColumnText(0), -1, -st.ColumnInt64(1))
		c.gone[why]++
		n++
		return nil
	}})
	return n, err
}

// drop removes the oldest n rows; for GoneAge only those from before cutoff.
func (f *file) drop(why Why, n int64, cutoff time.Time) (dropped int64, err error) {
	before := cutoff.UnixMicro()
	if why != GoneAge {
		before = 1<<63 - 1
	}
	err = f.transact(func(c *change) error {
		dropped, err = f.remove(c, why,
			"DELETE FROM bad WHERE at < ? AND seq IN (SELECT seq FROM bad ORDER BY seq LIMIT ?) RETURNING code, size", before, n)
		return err
	})
	return dropped, err
}

// check tells whether a damage that a reader met is still there.
func (f *file) check(met error) error {
	err := sqlitex.ExecuteTransient(f.writer, "PRAGMA quick_check(1)", &sqlitex.ExecOptions{ResultFunc: func(st *sqlite.Stmt) error {
		if st.ColumnText(0) != "ok" {
			return met
		}
		return nil
	}})
	return classify("badrow: check", f.path, err)
}

func (f *file) list(q Query) ([]Row, error) {
	query := "SELECT " + columns + " FROM bad WHERE seq < ?"
	args := []any{q.Before}
	if q.Before <= 0 {
		args[0] = int64(1<<63 - 1)
	}
	if q.Code != "" {
		query += " AND code = ?"
		args = append(args, q.Code)
	}
	if q.KeyID != "" {
		query += " AND key_id = ?"
		args = append(args, q.KeyID)
	}
	return f.rows(query+" ORDER BY seq DESC LIMIT ?", append(args, q.Limit)...)
}

func (f *file) get(seq int64) (Row, error) {
	rows, err := f.rows("SELECT "+columns+" FROM bad WHERE seq = ?", seq)
	if err == nil && len(rows) == 0 {
		err = notFound(seq)
	}
	if err != nil {
		return Row{}, err
	}
	return rows[0], nil
}

func (f *file) byEvent(id string) (Row, error) {
	rows, err := f.rows("SELECT "+columns+" FROM bad WHERE event_id = ? AND event_id <> '' ORDER BY seq DESC LIMIT 1", id)
	if err == nil && len(rows) == 0 {
		err = forebay.Errorf(forebay.CodeNotFound, "badrow: get", "no bad row has the event id %q", id)
	}
	if err != nil {
		return Row{}, err
	}
	return rows[0], nil
}

func (f *file) oldest() (at time.Time, err error) {
	err = sqlitex.Execute(f.reader, "SELECT at FROM bad ORDER BY seq LIMIT 1", &sqlitex.ExecOptions{ResultFunc: func(st *sqlite.Stmt) error {
		at = time.UnixMicro(st.ColumnInt64(0)).UTC()
		return nil
	}})
	return at, classify("badrow: read", f.path, err)
}

func (f *file) rows(query string, args ...any) (rows []Row, err error) {
	size := 0
	err = sqlitex.Execute(f.reader, query, &sqlitex.ExecOptions{Args: args, ResultFunc: func(st *sqlite.Stmt) error {
		if size >= MaxListBytes {
			return errEnough
		}
		rows = append(rows, scan(st))
		size += len(rows[len(rows)-1].Bytes)
		return nil
	}})
	if errors.Is(err, errEnough) {
		err = nil
	}
	return rows, classify("badrow: read", f.path, err)
}

func scan(st *sqlite.Stmt) Row {
	r := Row{
		Seq: st.ColumnInt64(0), At: time.UnixMicro(st.ColumnInt64(1)).UTC(), KeyID: st.ColumnText(2), Dialect: st.ColumnText(3),
		Index: st.ColumnInt(4), EventID: st.ColumnText(5), Code: st.ColumnText(6), Pointer: st.ColumnText(7), Reason: st.ColumnText(8),
		Cut: st.ColumnBool(9), Bytes: make([]byte, st.ColumnLen(10)),
	}
	st.ColumnBytes(10, r.Bytes)
	return r
}

func notFound(seq int64) error {
	return forebay.Errorf(forebay.CodeNotFound, "badrow: get", "there is no bad row %d", seq)
}
