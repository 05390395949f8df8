//go:build e2e && linux

package e2e

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/forebayhq/forebay/bench"
)

var client = &http.Client{
	Timeout:   10 * time.Second,
	Transport: &http.Transport{MaxIdleConnsPerHost: 256, MaxConnsPerHost: 0},
}

func get(ctx context.Context, url string) (int, string, error) {
	return do(ctx, http.MethodGet, url, nil, nil)
}

func post(ctx context.Context, url string, body []byte, header http.Header) (int, string, error) {
	return do(ctx, http.MethodPost, url, body, header)
}

func do(ctx context.Context, method, url string, body []byte, header http.Header) (int, string, error) {
	req, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(body))
	if err != nil {
		return 0, "", err
	}
	for name, values := range header {
		req.Header[name] = values
	}
	res, err := client.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	return res.StatusCode, string(b), err
}

// load is a crowd of users, each of whom sends an event, waits for the answer and
// sends the next; one that was not accepted is sent again, with the same id.
type load struct {
	users int
	every time.Duration // between two events of one user

	mu    sync.Mutex
	acked []string        // event ids that were answered with 202
	times []time.Duration // of those answers
	other int             // requests that ended in another way
}

// run sends until ctx ends.
func (l *load) run(ctx context.Context, s *server) {
	var users sync.WaitGroup
	for u := range l.users {
		users.Go(func() {
			again := time.NewTicker(l.every)
			defer again.Stop()
			for n := 0; ctx.Err() == nil; {
				if l.send(ctx, s, fmt.Sprintf("user-%03d", u), n) {
					n++
				}
				select {
				case <-again.C:
				case <-ctx.Done():
				}
			}
		})
	}
	users.Wait()
}

func (l *load) send(ctx context.Context, s *server, user string, n int) bool {
	id := fmt.Sprintf("%s-%06d", user, n)
	body := fmt.Appendf(nil, `{"eventType":"load","eventId":%q,"userId":%q,"payload":{"n":%d}}`, id, user, n)
	before := time.Now()
	status, _, err := post(ctx, s.url+"/ingest/event", body, nil)
	l.mu.Lock()
	defer l.mu.Unlock()
	if err != nil || status != http.StatusAccepted {
		if ctx.Err() == nil { // else it was cut off by the end of the test
			l.other++
		}
		return false
	}
	l.acked = append(l.acked, id)
	l.times = append(l.times, time.Since(before))
	return true
}

// lap gives the figures since the last lap.
func (l *load) lap(took time.Duration) bench.Result {
	l.mu.Lock()
	defer l.mu.Unlock()
	slices.Sort(l.times)
	r := bench.Result{N: len(l.times), Took: took, P50: bench.Quantile(l.times, 0.5), P99: bench.Quantile(l.times, 0.99)}
	l.times = nil
	return r
}

// database is a look at what was written.
type database struct {
	t    *testing.T
	conn *pgx.Conn
}

func connect(t *testing.T, url string) *database {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return &database{t, conn}
}

func (d *database) exec(sql string, args ...any) {
	d.t.Helper()
	if _, err := d.conn.Exec(d.t.Context(), sql, args...); err != nil {
		d.t.Fatalf("%s: %v", sql, err)
	}
}

func (d *database) count(sql string, args ...any) int {
	d.t.Helper()
	var n int
	if err := d.conn.QueryRow(d.t.Context(), sql, args...).Scan(&n); err != nil {
		d.t.Fatalf("%s: %v", sql, err)
	}
	return n
}

func (d *database) column(sql string, args ...any) []string {
	d.t.Helper()
	rows, err := d.conn.Query(d.t.Context(), sql, args...)
	if err != nil {
		d.t.Fatalf("%s: %v", sql, err)
	}
	values, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		d.t.Fatalf("%s: %v", sql, err)
	}
	return values
}

// exactlyOnce checks that every acknowledged event is there, and none twice.
func (d *database) exactlyOnce(acked []string, within time.Duration) {
	d.t.Helper()
	slices.Sort(acked)
	var lost []string
	there := func() bool {
		written := map[string]bool{}
		for _, id := range d.column(`SELECT event_id FROM events`) {
			written[id] = true
		}
		lost = slices.DeleteFunc(slices.Clone(acked), func(id string) bool { return written[id] })
		return len(lost) == 0
	}
	if !eventually(d.t, within, there) {
		d.t.Errorf("%d of %d acknowledged events are not in the database, the first: %s", len(lost), len(acked), lost[0])
	}
	if doubled := d.column(`SELECT event_id FROM events GROUP BY event_id HAVING count(*) > 1`); len(doubled) > 0 {
		d.t.Errorf("%d events are there twice, the first: %s", len(doubled), doubled[0])
	}
}
