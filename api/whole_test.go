package api_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/api"
	"github.com/forebayhq/forebay/badrow"
	"github.com/forebayhq/forebay/event"
	"github.com/forebayhq/forebay/ingest"
	"github.com/forebayhq/forebay/keyring"
	sqlitesink "github.com/forebayhq/forebay/sink/sqlite"
	"github.com/forebayhq/forebay/worker"
)

// whole is a server with edge, worker and sink, as the program wires it.
type whole struct {
	*server
	edge    string       // its address
	settled chan *string // the id of each delivery that was settled
}

func startWhole(t *testing.T) *whole {
	t.Helper()
	w := &whole{settled: make(chan *string, 100)}
	table := must[*sqlitesink.Sink](t)(sqlitesink.Open(filepath.Join(t.TempDir(), "events.db"), sqlitesink.Config{}))
	t.Cleanup(func() { table.Close() })
	mux := http.NewServeMux()
	late := &lateEdge{}
	w.server = start(t, func(c *api.Config) { c.Sink, c.Edge = table, late })
	late.Edge = must[*ingest.Edge](t)(ingest.New(ingest.Config{Sender: w.broker, Bad: w.bad, Keys: w.ring}))
	late.Register(mux)
	h := httptest.NewServer(mux)
	t.Cleanup(h.Close)
	w.edge = h.URL

	run := must[*worker.Worker](t)(worker.New(w.broker, worker.Config{Queue: event.Queue, Batch: table, Observe: worker.Observe{
		Settled: func(o worker.Outcome) { w.settled <- &o.Delivery.ID },
	}}))
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- run.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return w
}

// lateEdge lets the API be made before the edge that needs its parts.
type lateEdge struct{ *ingest.Edge }

func (w *whole) post(t *testing.T, secret, body string) int {
	t.Helper()
	req := must[*http.Request](t)(http.NewRequestWithContext(t.Context(), "POST", w.edge+"/ingest/batch", strings.NewReader(body)))
	if secret != "" {
		req.Header.Set("Authorization", "Bearer "+secret)
	}
	resp := must[*http.Response](t)(http.DefaultClient.Do(req))
	resp.Body.Close()
	return resp.StatusCode
}

func TestEventsAreFoundWhereTheyAre(t *testing.T) {
	t.Parallel()
	w := startWhole(t)
	status := w.post(t, "", `[
		{"eventId":"good","eventType":"t","payload":{"a":[1,2.50]},"userId":"u1"},
		{"eventId":"bad","payload":{}}]`)
	if status != 202 || *<-w.settled != "good" {
		t.Fatalf("status %d", status)
	}
	// A message that is no event, from another producer, is refused by the sink.
	w.send(t, forebay.Message{ID: "poison", Queue: event.Queue, Kind: "t", Payload: []byte("\x00not json")})
	<-w.settled

	good := must[api.EventPlace](t)(w.Event(t.Context(), "good"))
	if good.State != api.StateWritten || good.Event.UserID != "u1" || string(good.Event.Payload) != `{"a":[1,2.50]}` {
		t.Errorf("%+v %+v", good, good.Event)
	}
	if bad := must[api.EventPlace](t)(w.Event(t.Context(), "bad")); bad.State != api.StateRejected {
		t.Errorf("%+v", bad)
	}
	poison := must[api.EventPlace](t)(w.Event(t.Context(), "poison"))
	if poison.State != api.StateDead {
		t.Fatalf("%+v", poison)
	}
	letter := must[api.DeadLetter](t)(w.DeadLetter(t.Context(), poison.Places[2].Seq))
	if string(letter.Message.Payload.Base64) != "\x00not json" {
		t.Errorf("%+v", letter)
	}

	// A bad row that is still bad says why, and stays.
	out := must[api.Outcome](t)(w.ReplayBad(t.Context(), api.BadReplay{Selection: api.Selection{All: true}}))
	if out.Done != 0 || out.FailedCount != 1 || out.Failed[0].Code != "missing" || !strings.Contains(out.Failed[0].Message, "eventType") {
		t.Errorf("%+v", out)
	}
	// What the edge takes by now is sent, is written, and is a bad row no more.
	mended := badrow.Row{At: time.Now(), Dialect: "native", EventID: "mended", Code: "schema_violation", Bytes: []byte(`{"eventId":"mended","eventType":"t","payload":{}}`)}
	if err := w.bad.Put(t.Context(), []badrow.Row{mended}); err != nil {
		t.Fatal(err)
	}
	out = must[api.Outcome](t)(w.ReplayBad(t.Context(), api.BadReplay{Selection: api.Selection{All: true}, BadFilter: api.BadFilter{Code: "schema_violation"}}))
	if out.Done != 1 || out.FailedCount != 0 || *<-w.settled != "mended" {
		t.Fatalf("%+v", out)
	}
	if v := must[api.EventPlace](t)(w.Event(t.Context(), "mended")); v.State != api.StateWritten || v.Places[0].Found {
		t.Errorf("%+v", v)
	}
}

func TestAKeyClosesTheEdge(t *testing.T) {
	t.Parallel()
	w := startWhole(t)
	const one = `[{"eventType":"t","payload":{}}]`
	if status := w.post(t, "", one); status != 202 {
		t.Fatalf("without keys: %d", status)
	}
	added := must[api.AddedKey](t)(w.AddKey(t.Context(), api.NewKey{Name: "ios", DailyQuota: 2}))
	for i, want := range []int{202, 202, 429} {
		if status := w.post(t, added.Secret, one); status != want {
			t.Errorf("request %d: %d, want %d", i, status, want)
		}
	}
	if status := w.post(t, "", one); status != 401 {
		t.Errorf("without the key: %d", status)
	}
	admin := w.with(t, token)
	keys := must[[]api.Key](t)(admin.Keys(t.Context()))
	if keys[0].UsedToday != 2 {
		t.Errorf("%+v", keys)
	}
	must[api.Key](t)(admin.RevokeKey(t.Context(), added.Key.ID))
	if status := w.post(t, added.Secret, one); status != 401 {
		t.Errorf("with the revoked key: %d", status)
	}
	if _, err := w.ring.Authenticate(added.Secret, keyring.ScopeIngest); err == nil {
		t.Error("the ring still takes it")
	}
	for range 3 {
		select {
		case <-w.settled:
		case <-time.After(time.Minute):
			t.Fatal("not all that was accepted was written")
		}
	}
}
