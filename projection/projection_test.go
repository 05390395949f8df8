package projection_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"zombiezen.com/go/sqlite/sqlitex"

	driver "zombiezen.com/go/sqlite"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
	queue "github.com/forebayhq/forebay/engine/sqlite"
	"github.com/forebayhq/forebay/internal/pgtest"
	"github.com/forebayhq/forebay/projection"
	"github.com/forebayhq/forebay/projection/postgres"
	"github.com/forebayhq/forebay/projection/sqlite"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// counter is a state that a message applied twice, left out, or out of order would change.
type counter[T any] struct {
	reset func(context.Context, T) error
	add   func(ctx context.Context, tx T, place int64) error
	fail  func(e engine.LogEntry) error
}

func (c counter[T]) Reset(ctx context.Context, tx T) error { return c.reset(ctx, tx) }
func (c counter[T]) Apply(ctx context.Context, tx T, e engine.LogEntry) error {
	if err := c.add(ctx, tx, e.Seq); err != nil {
		return err
	}
	return c.fail(e)
}

// stand is a log, and a projection of it in one kind of database.
type stand[T any] struct {
	e     *queue.Engine
	store projection.Store[T]
	c     counter[T]
	read  func() (n, last int64)
}

const (
	makeTable = "DROP TABLE IF EXISTS counted; CREATE TABLE counted (n bigint, last bigint)"
	firstRow  = "INSERT INTO counted VALUES (0, 0)"
	readTable = "SELECT n, last FROM counted"
	more      = "UPDATE counted SET n = n + CASE WHEN last < $1 THEN 1 ELSE 1000 END, last = $1"
)

func openLog(t *testing.T) *queue.Engine {
	t.Helper()
	e, err := queue.Open(queue.Config{Log: queue.LogConfig{Age: time.Hour}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Close() })
	return e
}

func onSQLite(t *testing.T) stand[sqlite.Tx] {
	store, err := sqlite.Open(filepath.Join(t.TempDir(), "state.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	s := stand[sqlite.Tx]{e: openLog(t), store: store}
	s.c.reset = func(_ context.Context, tx sqlite.Tx) error {
		return sqlitex.ExecuteScript(tx, makeTable+";"+firstRow+";", nil)
	}
	s.c.add = func(_ context.Context, tx sqlite.Tx, place int64) error {
		return sqlitex.Execute(tx, "UPDATE counted SET n = n + CASE WHEN last < ?1 THEN 1 ELSE 1000 END, last = ?1", &sqlitex.ExecOptions{Args: []any{place}})
	}
	s.read = func() (n, last int64) {
		err := store.Update(t.Context(), func(tx sqlite.Tx) error {
			return sqlitex.Execute(tx, readTable, &sqlitex.ExecOptions{ResultFunc: func(row *driver.Stmt) error {
				n, last = row.ColumnInt64(0), row.ColumnInt64(1)
				return nil
			}})
		})
		if err != nil {
			t.Error(err)
		}
		return n, last
	}
	return s
}

func onPostgres(t *testing.T) stand[postgres.Tx] {
	store, err := postgres.Open(t.Context(), pgtest.Database(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	s := stand[postgres.Tx]{e: openLog(t), store: store}
	s.c.reset = func(ctx context.Context, tx postgres.Tx) error {
		_, err := tx.Exec(ctx, makeTable)
		if err == nil {
			_, err = tx.Exec(ctx, firstRow)
		}
		return err
	}
	s.c.add = func(ctx context.Context, tx postgres.Tx, place int64) error {
		_, err := tx.Exec(ctx, more, place)
		return err
	}
	s.read = func() (n, last int64) {
		err := store.Update(t.Context(), func(tx postgres.Tx) error { return tx.QueryRow(t.Context(), readTable).Scan(&n, &last) })
		if err != nil {
			t.Error(err)
		}
		return n, last
	}
	return s
}

func (s stand[T]) reader(t *testing.T, fail func(engine.LogEntry) error) *projection.Reader[T] {
	t.Helper()
	c := s.c
	if c.fail = fail; fail == nil {
		c.fail = func(engine.LogEntry) error { return nil }
	}
	r, err := projection.New(projection.Config[T]{Name: "count", Queue: "q", Log: s.e, Store: s.store, Projection: c, Batch: 50})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func (s stand[T]) send(t *testing.T, prefix string, n int) {
	t.Helper()
	msgs := make([]forebay.Message, n)
	for i := range msgs {
		msgs[i] = forebay.Message{ID: fmt.Sprint(prefix, i), Queue: "q", Payload: []byte("{}")}
	}
	if _, err := s.e.Send(t.Context(), msgs); err != nil {
		t.Fatal(err)
	}
}

func (s stand[T]) want(t *testing.T, n int64) {
	t.Helper()
	if got, _ := s.read(); got != n {
		t.Errorf("%d messages were applied, want %d", got, n)
	}
}

func TestProjection(t *testing.T) {
	t.Run("SQLite", func(t *testing.T) { t.Parallel(); tryProjection(t, onSQLite(t)) })
	t.Run("PostgreSQL", func(t *testing.T) { t.Parallel(); tryProjection(t, onPostgres(t)) })
}

// Each message is applied once: after an error in the middle of a batch, with readers
// side by side, while messages come, and after a rebuild.
func tryProjection[T any](t *testing.T, s stand[T]) {
	s.send(t, "a", 120)
	broken := errors.New("broken")
	err := s.reader(t, func(e engine.LogEntry) error {
		if e.Message.ID == "a70" {
			return broken
		}
		return nil
	}).CatchUp(t.Context())
	if !errors.Is(err, broken) {
		t.Fatalf("an error of the projection is %v", err)
	}
	s.want(t, 50) // and nothing of the batch that failed

	ctx, stop := context.WithCancel(t.Context())
	var both sync.WaitGroup
	last := make(chan struct{})
	for range 2 {
		r := s.reader(t, func(e engine.LogEntry) error {
			if e.Message.ID == "c99" {
				select {
				case last <- struct{}{}:
				default:
				}
			}
			return nil
		})
		both.Go(func() {
			if err := r.Run(ctx); err != nil {
				t.Error(err)
			}
		})
	}
	s.send(t, "b", 500)
	s.send(t, "c", 100)
	<-last
	stop()
	both.Wait()
	r := s.reader(t, nil)
	if err := r.CatchUp(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.want(t, 720)
	_, end := s.read()
	if err := r.Rebuild(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.want(t, 720)
	if _, again := s.read(); again != end {
		t.Errorf("rebuilt it ends at %d, before at %d", again, end)
	}
	other := s
	other.e = openLog(t)
	other.send(t, "x", 1)
	if err := other.reader(t, nil).CatchUp(t.Context()); forebay.CodeOf(err) != forebay.CodeConflict {
		t.Errorf("the log of another store: %v", err)
	}
}

// What left the log unread is no reason to go on as if nothing were missing.
func TestProjectionTellsOfGaps(t *testing.T) {
	s := onSQLite(t)
	s.send(t, "a", 10)
	r := s.reader(t, nil)
	if err := r.CatchUp(t.Context()); err != nil {
		t.Fatal(err)
	}
	gone := gap{s.e}
	r, err := projection.New(projection.Config[sqlite.Tx]{Name: "count", Queue: "q", Log: gone, Store: s.store, Projection: s.c})
	if err != nil {
		t.Fatal(err)
	}
	if err := r.CatchUp(t.Context()); forebay.CodeOf(err) != forebay.CodeConflict {
		t.Errorf("a gap: %v", err)
	}
}

// gap is a log of which more has left than was read.
type gap struct{ projection.Log }

func (g gap) ReadLog(ctx context.Context, q engine.LogQuery) (engine.LogPage, error) {
	page, err := g.Log.ReadLog(ctx, q)
	page.Oldest = q.After + 1
	return page, err
}
