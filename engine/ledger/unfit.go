package ledger

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
)

// What cannot be a job is a dead letter of the remote engine. Where that keeps none, it is
// stored here as a job that says why it is unfit; whoever would begin it ends it as dead
// instead. So it is in the ledger before its message goes, and one dead letter however
// often that comes.

// unfitHeader has the reason. It counts under the id of what was adopted only: a replay
// that is a new job, with an id of its own, begins.
const unfitHeader = "Forebay.Unfit"

// What an unfit job keeps of its message.
const (
	maxReason  = 1024
	maxCutName = 64 // of each name that is told as cut
)

// unfit is a message as a job that can be stored: its body, and what of the rest can be.
func unfit(q *queue, m *forebay.Message, why error) forebay.Message {
	out := forebay.Message{ID: adopted(m.ID), Queue: q.name, Kind: m.Kind, Payload: m.Payload, Job: &forebay.JobOptions{}}
	if out.Kind == "" {
		out.Kind = m.Headers[kindHeader]
	}
	sound := func() bool { return engine.CheckMessage(&out, time.Now()) == nil }
	var cut []string
	if n := len(out.Payload); n > forebay.MaxPayloadBytes {
		out.Payload = out.Payload[:forebay.MaxPayloadBytes]
		cut = append(cut, fmt.Sprintf("the body after its first %d of %d bytes", len(out.Payload), n))
	}
	kind := out.Kind
	if out.Kind = ""; !sound() { // its id
		out.ID = hashed(m.ID)
		cut = append(cut, "the id "+brief(m.ID))
	}
	if out.Kind = kind; !sound() {
		out.Kind = ""
		cut = append(cut, "the kind "+brief(kind))
	}
	if m.Limits != (forebay.Limits{}) {
		cut = append(cut, "its limits of attempts and deliveries")
	}
	// The room of the reason is taken while the others are put in.
	out.Headers = map[string]string{unfitHeader: strings.Repeat("-", maxReason)}
	headers := theirs(m.Headers)
	for _, name := range slices.Sorted(maps.Keys(headers)) {
		out.Headers[name] = headers[name]
		if !sound() {
			delete(out.Headers, name)
			cut = append(cut, fmt.Sprintf("the attribute %s of %d bytes", brief(name), len(headers[name])))
		}
	}
	out.Headers[unfitHeader] = reason(why, cut)
	return out
}

// reason is plain text of at most maxReason bytes.
func reason(why error, cut []string) string {
	text := why.Error()
	if len(text) > maxReason/2 {
		text = text[:maxReason/2] + "..."
	}
	for i, one := range cut {
		lead := ", "
		if i == 0 {
			lead = "; cut was: "
		}
		const more = " and %d more"
		if len(text)+len(lead)+len(one) > maxReason-len(more)-20 {
			text += fmt.Sprintf(more, len(cut)-i)
			break
		}
		text += lead + one
	}
	return strings.Map(func(r rune) rune {
		if r < ' ' || r >= 0x7f && r < 0xa0 {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, ""))
}

func brief(s string) string {
	if len(s) > maxCutName {
		s = s[:maxCutName] + "..."
	}
	return fmt.Sprintf("%+q", s)
}

// whyUnfit tells why a job that comes from the ledger must not begin. Empty: it may.
func whyUnfit(m *forebay.Message) string {
	if !strings.HasPrefix(m.ID, adoptedID) {
		return ""
	}
	return m.Headers[unfitHeader]
}

// bury keeps what the remote engine refused to, and then ends it there. errs are what
// that said of c.
func (e *Engine) bury(ctx context.Context, c chore, errs []error) error {
	var msgs []forebay.Message
	var acks []forebay.Settlement
	var failed []error
	for i, err := range errs {
		if forebay.CodeOf(err) != forebay.CodeUnsupported {
			failed = append(failed, err)
			continue
		}
		msgs = append(msgs, unfit(c.q, c.unfit, c.cause))
		acks = append(acks, forebay.Settlement{Receipt: c.receipts[i], Verdict: forebay.Ack})
	}
	if len(msgs) == 0 {
		return errors.Join(failed...)
	}
	results, err := e.Send(ctx, msgs)
	if err != nil {
		return err
	}
	kept := acks[:0]
	for i, r := range results {
		if r.Err != nil {
			e.log.Warn("what cannot be a job cannot be kept as a dead letter either; it comes again", "queue", c.q.name, "id", msgs[i].ID, "error", r.Err)
			continue
		}
		kept = append(kept, acks[i])
	}
	told, err := e.remote.Settle(ctx, kept)
	return errors.Join(append(append(failed, told...), err)...)
}

// fit ends what must not begin, and gives the others. What cannot be ended now comes
// again when its lease ends.
func (e *Engine) fit(ctx context.Context, ds []forebay.Delivery) []forebay.Delivery {
	var ends []forebay.Settlement
	ds = slices.DeleteFunc(ds, func(d forebay.Delivery) bool {
		why := whyUnfit(&d.Message)
		if why == "" {
			return false
		}
		ends = append(ends, forebay.Settlement{Receipt: d.Receipt, Queue: d.Queue, Verdict: forebay.Dead, Unbegun: true,
			Cause: forebay.Cause{Code: causeCode, Message: why, At: time.Now()}})
		return true
	})
	if len(ends) == 0 {
		return ds
	}
	errs, err := e.Settle(ctx, ends)
	if err = errors.Join(append(errs, err)...); err != nil {
		e.log.Warn("what cannot be a job is not a dead letter yet; it is tried again", "error", err)
	}
	return ds
}
