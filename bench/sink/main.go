//go:build linux

// Command sink measures the PostgreSQL sink beside bare bulk methods, on a private
// server with fsync on, and prints ratios.
//
// The bare methods write ready rows into a plain table whose key is a uuid. The
// sink decodes messages from the queue, and writes them into its own table:
// partitioned, with a key of text and time. A ratio is that of the sink to the
// best idempotent bare method of the same round.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"text/tabwriter"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/bench"
	"github.com/forebayhq/forebay/event"
	"github.com/forebayhq/forebay/internal/pgtest"
	"github.com/forebayhq/forebay/sink/postgres"
)

const target = 0.70

func main() {
	rows := flag.Int("rows", 100_000, "rows of one measurement")
	rounds := flag.Int("rounds", 3, "rounds of each comparison")
	only := flag.Int("batch", 0, "the only size of a batch; 0: 100, 1000 and 5000")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *rows, *rounds, *only); err != nil {
		fmt.Fprintln(os.Stderr, "bench/sink:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, rows, rounds, only int) (err error) {
	server, err := pgtest.New(ctx, pgtest.Config{})
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
	all := methods(pool)
	all = append(all, method{name: "forebay sink", table: "events", write: func(ctx context.Context, b *batch) error {
		return errors.Join(s.HandleBatch(ctx, b.deliveries)...)
	}})
	out := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	defer out.Flush()
	fmt.Fprintf(out, "rows/s, median of %d rounds of %d rows (spread)\t\t\t\t\t\t\t\n", rounds, rows)
	fmt.Fprint(out, "batch\tconnections\t")
	for _, m := range all {
		fmt.Fprintf(out, "%s\t", m.name)
	}
	fmt.Fprint(out, "sink / best idempotent\t\n")
	for _, size := range []int{100, 1000, 5000} {
		if only != 0 && only != size {
			continue
		}
		for conns := 1; conns <= 2; conns++ {
			if err := compare(ctx, out, pool, all, size, conns, rows, rounds); err != nil {
				return err
			}
		}
	}
	return nil
}

// compare measures all methods in turns and prints one line.
func compare(ctx context.Context, out *tabwriter.Writer, pool *pgxpool.Pool, all []method, size, conns, rows, rounds int) error {
	rates := make([]bench.Series, len(all))
	var ratio bench.Series
	for range rounds {
		best := 0.0
		for i, m := range all {
			if _, err := pool.Exec(ctx, "TRUNCATE "+m.table); err != nil {
				return err
			}
			batches := batchesOf(rows, size)
			result, err := bench.Load(ctx, conns, len(batches), size, func(ctx context.Context, _, i int) error {
				return m.write(ctx, batches[i])
			})
			if err != nil {
				return fmt.Errorf("%s: %w", m.name, err)
			}
			rate := result.Rate()
			rates[i] = append(rates[i], rate)
			if m.idempotent {
				best = max(best, rate)
			}
			if i == len(all)-1 {
				ratio = append(ratio, rate/best)
			}
		}
	}
	fmt.Fprintf(out, "%d\t%d\t", size, conns)
	for i := range all {
		fmt.Fprintf(out, "%.0f (±%.0f %%)\t", rates[i].Median(), rates[i].Spread()*50)
	}
	verdict := "passed"
	if ratio.Median() < target {
		verdict = "MISSED"
	}
	fmt.Fprintf(out, "%.2f (±%.0f %%) want ≥ %.2f %s\t\n", ratio.Median(), ratio.Spread()*50, target, verdict)
	return nil
}

// batch is the same rows in the forms that the methods take.
type batch struct {
	events     []event.Event
	ids        [][16]byte
	deliveries []forebay.Delivery
}

// batchesOf makes rows with time-ordered ids and payloads of 180 bytes.
func batchesOf(rows, size int) []*batch {
	batches := make([]*batch, rows/size)
	for i := range batches {
		b := &batch{}
		for n := range size {
			id, now := uuid.Must(uuid.NewV7()), time.Now().UTC()
			e := event.Event{
				ID: id.String(), Type: "app_open", UserID: fmt.Sprintf("user-%d", n%1000), Source: "ios/native",
				ReceivedAt: now, OccurredAt: now, SentAt: now,
				Payload: fmt.Appendf(nil, `{"screen":"home","n":%d,"session":"0199a3f2-7c1e-7b51-9a07-6f5e2f1f8c11",`+
					`"device":{"os":"ios","version":"17.4","model":"iPhone15,2"},"duration":12.5,"tags":["a","b","c"]}`, n),
			}
			payload, err := e.Append(nil)
			if err != nil {
				panic("BUG: " + err.Error())
			}
			b.events, b.ids = append(b.events, e), append(b.ids, id)
			b.deliveries = append(b.deliveries, forebay.Delivery{Message: forebay.Message{ID: e.ID, Payload: payload}})
		}
		batches[i] = b
	}
	return batches
}
