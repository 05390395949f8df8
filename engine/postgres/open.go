package postgres

import (
	"cmp"
	"context"
	"errors"
	"hash/fnv"
	"regexp"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
	"github.com/forebayhq/forebay/internal/leases"
)

// Config says where the data is.
type Config struct {
	URL     string        // postgres://
	Schema  string        // of its own; empty: forebay
	History int           // events that the history keeps, about; 0: 1,000,000
	Timeout time.Duration // of one call, repeats included; 0: 5 s
	Conns   int           // most connections, two more beside; 0: 16

	// Now is another clock than the server's, for tests.
	Now func() time.Time
}

const (
	migratePatience = 2 * time.Minute
	oldest          = 140000 // server_version_num
)

// schemaNames are those that may stand anywhere in a statement.
var schemaNames = regexp.MustCompile(`^[a-z_][a-z0-9_]{0,62}$`)

// Engine is the engine on PostgreSQL.
type Engine struct {
	cfg    Config
	pool   *pgxpool.Pool
	prefix string // of names: the schema, quoted, and a dot
	class  int32  // of advisory locks
	epoch  string
	ahead  atomic.Int64 // of the server's clock, µs, as it was last
	quiet  bool         // no connection that listens, for tests

	running sync.WaitGroup
	closing chan struct{}
	mu      sync.Mutex // guards closed
	closed  bool

	queues  queues
	desks   desks
	sends   *combiner[sending, forebay.SendResult]
	settles *combiner[settling, error]
	tally   tally
	held    leases.Held
	keeper  *keeper
	news    news
	wire    *wire
}

var (
	_ engine.Engine      = (*Engine)(nil)
	_ engine.DeadLetters = (*Engine)(nil)
	_ engine.DeadGroups  = (*Engine)(nil)
	_ engine.Locator     = (*Engine)(nil)
	_ engine.Limiter     = (*Engine)(nil)
	_ engine.Checker     = (*Engine)(nil)
	_ engine.Purger      = (*Engine)(nil)
	_ engine.Peeker      = (*Engine)(nil)
	_ engine.Jobs        = (*Engine)(nil)
	_ engine.JobLister   = (*Engine)(nil)
	_ engine.History     = (*Engine)(nil)
	_ engine.Documents   = (*Engine)(nil)
)

// Open connects, and brings the schema up to this version.
func Open(ctx context.Context, cfg Config) (*Engine, error) { return open(ctx, cfg, false, nil) }

func open(ctx context.Context, cfg Config, quiet bool, dial pgconn.DialFunc) (*Engine, error) {
	cfg.Schema = cmp.Or(cfg.Schema, "forebay")
	cfg.History = cmp.Or(cfg.History, 1_000_000)
	cfg.Timeout = cmp.Or(cfg.Timeout, 5*time.Second)
	cfg.Conns = cmp.Or(cfg.Conns, 16)
	if cfg.History < 1 || cfg.Timeout < 0 || cfg.Conns < 2 || !schemaNames.MatchString(cfg.Schema) {
		return nil, fail(forebay.CodeInvalid, "the schema %q, the history of %d, the timeout %v or the %d connections are wrong; allowed are 1 to 63 of a-z 0-9 _ with no digit first, 1 or more, 0 or more, 2 or more",
			cfg.Schema, cfg.History, cfg.Timeout, cfg.Conns)
	}
	pc, err := pgxpool.ParseConfig(cfg.URL)
	if err != nil { // its text may hold the password
		f := fail(forebay.CodeInvalid, "the address cannot be read; postgres://[user:password@]host[:port]/database is allowed")
		f.Field = "url"
		return nil, f
	}
	pc.MaxConns, pc.MinConns = int32(cfg.Conns), 0
	pc.ConnConfig.ConnectTimeout = cfg.Timeout
	pc.ConnConfig.RuntimeParams["application_name"] = "forebay"
	if dial != nil {
		pc.ConnConfig.DialFunc = dial
	}
	h := fnv.New32a()
	_, _ = h.Write([]byte("forebay " + cfg.Schema)) // never fails
	e := &Engine{cfg: cfg, prefix: pgx.Identifier{cfg.Schema}.Sanitize() + ".", class: int32(h.Sum32()), quiet: quiet, closing: make(chan struct{})}
	if e.pool, err = pgxpool.NewWithConfig(ctx, pc); err != nil {
		return nil, e.fault(err)
	}
	e.sends = &combiner[sending, forebay.SendResult]{e: e, most: atOnce, do: e.sendAll}
	e.settles = &combiner[settling, error]{e: e, most: atOnce, do: e.settleAll}
	e.keeper = newKeeper(e)
	e.wire = newWire(e)
	if err := e.greet(ctx); err != nil {
		e.pool.Close()
		return nil, opening(err)
	}
	if err := e.sweep(ctx); err != nil { // what passed while nobody was there, and when the next is due
		e.pool.Close()
		return nil, err
	}
	e.running.Go(e.keeper.run)
	if !quiet {
		e.running.Go(e.wire.listen)
		e.running.Go(e.wire.tell)
	}
	return e, nil
}

// greet looks who answers, and makes the schema.
func (e *Engine) greet(ctx context.Context) error {
	within, cancel := context.WithTimeout(ctx, e.cfg.Timeout)
	defer cancel()
	var version int
	if err := e.pool.QueryRow(within, `SELECT current_setting('server_version_num')::int`).Scan(&version); err != nil {
		return e.fault(err)
	}
	if version < oldest {
		return fail(forebay.CodeUnsupported, "the server is PostgreSQL %d; %d or later is needed", version/10000, oldest/10000)
	}
	if err := e.takesWrites(within); err != nil {
		return err
	}
	if err := e.migrate(ctx); err != nil {
		return err
	}
	_, err := e.version(within)
	return err
}

// takesWrites says why the server stores nothing, if it does not.
func (e *Engine) takesWrites(ctx context.Context) error {
	var replica, reads bool
	err := e.pool.QueryRow(ctx, `SELECT pg_is_in_recovery(), current_setting('transaction_read_only')::bool`).Scan(&replica, &reads)
	switch {
	case err != nil:
		return e.fault(err)
	case replica:
		f := fail(forebay.CodeUnavailable, "the server is a replica, which takes no writes")
		f.Hint = "name the primary, or several hosts with target_session_attrs=read-write"
		return f
	case reads:
		f := fail(forebay.CodeUnavailable, "the server takes no writes from this user: default_transaction_read_only is on")
		f.Hint = "turn it off for the user and the database of the address"
		return f
	}
	return nil
}

// enter begins a call, or says why not; leave ends it.
func (e *Engine) enter() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return errClosed()
	}
	e.running.Add(1)
	return nil
}

func (e *Engine) leave() { e.running.Done() }

func errClosed() error { return fail(forebay.CodeClosed, "the engine is closed") }

// Close ends the leases that were not asked to be kept, as if their time had come.
func (e *Engine) Close() error {
	e.mu.Lock()
	if e.closed {
		e.mu.Unlock()
		return nil
	}
	e.closed = true
	close(e.closing)
	e.mu.Unlock()
	e.running.Wait()
	err := e.endHeld()
	e.pool.Close()
	return err
}

// Check tells whether messages can be stored now; see engine.Checker.
func (e *Engine) Check(ctx context.Context) error {
	if err := e.enter(); err != nil {
		return err
	}
	defer e.leave()
	ctx, cancel := context.WithTimeout(ctx, e.cfg.Timeout)
	defer cancel()
	return e.takesWrites(ctx)
}

// errDenied marks what the server refuses to whoever this process is there. That is no
// word on who calls it.
var errDenied = errors.New("no right")

// opening gives the code to an error that whoever starts this process can mend.
func opening(err error) error {
	var coded *forebay.Error
	if errors.Is(err, errDenied) && errors.As(err, &coded) {
		told := *coded
		told.Code = forebay.CodeUnauthorized
		return &told
	}
	return err
}
