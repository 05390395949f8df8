// Package bench measures. It holds what `make bench` and `forebay bench` share:
// the bare baselines, the load and the arithmetic.
//
// It promises comparisons: a figure is a ratio of two things that ran one after
// the other in one process on one machine, several times, and its median and
// spread are told. It refuses to judge: whoever prints a ratio says what it
// should be.
package bench

import (
	"context"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
)

// Result is one measurement: so much work in so much time.
type Result struct {
	N        int
	Took     time.Duration
	P50, P99 time.Duration // of one call; zero where calls were not timed
}

// Rate is work per second.
func (r Result) Rate() float64 {
	if r.Took <= 0 {
		return 0
	}
	return float64(r.N) / r.Took.Seconds()
}

// Load calls f n times from so many workers, each of which waits for its call,
// and times every call. size is how much work one call does.
func Load(ctx context.Context, workers, n, size int, f func(ctx context.Context, worker, i int) error) (Result, error) {
	share := n / workers
	if share == 0 {
		return Result{}, fmt.Errorf("bench: %d calls are too few for %d workers", n, workers)
	}
	times := make([]time.Duration, workers*share)
	group, ctx := errgroup.WithContext(ctx)
	start := time.Now()
	for w := range workers {
		group.Go(func() error {
			for i := range share {
				before := time.Now()
				if err := f(ctx, w, w*share+i); err != nil {
					return err
				}
				times[w*share+i] = time.Since(before)
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return Result{}, err
	}
	took := time.Since(start)
	slices.Sort(times)
	return Result{N: len(times) * size, Took: took, P50: Quantile(times, 0.50), P99: Quantile(times, 0.99)}, nil
}

// Quantile of sorted times; zero of none.
func Quantile(sorted []time.Duration, q float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[min(int(q*float64(len(sorted))), len(sorted)-1)]
}

// Series is the same figure, measured several times.
type Series []float64

// Median of the series; zero of none.
func (s Series) Median() float64 {
	if len(s) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(s))
	mid := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[mid]
	}
	return (sorted[mid-1] + sorted[mid]) / 2
}

// Spread is the distance of the extremes, as a share of the median.
func (s Series) Spread() float64 {
	m := s.Median()
	if m == 0 {
		return 0
	}
	return (slices.Max(s) - slices.Min(s)) / m
}
