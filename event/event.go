// Package event holds the event: what the edge accepts, the queue carries and a
// sink writes. On the queue it is JSON, so that any consumer of the queue, in any
// language, can read it.
//
// It promises that Decode reads what Append wrote, byte for byte in the payload,
// and that it keeps reading every form it ever wrote (testdata/golden).
//
// It refuses to validate: that is the edge's business (package ingest).
package event

import (
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/forebayhq/forebay"
)

// Queue is where the edge puts events unless a setting names another.
const Queue = "events"

// Event is one row of the table that sinks write.
type Event struct {
	ID         string         `json:"eventId"`
	Type       string         `json:"eventType"`
	UserID     string         `json:"userId,omitempty"`
	Payload    jsontext.Value `json:"payload"` // a JSON object
	ReceivedAt time.Time      `json:"receivedAt"`
	OccurredAt time.Time      `json:"occurredAt,omitzero"` // corrected for the client's clock
	SentAt     time.Time      `json:"sentAt,omitzero"`     // by the client's clock
	OriginalAt time.Time      `json:"originalAt,omitzero"` // occurredAt as the client said it, where corrected
	Source     string         `json:"source,omitempty"`    // the write key's name and the dialect: "ios/segment"
}

// Append appends the event as one JSON object to b.
func (e *Event) Append(b []byte) ([]byte, error) {
	var err error
	quoted := func(name, value string) {
		b = append(b, name...)
		if err == nil {
			b, err = jsontext.AppendQuote(b, value)
		}
	}
	at := func(name string, t time.Time) {
		if !t.IsZero() {
			b = append(append(b, name...), '"')
			b = append(t.UTC().AppendFormat(b, time.RFC3339Nano), '"')
		}
	}
	quoted(`{"eventId":`, e.ID)
	quoted(`,"eventType":`, e.Type)
	if e.UserID != "" {
		quoted(`,"userId":`, e.UserID)
	}
	b = append(append(b, `,"payload":`...), e.Payload...)
	at(`,"receivedAt":`, e.ReceivedAt)
	at(`,"occurredAt":`, e.OccurredAt)
	at(`,"sentAt":`, e.SentAt)
	at(`,"originalAt":`, e.OriginalAt)
	if e.Source != "" {
		quoted(`,"source":`, e.Source)
	}
	if err != nil {
		return nil, forebay.Errorf(forebay.CodeInvalid, "event: encode", "%w", err)
	}
	return append(b, '}'), nil
}
