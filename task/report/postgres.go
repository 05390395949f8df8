package report

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/forebayhq/forebay"
)

// postgres asks a PostgreSQL, on a connection of its own: a report is long, and
// would hold up who shares it.
func postgres(address string) (func(context.Context, string, []any, time.Duration, table) error, error) {
	cfg, err := pgx.ParseConfig(address)
	if err != nil {
		return nil, errors.New("it is no address of a PostgreSQL")
	}
	cfg.RuntimeParams["application_name"] = "forebay report"
	cfg.ConnectTimeout = 10 * time.Second
	return func(ctx context.Context, query string, args []any, timeout time.Duration, to table) error {
		cfg := cfg.Copy()
		cfg.RuntimeParams["statement_timeout"] = strconv.FormatInt(timeout.Milliseconds(), 10)
		// Beside the transaction: nobody has to remember it here.
		cfg.RuntimeParams["default_transaction_read_only"] = "on"
		conn, err := pgx.ConnectConfig(ctx, cfg)
		if err != nil {
			return because(err)
		}
		defer conn.Close(context.WithoutCancel(ctx))
		// A query that nobody reads any more is ended, not read to its end.
		ctx, end := context.WithCancel(ctx)
		defer end()
		tx, err := conn.BeginTx(ctx, pgx.TxOptions{AccessMode: pgx.ReadOnly, IsoLevel: pgx.RepeatableRead})
		if err != nil {
			return because(err)
		}
		err = ask(ctx, end, tx, query, args, to)
		_ = tx.Rollback(context.WithoutCancel(ctx)) // it has read only
		return err
	}, nil
}

// ask reads rows as the server sends them, in its own text form.
func ask(ctx context.Context, end func(), tx pgx.Tx, query string, args []any, to table) error {
	rows, err := tx.Query(ctx, query, append([]any{pgx.QueryResultFormats{pgx.TextFormatCode}}, args...)...)
	if err != nil {
		return because(err)
	}
	defer rows.Close()
	// What the server has to say about the query comes with the first row.
	more := rows.Next()
	if err := rows.Err(); err != nil {
		return because(err)
	}
	fields := rows.FieldDescriptions()
	names, kinds := make([]string, len(fields)), make([]kind, len(fields))
	for i, f := range fields {
		names[i], kinds[i] = f.Name, kindOf(f.DataTypeOID)
	}
	if err := to.columns(names); err != nil {
		end()
		return err
	}
	cells := make([]cell, len(fields))
	for ; more; more = rows.Next() {
		for i, value := range rows.RawValues() {
			cells[i] = cellOf(kinds[i], value)
		}
		if err := to.row(cells); err != nil {
			end()
			return err
		}
	}
	return because(rows.Err())
}

func kindOf(oid uint32) kind {
	switch oid {
	case pgtype.Int2OID, pgtype.Int4OID, pgtype.Int8OID, pgtype.Float4OID, pgtype.Float8OID, pgtype.NumericOID:
		return number
	case pgtype.BoolOID:
		return boolean
	case pgtype.JSONOID, pgtype.JSONBOID:
		return raw
	}
	return text
}

func cellOf(k kind, value []byte) cell {
	switch {
	case value == nil:
		return cell{kind: null}
	case k == boolean && len(value) == 1:
		if value[0] == 't' {
			return cell{boolean, yes}
		}
		return cell{boolean, no}
	case k == number && !isNumber(value), k == raw && !json.Valid(value):
		return cell{text, value} // NaN, Infinity
	}
	return cell{k, value}
}

var yes, no = []byte("true"), []byte("false")

func isNumber(b []byte) bool { return len(b) > 0 && (b[len(b)-1] >= '0' && b[len(b)-1] <= '9') }

// because keeps the SQLSTATE. Wrong SQL, or values that it cannot take, fail in the
// same way each time; a server that is away, busy or slow does not.
func because(err error) error {
	var server *pgconn.PgError
	var connect *pgconn.ConnectError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &connect):
		// Its text has the address, without the password.
		return forebay.Because(forebay.Cause{Code: "unreachable"}, errors.New("the database cannot be reached"))
	case !errors.As(err, &server):
		return forebay.Because(forebay.Cause{Code: "database"}, fmt.Errorf("the database: %w", err))
	}
	err = forebay.Because(forebay.Cause{Code: server.Code}, fmt.Errorf("the database: %s", server.Message))
	// 22 values, 25006 writes, 42 SQL and rights: the same the next time.
	if strings.HasPrefix(server.Code, "22") || strings.HasPrefix(server.Code, "42") || server.Code == "25006" {
		return forebay.Permanent(err)
	}
	return err
}
