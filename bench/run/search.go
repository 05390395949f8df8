package main

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/bench"
	"github.com/forebayhq/forebay/engine"
	"github.com/forebayhq/forebay/engine/sqlite"
)

// oneByOne jobs are sent one per commit, so that each has a block of its own, which is the
// worst for a search. What is more than these comes from 64 senders at once, as it does over HTTP.
const oneByOne = 200_000

// search measures first pages over jobs. Filling does not wait for the disk.
func search(ctx context.Context, o options, t *table) error {
	e, err := sqlite.Open(sqlite.Config{Path: filepath.Join(o.dir, "search.db"), Durability: sqlite.DurabilityProcess})
	if err != nil {
		return err
	}
	defer e.Close()
	single := min(o.search, oneByOne)
	for i := range single {
		if err := sendSearched(ctx, e, i, o.search); err != nil {
			return err
		}
	}
	next := atomic.Int64{}
	next.Store(int64(single) - 1)
	if err := many(o.search-single, func() error { return sendSearched(ctx, e, int(next.Add(1)), o.search) }); err != nil {
		return err
	}
	if err := signed(ctx, e); err != nil {
		return err
	}
	for _, s := range []struct{ name, path, value string }{
		{"5 hits", "user.id", "42"}, {"no hit", "user.id", "43"}, {"one in 1,000", "shard", "77"}, {"one in 50", "width", "123"},
	} {
		p95, found, err := firstPage(ctx, e, engine.PayloadTerm{Path: strings.Split(s.path, "."), Value: s.value})
		if err != nil {
			return err
		}
		name := fmt.Sprintf("%s jobs: first page, %s (%d on it), p95", short(float64(o.search)), s.name, found)
		t.target(name, p95, "ms", "≤ 300", p95 <= 300)
	}
	return nil
}

// sendSearched sends job i of n.
func sendSearched(ctx context.Context, e *sqlite.Engine, i, n int) error {
	user := 1000 + i%100_000
	if i%(max(n/5, 1)) == 137 {
		user = 42
	}
	payload := fmt.Appendf(nil, `{"user":{"id":%d,"name":"somebody %d"},"action":"resize","file":"a/b/c/%08x.jpg","width":%d,"quality":80,"shard":%d,"note":"%0100d"}`,
		user, user, i*7919, 100+i%50, i%1000, i)
	m := forebay.Message{ID: fmt.Sprintf("search-%d", i), Queue: "bench", Kind: "email.send", Payload: payload, Job: &forebay.JobOptions{Tags: []string{"red"}}}
	res, err := e.Send(ctx, []forebay.Message{m})
	if err == nil {
		err = res[0].Err
	}
	return err
}

// signed waits until searching gets no faster: signatures are made after the jobs,
// a piece at a time. That takes as long as it takes, but a few minutes at most.
func signed(ctx context.Context, e *sqlite.Engine) error {
	const most = 5 * time.Minute
	for begun, before := time.Now(), 0.0; time.Since(begun) < most; {
		now, _, err := firstPage(ctx, e, engine.PayloadTerm{Path: []string{"user", "id"}, Value: "43"})
		if err != nil {
			return err
		}
		if before > 0 && now > before*0.9 {
			return nil
		}
		before = now
		if err := pause(ctx, 5*time.Second); err != nil { // what is young waits for two
			return err
		}
	}
	return nil
}

// firstPage is the time until there is a page with jobs on it, or the end: pages on
// the way may be empty. It gives milliseconds.
func firstPage(ctx context.Context, e *sqlite.Engine, term engine.PayloadTerm) (p95 float64, found int, err error) {
	const times = 20
	var took []time.Duration
	for range times {
		start := time.Now()
		q := engine.JobQuery{Filter: engine.JobFilter{Payload: []engine.PayloadTerm{term}}}
		for found = 0; ; {
			page, err := e.Jobs(ctx, q)
			if err != nil {
				return 0, 0, err
			}
			found = len(page.Jobs)
			if q.After = page.Next; q.After == "" || found > 0 {
				break
			}
		}
		took = append(took, time.Since(start))
	}
	slices.Sort(took)
	return bench.Quantile(took, 0.95).Seconds() * 1000, found, nil
}
