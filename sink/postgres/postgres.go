// Package postgres is the sink that writes events into PostgreSQL, 12 or newer.
//
// It makes and migrates its table by itself: partitioned by the day on which the
// event was received, with partitions made ahead, and dropped when a retention is
// set. The primary key is (event_id, received_at); a redelivered event has both as
// before, so that writing it again changes nothing.
//
// It promises, beside what package sink promises: it keeps no state in a session,
// so that it works through a connection pooler; it puts a deadline on every
// statement; the password of its URL is in no error and no log line; it starts
// while the database is down, and goes on when it is back.
//
// It refuses a table of the same name that it did not make.
package postgres

import (
	"context"
	"errors"
	"log/slog"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/event"
	"github.com/forebayhq/forebay/sink"
)

const (
	connectTimeout = 10 * time.Second
	closeTimeout   = 2 * time.Second // for connections to be closed; a stop does not wait for longer
)

// Config of a Sink. The zero value works.
type Config struct {
	sink.Config

	Table     string        // default "events"; may be "schema.table"
	Timeout   time.Duration // of one statement; default 30 s
	Retention time.Duration // days older than this are dropped; 0: kept for ever; at least 24 h
}

// Sink writes events into PostgreSQL. Its HandleBatch and State are the Writer's.
type Sink struct {
	*sink.Writer
	db   *database
	stop context.CancelFunc
	done chan struct{} // closed when the upkeep has ended
}

// database is what the Writer writes to.
type database struct {
	pool      *pgxpool.Pool
	cfg       Config
	table     pgx.Identifier
	insertSQL string
	copySQL   string

	cautious atomic.Int32 // so many big batches go without COPY

	mu       sync.Mutex
	prepared bool             // the schema is there and has been checked
	days     map[day]struct{} // that have a partition
}

// Open opens the sink and prepares its table. A database that does not answer is
// no error: the sink is paused until it does. A setting that cannot work is.
func Open(ctx context.Context, databaseURL string, cfg Config) (*Sink, error) {
	table, err := cfg.fill()
	if err != nil {
		return nil, err
	}
	pc, err := poolConfig(databaseURL)
	if err != nil {
		return nil, err
	}
	pool, err := pgxpool.NewWithConfig(ctx, pc)
	if err != nil {
		return nil, forebay.Errorf(forebay.CodeInvalid, "postgres: open", "%w", err)
	}
	db := &database{pool: pool, cfg: cfg, table: table, insertSQL: insertSQL(table), copySQL: copySQL(table), days: map[day]struct{}{}}
	s := &Sink{Writer: sink.NewWriter(db, cfg.Config), db: db, done: make(chan struct{})}
	failed := s.Maintain(ctx)
	if failed != nil {
		if fatal := unusable(failed); fatal != nil {
			pool.Close()
			return nil, fatal
		}
		cfg.Logger.Warn("database does not answer, events wait", slog.String("sink", cfg.Name),
			slog.String("reason", failed.Error()))
	}
	upkeep, stop := context.WithCancel(context.WithoutCancel(ctx))
	s.stop = stop
	go func() {
		defer close(s.done)
		s.UpkeepAfter(upkeep, failed, s.Maintain)
	}()
	return s, nil
}

var tableName = regexp.MustCompile(`^([a-z_][a-z0-9_]{0,62}\.)?[a-z_][a-z0-9_]{0,49}$`)

// fill sets the defaults and checks the rest.
func (c *Config) fill() (pgx.Identifier, error) {
	if c.Name == "" {
		c.Name = "postgres"
	}
	if c.Table == "" {
		c.Table = sink.Table
	}
	if c.Timeout <= 0 {
		c.Timeout = 30 * time.Second
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	var errs []error
	if !tableName.MatchString(c.Table) {
		errs = append(errs, &forebay.Error{Code: forebay.CodeInvalid, Op: "postgres: open", Field: "table",
			Text: "a table's name is lower-case letters, digits and _, at most 50, perhaps after a schema and a dot"})
	}
	if c.Retention != 0 && c.Retention < 24*time.Hour {
		errs = append(errs, &forebay.Error{Code: forebay.CodeInvalid, Op: "postgres: open", Field: "retention",
			Text: "events are dropped by days: at least 24h, or 0 to keep them for ever"})
	}
	return strings.Split(c.Table, "."), errors.Join(errs...)
}

// poolConfig reads the URL. Of the parser's error only the reason is told: the rest
// repeats the URL, and hides a password only where it can be told apart.
func poolConfig(databaseURL string) (*pgxpool.Config, error) {
	pc, err := pgxpool.ParseConfig(databaseURL)
	if err != nil {
		e := &forebay.Error{Code: forebay.CodeInvalid, Op: "postgres: open", Field: "DATABASE_URL",
			Text: "the address cannot be read",
			Hint: "postgres://user:password@host:5432/database?sslmode=require, with special characters percent-encoded"}
		if why := errors.Unwrap(err); why != nil {
			e.Text += ": " + why.Error()
		}
		return nil, e
	}
	cc := pc.ConnConfig
	if cc.ConnectTimeout == 0 || cc.ConnectTimeout > connectTimeout { // 0: none
		cc.ConnectTimeout = connectTimeout
	}
	if cc.DefaultQueryExecMode == pgx.QueryExecModeCacheStatement {
		cc.DefaultQueryExecMode = pgx.QueryExecModeCacheDescribe // prepares nothing in the session
	}
	if cc.RuntimeParams["application_name"] == "" {
		cc.RuntimeParams["application_name"] = "forebay"
	}
	return pc, nil
}

// Find reads the event back; false: it is not in the table.
func (s *Sink) Find(ctx context.Context, eventID string) (event.Event, bool, error) {
	ctx, cancel := context.WithTimeout(ctx, s.db.cfg.Timeout)
	defer cancel()
	var (
		e                        event.Event
		user, source             *string
		occurred, sent, original *time.Time
		payload                  []byte
	)
	err := s.db.pool.QueryRow(ctx, "SELECT "+strings.Join(sink.Columns(), ", ")+" FROM "+s.db.table.Sanitize()+
		" WHERE event_id = $1 ORDER BY received_at DESC LIMIT 1", eventID).
		Scan(&e.ID, &e.Type, &user, &payload, &e.ReceivedAt, &occurred, &sent, &source, &original)
	if errors.Is(err, pgx.ErrNoRows) {
		return event.Event{}, false, nil
	}
	if err != nil {
		return event.Event{}, false, forebay.Errorf(forebay.CodeUnavailable, "postgres: find", "%w", err)
	}
	e.Payload, e.ReceivedAt = payload, e.ReceivedAt.UTC()
	e.UserID, e.Source = fromNull(user), fromNull(source)
	e.OccurredAt, e.SentAt, e.OriginalAt = fromNull(occurred).UTC(), fromNull(sent).UTC(), fromNull(original).UTC()
	return e, true, nil
}

// Check tells whether events could be written now.
func (s *Sink) Check(ctx context.Context) error {
	if err := s.db.Check(ctx); err != nil {
		return forebay.Errorf(forebay.CodeUnavailable, "postgres: check", "%w", err)
	}
	return nil
}

// Close ends the upkeep and the connections; batches in flight must have ended. Where the
// database hangs it does not wait for the connections to end.
func (s *Sink) Close() error {
	s.stop()
	<-s.done
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		s.db.pool.Close()
	}()
	select {
	case <-closed:
	case <-time.After(closeTimeout): // of a database that hangs: its connections end by their own deadlines
	}
	return nil
}
