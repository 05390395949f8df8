// Command orders builds a table of orders from events: what was ordered, paid and
// shipped. The table is thrown away and built again, and is the same.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	driver "zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/broker"
	"github.com/forebayhq/forebay/engine"
	queue "github.com/forebayhq/forebay/engine/sqlite"
	"github.com/forebayhq/forebay/projection"
	"github.com/forebayhq/forebay/projection/sqlite"
)

func main() {
	dir, err := os.MkdirTemp("", "orders-")
	if err == nil {
		err = run(context.Background(), os.Stdout, dir)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// orders is the projection.
type orders struct{}

// Reset makes the table, empty.
func (orders) Reset(_ context.Context, tx sqlite.Tx) error {
	return sqlitex.ExecuteScript(tx, `DROP TABLE IF EXISTS orders;
		CREATE TABLE orders (id TEXT PRIMARY KEY, state TEXT NOT NULL, cents INTEGER NOT NULL);`, nil)
}

// Apply takes one event into it.
func (orders) Apply(_ context.Context, tx sqlite.Tx, e engine.LogEntry) error {
	var order struct {
		ID    string
		Cents int64
	}
	if err := json.Unmarshal(e.Message.Payload, &order); err != nil {
		return err
	}
	sql := "UPDATE orders SET state = ?2, cents = cents + ?3 WHERE id = ?1"
	if e.Message.Kind == "ordered" {
		sql = "INSERT INTO orders (id, state, cents) VALUES (?1, ?2, ?3)"
	}
	return sqlitex.Execute(tx, sql, &sqlitex.ExecOptions{Args: []any{order.ID, e.Message.Kind, order.Cents}})
}

func run(ctx context.Context, out io.Writer, dir string) (err error) {
	// The queue keeps what was sent for a week, also when it is settled.
	e, err := queue.Open(queue.Config{Path: filepath.Join(dir, "queue.db"), Log: queue.LogConfig{Age: 7 * 24 * time.Hour}})
	if err != nil {
		return err
	}
	b, err := broker.New(e, broker.Config{})
	if err != nil {
		return errors.Join(err, e.Close())
	}
	defer func() { err = errors.Join(err, b.Close()) }()
	if err := trade(ctx, b); err != nil {
		return err
	}

	store, err := sqlite.Open(filepath.Join(dir, "orders.db"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	reader, err := projection.New(projection.Config[sqlite.Tx]{
		Name: "orders", Queue: "shop", Kinds: []string{"ordered", "paid", "shipped", "refunded"},
		Log: b, Store: store, Projection: orders{},
	})
	if err != nil {
		return err
	}
	if err := reader.CatchUp(ctx); err != nil { // a program that stays would Run
		return err
	}
	if err := show(ctx, out, store, "built"); err != nil {
		return err
	}
	if err := reader.Rebuild(ctx); err != nil {
		return err
	}
	return show(ctx, out, store, "rebuilt")
}

// trade sends the events of a small shop, and works them off.
func trade(ctx context.Context, b *broker.Broker) error {
	var msgs []forebay.Message
	for _, e := range [][2]string{
		{"ordered", `{"id":"a-1","cents":1000}`}, {"ordered", `{"id":"a-2","cents":250}`}, {"visited", `{"page":"/"}`},
		{"paid", `{"id":"a-1"}`}, {"shipped", `{"id":"a-1"}`}, {"paid", `{"id":"a-2"}`}, {"refunded", `{"id":"a-2","cents":-250}`},
	} {
		msgs = append(msgs, forebay.Message{Queue: "shop", Kind: e[0], Payload: []byte(e[1])})
	}
	if _, err := b.Send(ctx, msgs); err != nil {
		return err
	}
	ds, err := b.Receive(ctx, engine.Receive{Queue: "shop", Max: len(msgs)})
	if err != nil {
		return err
	}
	done := make([]forebay.Settlement, len(ds))
	for i := range ds {
		done[i] = forebay.Settlement{Receipt: ds[i].Receipt, Queue: "shop", Verdict: forebay.Ack}
	}
	errs, err := b.Settle(ctx, done)
	return errors.Join(append(errs, err)...)
}

func show(ctx context.Context, out io.Writer, store *sqlite.Store, title string) error {
	fmt.Fprintln(out, title)
	return store.Update(ctx, func(tx sqlite.Tx) error {
		return sqlitex.Execute(tx, "SELECT id, state, cents FROM orders ORDER BY id", &sqlitex.ExecOptions{ResultFunc: func(row *driver.Stmt) error {
			fmt.Fprintf(out, "  %s %s %d.%02d\n", row.ColumnText(0), row.ColumnText(1), row.ColumnInt64(2)/100, row.ColumnInt64(2)%100)
			return nil
		}})
	})
}
