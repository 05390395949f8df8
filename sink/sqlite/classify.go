package sqlite

import (
	"context"
	"errors"
	"regexp"
	"strings"

	"zombiezen.com/go/sqlite"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/event"
	"github.com/forebayhq/forebay/sink"
)

// class is what an error means for the batch.
type class int

const (
	classUnknown class = iota // may be the data or the database
	classOutage               // the database; again later
	classData                 // the data; never as it is
)

func classOf(err error) class {
	var ours *forebay.Error
	if errors.As(err, &ours) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return classOutage
	}
	switch sqlite.ErrCode(err).ToPrimary() {
	case sqlite.ResultBusy, sqlite.ResultLocked, sqlite.ResultFull, sqlite.ResultIOErr, sqlite.ResultNoMem,
		sqlite.ResultCantOpen, sqlite.ResultReadOnly, sqlite.ResultPerm, sqlite.ResultProtocol,
		sqlite.ResultInterrupt, sqlite.ResultCorrupt, sqlite.ResultNotADB, sqlite.ResultSchema:
		return classOutage
	case sqlite.ResultConstraint, sqlite.ResultTooBig, sqlite.ResultMismatch, sqlite.ResultRange:
		return classData
	}
	return classUnknown
}

// refused marks errors of the data for the Writer; others are outages.
func refused(err error) error {
	switch classOf(err) {
	case classData:
		return &sink.Refused{Sure: true, Err: err}
	case classUnknown:
		return &sink.Refused{Err: err}
	}
	return err
}

var (
	failedColumns = regexp.MustCompile(`(?:UNIQUE|NOT NULL) constraint failed: ([\w., ]+)`)
	failedCheck   = regexp.MustCompile(`CHECK constraint failed: (.+)`)
)

// Explain names the result code, and column and constraint from the message.
func (db *database) Explain(_ context.Context, _ *event.Event, err error) forebay.Cause {
	cause := forebay.Cause{
		Code:    sqlite.ErrCode(err).String(),
		Message: err.Error(),
		Detail:  map[string]string{"table": sink.Table},
	}
	if m := failedColumns.FindStringSubmatch(err.Error()); m != nil {
		cause.Detail["column"] = strings.ReplaceAll(m[1], sink.Table+".", "")
	}
	if m := failedCheck.FindStringSubmatch(err.Error()); m != nil {
		cause.Detail["constraint"] = m[1]
		cause.Detail["column"] = columnIn(m[1])
	}
	return cause
}

// columnIn finds the column that a constraint's name or expression speaks of.
func columnIn(constraint string) string {
	var columns []string
	for _, column := range sink.Columns() {
		if strings.Contains(constraint, column) {
			columns = append(columns, column)
		}
	}
	return strings.Join(columns, ", ")
}
