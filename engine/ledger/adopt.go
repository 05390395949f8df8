package ledger

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"time"

	"github.com/forebayhq/forebay"
)

// What somebody else has sent to the remote queue becomes a job.

const (
	adoptedID  = "sent-"        // begins the id of such a job; that of its message follows
	kindHeader = "Forebay.Kind" // names its handler, where the message has no kind of its own
	adoptAgain = 5 * time.Second
)

// adopted is the id of the job of a message: the same whenever it comes.
func adopted(id string) string {
	if len(id) > forebay.MaxIDBytes-len(adoptedID) {
		return hashed(id)
	}
	return adoptedID + id
}

func hashed(id string) string {
	sum := sha256.Sum256([]byte(id))
	return adoptedID + hex.EncodeToString(sum[:])
}

// theirs are headers without what is ours to say.
func theirs(headers map[string]string) map[string]string {
	if _, ok := headers[unfitHeader]; !ok {
		return headers
	}
	headers = maps.Clone(headers)
	delete(headers, unfitHeader)
	return headers
}

// adopt stores messages as jobs, and gives the receipts of those that are in the ledger
// now. Those that cannot be, and what makes them so, become dead letters there, or here where
// that engine keeps none.
func (e *Engine) adopt(ctx context.Context, q *queue, ds []forebay.Delivery) (notices []forebay.Receipt) {
	msgs := make([]forebay.Message, len(ds))
	for i := range ds {
		m := &ds[i].Message
		msgs[i] = forebay.Message{
			ID: adopted(m.ID), Queue: q.name, Kind: m.Kind, Payload: m.Payload, Headers: theirs(m.Headers),
			Limits: m.Limits, Job: &forebay.JobOptions{},
		}
		if m.Kind == "" {
			msgs[i].Kind = m.Headers[kindHeader]
		}
	}
	results, err := e.rows.Send(ctx, msgs)
	for i, d := range ds {
		one := err
		if err == nil {
			one = results[i].Err
		}
		switch forebay.CodeOf(one) {
		case "":
			notices = append(notices, d.Receipt)
		case forebay.CodeInvalid, forebay.CodeTooLarge:
			e.log.Warn("what was sent to the remote queue cannot be a job", "queue", q.name, "id", d.ID, "error", one)
			e.later(chore{receipts: []forebay.Receipt{d.Receipt}, verdict: forebay.Dead, cause: one, q: q, unfit: &d.Message})
		default:
			e.later(chore{receipts: []forebay.Receipt{d.Receipt}, verdict: forebay.Release})
		}
	}
	return notices
}
