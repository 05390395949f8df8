package postgres

import (
	"encoding/json"

	"github.com/forebayhq/forebay"
)

// event is one of the history.
type event struct {
	typ              forebay.HistoryType
	job, queue, kind string
	attempt          int32
	state            forebay.State
	more             eventMore
}

// eventMore is what only some events have.
type eventMore struct {
	Due      int64           `json:"d,omitempty"`
	Progress *keptProgress   `json:"p,omitempty"`
	Text     string          `json:"x,omitempty"`
	Cause    *forebay.Cause  `json:"c,omitempty"`
	Result   json.RawMessage `json:"r,omitempty"`
}

func (m *eventMore) encode() []byte {
	if m.Due == 0 && m.Progress == nil && m.Text == "" && m.Cause == nil && len(m.Result) == 0 {
		return nil
	}
	return encode(m)
}

// note writes an event of a job; nil: it is none. What it gives is good until the next note.
func (w *work) note(it *item, typ forebay.HistoryType, state forebay.State) *event {
	if !it.job {
		return nil
	}
	w.events = append(w.events, event{typ: typ, job: it.id, queue: w.queueName(it.queue), kind: it.kind, attempt: it.attempts + 1, state: state})
	ev := &w.events[len(w.events)-1]
	if state == forebay.StateDelayed {
		ev.more.Due = it.due
	}
	return ev
}
