package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/forebayhq/forebay/bench"
	"github.com/forebayhq/forebay/event"
)

const liveHands = 32

// live sends events at o.live a second for as long as beside takes, and notes their p99:
// of the answer, since the time at which it was due to be asked; and of the row, from
// receiving to the commit, as PostgreSQL knows it. with: 0 or 1.
func (r *replayBench) live(ctx context.Context, with int, beside func(context.Context) error) error {
	since := time.Now()
	sending, stop := context.WithCancel(ctx)
	users, sending := errgroup.WithContext(sending)
	var mu sync.Mutex
	var times []time.Duration
	every := liveHands * time.Second / time.Duration(r.o.live)
	for u := range liveHands {
		users.Go(func() error {
			var own []time.Duration
			for due := since.Add(every * time.Duration(u) / liveHands); pause(sending, time.Until(due)) == nil; due = due.Add(every) {
				if err := r.post(ctx, "/ingest/event", liveEvent("live", u)); err != nil {
					return err
				}
				own = append(own, time.Since(due))
			}
			mu.Lock()
			defer mu.Unlock()
			times = append(times, own...)
			return nil
		})
	}
	err := beside(ctx)
	stop()
	if sent := users.Wait(); err == nil {
		err = sent
	}
	if err != nil {
		return err
	}
	slices.Sort(times)
	r.accept[with] = append(r.accept[with], bench.Quantile(times, 0.99).Seconds()*1000)
	row, err := r.rows(ctx, "live", since, len(times))
	r.row[with] = append(r.row[with], 1000*row.p99)
	return err
}

// rowTimes tells of rows that were written.
type rowTimes struct {
	n        int
	p99, all float64 // seconds: from receiving to the commit; from the first commit to the last
}

// rows waits until so many events of a type have come since a time.
func (r *replayBench) rows(ctx context.Context, kind string, since time.Time, want int) (rowTimes, error) {
	var at rowTimes
	for wait := time.Now(); at.n < want; {
		if time.Since(wait) > time.Minute {
			return at, fmt.Errorf("%d of %d %s events are in the database", at.n, want, kind)
		}
		if err := pause(ctx, 100*time.Millisecond); err != nil {
			return at, err
		}
		const count = "SELECT count(*) FROM events WHERE event_type = $1 AND received_at >= $2"
		if err := r.db.QueryRow(ctx, count, kind, since.Add(-time.Second)).Scan(&at.n); err != nil {
			return at, err
		}
	}
	const sql = `SELECT percentile_cont(0.99) WITHIN GROUP (ORDER BY extract(epoch FROM at - received_at)), extract(epoch FROM max(at) - min(at))
		FROM (SELECT pg_xact_commit_timestamp(xmin) AS at, received_at FROM events WHERE event_type = $1 AND received_at >= $2) AS e`
	return at, r.db.QueryRow(ctx, sql, kind, since.Add(-time.Second)).Scan(&at.p99, &at.all)
}

// backlog lets events wait and measures at which rate the sink takes them.
func (r *replayBench) backlog(ctx context.Context) error {
	if err := r.server.command(ctx, "queues", "pause", event.Queue); err != nil {
		return err
	}
	since := time.Now()
	n := int(sinkBacklog*float64(r.o.replay)) / batchSize
	sent, err := bench.Load(ctx, 16, n, batchSize, func(ctx context.Context, u, _ int) error {
		one := liveEvent("waited", u)
		return r.post(ctx, "/ingest/batch", slices.Concat([]byte("["), bytes.Repeat(append(one, ','), batchSize-1), one, []byte("]")))
	})
	if err != nil {
		return err
	}
	if err := r.server.command(ctx, "queues", "resume", event.Queue); err != nil {
		return err
	}
	row, err := r.rows(ctx, "waited", since, sent.N)
	r.sink = append(r.sink, float64(sent.N)/row.all)
	return err
}

func liveEvent(kind string, user int) []byte {
	return fmt.Appendf(nil, `{"eventType":%q,"userId":"user-%d","occurredAt":"2026-01-02T03:04:05.678Z","payload":%s}`, kind, user, bench.Payload())
}

var liveClient = &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{MaxIdleConnsPerHost: liveHands}}

func (r *replayBench) post(ctx context.Context, path string, body []byte) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, r.server.url+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	res, err := liveClient.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if text, err := io.ReadAll(res.Body); err != nil || res.StatusCode != http.StatusAccepted {
		return fmt.Errorf("POST %s: %s %s, %w", path, res.Status, text, err)
	}
	return nil
}
