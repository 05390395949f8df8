package postgres

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/forebayhq/forebay"
)

func TestClassOf(t *testing.T) {
	state := func(code string) error {
		return fmt.Errorf("wrapped: %w", &pgconn.PgError{Code: code, ConstraintName: "c"})
	}
	cases := []struct {
		err  error
		want class
	}{
		{state("08006"), classOutage}, {state("25006"), classOutage}, {state("28P01"), classOutage},
		{state("3D000"), classOutage}, {state("40001"), classOutage}, {state("40P01"), classOutage},
		{state("53100"), classOutage}, {state("53300"), classOutage}, {state("55P03"), classOutage},
		{state("57014"), classOutage}, {state("57P01"), classOutage}, {state("57P03"), classOutage}, {state("58030"), classOutage},
		{state("22P02"), classData}, {state("22P05"), classData}, {state("22021"), classData}, {state("22003"), classData},
		{state("23502"), classData}, {state("23503"), classData}, {state("23505"), classData}, {state("23514"), classData},
		{state("44000"), classData}, {state("54001"), classData}, {state("P0001"), classData},
		{state("0A000"), classUnknown}, {state("42501"), classUnknown}, {state("42703"), classUnknown},
		{state("42P01"), classUnknown}, {state("XX000"), classUnknown}, {state("ZZ999"), classUnknown}, {state(""), classUnknown},
		{&pgconn.PgError{Code: "23514"}, classOutage}, // no partition takes the row
		{&pgconn.ConnectError{}, classOutage},
		{&net.OpError{Op: "read", Err: syscall.ECONNRESET}, classOutage},
		{fmt.Errorf("read: %w", io.ErrUnexpectedEOF), classOutage},
		{context.DeadlineExceeded, classOutage},
		{forebay.Errorf(forebay.CodeTooNew, "x", "newer"), classOutage},
		{errors.New("failed to encode args[3]"), classUnknown},
	}
	for _, c := range cases {
		if got := classOf(c.err); got != c.want {
			t.Errorf("%v: class %d, want %d", c.err, got, c.want)
		}
	}
}
