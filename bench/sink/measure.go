//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/forebayhq/forebay/bench"
)

// measurement is one method's turn. The CPU times are per row; unlike the rate they
// hardly move with what else the machine does.
type measurement struct {
	rate           float64 // rows per second
	client, server float64 // µs
}

// measure brings the server and this process into the same state as before every
// other turn, and writes all batches. They are handed out in their order, as a
// queue does, so that the connections write neighbouring keys.
func measure(ctx context.Context, pool *pgxpool.Pool, m method, batches []*batch, size, conns int) (measurement, error) {
	for _, sql := range []string{"TRUNCATE " + m.table, "CHECKPOINT"} {
		if _, err := pool.Exec(ctx, sql); err != nil {
			return measurement{}, err
		}
	}
	runtime.GC()
	var next atomic.Int64
	serverBefore, err := serverCPU(ctx, pool)
	if err != nil {
		return measurement{}, err
	}
	clientBefore := clientCPU()
	result, err := bench.Load(ctx, conns, len(batches), size, func(ctx context.Context, _, _ int) error {
		return m.write(ctx, batches[next.Add(1)-1])
	})
	if err != nil {
		return measurement{}, fmt.Errorf("%s: %w", m.name, err)
	}
	client := clientCPU() - clientBefore
	serverAfter, err := serverCPU(ctx, pool)
	if err != nil {
		return measurement{}, err
	}
	perRow := func(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1000 / float64(result.N) }
	return measurement{rate: result.Rate(), client: perRow(client), server: perRow(serverAfter - serverBefore)},
		check(ctx, pool, m, result.N)
}

// check sees to it that a method that loses rows does not win.
func check(ctx context.Context, pool *pgxpool.Pool, m method, rows int) error {
	var found int
	if err := pool.QueryRow(ctx, "SELECT count(*) FROM "+m.table).Scan(&found); err != nil {
		return err
	}
	if found != rows {
		return fmt.Errorf("%s: %d rows in the table, want %d", m.name, found, rows)
	}
	return nil
}

// clientCPU is what this process has used.
func clientCPU() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic("BUG: " + err.Error())
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// serverCPU is what the server's processes have used that run now: the pools keep
// their connections, and nothing else starts or ends meanwhile.
func serverCPU(ctx context.Context, pool *pgxpool.Pool) (time.Duration, error) {
	rows, err := pool.Query(ctx, "SELECT pid FROM pg_stat_activity")
	if err != nil {
		return 0, err
	}
	pids, err := pgx.CollectRows(rows, pgx.RowTo[int])
	if err != nil {
		return 0, err
	}
	var sum time.Duration
	for _, pid := range pids {
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/schedstat", pid))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return 0, err
		}
		var ran, waited int64
		if _, err := fmt.Sscan(string(b), &ran, &waited); err != nil {
			return 0, fmt.Errorf("/proc/%d/schedstat: %w", pid, err)
		}
		sum += time.Duration(ran)
	}
	return sum, nil
}
