package salvage

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"
)

// commitEvery bounds the log of the new file, in rows.
const commitEvery = 10_000

// copier copies what can be read of one file into another. Its errors are those of
// the new file; what the old one does not give is noted as lost.
type copier struct {
	from, to *sqlite.Conn
	rep      *Report
	put      string // the INSERT of the table that is copied
	refused  int64  // rows of it that could be read but not stored
	saved    int64  // rows of it
	why      error  // of the first refused one
}

func (c *copier) copy() error {
	for _, sql := range []string{"PRAGMA trusted_schema = off", "PRAGMA cell_size_check = on"} {
		_ = sqlitex.ExecuteTransient(c.from, sql, nil) // more care, nothing else
	}
	ours, err := objects(c.to)
	if err != nil {
		return err
	}
	theirs, err := objects(c.from)
	if err != nil {
		c.lost("a part of the list of tables: %v", err)
	}
	if err := c.exec("BEGIN IMMEDIATE"); err != nil {
		return err
	}
	for _, o := range ours {
		if o.kind == "table" && !has(theirs, o) {
			c.lost("%s: the table is not there", o.name)
		}
	}
	for _, o := range theirs {
		if o.kind != "table" {
			continue
		}
		if err := c.table(o, ours); err != nil {
			return err
		}
	}
	// Indexes and triggers come last, so that triggers do not see the copying.
	for _, o := range append(theirs, ours...) {
		if err := c.make(o); err != nil {
			return err
		}
	}
	if err := c.sequences(); err != nil {
		return err
	}
	return c.exec("COMMIT")
}

// object is a line of the schema.
type object struct{ kind, name, sql string }

func objects(conn *sqlite.Conn) (all []object, err error) {
	err = sqlitex.ExecuteTransient(conn, `SELECT type, name, sql FROM sqlite_schema WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite\_%' ESCAPE '\' ORDER BY rowid`,
		&sqlitex.ExecOptions{ResultFunc: func(row *sqlite.Stmt) error {
			all = append(all, object{row.ColumnText(0), row.ColumnText(1), row.ColumnText(2)})
			return nil
		}})
	return all, err
}

func has(all []object, o object) bool {
	return slices.ContainsFunc(all, func(x object) bool { return x.kind == o.kind && x.name == o.name })
}

// make makes an object that the new file does not have yet.
func (c *copier) make(o object) error {
	there, err := objects(c.to)
	if err != nil || has(there, o) {
		return err
	}
	return c.orLost(c.exec(o.sql), "%s %s", o.kind, o.name)
}

// orLost notes what the new file refuses; that it cannot be written is an error.
func (c *copier) orLost(err error, format string, args ...any) error {
	if err == nil {
		return nil
	}
	switch sqlite.ErrCode(err).ToPrimary() {
	case sqlite.ResultError, sqlite.ResultConstraint, sqlite.ResultMismatch, sqlite.ResultTooBig:
		c.lost("%s: %v", fmt.Sprintf(format, args...), err)
		return nil
	}
	return err
}

func (c *copier) lost(format string, args ...any) {
	c.rep.Lost = append(c.rep.Lost, fmt.Sprintf(format, args...))
}

func (c *copier) exec(sql string) error { return sqlitex.ExecuteTransient(c.to, sql, nil) }

// table copies a table. One that was given more columns since keeps them.
func (c *copier) table(o object, ours []object) error {
	from, withoutRowid, err := columns(c.from, o.name)
	if err != nil {
		c.lost("%s: %v", o.name, err)
		return nil
	}
	own := slices.IndexFunc(ours, func(x object) bool { return x.kind == "table" && x.name == o.name })
	if own >= 0 && ours[own].sql != o.sql {
		to, _, err := columns(c.to, o.name)
		if err != nil {
			return err
		}
		if !slices.ContainsFunc(to, func(name string) bool { return !slices.Contains(from, name) }) {
			if err := c.exec("DROP TABLE " + quote(o.name)); err != nil {
				return err
			}
		}
	}
	if err := c.make(o); err != nil {
		return err
	}
	if own >= 0 { // should its definition be damaged
		if err := c.make(ours[own]); err != nil {
			return err
		}
	}
	to, _, err := columns(c.to, o.name)
	if err != nil {
		return err
	}
	from = slices.DeleteFunc(from, func(name string) bool { return !slices.Contains(to, name) })
	if len(from) == 0 {
		c.lost("%s: its columns are others", o.name)
		return nil
	}
	return c.rows(o.name, from, withoutRowid)
}

// columns names the columns that can be written.
func columns(conn *sqlite.Conn, table string) (names []string, withoutRowid bool, err error) {
	err = sqlitex.ExecuteTransient(conn, "SELECT name FROM pragma_table_info(?)", &sqlitex.ExecOptions{Args: []any{table},
		ResultFunc: func(row *sqlite.Stmt) error {
			names = append(names, row.ColumnText(0))
			return nil
		}})
	if err != nil {
		return nil, false, err
	}
	n, err := number(conn, "SELECT wr FROM pragma_table_list WHERE schema = 'main' AND name = ?", table)
	return names, n == 1, err
}

// rows copies the rows of a table.
func (c *copier) rows(table string, cols []string, withoutRowid bool) error {
	list := make([]string, len(cols))
	for i, name := range cols {
		list[i] = quote(name)
	}
	rowid := rowidName(cols)
	if !withoutRowid && rowid != "" && !c.aliased(table) {
		list = append(list, rowid)
	}
	marks := strings.TrimSuffix(strings.Repeat("?, ", len(list)), ", ")
	c.put = "INSERT INTO " + quote(table) + " (" + strings.Join(list, ", ") + ") VALUES (" + marks + ")"
	c.refused, c.saved, c.why = 0, 0, nil
	all := "SELECT " + strings.Join(list, ", ")
	if withoutRowid || rowid == "" {
		return c.plain(table, all)
	}
	w := walk{c: c, table: table, rowid: rowid, get: all + ", " + rowid + " FROM " + quote(table) + " NOT INDEXED WHERE " + rowid + " BETWEEN ? AND ? ORDER BY " + rowid}
	if err := w.run(); err != nil {
		return err
	}
	c.sum(table, w.lost())
	return nil
}

// sum notes what a table lost.
func (c *copier) sum(table, lost string) {
	if c.refused > 0 {
		c.lost("%s: %d rows are read but make no sense (%v)", table, c.refused, c.why)
	}
	if lost != "" {
		c.lost("%s: %s", table, lost)
	}
}

// plain copies a table that has no rowid, up to the first damage. Such are small.
func (c *copier) plain(table, all string) error {
	var mine error
	err := sqlitex.ExecuteTransient(c.from, all+" FROM "+quote(table), &sqlitex.ExecOptions{ResultFunc: func(row *sqlite.Stmt) error {
		mine = c.insert(row, row.ColumnCount())
		return mine
	}})
	if mine != nil {
		return mine
	}
	lost := ""
	if err != nil {
		lost = fmt.Sprintf("all rows behind the first %d (%v)", c.saved, err)
	}
	c.sum(table, lost)
	return nil
}

// insert stores the first n columns of a row.
func (c *copier) insert(row *sqlite.Stmt, n int) error {
	st, err := c.to.Prepare(c.put)
	if err != nil {
		return err
	}
	for i := range n {
		switch row.ColumnType(i) {
		case sqlite.TypeNull:
			st.BindNull(i + 1)
		case sqlite.TypeInteger:
			st.BindInt64(i+1, row.ColumnInt64(i))
		case sqlite.TypeFloat:
			st.BindFloat(i+1, row.ColumnFloat(i))
		case sqlite.TypeText:
			st.BindText(i+1, row.ColumnText(i))
		default:
			b := make([]byte, row.ColumnLen(i))
			row.ColumnBytes(i, b)
			st.BindBytes(i+1, b)
			if len(b) == 0 {
				st.BindZeroBlob(i+1, 0) // an empty slice would be bound as NULL
			}
		}
	}
	_, err = st.Step()
	err = errors.Join(err, st.Reset(), st.ClearBindings())
	switch sqlite.ErrCode(err).ToPrimary() {
	case sqlite.ResultConstraint, sqlite.ResultMismatch, sqlite.ResultTooBig:
		c.refused++
		if c.why == nil {
			c.why = err
		}
		return nil
	}
	if err != nil {
		return err
	}
	c.saved++
	c.rep.Saved++
	if c.rep.Saved%commitEvery == 0 {
		return errors.Join(c.exec("COMMIT"), c.exec("BEGIN IMMEDIATE"))
	}
	return nil
}

// sequences keeps numbers of AUTOINCREMENT from being used again.
func (c *copier) sequences() error {
	if n, err := number(c.to, "SELECT count(*) FROM sqlite_schema WHERE name = 'sqlite_sequence'"); err != nil || n == 0 {
		return err
	}
	next := map[string]int64{}
	err := sqlitex.ExecuteTransient(c.from, "SELECT name, seq FROM sqlite_sequence", &sqlitex.ExecOptions{ResultFunc: func(row *sqlite.Stmt) error {
		next[row.ColumnText(0)] = row.ColumnInt64(1)
		return nil
	}})
	if err != nil {
		c.lost("sqlite_sequence: %v", err)
	}
	for name, seq := range next {
		set := &sqlitex.ExecOptions{Args: []any{name, seq}}
		if err := sqlitex.ExecuteTransient(c.to, "UPDATE sqlite_sequence SET seq = max(seq, ?2) WHERE name = ?1", set); err != nil {
			return err
		}
		if c.to.Changes() > 0 {
			continue
		}
		if err := sqlitex.ExecuteTransient(c.to, "INSERT INTO sqlite_sequence (name, seq) VALUES (?1, ?2)", set); err != nil {
			return err
		}
	}
	return nil
}

// aliased tells whether a column is the rowid under another name.
func (c *copier) aliased(table string) bool {
	n, err := number(c.to, `SELECT count(*) = 1 AND max(upper(type)) = 'INTEGER' FROM pragma_table_info(?) WHERE pk > 0`, table)
	return err == nil && n == 1
}

// rowidName is a name of the rowid that no column has taken; empty: all are.
func rowidName(cols []string) string {
	for _, name := range []string{"rowid", "_rowid_", "oid"} {
		if !slices.ContainsFunc(cols, func(c string) bool { return strings.EqualFold(c, name) }) {
			return name
		}
	}
	return ""
}

func quote(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }
