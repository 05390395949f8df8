package ingest_test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/badrow"
	"github.com/forebayhq/forebay/event"
	"github.com/forebayhq/forebay/ingest"
)

// fuzzed is an edge that keeps what became of one request.
type fuzzed struct {
	mux    *http.ServeMux
	queued []forebay.Message
	bad    []badrow.Row
}

func (z *fuzzed) Send(_ context.Context, msgs []forebay.Message) ([]forebay.SendResult, error) {
	results := make([]forebay.SendResult, len(msgs))
	for i, m := range msgs {
		results[i].ID = m.ID
		m.Payload = slices.Clone(m.Payload)
		z.queued = append(z.queued, m)
	}
	return results, nil
}

func (z *fuzzed) Put(_ context.Context, rows []badrow.Row) error {
	z.bad = append(z.bad, rows...)
	return nil
}

func newFuzzed(f *testing.F) *fuzzed {
	z := &fuzzed{mux: http.NewServeMux()}
	e, err := ingest.New(ingest.Config{Sender: z, Bad: z, Now: func() time.Time { return noon }})
	if err != nil {
		f.Fatal(err)
	}
	e.Register(z.mux)
	return z
}

// counts is what an answer of our own routes says.
type counts struct {
	Accepted  int             `json:"accepted"`
	Rejected  int             `json:"rejected"`
	MessageID string          `json:"messageId"`
	Results   []ingest.Result `json:"results"`
}

// post sends a body and checks what must hold whatever it is: the answer is known
// and is JSON, a refusal leaves nothing, every event is queued or a bad row, and
// what is queued is an event that any sink can store.
func (z *fuzzed) post(t *testing.T, path string, body []byte, header http.Header) (int, counts) {
	t.Helper()
	z.queued, z.bad = nil, nil
	r := httptest.NewRequest("POST", path, bytes.NewReader(body))
	if header != nil {
		r.Header = header
	}
	w := httptest.NewRecorder()
	z.mux.ServeHTTP(w, r)
	answer, err := io.ReadAll(w.Body)
	if err != nil {
		t.Fatal(err)
	}
	var c counts
	if err := json.Unmarshal(answer, &c); err != nil {
		t.Fatalf("the answer is not JSON: %v: %s", err, answer)
	}
	switch w.Code {
	case 200:
		return w.Code, c
	case 202:
		if c.MessageID == "" && (c.Accepted != len(z.queued) || c.Rejected != len(z.bad)) {
			t.Fatalf("%s, but %d queued and %d bad", answer, len(z.queued), len(z.bad))
		}
	case 400, 413, 415:
		if len(z.queued)+len(z.bad) > 0 {
			t.Fatalf("%d left something behind", w.Code)
		}
	default:
		t.Fatalf("status %d %s", w.Code, answer)
	}
	for _, m := range z.queued {
		checkStorable(t, m)
	}
	return w.Code, c
}

func checkStorable(t *testing.T, m forebay.Message) {
	t.Helper()
	e, err := event.Decode(m.Payload)
	if err != nil {
		t.Fatalf("queued what does not decode: %v: %q", err, m.Payload)
	}
	if e.ID != m.ID || m.ID == "" || len(m.ID) > forebay.MaxIDBytes || len(m.Group) > forebay.MaxIDBytes || m.Kind == "" || len(m.Kind) > forebay.MaxKindBytes || len(m.Payload) > forebay.MaxPayloadBytes {
		t.Fatalf("message %+v", m)
	}
	if len(e.Payload) == 0 || e.Payload[0] != '{' || !utf8.Valid(m.Payload) || strings.ContainsRune(e.Type+e.UserID+e.ID+m.Group, 0) {
		t.Fatalf("event %+v", e)
	}
	d := jsontext.NewDecoder(bytes.NewReader(e.Payload))
	for {
		tok, err := d.ReadToken()
		if err == io.EOF {
			return
		}
		if err != nil {
			t.Fatalf("payload %s: %v", e.Payload, err)
		}
		if tok.Kind() == '"' && strings.ContainsRune(tok.String(), 0) {
			t.Fatalf("payload %s has a NUL", e.Payload)
		}
	}
}

func seeds(f *testing.F) {
	for _, s := range []string{
		``, `{}`, `[]`, `[[]]`, `null`, `7`, `"x"`, `{`, `[`, `[{]}`, `{"a":"\`, "\xef\xbb\xbf{}", "{}\n{}", "\x1f\x8b", "\x28\xb5\x2f\xfd",
		anEvent, `{"eventType":"a","payload":{"x":"\ud800\u0000","n":1e400},"eventId":"e","userId":"u","occurredAt":"2026-11-29T11:00:00Z","sentAt":1795949940000}`,
		`{"batch":[` + anEvent + `,7],"sentAt":"2026-11-29T11:00:00Z","context":{"a":1},"writeKey":"k"}`,
		`{"type":"track","event":"e","messageId":"m","userId":7,"context":{"b":2},"properties":{}}`,
		`{"specversion":"1.0","id":"1","source":"s","type":"t","time":"2026-11-29T11:00:00Z","data":{}}`,
		strings.Repeat(`{"a":`, 200), strings.Repeat("[", 300), `{"eventType":"a","eventType":"b","payload":{}}`,
	} {
		f.Add([]byte(s))
	}
}

func FuzzBody(f *testing.F) {
	seeds(f)
	f.Add([]byte(gzipped(f, `[`+anEvent+`]`)))
	f.Add([]byte(zstded(f, `[`+anEvent+`]`)))
	z := newFuzzed(f)
	f.Fuzz(func(t *testing.T, body []byte) {
		z.post(t, "/ingest/event", body, nil)
		z.post(t, "/ingest/batch", body, nil)
	})
}

func FuzzSegment(f *testing.F) {
	seeds(f)
	z := newFuzzed(f)
	f.Fuzz(func(t *testing.T, body []byte) {
		z.post(t, "/v1/batch", body, nil)
		z.post(t, "/v1/track", body, nil)
		// What a batch says of all its items does not change what they say.
		z.post(t, "/v1/batch", slices.Concat([]byte(`{"batch":[`), body, []byte(`],"context":{"z":{}},"integrations":{"All":true}}`)), nil)
	})
}

func FuzzCloudEvents(f *testing.F) {
	seeds(f)
	z := newFuzzed(f)
	f.Fuzz(func(t *testing.T, body []byte) {
		z.post(t, "/ingest/cloudevents", body, nil)
		for _, contentType := range []string{"application/json", "text/plain", "application/octet-stream", ""} {
			header := http.Header{"Ce-Specversion": {"1.0"}, "Ce-Id": {"1"}, "Ce-Source": {"/s"}, "Ce-Type": {"t"}, "Ce-Subject": {string(body)}, "Content-Type": {contentType}}
			z.post(t, "/ingest/event", body, header)
		}
	})
}

// An item never costs its neighbours anything: not when it is any JSON at all, nor
// on a line of its own when it is anything.
func FuzzNeighbours(f *testing.F) {
	seeds(f)
	z := newFuzzed(f)
	const before, after = `{"eventType":"before","payload":{},"eventId":"before"}`, `{"eventType":"after","payload":{},"eventId":"after"}`
	f.Fuzz(func(t *testing.T, item []byte) {
		check := func(what string) {
			if len(z.queued) < 2 || z.queued[0].ID != "before" || z.queued[len(z.queued)-1].ID != "after" {
				t.Fatalf("%s: a neighbour of %q is lost: %+v", what, item, z.queued)
			}
		}
		lenient := []jsontext.Options{jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)}
		if jsontext.Value(item).IsValid(lenient...) && len(item) < 100_000 {
			z.post(t, "/ingest/batch", slices.Concat([]byte("["+before+","), item, []byte(","+after+"]")), nil)
			check("array")
		}
		if !bytes.ContainsRune(item, '\n') && len(item) < 100_000 {
			z.post(t, "/ingest/batch", slices.Concat([]byte(before+"\n"), item, []byte("\n"+after+"\n")), nil)
			check("lines")
		}
	})
}

// A replay judges as the edge did.
func FuzzReplay(f *testing.F) {
	seeds(f)
	z := newFuzzed(f)
	e, err := ingest.New(ingest.Config{Sender: z, Bad: z})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		z.queued = nil
		results, err := e.Replay(t.Context(), []badrow.Row{{At: noon, Dialect: "native", Bytes: b}, {At: noon, Dialect: "segment:track", Bytes: b}, {At: noon, Dialect: "cloudevents", Bytes: b}, {Dialect: string(b)}})
		if err != nil || len(results) != 4 {
			t.Fatal(results, err)
		}
		for _, m := range z.queued {
			checkStorable(t, m)
		}
	})
}
