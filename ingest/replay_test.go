package ingest_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/forebayhq/forebay/badrow"
	"github.com/forebayhq/forebay/event"
	"github.com/forebayhq/forebay/ingest"
	"github.com/forebayhq/forebay/keyring"
)

func TestReplaySendsWhatPassesNow(t *testing.T) {
	schemas, err := ingest.LoadSchemas(schemaDir(t, goodSchemas), ingest.Enforce)
	if err != nil {
		t.Fatal(err)
	}
	strict := newRig(t, func(c *ingest.Config) { c.Schemas = schemas })
	_, secret := strict.key(keyring.Spec{Name: "shop"})
	auth := "X-Write-Key: " + secret
	strict.post("/ingest/event", `{"eventType":"purchase","payload":{"total":5},"userId":"u1"}`, auth)
	strict.post("/v1/t", `{"event":"Order/Completed","messageId":"m1","sentAt":"2026-11-29T12:00:00Z"}`, auth)
	strict.post("/ingest/batch", `[{"eventType":"still bad","payload":7,"eventId":"b"}]`, auth)
	strict.post("/ingest/cloudevents", `{"specversion":"1.0","id":"1","source":"s","type":"com.example"}`, auth)
	rows := strict.badRows()
	if len(rows) != 4 {
		t.Fatalf("bad rows %+v", rows)
	}
	rows = append(rows, badrow.Row{Dialect: "klingon", Bytes: []byte("{}")}, badrow.Row{Dialect: "native", Bytes: []byte(`{"eventType":"a","payload":{}`), Cut: true})

	lax, err := ingest.New(ingest.Config{Sender: strict.queue, Bad: strict.bad, Keys: strict.keys, Now: func() time.Time { return noon.Add(time.Hour) }})
	if err != nil {
		t.Fatal(err)
	}
	var first []ingest.Result
	for round := range 2 {
		results, err := lax.Replay(t.Context(), rows)
		if err != nil || len(results) != len(rows) {
			t.Fatal(results, err)
		}
		want := []ingest.Status{ingest.Accepted, ingest.Accepted, ingest.Rejected, ingest.Accepted, ingest.Rejected, ingest.Rejected}
		if round == 1 { // repeating it is harmless, also for an event without an id
			want = []ingest.Status{ingest.Duplicate, ingest.Duplicate, ingest.Rejected, ingest.Duplicate, ingest.Rejected, ingest.Rejected}
		}
		for i, r := range results {
			if r.Status != want[i] || r.Index != i || (r.Status == ingest.Rejected) != (r.Message != "" && r.Code != "conflict") {
				t.Errorf("round %d, row %d: %+v, want %s", round, i, r, want[i])
			}
			if round == 1 && r.ID != first[i].ID {
				t.Errorf("row %d: the id was %s and is %s", i, first[i].ID, r.ID)
			}
		}
		first = results
	}
	if n := len(strict.queue.events); n != 3 {
		t.Fatalf("%d events queued", n)
	}
	for i, want := range []event.Event{
		{Type: "purchase", UserID: "u1", Source: "shop/native"},
		{ID: "m1", Type: "Order/Completed", Source: "shop/segment"},
		{ID: "s#1", Type: "com.example", Source: "shop/cloudevents"},
	} {
		e := strict.queue.events[i]
		if e.Type != want.Type || e.UserID != want.UserID || e.Source != want.Source || want.ID != "" && e.ID != want.ID || !e.ReceivedAt.Equal(noon) {
			t.Errorf("event %d: %+v", i, e)
		}
	}
	if len(strict.badRows()) != 4 {
		t.Error("Replay touched the rows")
	}
}

func TestReplayOfManyGoesInParts(t *testing.T) {
	r := newRig(t, func(c *ingest.Config) { c.Limits.Events, c.Limits.DecodedBytes = 10, 4096 })
	var rows []badrow.Row
	for i := range 35 {
		rows = append(rows, badrow.Row{At: noon, Dialect: "native", Bytes: fmt.Appendf(nil, `{"eventType":"a","payload":{"pad":%q},"eventId":"e%d"}`, strings.Repeat("x", 100*i), i)})
	}
	results, err := r.edge.Replay(t.Context(), rows)
	if err != nil || len(results) != 35 || len(r.queue.msgs) != 35 {
		t.Fatalf("%d results, %d queued, %v", len(results), len(r.queue.msgs), err)
	}
	for i, res := range results {
		if res.Index != i || res.ID != fmt.Sprintf("e%d", i) || res.Status != ingest.Accepted {
			t.Errorf("row %d: %+v", i, res)
		}
	}
	if results, err := r.edge.Replay(t.Context(), nil); err != nil || len(results) != 0 {
		t.Errorf("nothing: %v, %v", results, err)
	}
}

// Two equal events of one request are two, also once they come from bad rows.
func TestReplayKeepsEqualEventsApart(t *testing.T) {
	r := newRig(t, nil)
	bad := `{"specversion":"1.0","payload":{}}`
	r.post("/ingest/batch", "["+bad+","+bad+"]")
	rows := r.badRows()
	for i := range rows { // the cause is mended
		rows[i].Bytes = []byte(`{"eventType":"a","payload":{}}`)
	}
	for round, want := range []ingest.Status{ingest.Accepted, ingest.Duplicate} {
		results, err := r.edge.Replay(t.Context(), rows)
		if err != nil || len(results) != 2 || results[0].Status != want || results[1].Status != want || results[0].ID == results[1].ID {
			t.Errorf("round %d: %+v %v", round, results, err)
		}
	}
}

func TestARowThatIsCutSaysSo(t *testing.T) {
	r := newRig(t, nil)
	r.post("/ingest/batch", gzipped(t, "["+anEvent+`,{"eventType":"a","payload":{"pad":"`+strings.Repeat("abcdefgh", 150_000)+`"}}]`))
	rows := r.badRows()
	if len(rows) != 1 || !rows[0].Cut || len(rows[0].Bytes) != badrow.MaxRowBytes {
		t.Fatalf("%d rows", len(rows))
	}
	results, err := r.edge.Replay(t.Context(), rows)
	if err != nil || results[0].Code != "too_large" || !strings.Contains(results[0].Message, "beginning") {
		t.Errorf("%+v %v", results, err)
	}
}

// The clock of a phone is corrected for what comes from bad rows, too, also where
// only the batch said when it was sent.
func TestReplayCorrectsClocks(t *testing.T) {
	r := newRig(t, nil)
	event := `{"eventType":"a","eventId":"%s","occurredAt":"2016-11-29T11:00:00Z"%s}`
	body := `{"sentAt":"2016-11-29T12:00:00Z","batch":[` + fmt.Sprintf(event, "1", "") + `,` +
		fmt.Sprintf(event, "2", `,"sentAt":"2016-11-29T11:30:00Z"`) + `,7,{"a":{]}]}`
	if status, answer := r.post("/ingest/batch", body); status != 202 || !strings.Contains(answer, `"rejected":4`) {
		t.Fatal(status, answer)
	}
	rows := r.badRows()
	if string(rows[2].Bytes) != "7" || string(rows[3].Bytes) != `{"a":{]}` {
		t.Errorf("what is no object is kept as it came: %s, %s", rows[2].Bytes, rows[3].Bytes)
	}
	for i := range rows[:2] { // the cause is mended
		rows[i].Bytes = []byte(strings.Replace(string(rows[i].Bytes), `"eventType"`, `"payload":{},"eventType"`, 1))
	}
	if _, err := r.edge.Replay(t.Context(), rows[:2]); err != nil || len(r.queue.events) != 2 {
		t.Fatalf("%v, %d events", err, len(r.queue.events))
	}
	for i, want := range []time.Time{noon.Add(-time.Hour), noon.Add(-30 * time.Minute)} {
		if e := r.queue.events[i]; !e.OccurredAt.Equal(want) || e.OriginalAt.IsZero() || e.SentAt.IsZero() {
			t.Errorf("%+v, want %s", e, want)
		}
	}
}
