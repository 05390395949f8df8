package postgres

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/forebayhq/forebay"
)

// class is what an error means for the batch.
type class int

const (
	classUnknown class = iota // may be the data or the database
	classOutage               // the database; again later
	classData                 // the data; never as it is
)

// classOf classifies by SQLSTATE, and errors without one by what failed.
func classOf(err error) class {
	var pe *pgconn.PgError
	if errors.As(err, &pe) {
		if isNoPartition(err) {
			return classOutage
		}
		return classOfState(pe.Code)
	}
	var (
		connect *pgconn.ConnectError
		network net.Error
		ours    *forebay.Error
	)
	switch {
	case errors.As(err, &connect), errors.As(err, &network), errors.As(err, &ours),
		errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, net.ErrClosed),
		errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded),
		pgconn.SafeToRetry(err):
		return classOutage
	}
	return classUnknown
}

// classOfState knows the classes of SQLSTATE (PostgreSQL, appendix A). Those that
// are missing, like 42 (no such column, no permission, which a row-level policy
// also answers), are settled by a try with a row of our own.
func classOfState(state string) class {
	if len(state) != 5 {
		return classUnknown
	}
	switch state[:2] {
	case "08", // connection
		"25", // transaction state: a read-only standby after a failover
		"26", // a prepared statement that a pooler has lost
		"28", // authorization
		"3D", // no such database
		"40", // rolled back: serialization, deadlock
		"53", // out of disk, memory, connections
		"55", // lock not available, object in use
		"57", // cancelled, shutting down, starting up
		"58", // input or output
		"72": // snapshot too old
		return classOutage
	case "21", // cardinality
		"22", // data: syntax of JSON, ranges, characters
		"23", // constraints
		"44", // check option of a view
		"54", // limits: nesting, sizes
		"P0": // raised by a trigger
		return classData
	}
	return classUnknown
}

// isNoPartition tells whether no partition takes the row, which PostgreSQL calls
// a check violation without a constraint: somebody has removed the default one.
func isNoPartition(err error) bool {
	var pe *pgconn.PgError
	return errors.As(err, &pe) && pe.Code == "23514" && pe.ConstraintName == ""
}

// unusable tells whether an error at the start cannot mend itself, and names what
// to do about it. Later, when it has worked before, the same error is an outage.
func unusable(err error) error {
	var ours *forebay.Error
	if errors.As(err, &ours) {
		return ours
	}
	var pe *pgconn.PgError
	if !errors.As(err, &pe) {
		return nil
	}
	hint := ""
	switch {
	case strings.HasPrefix(pe.Code, "28"):
		hint = "check user and password in DATABASE_URL, and pg_hba.conf on the server"
	case pe.Code == "3D000":
		hint = "create the database, or name another in DATABASE_URL"
	case pe.Code == "3F000":
		hint = "create the schema, or set search_path in DATABASE_URL"
	case pe.Code == "42501":
		hint = "the user needs the right to create tables: GRANT CREATE ON SCHEMA public TO …"
	default:
		return nil
	}
	return &forebay.Error{Code: forebay.CodeInvalid, Op: "postgres: open", Text: err.Error(), Hint: hint, Err: err}
}
