package task

import (
	"context"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/forebayhq/forebay/worker"
)

// Call is a job as handlers in other languages are told of it: the body of a push
// and the standard input of a program.
type Call struct {
	JobID    string         `json:"jobId"`
	Name     string         `json:"name"`
	Queue    string         `json:"queue"`
	Data     jsontext.Value `json:"data"`
	Attempt  int            `json:"attempt"`
	Deadline time.Time      `json:"deadline,omitzero"` // by then the attempt is ended; absent: no such time

	// Where and with what to tell progress, for who is called over HTTP.
	ProgressURL string `json:"progressUrl,omitempty"`
	Receipt     string `json:"receipt,omitempty"`
}

// NewCall describes a job. Its data must be JSON; none is null.
func NewCall(ctx context.Context, j *worker.Job) (Call, error) {
	c := Call{JobID: j.ID, Name: j.Kind, Queue: j.Queue, Data: jsontext.Value("null"), Attempt: j.Attempt}
	if len(j.Payload) > 0 {
		c.Data = jsontext.Value(j.Payload).Clone()
		if err := c.Data.Compact(); err != nil {
			return Call{}, badJSON(err)
		}
	}
	if j.Job != nil {
		c.Deadline = j.Job.Deadline
	}
	if end, ok := ctx.Deadline(); ok && (c.Deadline.IsZero() || end.Before(c.Deadline)) {
		c.Deadline = end
	}
	c.Deadline = c.Deadline.UTC()
	return c, nil
}

// JSON is the call as it is sent.
func (c Call) JSON() ([]byte, error) { return json.Marshal(c) }
