package postgres

import (
	"strings"

	"github.com/forebayhq/forebay"
)

// ending is a finished job or a dead letter.
type ending struct {
	no        int64
	seq       int64
	queue     int32
	state     string
	dead, job bool
	sent, at  int64
	leave     int64 // 0: never by age
	keep      forebay.Keep
	print     int64
	code      string
	tell      tell
	id, kind  string
	meta      meta
	payload   []byte
	size      int32 // of the payload
}

// tell is what an ending knows beyond its body.
type tell struct {
	Attempts   int32           `json:"a"`
	Deliveries int32           `json:"d"`
	Started    int64           `json:"t,omitempty"`
	Failures   []forebay.Cause `json:"f,omitempty"`
	Progress   *keptProgress   `json:"p,omitempty"`
	Cause      *forebay.Cause  `json:"c,omitempty"`
	Result     []byte          `json:"r,omitempty"`
}

func tellOf(it *item, cause forebay.Cause, result []byte) tell {
	t := tell{Attempts: it.attempts, Deliveries: it.deliveries, Started: it.started, Failures: it.extra.Failures, Progress: it.extra.Progress, Result: result}
	if cause.Code != "" || cause.Message != "" || cause.Detail != nil || !cause.At.IsZero() {
		t.Cause = &cause
	}
	return t
}

// shelf names what one bound of retention counts.
type shelf struct {
	queue int32
	dead  bool
}

// plainText is what a text column takes.
func plainText(s string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(s, "�"), "\x00", "")
}

const endingColumns = `n.no, n.seq, n.queue, n.state, n.dead, n.job, n.sent, n.at, n.print, n.tell, b.id, b.kind, b.meta, length(b.payload)`

// endingRows is what both kinds of rows give.
type scanner interface{ Scan(to ...any) error }

// scan reads endingColumns, and what comes after them.
func (d *ending) scan(rows scanner, more ...any) error {
	var t, m []byte
	to := append([]any{&d.no, &d.seq, &d.queue, &d.state, &d.dead, &d.job, &d.sent, &d.at, &d.print, &t, &d.id, &d.kind, &m, &d.size}, more...)
	if err := rows.Scan(to...); err != nil {
		return err
	}
	if err := decode(t, &d.tell); err != nil {
		return err
	}
	return decode(m, &d.meta)
}

func (d *ending) cause() (c forebay.Cause) {
	if d.tell.Cause != nil {
		c = *d.tell.Cause
	}
	return c
}

// letter is it as a dead letter.
func (e *Engine) letter(d *ending) forebay.DeadLetter {
	return forebay.DeadLetter{
		Seq: d.no, Message: d.meta.message(d.id, e.queues.name(d.queue), d.kind, d.payload), Cause: d.cause(), Attempts: int(d.tell.Attempts),
		Deliveries: int(d.tell.Deliveries), Failures: d.tell.Failures, SentAt: atMicros(d.sent), DiedAt: atMicros(d.at), Fingerprint: uint64(d.print),
	}
}

// endedJob is it as a job.
func (e *Engine) endedJob(d *ending) forebay.Job {
	j := forebay.Job{
		Message: d.meta.message(d.id, e.queues.name(d.queue), d.kind, d.payload), State: forebay.State(d.state), Attempts: int(d.tell.Attempts),
		Deliveries: int(d.tell.Deliveries), Progress: d.tell.Progress.progress(), Result: d.tell.Result, SentAt: atMicros(d.sent),
		StartedAt: atMicros(d.tell.Started), FinishedAt: atMicros(d.at), Failures: d.tell.Failures, Cause: d.cause(),
	}
	if d.dead {
		j.DeadSeq = d.no
	}
	return j
}
