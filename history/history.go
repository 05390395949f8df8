// Package history reads the logs of messages (engine.Log) and sends a part of one
// again: into a queue, a sink or a projection.
//
// It promises that a replay is resumable (its place is stored after each batch), that
// doing a batch twice changes nothing (messages get ids that follow from the replay and
// their place, a sink knows events by their ids, a projection remembers its place), that
// it ends (what is sent while it runs is not of it), and that live work goes first.
//
// It refuses to know engines and sinks: it reads through a broker, and writes into
// whatever takes a batch of messages.
package history

import (
	"bytes"
	"context"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
	"github.com/forebayhq/forebay/event"
	"github.com/forebayhq/forebay/filter"
)

// Log is what is read; *broker.Broker is one.
type Log interface {
	ReadLog(ctx context.Context, q engine.LogQuery) (engine.LogPage, error)
}

// Selection says which messages are meant. Zero fields mean all.
type Selection struct {
	Queue string    `json:"queue"`
	Types []string  `json:"types,omitempty"` // kinds of messages: for events, their types
	Key   string    `json:"key,omitempty"`   // the user of an event, or the group or limit key of a message
	ID    string    `json:"id,omitempty"`    // of one message
	From  time.Time `json:"from,omitzero"`
	To    time.Time `json:"to,omitzero"` // sent before it
}

// query asks for what an engine can select by itself.
func (s *Selection) query(after int64, limit int) engine.LogQuery {
	return engine.LogQuery{Queue: s.Queue, After: after, Kinds: s.Types, ID: s.ID, Since: s.From, Until: s.To, Limit: limit}
}

// Read reads a page of what is meant. It may be short, even empty, with More.
func Read(ctx context.Context, log Log, s Selection, after int64, limit int) (engine.LogPage, error) {
	page, err := log.ReadLog(ctx, s.query(after, limit))
	if err != nil || s.Key == "" {
		return page, err
	}
	kept := page.Entries[:0]
	for _, e := range page.Entries {
		if hasKey(&e.Message, s.Key) {
			kept = append(kept, e)
		}
	}
	page.Entries = kept
	return page, nil
}

// hasKey tells whether a message is of a user, a group or a limit key.
func hasKey(m *forebay.Message, key string) bool {
	if m.Group == key || m.LimitKey == key {
		return true
	}
	if m.Job != nil || !bytes.Contains(m.Payload, []byte(key)) && !bytes.Contains(m.Payload, []byte(`\`)) {
		return false // no event, or one that cannot have it
	}
	e, err := event.Decode(m.Payload)
	return err == nil && e.UserID == key
}

// Moment reads a time: RFC 3339, now, or how long ago it is (1h30m or -1h30m, 7d).
func Moment(text string, now time.Time) (time.Time, error) {
	if text == "now" {
		return now, nil
	}
	if at, err := time.Parse(time.RFC3339Nano, text); err == nil {
		return at, nil
	}
	ago := text
	if len(text) > 1 && text[0] == '-' {
		ago = text[1:]
	}
	d, err := filter.ParseDuration(ago)
	if err != nil {
		return time.Time{}, forebay.Errorf(forebay.CodeInvalid, "", "%q is neither a time such as 2026-01-31T08:00:00Z nor how long ago it is, such as -1h, 90s or 7d", text)
	}
	return now.Add(-d), nil
}
