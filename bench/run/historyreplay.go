package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/api"
	"github.com/forebayhq/forebay/bench"
	"github.com/forebayhq/forebay/engine/sqlite"
	"github.com/forebayhq/forebay/event"
	"github.com/forebayhq/forebay/history"
	"github.com/forebayhq/forebay/internal/pgtest"
)

const (
	replayMost  = 2.0    // times the p99 without it
	sinkBacklog = 0.2    // of the events that are replayed
	replayAge   = "20ms" // sink.batchAge: with the default of 1 s the wait for a batch would hide the rest
)

// replayPart measures live events without and with a replay into PostgreSQL beside them, and
// the replay's rate beside that at which the sink takes what waits, alone.
func replayPart(ctx context.Context, o options, t *table) (err error) {
	pg, err := pgtest.New(ctx, pgtest.Config{Settings: map[string]string{
		"track_commit_timestamp": "on", "autovacuum": "off", "checkpoint_timeout": "1h", "max_wal_size": "4GB"}})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, pg.Close()) }()
	url, err := pg.Create(ctx)
	if err != nil {
		return err
	}
	if err := fillEvents(ctx, filepath.Join(o.dir, "replay"), o.replay); err != nil {
		return err
	}
	p, err := startForebay(ctx, o, "replay", "--sqs-listen", "off", "--set", "history.maxBytes=1024GiB",
		"--set", "sink.url="+url, "--set", "sink.batchAge="+replayAge)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.stop()) }()
	db, err := pgx.Connect(ctx, url)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close(context.WithoutCancel(ctx))) }()
	client, err := api.NewClient(p.url, "", nil)
	if err != nil {
		return err
	}
	r := &replayBench{o: o, server: p, db: db, client: client}
	for range o.rounds {
		if err := r.round(ctx); err != nil {
			return err
		}
	}
	t.figure("what the sink takes, alone", "events/s", r.sink)
	t.figure("replay of "+short(float64(o.replay)), "events/s", r.rate)
	for _, one := range []struct {
		name        string
		with, alone bench.Series
	}{{"202 for an event, p99", r.accept[1], r.accept[0]}, {"event to its row, p99", r.row[1], r.row[0]}} {
		t.figure("live at "+short(float64(o.live))+"/s: "+one.name+", no replay", "ms", one.alone)
		t.figure("  beside the replay", "ms", one.with)
		t.most("  with / without", one.with, one.alone, replayMost)
	}
	return nil
}

// most adds the ratio of two series where less is better.
func (t *table) most(name string, ours, baseline bench.Series, most float64) {
	var r bench.Series
	for i := range ours {
		r = append(r, ours[i]/baseline[i])
	}
	t.target(name, r.Median(), fmt.Sprintf("times (±%.0f %%)", r.Spread()*50), fmt.Sprintf("< %.2f", most), r.Median() < most)
}

// fillEvents makes a data folder whose log has n events of two hours ago.
func fillEvents(ctx context.Context, dir string, n int) (err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	e, err := sqlite.Open(sqlite.Config{Path: filepath.Join(dir, "forebay.db"), Log: keepAll()})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, e.Close()) }()
	received := time.Now().Add(-2 * time.Hour)
	const share, size = 50_000, 1000
	for from := 0; from < n; from += share {
		msgs := make([]forebay.Message, min(share, n-from)/size*size)
		for i := range msgs {
			one := event.Event{ID: fmt.Sprintf("past-%09d", from+i), Type: "past", UserID: fmt.Sprintf("user-%d", i%1000), Source: "ios/native",
				Payload: bench.Payload(), ReceivedAt: received.Add(time.Duration(from+i) * time.Microsecond)}
			payload, err := one.Append(nil)
			if err != nil {
				return err
			}
			msgs[i] = forebay.Message{ID: one.ID, Queue: event.Queue, Kind: one.Type, Payload: payload}
		}
		if _, err := bench.Send(ctx, e, 2, size, msgs); err != nil {
			return err
		}
		if _, err := bench.DrainQueue(ctx, e, event.Queue, 2, size, len(msgs)); err != nil {
			return err
		}
	}
	return nil
}

// replayBench is what the rounds have in common.
type replayBench struct {
	o      options
	server *process
	db     *pgx.Conn
	client *api.Client

	sink, rate  bench.Series
	accept, row [2]bench.Series // ms; without and with a replay
}

// round empties the table, measures live events alone, what the sink takes, and live
// events beside a replay.
func (r *replayBench) round(ctx context.Context) error {
	if err := r.empty(ctx); err != nil {
		return err
	}
	alone := time.Duration(2*r.o.seconds) * time.Second
	err := r.live(ctx, 0, func(ctx context.Context) error {
		return pause(ctx, alone)
	})
	if err != nil {
		return err
	}
	if err := r.backlog(ctx); err != nil {
		return err
	}
	if err := r.empty(ctx); err != nil {
		return err
	}
	if err := r.live(ctx, 1, r.replay); err != nil {
		return err
	}
	var rows, ids int
	if err := r.db.QueryRow(ctx, "SELECT count(*), count(DISTINCT event_id) FROM events WHERE event_type = 'past'").Scan(&rows, &ids); err != nil {
		return err
	}
	if rows != ids || rows != r.o.replay/1000*1000 {
		return fmt.Errorf("%d rows of %d events are there, want %d", rows, ids, r.o.replay)
	}
	return nil
}

func (r *replayBench) empty(ctx context.Context) error {
	for _, sql := range []string{"TRUNCATE events", "CHECKPOINT"} {
		if _, err := r.db.Exec(ctx, sql); err != nil {
			return err
		}
	}
	return nil
}

// replay replays all that is from before this run.
func (r *replayBench) replay(ctx context.Context) error {
	start := time.Now()
	job, err := r.client.ReplayHistory(ctx, api.HistoryReplay{Into: history.IntoSink, Types: []string{"past"}})
	if err != nil {
		return err
	}
	end, err := r.client.WatchJob(ctx, job.JobID, func(u api.JobUpdate) error {
		if u.Job != nil {
			fmt.Fprintf(os.Stderr, "\rreplay: %.0f %% after %s   ", u.Job.Progress.Percent, time.Since(start).Round(time.Second))
		}
		return nil
	})
	fmt.Fprintln(os.Stderr)
	var out history.Outcome
	if err == nil {
		err = json.Unmarshal(end.Result, &out)
	}
	if err != nil || out.Refused > 0 {
		return fmt.Errorf("the replay ended as %s with %+v: %w", end.State, out, err)
	}
	r.rate = append(r.rate, float64(out.Messages)/time.Since(start).Seconds())
	return nil
}
