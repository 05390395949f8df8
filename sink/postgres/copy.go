package postgres

import (
	"context"
	"encoding/binary"
	"io"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/forebayhq/forebay/event"
	"github.com/forebayhq/forebay/sink"
)

func copySQL(table pgx.Identifier) string {
	return "COPY " + table.Sanitize() + " (" + strings.Join(sink.Columns(), ", ") + ") FROM STDIN BINARY"
}

// copyIn writes all events by COPY or none. The types of the columns are known
// (checkColumns), so the rows are encoded here and not by the driver, which asks
// for the type of each value: that took more time than decoding the event.
func (db *database) copyIn(ctx context.Context, events []event.Event) error {
	return db.pool.AcquireFunc(ctx, func(c *pgxpool.Conn) error {
		source := &copySource{events: events}
		defer source.end()
		_, err := c.Conn().PgConn().CopyFrom(ctx, source, db.copySQL)
		return err
	})
}

const (
	copyHead = "PGCOPY\n\xff\r\n\x00" + "\x00\x00\x00\x00" + "\x00\x00\x00\x00" // signature, flags, no extension
	copyTail = "\xff\xff"

	// fixedSize of an encoded row is all but its texts: the count of columns, the
	// length of each, the version of jsonb, and four times.
	fixedSize = 2 + 9*4 + 1 + 4*8

	jsonbVersion = 1
)

// copySource gives events in COPY's binary format. It encodes into the buffer of
// who reads, row by row; only a row that is bigger has a buffer of its own.
//
// When the connection breaks, the driver returns while its goroutine still reads:
// after end, that gets nothing more of the events, which are then somebody else's.
type copySource struct {
	mu     sync.Mutex
	events []event.Event
	rest   []byte // is read before the events
	state  copyState
}

type copyState int

const (
	copyFresh copyState = iota
	copyRows
	copyDone // the tail is in rest, or read
	copyEnded
)

func (s *copySource) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.state, s.events, s.rest = copyEnded, nil, nil
}

func (s *copySource) Read(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.rows(p)
	if n == 0 {
		if len(s.rest) == 0 {
			s.refill()
		}
		n = copy(p, s.rest)
		s.rest = s.rest[n:]
	}
	switch {
	case s.state == copyEnded:
		return 0, net.ErrClosed
	case n == 0 && len(p) > 0:
		return 0, io.EOF
	}
	return n, nil
}

// rows encodes those that fit, if it is their turn.
func (s *copySource) rows(p []byte) int {
	b := p[:0]
	for s.state == copyRows && len(s.rest) == 0 && len(s.events) > 0 && rowSize(&s.events[0]) <= len(p)-len(b) {
		b = appendRow(b, &s.events[0])
		s.events = s.events[1:]
	}
	return len(b)
}

// refill makes what rows cannot.
func (s *copySource) refill() {
	switch {
	case s.state == copyFresh:
		s.state, s.rest = copyRows, []byte(copyHead)
	case s.state == copyRows && len(s.events) == 0:
		s.state, s.rest = copyDone, []byte(copyTail)
	case s.state == copyRows:
		s.rest = appendRow(nil, &s.events[0])
		s.events = s.events[1:]
	}
}

// rowSize is at least the size of the encoded row.
func rowSize(e *event.Event) int {
	return fixedSize + len(e.ID) + len(e.Type) + len(e.UserID) + len(e.Payload) + len(e.Source)
}

// appendRow encodes the columns in the order of sink.Columns.
func appendRow(b []byte, e *event.Event) []byte {
	b = binary.BigEndian.AppendUint16(b, 9)
	b = appendText(b, e.ID)
	b = appendText(b, e.Type)
	b = appendTextOrNull(b, e.UserID)
	b = binary.BigEndian.AppendUint32(b, uint32(1+len(e.Payload)))
	b = append(append(b, jsonbVersion), e.Payload...)
	b = appendTime(b, e.ReceivedAt)
	b = appendTimeOrNull(b, e.OccurredAt)
	b = appendTimeOrNull(b, e.SentAt)
	b = appendTextOrNull(b, e.Source)
	return appendTimeOrNull(b, e.OriginalAt)
}

func appendNull(b []byte) []byte { return append(b, 0xff, 0xff, 0xff, 0xff) }

func appendText(b []byte, s string) []byte {
	return append(binary.BigEndian.AppendUint32(b, uint32(len(s))), s...)
}

func appendTextOrNull(b []byte, s string) []byte {
	if s == "" {
		return appendNull(b)
	}
	return appendText(b, s)
}

// epoch is where PostgreSQL counts microseconds from: the year 2000.
const epoch = 946_684_800

func appendTime(b []byte, t time.Time) []byte {
	b = binary.BigEndian.AppendUint32(b, 8)
	return binary.BigEndian.AppendUint64(b, uint64((t.Unix()-epoch)*1_000_000+int64(t.Nanosecond())/1000))
}

func appendTimeOrNull(b []byte, t time.Time) []byte {
	if t.IsZero() {
		return appendNull(b)
	}
	return appendTime(b, t)
}
