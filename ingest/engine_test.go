package ingest_test

import (
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/broker"
	"github.com/forebayhq/forebay/engine"
	"github.com/forebayhq/forebay/engine/sqlite"
	"github.com/forebayhq/forebay/event"
	"github.com/forebayhq/forebay/ingest"
)

func openBroker(t testing.TB, path string) *broker.Broker {
	t.Helper()
	e, err := sqlite.Open(sqlite.Config{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	b, err := broker.New(e, broker.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	return b
}

// From requests to deliveries, through the real broker and engine.
func TestWhatWasAcceptedIsDelivered(t *testing.T) {
	b := openBroker(t, filepath.Join(t.TempDir(), "forebay.db"))
	r := newRig(t, func(c *ingest.Config) { c.Sender, c.Load = b, b })
	s := r.serve()
	post := func(path, body string) string {
		res, err := http.Post(s.URL+path, "", strings.NewReader(body))
		if err != nil {
			t.Error(err)
			return ""
		}
		defer res.Body.Close()
		answer, err := io.ReadAll(res.Body)
		if err != nil {
			t.Error(err)
		}
		return strings.TrimSpace(string(answer))
	}
	const users, each = 8, 40
	var all sync.WaitGroup
	for u := range users {
		all.Go(func() {
			for i := range each {
				one := fmt.Sprintf(`{"eventType":"a","userId":"u%d","eventId":"u%d-%d","payload":{"i":%d}}`, u, u, i, i)
				if i%2 == 0 {
					post("/ingest/event", one)
				} else {
					post("/ingest/batch", "["+one+`,{"eventType":"bad"}]`)
				}
			}
		})
	}
	all.Wait()
	if got := post("/ingest/event", `{"eventType":"a","userId":"u0","eventId":"u0-0","payload":{"i":0}}`); got != `{"messageId":"u0-0","duplicate":true}` {
		t.Errorf("sent again: %s", got)
	}
	if got := post("/ingest/event", `{"eventType":"a","userId":"u0","eventId":"u0-0","payload":{"i":1}}`); !strings.HasPrefix(got, `{"messageId":"u0-0","duplicate":true,"results":[{"index":0,"id":"u0-0","status":"duplicate","code":"conflict"`) {
		t.Errorf("sent again with another payload: %s", got)
	}
	next := map[string]int{}
	for n := 0; n < users*each; {
		ds, err := b.Receive(t.Context(), engine.Receive{Queue: event.Queue, Max: 1000})
		if err != nil || len(ds) == 0 {
			t.Fatalf("after %d of %d: %d deliveries, %v", n, users*each, len(ds), err)
		}
		var done []forebay.Settlement
		for _, d := range ds {
			e, err := event.Decode(d.Payload)
			if err != nil {
				t.Fatal(err)
			}
			if want := fmt.Sprintf("%s-%d", e.UserID, next[e.UserID]); e.ID != want || d.ID != want || d.Group != e.UserID {
				t.Fatalf("got %s, want %s", e.ID, want)
			}
			next[e.UserID]++
			done = append(done, forebay.Settlement{Receipt: d.Receipt, Verdict: forebay.Ack})
		}
		if _, err := b.Settle(t.Context(), done); err != nil {
			t.Fatal(err)
		}
		n += len(ds)
	}
	if n := len(r.badRows()); n != users*each/2 {
		t.Errorf("%d bad rows", n)
	}
	b.Drain()
	if got := post("/ingest/event", anEvent); !strings.Contains(got, `"status":503`) || !strings.Contains(got, `"code":"closed"`) {
		t.Errorf("draining: %s", got)
	}
}
