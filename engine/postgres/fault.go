package postgres

import (
	"context"
	"errors"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/forebayhq/forebay"
)

func fail(code forebay.Code, format string, args ...any) *forebay.Error {
	return forebay.Errorf(code, "postgres", format, args...)
}

func bad(field, format string, args ...any) error {
	f := fail(forebay.CodeInvalid, format, args...)
	f.Field = field
	return f
}

// fault gives an error of the driver its code.
func (e *Engine) fault(err error) error {
	var coded *forebay.Error
	var pg *pgconn.PgError
	switch {
	case err == nil || errors.As(err, &coded):
		return err
	case errors.As(err, &pg):
		return ofServer(pg)
	case errors.Is(err, context.Canceled):
		return err
	}
	return fail(forebay.CodeUnavailable, "the server does not answer: %w", err)
}

func ofServer(pg *pgconn.PgError) error {
	switch class := pg.Code[:min(2, len(pg.Code))]; {
	case pg.Code == "53100":
		f := fail(forebay.CodeFull, "the server has no room: %s", pg.Message)
		f.Hint = "make room on the server's disk"
		return f
	case class == "28", pg.Code == "42501", pg.Code == "3D000", pg.Code == "3F000":
		f := fail(forebay.CodeUnavailable, "the server refuses this process: %s (SQLSTATE %s)", pg.Message, pg.Code)
		f.Err = errors.Join(errDenied, pg)
		f.Hint = "correct user, password and database of the address; the user needs the right to create and use the schema"
		return f
	case pg.Code == "22021":
		return fail(forebay.CodeInvalid, "a text is not plain: %s", pg.Message)
	case pg.Code == "26000", pg.Code == "42P05":
		f := fail(forebay.CodeUnavailable, "prepared statements are lost: %s (SQLSTATE %s)", pg.Message, pg.Code)
		f.Hint = "a pooler stands between that cannot keep them: add default_query_exec_mode=exec to the address"
		return f
	case class == "08", class == "57", class == "53", class == "40", pg.Code == "25006", pg.Code == "25P03", pg.Code == "25P04", pg.Code == "55P03":
		return fail(forebay.CodeUnavailable, "the server does not do it now: %s (SQLSTATE %s)", pg.Message, pg.Code)
	}
	return fail(forebay.CodeInternal, "a statement failed: %s (SQLSTATE %s)%s", pg.Message, pg.Code, told(pg.Where))
}

func told(where string) string {
	if where == "" {
		return ""
	}
	first, _, _ := strings.Cut(where, "\n")
	return ", " + first
}

// errRaced says that another transaction has changed what this one had just read.
var errRaced = errors.New("raced")

// again tells whether a transaction was undone by the server so that another try may do:
// two had the same id, or locked each other out.
func again(err error) bool {
	var pg *pgconn.PgError
	return errors.Is(err, errRaced) || errors.As(err, &pg) && (pg.Code == "23505" || pg.Code == "40P01" || pg.Code == "40001")
}

// undone tells whether nothing was done, since the server takes nothing now.
func undone(err error) bool {
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		return pg.Code == "57P03" || pg.Code == "57P05" || pg.Code == "25P03" || pg.Code == "25P04" || pg.Code == "25006" || pg.Code == "53300"
	}
	var dial *pgconn.ConnectError
	return errors.As(err, &dial)
}
