package report

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5/pgtype"
	"zombiezen.com/go/sqlite"

	"github.com/forebayhq/forebay"
)

// sqliteFile asks an SQLite file, which is opened for reading only.
func sqliteFile(path string) func(context.Context, string, []any, time.Duration, table) error {
	return func(ctx context.Context, query string, args []any, timeout time.Duration, to table) (err error) {
		conn, err := sqlite.OpenConn(path, sqlite.OpenReadOnly)
		if err != nil {
			return lite(err)
		}
		defer func() { err = errors.Join(err, conn.Close()) }()
		within, cancel := context.WithTimeout(ctx, timeout)
		defer cancel()
		conn.SetInterrupt(within.Done())
		if err := steps(conn, query, args, to); err != nil {
			if within.Err() != nil && ctx.Err() == nil {
				return forebay.Because(forebay.Cause{Code: "timeout"}, fmt.Errorf("the query took longer than %s", timeout))
			}
			return err
		}
		return nil
	}
}

func steps(conn *sqlite.Conn, query string, args []any, to table) (err error) {
	stmt, rest, err := conn.PrepareTransient(query)
	if err != nil {
		return lite(err)
	}
	defer func() { err = errors.Join(err, stmt.Finalize()) }()
	if rest > 0 {
		return forebay.Permanent(forebay.Because(forebay.Cause{Code: "sql"}, errors.New("the query has more than one statement")))
	}
	if n := stmt.BindParamCount(); n != len(args) {
		return forebay.Permanent(forebay.Because(forebay.Cause{Code: "sql"}, fmt.Errorf("the query has %d parameters, the report %d", n, len(args))))
	}
	for i, v := range args {
		bind(stmt, i, v)
	}
	names := make([]string, stmt.ColumnCount())
	for i := range names {
		names[i] = stmt.ColumnName(i)
	}
	if err := to.columns(names); err != nil {
		return err
	}
	cells := make([]cell, len(names))
	for {
		more, err := stmt.Step()
		if err != nil || !more {
			return lite(err)
		}
		for i := range cells {
			cells[i] = column(stmt, i)
		}
		if err := to.row(cells); err != nil {
			return err
		}
	}
}

// bind gives a parameter, $1 or ?1, its value.
func bind(stmt *sqlite.Stmt, i int, v any) {
	// Named ones are numbered as they occur: $2 may be the first.
	index := i + 1
	for k := 1; k <= stmt.BindParamCount(); k++ {
		if name := stmt.BindParamName(k); name == "$"+strconv.Itoa(i+1) || name == "?"+strconv.Itoa(i+1) {
			index = k
		}
	}
	switch v := v.(type) {
	case nil:
		stmt.BindNull(index)
	case string:
		stmt.BindText(index, v)
	case int64:
		stmt.BindInt64(index, v)
	case float64:
		stmt.BindFloat(index, v)
	case bool:
		stmt.BindBool(index, v)
	case pgtype.Date:
		stmt.BindText(index, v.Time.Format(time.DateOnly))
	case time.Time:
		stmt.BindText(index, v.Format(time.RFC3339Nano))
	}
}

func column(stmt *sqlite.Stmt, i int) cell {
	switch stmt.ColumnType(i) {
	case sqlite.TypeNull:
		return cell{kind: null}
	case sqlite.TypeInteger:
		return cell{number, strconv.AppendInt(nil, stmt.ColumnInt64(i), 10)}
	case sqlite.TypeFloat:
		f := stmt.ColumnFloat(i)
		if s := strconv.AppendFloat(nil, f, 'g', -1, 64); isNumber(s) {
			return cell{number, s}
		}
		return cell{text, []byte(stmt.ColumnText(i))}
	case sqlite.TypeBlob:
		b := make([]byte, stmt.ColumnLen(i))
		stmt.ColumnBytes(i, b)
		return cell{text, hex.AppendEncode(nil, b)}
	}
	return cell{text, []byte(stmt.ColumnText(i))}
}

// lite keeps SQLite's result code. Wrong SQL fails in the same way each time.
func lite(err error) error {
	if err == nil {
		return nil
	}
	code := sqlite.ErrCode(err).ToPrimary()
	err = forebay.Because(forebay.Cause{Code: "sqlite_" + strconv.Itoa(int(code))}, fmt.Errorf("the database: %w", err))
	switch code {
	case sqlite.ResultError, sqlite.ResultReadOnly, sqlite.ResultMismatch, sqlite.ResultRange, sqlite.ResultAuth:
		return forebay.Permanent(err)
	}
	return err
}
