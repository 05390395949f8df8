package broker

import (
	"context"
	"maps"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
)

// ReplayEdit is what is changed of a message that is replayed. Zero fields stay.
type ReplayEdit struct {
	Queue    string
	Payload  []byte
	Headers  map[string]string
	Priority *forebay.Priority
	Delay    time.Duration
	Attempts int
	Timeout  time.Duration // of a job
}

// ReplayEdited sends one dead letter again with changes, always as a new message that is
// linked to it. CodeConflict: others know it by its id.
func (b *Broker) ReplayEdited(ctx context.Context, seq int64, edit ReplayEdit) (string, error) {
	d, err := b.DeadLetter(ctx, seq)
	if err != nil {
		return "", err
	}
	if err := changeable(&d); err != nil {
		return "", err
	}
	m := replayOf(&d, b.now())
	if m, err = edit.of(m, b.now()); err != nil {
		return "", err
	}
	// The first edit of this dead letter is what is sent; a second one is told.
	errs, err := b.replace(ctx, []int64{seq}, []forebay.Message{m})
	if err != nil {
		return "", err
	}
	return m.ID, errs[0]
}

func (e *ReplayEdit) of(m forebay.Message, now time.Time) (forebay.Message, error) {
	fill(&e.Queue, m.Queue)
	m.Queue = e.Queue
	if e.Payload != nil {
		m.Payload = e.Payload
	}
	maps.Copy(m.Headers, e.Headers)
	maps.DeleteFunc(m.Headers, func(_, v string) bool { return v == "" })
	if e.Priority != nil {
		m.Priority = *e.Priority
	}
	if e.Delay != 0 {
		m.NotBefore = now.Add(e.Delay)
	}
	if e.Attempts != 0 {
		m.Limits = forebay.Limits{Attempts: e.Attempts}
	}
	if e.Timeout != 0 {
		if m.Job == nil {
			return m, invalid("timeout", "this message is no job; only jobs have a timeout")
		}
		m.Job.Timeout = e.Timeout
	}
	return m, nil
}

// changeable refuses what can only be replayed as it is.
func changeable(d *forebay.DeadLetter) error {
	if d.Message.Job != nil && keepsID(&d.Message) {
		return forebay.Errorf(forebay.CodeConflict, "", "job %s is known by its id to the job or flow that it came from; it can only be replayed as it is", d.Message.ID)
	}
	return nil
}

// ReplayInto sends dead letters again into another queue, in the order in which they
// died, each as ReplayEdited would. It may be repeated as ReplayDead may.
func (b *Broker) ReplayInto(ctx context.Context, seqs []int64, queue string) ([]ReplayResult, error) {
	if b.able.dead == nil {
		return nil, unsupported("replay dead letters")
	}
	if err := engine.CheckQueue(queue); err != nil {
		return nil, err
	}
	out := make([]ReplayResult, len(seqs))
	letters, err := b.lettersOf(ctx, seqs, out)
	if err != nil {
		return nil, err
	}
	var at []int
	var sent []int64
	var next []forebay.Message
	for _, i := range sortedBySeq(letters) {
		if out[i].Err == nil {
			out[i].Err = changeable(&letters[i])
		}
		if out[i].Err != nil {
			continue
		}
		m := replayOf(&letters[i], b.now())
		m.Queue, out[i].ID = queue, m.ID
		at, sent, next = append(at, i), append(sent, seqs[i]), append(next, m)
	}
	if len(next) == 0 {
		return out, nil
	}
	errs, err := b.replace(ctx, sent, next)
	for n := range errs {
		out[at[n]].Err = errs[n]
	}
	return out, err
}
