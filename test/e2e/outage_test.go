//go:build e2e && linux

package e2e

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/forebayhq/forebay/internal/pgtest"
)

// The database goes away for 30 s under load. Clients notice nothing; afterwards
// everything is written, each user's events in their order, and nothing is dead.
func TestDatabaseOutage(t *testing.T) {
	const quiet, outage = 10 * time.Second, 30 * time.Second
	pg := pgtest.Start(t, pgtest.Config{})
	url := pg.Database(t)
	s := serve(t, url)

	crowd := &load{users: 50, every: 100 * time.Millisecond}
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { crowd.run(ctx, s) })
	defer running.Wait()
	defer stop()

	wait(t, quiet)
	before := crowd.lap(quiet)
	pg.Stop()
	wait(t, outage)
	during := crowd.lap(outage)
	if err := pg.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	wait(t, quiet)
	stop()
	running.Wait()

	t.Logf("before: %.0f/s, p50 %s, p99 %s; during: %.0f/s, p50 %s, p99 %s", before.Rate(), before.P50, before.P99, during.Rate(), during.P50, during.P99)
	if during.Rate() < 0.9*before.Rate() {
		t.Errorf("accepted %.0f/s while the database was away, %.0f/s before", during.Rate(), before.Rate())
	}
	if during.P99 > 10*before.P99 {
		t.Errorf("p99 %s while the database was away, %s before", during.P99, before.P99)
	}
	if crowd.other > 0 {
		t.Errorf("%d requests were not accepted", crowd.other)
	}
	db := connect(t, url)
	db.exactlyOnce(crowd.acked, time.Minute)
	inOrder(t, db)
	if n := s.dead(); len(n) != 0 {
		t.Errorf("%d dead letters, the first: %v", len(n), n[0])
	}
}

// inOrder reads the table in the order of the transactions that wrote it, and
// checks each user's events. Within one transaction they appear at once.
func inOrder(t *testing.T, db *database) {
	t.Helper()
	last := map[string]string{}
	for _, id := range db.column(`SELECT event_id FROM events WHERE event_type = 'load' ORDER BY xmin::text::bigint, event_id`) {
		user, n, _ := strings.Cut(strings.TrimPrefix(id, "user-"), "-")
		if n <= last[user] {
			t.Errorf("user %s: event %s was written after %s", user, n, last[user])
		}
		last[user] = n
	}
}

func wait(t *testing.T, d time.Duration) {
	t.Helper()
	select {
	case <-time.After(d):
	case <-t.Context().Done():
	}
}
