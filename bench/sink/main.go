//go:build linux

// Command sink measures the PostgreSQL sink beside bare bulk methods, on a private
// server with fsync on, and prints ratios.
//
// The bare methods write ready rows into a plain table whose key is a uuid. The
// sink decodes messages from the queue, and writes them into its own table:
// partitioned, with a key of text and time. A ratio is that of the sink to the
// best idempotent bare method of the same round. Every turn starts with an empty
// table, a fresh checkpoint and a collected heap.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"os/signal"
	"text/tabwriter"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/forebayhq/forebay/bench"
	"github.com/forebayhq/forebay/internal/pgtest"
	"github.com/forebayhq/forebay/sink/postgres"
)

const target = 0.70

type options struct{ rows, rounds, batch, conns int }

func main() {
	var o options
	flag.IntVar(&o.rows, "rows", 100_000, "rows of one measurement")
	flag.IntVar(&o.rounds, "rounds", 5, "rounds of each comparison")
	flag.IntVar(&o.batch, "batch", 0, "the only size of a batch; 0: 100, 1000 and 5000")
	flag.IntVar(&o.conns, "connections", 0, "the only number of connections; 0: 1 and 2")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "bench/sink:", err)
		os.Exit(1)
	}
}

// settings keep the server from work of its own in the middle of somebody's turn: a
// checkpoint is made before each, and the tables are emptied.
var settings = map[string]string{"autovacuum": "off", "checkpoint_timeout": "1h", "max_wal_size": "4GB"}

func run(ctx context.Context, o options) (err error) {
	server, err := pgtest.New(ctx, pgtest.Config{Settings: settings})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, server.Close()) }()
	url, err := server.Create(ctx)
	if err != nil {
		return err
	}
	pool, err := pgxpool.New(ctx, url)
	if err != nil {
		return err
	}
	defer pool.Close()
	if _, err := pool.Exec(ctx, bareTable); err != nil {
		return err
	}
	s, err := postgres.Open(ctx, url, postgres.Config{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	all := append(methods(pool), method{name: "forebay sink", table: "events", own: true,
		write: func(ctx context.Context, b *batch) error { return errors.Join(s.HandleBatch(ctx, b.deliveries)...) }})
	fmt.Printf("medians of %d rounds of %d rows; ± is half the distance of the extremes\n\n", o.rounds, o.rows)
	out := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(out, "batch\tconnections\tmethod\trows/s\t\tclient µs/row\tserver µs/row\tsink / best idempotent\t\t\tCPU: least idempotent / sink\t\t\n")
	for _, size := range []int{100, 1000, 5000} {
		for conns := 1; conns <= 2; conns++ {
			if o.batch != 0 && o.batch != size || o.conns != 0 && o.conns != conns {
				continue
			}
			if err := compare(ctx, out, pool, all, size, conns, o); err != nil {
				return err
			}
		}
	}
	return out.Flush()
}

// compare measures all methods in turns and prints one line. Each round begins with
// the next method, so that none always runs after the same one.
func compare(ctx context.Context, out io.Writer, pool *pgxpool.Pool, all []method, size, conns int, o options) error {
	batches := batchesOf(o.rows, size)
	rates := make([]bench.Series, len(all))
	client, server := make([]bench.Series, len(all)), make([]bench.Series, len(all))
	var ratio, cpu bench.Series
	for round := range o.rounds {
		best, own, least, ownCPU := 0.0, 0.0, math.Inf(1), 0.0
		for turn := range all {
			i := (round + turn) % len(all)
			got, err := measure(ctx, pool, all[i], batches, size, conns)
			if err != nil {
				return err
			}
			rates[i] = append(rates[i], got.rate)
			client[i], server[i] = append(client[i], got.client), append(server[i], got.server)
			switch {
			case all[i].own:
				own, ownCPU = got.rate, got.client+got.server
			case all[i].idempotent:
				best, least = max(best, got.rate), min(least, got.client+got.server)
			}
		}
		ratio, cpu = append(ratio, own/best), append(cpu, least/ownCPU)
	}
	for i, m := range all {
		fmt.Fprintf(out, "%d\t%d\t%s\t%.0f\t±%.0f %%\t%.1f\t%.1f\t", size, conns, m.name,
			rates[i].Median(), rates[i].Spread()*50, client[i].Median(), server[i].Median())
		if m.own {
			verdict := "passed"
			if ratio.Median() < target {
				verdict = "MISSED"
			}
			fmt.Fprintf(out, "%.2f\t±%.0f %%\twant ≥ %.2f %s\t%.2f\t±%.0f %%\t",
				ratio.Median(), ratio.Spread()*50, target, verdict, cpu.Median(), cpu.Spread()*50)
		}
		fmt.Fprintln(out)
	}
	return nil
}
