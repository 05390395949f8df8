package ingest_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/badrow"
	"github.com/forebayhq/forebay/ingest"
)

// nowhere takes messages and forgets them: the cost of the edge alone.
type nowhere struct{}

func (nowhere) Send(_ context.Context, msgs []forebay.Message) ([]forebay.SendResult, error) {
	return make([]forebay.SendResult, len(msgs)), nil
}

func sampleEvent(i int) string {
	return fmt.Sprintf(`{"eventType":"screen_view","userId":"user-%06d","eventId":"0199a3f2-7c1e-7b51-9a07-%012d","occurredAt":"2026-11-29T11:59:58.123Z","payload":{"screen":"product_detail","sku":"A-%d","price":129.95,"currency":"EUR","referrer":"search","tags":["new","sale"],"os":"android 15"}}`, i%5000, i, i%977)
}

// discard is a ResponseWriter that costs nothing.
type discard struct{ h http.Header }

func (d *discard) Header() http.Header         { return d.h }
func (d *discard) Write(b []byte) (int, error) { return len(b), nil }
func (d *discard) WriteHeader(int)             {}

func benchmarkHandler(b *testing.B, h http.Handler, path string, body []byte) {
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	r, err := http.NewRequest("POST", path, nil)
	if err != nil {
		b.Fatal(err)
	}
	r.ContentLength = int64(len(body))
	w, src := &discard{h: http.Header{}}, bytes.NewReader(body)
	r.Body = io.NopCloser(src)
	for b.Loop() {
		src.Reset(body)
		h.ServeHTTP(w, r)
	}
}

func benchEdge(b *testing.B) http.Handler {
	bad, err := badrow.Open(filepath.Join(b.TempDir(), "bad.db"), badrow.Config{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { bad.Close() })
	e, err := ingest.New(ingest.Config{Sender: nowhere{}, Bad: bad})
	if err != nil {
		b.Fatal(err)
	}
	mux := http.NewServeMux()
	e.Register(mux)
	return mux
}

func BenchmarkEvent(b *testing.B) {
	benchmarkHandler(b, benchEdge(b), "/ingest/event", []byte(sampleEvent(1)))
}

func BenchmarkBatch100(b *testing.B) {
	var body bytes.Buffer
	for i := range 100 {
		fmt.Fprintln(&body, sampleEvent(i))
	}
	benchmarkHandler(b, benchEdge(b), "/ingest/batch", body.Bytes())
	b.ReportMetric(float64(b.N)*100/b.Elapsed().Seconds(), "events/s")
}

// BenchmarkBare is what the edge is measured against: the same JSON, decoded by
// the same decoder, and 202.
func BenchmarkBare(b *testing.B) {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /ingest/event", func(w http.ResponseWriter, r *http.Request) {
		var e struct {
			EventType  string         `json:"eventType"`
			Payload    jsontext.Value `json:"payload"`
			UserID     string         `json:"userId"`
			EventID    string         `json:"eventId"`
			OccurredAt string         `json:"occurredAt"`
		}
		if err := json.UnmarshalRead(r.Body, &e); err != nil || e.EventType == "" {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		w.WriteHeader(http.StatusAccepted)
		_, _ = io.WriteString(w, `{"messageId":"`+e.EventID+`"}`)
	})
	benchmarkHandler(b, mux, "/ingest/event", []byte(sampleEvent(1)))
}
