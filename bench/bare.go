package bench

import (
	"io"
	"net/http"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Bare is the baseline of the edge: it reads an event, or a JSON array of events,
// decodes it with the decoder that the edge uses, checks the two members that are
// required, and answers 202. It stores nothing.
func Bare() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /ingest/event", bareEvent)
	mux.HandleFunc("POST /ingest/batch", bareBatch)
	return mux
}

const maxBareBody = 4 << 20

type bareBody struct {
	ID         string         `json:"eventId"`
	Type       string         `json:"eventType"`
	UserID     string         `json:"userId"`
	OccurredAt time.Time      `json:"occurredAt"`
	Payload    jsontext.Value `json:"payload"`
}

func (b *bareBody) ok() bool {
	return b.Type != "" && len(b.Type) <= 50 && len(b.Payload) > 0 && b.Payload.Kind() == '{'
}

func bareEvent(w http.ResponseWriter, r *http.Request) {
	var body bareBody
	raw, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBareBody))
	if err != nil || json.Unmarshal(raw, &body) != nil || !body.ok() {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	accepted(w, `{"messageId":"0190a5d2-7c1e-7000-8000-000000000000"}`)
}

func bareBatch(w http.ResponseWriter, r *http.Request) {
	var bodies []bareBody
	raw, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBareBody))
	if err != nil || json.Unmarshal(raw, &bodies) != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	for i := range bodies {
		if !bodies[i].ok() {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
	}
	accepted(w, `{"accepted":100,"duplicate":0,"rejected":0,"results":[]}`)
}

func accepted(w http.ResponseWriter, body string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusAccepted)
	_, _ = io.WriteString(w, body)
}
