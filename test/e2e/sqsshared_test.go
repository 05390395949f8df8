//go:build e2e && linux

package e2e

import (
	"errors"
	"fmt"
	"net/http"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/forebayhq/forebay/internal/pgtest"
)

// shared is a server whose events go through the queue of another one, as through AWS.
func shared(t *testing.T, queue *server, url, role string, env ...string) *server {
	t.Helper()
	s := newServer(t, append(append(queue.awsEnv(), "AWS_SQS_QUEUE_URL="+url), env...)...)
	s.args = []string{"--roles", role}
	s.start()
	return s
}

func postEvents(t *testing.T, s *server, begin, n int) {
	t.Helper()
	for i := begin; i < begin+n; i += 10 {
		var body strings.Builder
		for k := i; k < i+10; k++ {
			fmt.Fprintf(&body, `{"eventType":"step","eventId":"e%d","userId":"u%d","payload":{"n":%d}}`+"\n", k, k%7, k)
		}
		resp, err := http.Post(s.url+"/ingest/batch", "application/x-ndjson", strings.NewReader(body.String()))
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != http.StatusAccepted {
			t.Fatalf("a batch was answered with %s", resp.Status)
		}
	}
}

// One server takes events in, two others write them; the queue between them is away for
// a while, one of the writers is killed, and all events are in the table once.
func TestEventsOverSharedQueue(t *testing.T) {
	const before, during, after = 500, 500, 500
	queue := sqsServer(t)
	c := queue.sqsClient()
	url := queue.makeQueue(c, "app-events", map[string]string{"VisibilityTimeout": "5"})
	database := pgtest.Database(t)
	edge := shared(t, queue, url, "ingest")
	lease := "FOREBAY_QUEUES_EVENTS_LEASE=5s"
	first := shared(t, queue, url, "worker", "DATABASE_URL="+database, lease)
	shared(t, queue, url, "worker", "DATABASE_URL="+database, lease)
	db := connect(t, database)

	postEvents(t, edge, 0, before)
	if !eventually(t, time.Minute, func() bool { return db.count(`SELECT count(*) FROM events`) == before }) {
		t.Fatalf("%d of %d events are written", db.count(`SELECT count(*) FROM events`), before)
	}

	queue.kill()
	postEvents(t, edge, before, during) // the queue is away: the outbox takes them
	if !edge.ready() {
		t.Error("the edge says that it is not ready while the queue is away")
	}
	for path, want := range map[string]string{
		"/readyz":  `"name":"shared queue","ok":false,"optional":true`,
		"/metrics": `forebay_outbox_messages{queue="events"} 500`,
	} {
		if _, body, err := get(t.Context(), edge.url+path); err != nil || !strings.Contains(string(body), want) {
			t.Errorf("%s does not tell %s while the queue is away: %v\n%s", path, want, err, body)
		}
	}
	first.kill()
	queue.start()
	postEvents(t, edge, before+during, after)
	all := before + during + after
	if !eventually(t, 2*time.Minute, func() bool { return db.count(`SELECT count(*) FROM events`) >= all }) {
		t.Fatalf("%d of %d events are written", db.count(`SELECT count(*) FROM events`), all)
	}
	if n := db.count(`SELECT count(DISTINCT event_id) FROM events`); n != all || db.count(`SELECT count(*) FROM events`) != all {
		t.Errorf("%d different events of %d rows, want %d", n, db.count(`SELECT count(*) FROM events`), all)
	}
	if code := edge.terminate(30 * time.Second); code != 0 {
		t.Errorf("the edge ended with %d", code)
	}
}

// On a FIFO queue the events of a user keep their order, and each role does its own.
func TestEventsOverFIFOQueue(t *testing.T) {
	const events = 700
	queue := sqsServer(t)
	url := queue.makeQueue(queue.sqsClient(), "app-events.fifo", map[string]string{
		"FifoQueue": "true", "DeduplicationScope": "messageGroup", "FifoThroughputLimit": "perMessageGroupId",
	})
	database := pgtest.Database(t)
	edge := shared(t, queue, url, "ingest")
	postEvents(t, edge, 0, events)
	writer := shared(t, queue, url, "worker", "DATABASE_URL="+database)
	db := connect(t, database)
	if !eventually(t, time.Minute, func() bool { return db.count(`SELECT count(*) FROM events`) == events }) {
		t.Fatal("not all events are written")
	}
	// Rows are written in the order in which they were taken: the place of a row in the
	// table grows with the number of its event, user by user.
	if n := db.count(`SELECT count(*) FROM (SELECT ctid, lag(ctid) OVER (PARTITION BY user_id ORDER BY (payload->>'n')::int) AS last FROM events) AS o WHERE o.ctid < o.last`); n != 0 {
		t.Errorf("%d events were written before an earlier one of their user", n)
	}
	for url, want := range map[string]int{
		edge.url + "/healthz": 200, edge.url + "/api/queues": 404, writer.url + "/ingest/event": 404, writer.url + "/readyz": 200,
	} {
		resp, err := http.Get(url)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != want {
			t.Errorf("%s answers %d, want %d", url, resp.StatusCode, want)
		}
	}
	out := doctorOf(t, writer, append(queue.awsEnv(), "AWS_SQS_QUEUE_URL="+url))
	for _, want := range []string{"no redrive policy", "requests a message"} {
		if !strings.Contains(out, want) {
			t.Errorf("the doctor does not say %q:\n%s", want, out)
		}
	}
}

// doctorOf runs the doctor on a server's data folder and gives what it says. It fails
// where it finds something, which is not the question here.
func doctorOf(t *testing.T, s *server, env []string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), binary, "doctor", "--data", s.data)
	cmd.Env = append(cleanEnv(), env...)
	out, err := cmd.CombinedOutput()
	var failed *exec.ExitError
	if err != nil && !errors.As(err, &failed) {
		t.Fatal(err)
	}
	return string(out)
}

// Events that wait when the settings change arrive all the same: those of the time
// without a shared queue go through it, those of its outbox are written here.
func TestEventsOfAnEarlierSetting(t *testing.T) {
	const events = 50
	queue := sqsServer(t)
	c := queue.sqsClient()
	url := queue.makeQueue(c, "app-events", nil)
	database := pgtest.Database(t)
	db := connect(t, database)

	// Without a queue, and with a database that is away: they wait here.
	s := newServer(t, "DATABASE_URL=postgres://nobody:x@127.0.0.1:1/none?connect_timeout=1")
	s.start()
	postEvents(t, s, 0, events)
	s.terminate(30 * time.Second)
	s.env = append(queue.awsEnv(), "AWS_SQS_QUEUE_URL="+url, "DATABASE_URL="+database)
	s.start()
	all := func(n int) func() bool {
		return func() bool { return db.count(`SELECT count(DISTINCT event_id) FROM events`) == n }
	}
	if !eventually(t, time.Minute, all(events)) {
		t.Fatalf("%d of %d events are written", db.count(`SELECT count(*) FROM events`), events)
	}

	// With a queue that is away: they wait in the outbox.
	queue.kill()
	postEvents(t, s, events, events)
	s.terminate(30 * time.Second)
	s.env = []string{"DATABASE_URL=" + database}
	s.start()
	if !eventually(t, time.Minute, all(2*events)) {
		t.Fatalf("%d of %d events are written", db.count(`SELECT count(*) FROM events`), 2*events)
	}
	if n := db.count(`SELECT count(*) FROM events`); n != 2*events {
		t.Errorf("%d rows for %d events", n, 2*events)
	}
}
