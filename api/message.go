package api

import (
	"encoding/json"
	"time"

	"github.com/forebayhq/forebay"
)

// Content is what people look at: JSON as it is, anything else as base64.
type Content struct {
	JSON   json.RawMessage `json:"json,omitempty" doc:"Where it is JSON."`
	Base64 []byte          `json:"base64,omitempty" doc:"Where it is not."`
}

func contentOf(b []byte) *Content {
	if json.Valid(b) {
		return &Content{JSON: b}
	}
	return &Content{Base64: b}
}

// Bytes gives the content back.
func (c *Content) Bytes() []byte {
	switch {
	case c == nil:
		return nil
	case c.JSON != nil:
		return c.JSON
	}
	return c.Base64
}

// Message is a message as it is shown.
type Message struct {
	ID           string            `json:"id"`
	Queue        string            `json:"queue"`
	Kind         string            `json:"kind"`
	Headers      map[string]string `json:"headers,omitempty"`
	Priority     int               `json:"priority" doc:"0 is the most urgent, 9 the least."`
	Group        string            `json:"group,omitempty"`
	DedupKey     string            `json:"dedupKey,omitempty"`
	LimitKey     string            `json:"limitKey,omitempty"`
	NotBefore    time.Time         `json:"notBefore,omitzero"`
	PayloadBytes int               `json:"payloadBytes"`
	Payload      *Content          `json:"payload,omitempty" doc:"Shown for a single message, not in lists."`
}

func messageOf(m *forebay.Message, payload bool) Message {
	v := Message{
		ID: m.ID, Queue: m.Queue, Kind: m.Kind, Headers: m.Headers, Priority: m.Priority.Level(), Group: m.Group,
		DedupKey: m.DedupKey, LimitKey: m.LimitKey, NotBefore: m.NotBefore, PayloadBytes: len(m.Payload),
	}
	if payload {
		v.Payload = contentOf(m.Payload)
	}
	return v
}
