package postgres_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/broker"
	"github.com/forebayhq/forebay/engine"
	"github.com/forebayhq/forebay/engine/sqlite"
	"github.com/forebayhq/forebay/event"
	"github.com/forebayhq/forebay/internal/pgtest"
	"github.com/forebayhq/forebay/sink"
	"github.com/forebayhq/forebay/worker"
)

// Through queue and worker, with two batches at once and an outage in between:
// every event once, each user's in order, the poison row as the only dead letter.
func TestOrderAcrossOutage(t *testing.T) {
	const users, each = 20, 60
	srv := pgtest.Start(t, pgtest.Config{})
	url := srv.Database(t)
	cfg, states, _ := watched()
	written := make(chan sink.Batch, 10_000)
	cfg.Observe = func(b sink.Batch) { written <- b }
	s := open(t, url, cfg)
	conn := admin(t, url)
	exec(t, conn, "CREATE SEQUENCE place")
	exec(t, conn, "ALTER TABLE events ADD COLUMN place bigint DEFAULT nextval('place')")
	exec(t, conn, "ALTER TABLE events ADD CONSTRAINT known CHECK (event_type <> 'poison')")

	e, err := sqlite.Open(sqlite.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	b, err := broker.New(e, broker.Config{})
	if err != nil {
		t.Fatal(err)
	}
	send(t, b, users, each)
	srv.Stop()
	w, err := worker.New(b, worker.Config{Queue: event.Queue, Batch: s, Concurrency: 2, BatchMax: 150})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ran := make(chan error, 1)
	go func() { ran <- w.Run(ctx) }()
	if st := <-states; !st.Paused {
		t.Fatalf("state %+v", st)
	}
	if err := srv.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	for done := 0; done < users*each; {
		b := <-written
		done += b.Rows - b.Left
	}
	stop()
	if err := <-ran; err != nil {
		t.Fatal(err)
	}
	conn = admin(t, url)
	if got := count(t, conn, rows); got != users*each-1 {
		t.Errorf("%d rows, want %d", got, users*each-1)
	}
	if got := count(t, conn, `SELECT count(*) FROM (SELECT (payload->>'n')::int AS n,
		lag((payload->>'n')::int) OVER (PARTITION BY user_id ORDER BY place) AS before FROM events) x WHERE n < before`); got != 0 {
		t.Errorf("%d events stand behind a later one of their user", got)
	}
	dead, err := e.Dead(t.Context(), engine.DeadQuery{Queue: event.Queue})
	if err != nil || len(dead) != 1 || dead[0].Message.ID != "user-3/30" || dead[0].Cause.Code != "23514" ||
		dead[0].Cause.Detail["column"] != "event_type" {
		t.Errorf("dead letters %+v, %v", dead, err)
	}
}

// send puts the users' events on the queue, mixed, one of them poison.
func send(t *testing.T, b *broker.Broker, users, each int) {
	t.Helper()
	var msgs []forebay.Message
	for n := range each {
		for u := range users {
			user := fmt.Sprintf("user-%d", u)
			ev := sample(n)
			ev.ID, ev.UserID = fmt.Sprintf("%s/%d", user, n), user
			if ev.ID == "user-3/30" {
				ev.Type = "poison"
			}
			payload, err := ev.Append(nil)
			if err != nil {
				t.Fatal(err)
			}
			msgs = append(msgs, forebay.Message{ID: ev.ID, Queue: event.Queue, Kind: ev.Type, Group: user, Payload: payload})
		}
	}
	results, err := b.Send(t.Context(), msgs)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range results {
		if r.Err != nil {
			t.Fatal(r.Err)
		}
	}
}
