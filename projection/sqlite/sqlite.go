// Package sqlite keeps projections in a SQLite file.
//
// It promises that the state and the place of a projection change in one transaction,
// also with several processes on one file: each transaction takes the file's write lock.
// It refuses to share a connection: who reads the state opens the file beside it.
package sqlite

import (
	"context"
	"sync"
	"time"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/projection"
)

// busyTimeout is how long a transaction waits for those of other connections.
const busyTimeout = 10 * time.Second

// Tx is a transaction; it is good until the function that got it returns.
type Tx = *sqlite.Conn

// Store is a file with projections in it.
type Store struct {
	mu   sync.Mutex
	conn *sqlite.Conn
}

var _ projection.Store[Tx] = (*Store)(nil)

// Open opens a file and makes it if there is none.
func Open(path string) (*Store, error) {
	conn, err := sqlite.OpenConn(path, sqlite.OpenReadWrite, sqlite.OpenCreate, sqlite.OpenWAL)
	if err != nil {
		return nil, unavailable("open", err)
	}
	conn.SetBusyTimeout(busyTimeout)
	err = sqlitex.ExecuteScript(conn, `CREATE TABLE IF NOT EXISTS forebay_projection (
		name TEXT PRIMARY KEY, epoch TEXT NOT NULL, after INTEGER NOT NULL) WITHOUT ROWID;`, nil)
	if err != nil {
		conn.Close() // the first error says more
		return nil, unavailable("open", err)
	}
	return &Store{conn: conn}, nil
}

func unavailable(what string, err error) error {
	return forebay.Errorf(forebay.CodeUnavailable, "projection: sqlite: "+what, "%w", err)
}

// Close closes the file.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.conn.Close()
}

// Update runs f in a transaction.
func (s *Store) Update(ctx context.Context, f func(Tx) error) (err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.conn.SetInterrupt(ctx.Done())
	defer s.conn.SetInterrupt(nil)
	end, err := sqlitex.ImmediateTransaction(s.conn)
	if err != nil {
		return unavailable("begin", err)
	}
	defer end(&err)
	return f(s.conn)
}

// Place reads where a projection is.
func (s *Store) Place(_ context.Context, tx Tx, name string) (p projection.Place, found bool, err error) {
	err = sqlitex.Execute(tx, "SELECT epoch, after FROM forebay_projection WHERE name = ?", &sqlitex.ExecOptions{
		Args: []any{name},
		ResultFunc: func(row *sqlite.Stmt) error {
			p, found = projection.Place{Epoch: row.ColumnText(0), After: row.ColumnInt64(1)}, true
			return nil
		},
	})
	return p, found, err
}

// SetPlace keeps it.
func (s *Store) SetPlace(_ context.Context, tx Tx, name string, p projection.Place) error {
	return sqlitex.Execute(tx, `INSERT INTO forebay_projection (name, epoch, after) VALUES (?1, ?2, ?3)
		ON CONFLICT DO UPDATE SET epoch = ?2, after = ?3`, &sqlitex.ExecOptions{Args: []any{name, p.Epoch, p.After}})
}
