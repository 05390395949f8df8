// Package badrow keeps the events that the edge refused: why, for which key, and
// the bytes as they came, so that people can see them, mend the cause and replay.
//
// It promises that a row is durable when Put returns; that the store stays within
// its bounds of rows, bytes and age by dropping the oldest, and counts what it
// dropped; and that a damaged file never stops the edge: it is set aside whole,
// what can be read of it is taken over, and Stats and the log say so.
//
// It refuses to judge or replay events: that is the business of package ingest.
package badrow

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/forebayhq/forebay"
)

// Bounds of one row, what is longer is cut, and of one answer.
const (
	MaxRowBytes  = 1 << 20
	MaxTextBytes = 1024 // each of EventID, Pointer, Reason and the other words

	MaxListBytes = 16 << 20 // of one List
)

// Row is one refused event.
type Row struct {
	Seq     int64     // its place in the order of refusal, given by Put
	At      time.Time // when it came
	KeyID   string    // of the write key; empty: none was needed
	Dialect string    // "native", "segment", …
	Index   int       // its place in its batch
	EventID string    // where one could be read
	Code    string    // a short word to group by
	Pointer string    // JSON pointer to what is wrong
	Reason  string    // for people
	Bytes   []byte    // as it came, decompressed
	Cut     bool      // Bytes is only the beginning
}

// Query selects rows.
type Query struct {
	Code   string // empty: all
	KeyID  string // empty: all
	Before int64  // only with a smaller Seq, to page on; 0: from the newest
	Limit  int    // 1 to 1000; 0: 100
}

// Stats of a store.
type Stats struct {
	Rows     int64
	Bytes    int64            // of the rows, as MaxBytes counts them
	ByCode   map[string]int64 // rows
	Gone     map[Why]int64    // rows that left, since the file began
	Oldest   time.Time        // zero: there is no row
	SetAside string           // the damaged file that was set aside since Open; empty: none
}

// Why a row left.
type Why string

const (
	GoneRows    Why = "rows"    // dropped for MaxRows
	GoneBytes   Why = "bytes"   // dropped for MaxBytes
	GoneAge     Why = "age"     // dropped for MaxAge
	GoneDeleted Why = "deleted" // replayed or discarded by somebody
)

// Config of a store. The zero value works.
type Config struct {
	MaxRows  int64            // default 100,000
	MaxBytes int64            // of rows with their words; default 256 MiB
	MaxAge   time.Duration    // default 30 days
	Now      func() time.Time // default time.Now
	Logger   *slog.Logger     // default: nothing is logged
	Seal     Sealer           // default: rows are stored as they are
}

// Sealer seals what rows say, each for its name, and opens it. What is not sealed it gives
// as it is.
type Sealer interface {
	Seal(name string, plain []byte) (sealed []byte, is bool)
	Open(ctx context.Context, name string, sealed []byte) (plain []byte, is bool, err error)
}

func (c *Config) setDefaults() {
	if c.MaxRows <= 0 {
		c.MaxRows = 100_000
	}
	if c.MaxBytes <= 0 {
		c.MaxBytes = 256 << 20
	}
	if c.MaxAge <= 0 {
		c.MaxAge = 30 * 24 * time.Hour
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
}

// Store keeps rows in one SQLite file. All methods may be called concurrently.
type Store struct {
	path string
	cfg  Config

	ops   chan *op      // to the writer; never closed
	stop  chan struct{} // closed by Close
	ended chan struct{} // closed by the writer
	once  sync.Once

	mu    sync.Mutex // guards the fields below; held while a query runs
	file  *file      // nil: closed, or damaged and not yet replaced
	aside string
}

// Open opens or makes the store at path. The data folder must be owned by this
// process. A file of a newer version is CodeTooNew and not touched.
func Open(path string, cfg Config) (*Store, error) {
	cfg.setDefaults()
	s := &Store{path: path, cfg: cfg, ops: make(chan *op), stop: make(chan struct{}), ended: make(chan struct{})}
	if err := s.open(); err != nil {
		return nil, err
	}
	s.prune()
	go s.write()
	return s, nil
}

// Close ends the writer after its running group and closes the file.
func (s *Store) Close() error {
	s.once.Do(func() { close(s.stop) })
	<-s.ended
	s.mu.Lock()
	defer s.mu.Unlock()
	f := s.file
	s.file = nil
	if f == nil {
		return nil
	}
	return f.close()
}

// Put stores rows; Seq is ignored. When it returns nil they survive power loss.
// When ctx ends first, they may or may not have been stored.
func (s *Store) Put(ctx context.Context, rows []Row) error {
	if len(rows) == 0 {
		return nil
	}
	return s.do(ctx, &op{rows: s.sealed(rows)})
}

// Delete removes rows, durably. A nil entry means done; CodeNotFound: no such row.
func (s *Store) Delete(ctx context.Context, seqs []int64) ([]error, error) {
	if len(seqs) == 0 {
		return nil, nil
	}
	o := &op{seqs: seqs}
	if err := s.do(ctx, o); err != nil {
		return nil, err
	}
	return o.missing, nil
}

// Check tells whether a row could be stored now, by a write that changes nothing.
func (s *Store) Check(ctx context.Context) error { return s.do(ctx, &op{}) }

// List gives rows, newest first. It gives fewer than Limit where they are large: up
// to the one that fills MaxListBytes. No row means that there is none further.
func (s *Store) List(ctx context.Context, q Query) (rows []Row, err error) {
	if q.Limit == 0 {
		q.Limit = 100
	}
	if q.Limit < 1 || q.Limit > 1000 {
		return nil, forebay.Errorf(forebay.CodeInvalid, "badrow: list", "limit is 1 to 1000, not %d", q.Limit)
	}
	err = s.read(ctx, func(f *file) error {
		rows, err = f.list(q)
		return err
	})
	for i := range rows {
		s.unseal(ctx, &rows[i])
	}
	return rows, err
}

// Get gives one row.
func (s *Store) Get(ctx context.Context, seq int64) (row Row, err error) {
	err = s.read(ctx, func(f *file) error {
		row, err = f.get(seq)
		return err
	})
	s.unseal(ctx, &row)
	return row, err
}

// ByEvent gives the newest row with an event id.
func (s *Store) ByEvent(ctx context.Context, id string) (row Row, err error) {
	err = s.read(ctx, func(f *file) error {
		row, err = f.byEvent(id)
		return err
	})
	s.unseal(ctx, &row)
	return row, err
}

// Stats counts. It costs the same however many rows there are.
func (s *Store) Stats(ctx context.Context) (st Stats, err error) {
	err = s.read(ctx, func(f *file) error {
		st = f.totals.stats()
		st.SetAside = s.aside
		st.Oldest, err = f.oldest()
		return err
	})
	return st, err
}

// read runs fn on the file. Where the file turns out to be damaged, the writer
// sets it aside and fn runs once more on the new one.
func (s *Store) read(ctx context.Context, fn func(*file) error) error {
	run := func() error {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.file == nil {
			return s.absent("badrow: read")
		}
		old := s.file.reader.SetInterrupt(ctx.Done())
		defer s.file.reader.SetInterrupt(old)
		err := fn(s.file)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return err
	}
	err := run()
	if forebay.CodeOf(err) != forebay.CodeDamaged {
		return err
	}
	if err := s.do(ctx, &op{damage: err}); err != nil {
		return err
	}
	return run()
}

// absent says why there is no file. Call it with mu held.
func (s *Store) absent(op string) error {
	select {
	case <-s.stop:
		return forebay.Errorf(forebay.CodeClosed, op, "the store is closed")
	default:
		return forebay.Errorf(forebay.CodeUnavailable, op, "%s was damaged and could not be replaced yet", s.path)
	}
}
