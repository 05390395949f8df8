//go:build e2e && linux

package e2e

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/forebayhq/forebay/internal/pgtest"
)

// A deploy under load: SIGTERM, exit 0, a new start. What was acknowledged is in
// the database exactly once; clients that repeat are not counted twice.
func TestDeployUnderLoad(t *testing.T) {
	url := pgtest.Database(t)
	s := serve(t, url)
	crowd := &load{users: 64, every: 2 * time.Millisecond}
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { crowd.run(ctx, s) })
	defer running.Wait()
	defer stop()

	for range 3 {
		wait(t, 2*time.Second)
		if code := s.terminate(45 * time.Second); code != 0 {
			t.Errorf("SIGTERM ended the server with code %d: %s", code, tail(s.log))
		}
		s.start()
	}
	wait(t, time.Second)
	stop()
	running.Wait()
	t.Logf("%d events acknowledged, %d requests refused or cut off", len(crowd.acked), crowd.other)
	connect(t, url).exactlyOnce(crowd.acked, time.Minute)
	if dead := s.dead(); len(dead) != 0 {
		t.Errorf("%d dead letters, the first: %v", len(dead), dead[0])
	}
}
