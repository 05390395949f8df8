// Package postgres keeps projections in PostgreSQL.
//
// It promises that the state and the place of a projection change in one transaction,
// and that readers of one name wait for each other: the row of the place is locked.
// It refuses to retry by itself: an error of the database is the caller's to judge.
package postgres

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/projection"
)

// Tx is a transaction; it is good until the function that got it returns.
type Tx = pgx.Tx

// Store is a database with projections in it.
type Store struct{ pool *pgxpool.Pool }

var _ projection.Store[Tx] = (*Store)(nil)

// Open connects, and makes the table of places if there is none.
func Open(ctx context.Context, url string) (*Store, error) {
	pool, err := pgxpool.New(ctx, url)
	if err != nil {
		return nil, forebay.Errorf(forebay.CodeInvalid, "projection: postgres: open", "%w", err)
	}
	_, err = pool.Exec(ctx, `CREATE TABLE IF NOT EXISTS forebay_projection (
		name text PRIMARY KEY, epoch text NOT NULL, after bigint NOT NULL)`)
	if err != nil {
		pool.Close()
		return nil, unavailable(err)
	}
	return &Store{pool}, nil
}

func unavailable(err error) error {
	return forebay.Errorf(forebay.CodeUnavailable, "projection: postgres", "%w", err)
}

// Close closes the connections.
func (s *Store) Close() error {
	s.pool.Close()
	return nil
}

// Update runs f in a transaction.
func (s *Store) Update(ctx context.Context, f func(Tx) error) error {
	return pgx.BeginFunc(ctx, s.pool, f)
}

// Place reads where a projection is, and locks the row. One that has none is locked by
// a key, so that two that are new do not both begin.
func (s *Store) Place(ctx context.Context, tx Tx, name string) (p projection.Place, found bool, err error) {
	if _, err := tx.Exec(ctx, "SELECT pg_advisory_xact_lock(hashtextextended('forebay projection ' || $1, 0))", name); err != nil {
		return p, false, unavailable(err)
	}
	err = tx.QueryRow(ctx, "SELECT epoch, after FROM forebay_projection WHERE name = $1", name).Scan(&p.Epoch, &p.After)
	if errors.Is(err, pgx.ErrNoRows) {
		return p, false, nil
	}
	if err != nil {
		return p, false, unavailable(err)
	}
	return p, true, nil
}

// SetPlace keeps it.
func (s *Store) SetPlace(ctx context.Context, tx Tx, name string, p projection.Place) error {
	_, err := tx.Exec(ctx, `INSERT INTO forebay_projection (name, epoch, after) VALUES ($1, $2, $3)
		ON CONFLICT (name) DO UPDATE SET epoch = $2, after = $3`, name, p.Epoch, p.After)
	if err != nil {
		return unavailable(err)
	}
	return nil
}
