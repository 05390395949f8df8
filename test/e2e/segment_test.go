//go:build e2e && linux

package e2e

import (
	"bufio"
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/forebayhq/forebay/internal/pgtest"
)

// The unmodified Segment client sends 10,000 events while the server is killed
// five times. Nothing is lost and nothing doubled.
func TestSegmentClientWhileServerIsKilled(t *testing.T) {
	const events, kills = 10_000, 5
	url := pgtest.Database(t)
	s := serve(t, url)

	node := exec.CommandContext(t.Context(), "node", "segment.mjs", s.url, fmt.Sprint(events))
	out, err := node.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var complaints strings.Builder
	node.Stderr = &complaints
	if err := node.Start(); err != nil {
		t.Fatal(err)
	}
	killed := 0
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		var delivered int
		switch _, err := fmt.Sscanf(lines.Text(), "delivered %d", &delivered); {
		case err == nil && killed < kills && delivered >= (killed+1)*events/(kills+1):
			s.kill()
			s.start()
			killed++
		case strings.HasPrefix(lines.Text(), "failed"):
			t.Error("the client gave up: ", lines.Text())
		}
	}
	if err := node.Wait(); err != nil {
		t.Fatalf("node: %v: %s", err, complaints.String())
	}
	if killed != kills {
		t.Errorf("the server was killed %d times, want %d", killed, kills)
	}

	db := connect(t, url)
	if !eventually(t, time.Minute, func() bool { return db.count(`SELECT count(*) FROM events`) >= events }) {
		t.Errorf("%d of %d events are in the database", db.count(`SELECT count(*) FROM events`), events)
	}
	if n := db.count(`SELECT count(*) FROM events`); n > events {
		t.Errorf("%d events are in the database: some twice", n)
	}
	if n := db.count(`SELECT count(DISTINCT payload->'properties'->>'n') FROM events`); n != events {
		t.Errorf("%d different events are in the database, want %d", n, events)
	}
}
