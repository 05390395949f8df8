//go:build e2e && linux

package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/forebayhq/forebay/internal/pgtest"
)

// The server is killed in the middle of replays, and goes on with them after its start:
// each event is in the database once, and came to the queue once. One that cannot go on,
// since the database hangs, does not keep the server from stopping.
func TestReplayWhileServerIsKilled(t *testing.T) {
	const thousands = 6
	pg := pgtest.Start(t, pgtest.Config{})
	url := pg.Database(t)
	s := newServer(t, "DATABASE_URL="+url)
	s.args = []string{"--set", "sink.batchAge=20ms", "--set", "queues.again.historyAge=1h"}
	s.start()
	var ids []string
	for range thousands {
		var batch []string
		for range 1000 {
			id := fmt.Sprintf("event-%05d", len(ids))
			ids = append(ids, id)
			batch = append(batch, fmt.Sprintf(`{"eventType":"past","eventId":%q,"payload":{}}`, id))
		}
		if status, text, err := post(t.Context(), s.url+"/ingest/batch", []byte("["+strings.Join(batch, ",")+"]"), nil); err != nil || status != http.StatusAccepted {
			t.Fatalf("%d %s, %v", status, text, err)
		}
	}
	db := connect(t, url)
	db.exactlyOnce(ids, time.Minute)
	db.exec("TRUNCATE events")
	written := func() int { return db.count("SELECT count(*) FROM events") }
	sent := func() int {
		return strings.Count(s.mustForebay("history", "export", "--of", "messages", "--queue", "again"), "\n")
	}

	for _, into := range []struct {
		args []string
		done func() int
	}{{[]string{"--into", "sink"}, written}, {[]string{"--into", "queue", "--name", "again"}, sent}} {
		var job struct{ JobID string }
		text := s.mustForebay(append([]string{"replay", "--rate", "2000", "--no-wait", "--json"}, into.args...)...)
		if err := json.Unmarshal([]byte(text), &job); err != nil {
			t.Fatal(err)
		}
		for kills := 1; kills <= 2; kills++ {
			if !eventually(t, time.Minute, func() bool { return into.done() >= kills*thousands*300 }) {
				t.Fatalf("%v stands still at %d", into.args, into.done())
			}
			s.kill()
			s.start()
		}
		j := s.await(job.JobID, time.Minute, "completed", "dead")
		if want := fmt.Sprintf(`"messages":%d`, len(ids)); j.State != "completed" || !strings.Contains(string(j.Result), want) {
			t.Errorf("%v ended as %s with %s", into.args, j.State, j.Result)
		}
		if n := into.done(); n != len(ids) {
			t.Errorf("%v: %d of %d events are there", into.args, n, len(ids))
		}
		if n := j.Deliveries; n < 2 {
			t.Errorf("%v was handed out %d times: no kill met it", into.args, n)
		}
	}
	db.exactlyOnce(ids, time.Second)

	if err := pg.Pause(); err != nil {
		t.Fatal(err)
	}
	defer pg.Resume()
	var job struct{ JobID string }
	s.must(http.StatusAccepted, http.MethodPost, "/api/history/replay", options{"into": "sink"}, &job)
	s.await(job.JobID, time.Minute, "active")
	if code := s.terminate(15 * time.Second); code != 0 {
		t.Errorf("SIGTERM ended the server with code %d: %s", code, tail(s.log))
	}
}
