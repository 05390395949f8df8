package history

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
	"github.com/forebayhq/forebay/worker"
)

// Where replays are worked, and the kind of their jobs.
const (
	Queue = "replays"
	Kind  = "replay"
)

// Where a replay can go.
const (
	IntoQueue      = "queue"
	IntoSink       = "sink"
	IntoProjection = "projection"
)

// Request is what the job of a replay says.
type Request struct {
	Selection
	Into   string `json:"into"`
	Name   string `json:"name,omitempty"`   // of the queue or projection
	Rate   int    `json:"rate,omitempty"`   // messages a second at most; 0: what the target takes beside live work
	DryRun bool   `json:"dryRun,omitempty"` // count only
}

// Outcome is its result.
type Outcome struct {
	Messages int64     `json:"messages"`          // that were meant
	Refused  int64     `json:"refused,omitempty"` // of them, by the target
	Gone     bool      `json:"gone,omitempty"`    // part of what was meant left by retention before it was read
	Reason   string    `json:"reason,omitempty"`  // of the last refusal
	First    time.Time `json:"first,omitzero"`    // when they were sent
	Last     time.Time `json:"last,omitzero"`
	DryRun   bool      `json:"dryRun,omitempty"`
}

const (
	replayBatch = 1000
	besideBatch = 100
	maxRate     = 1_000_000
	patience    = 10 * time.Second // a batch that the target does not take is tried again after an eighth of it, at first
)

// Check finds the first thing that is wrong with a request.
func (r *Request) Check() error {
	bad := func(field, format string, args ...any) error {
		e := forebay.Errorf(forebay.CodeInvalid, "", format, args...)
		e.Field = field
		return e
	}
	if err := engine.CheckQueue(r.Queue); err != nil {
		return err
	}
	switch {
	case !slices.Contains([]string{IntoQueue, IntoSink, IntoProjection}, r.Into):
		return bad("into", "%q is nowhere to replay into; allowed are queue, sink and projection", r.Into)
	case r.Into == IntoSink && r.Name != "":
		return bad("name", "a server has one sink; leave the name out")
	case r.Into == IntoProjection && r.Name == "":
		return bad("name", "name the projection")
	case r.Rate < 0 || r.Rate > maxRate:
		return bad("rate", "the rate is %d; 1 to %d a second are allowed, or 0 for what the target takes beside live work", r.Rate, maxRate)
	case !r.To.IsZero() && !r.From.IsZero() && !r.From.Before(r.To):
		return bad("to", "it ends at %s, before it begins", r.To.Format(time.RFC3339))
	}
	if r.Into == IntoQueue && r.Name != "" {
		return engine.CheckQueue(r.Name)
	}
	return nil
}

// Target takes batches. What it refuses for good it counts and tells; an error means
// that the same batch is to be given again.
type Target interface {
	Write(ctx context.Context, replay string, entries []engine.LogEntry) (refused int, reason error, err error)
}

// Documents is where the place of a replay is kept; *broker.Broker is one.
type Documents interface {
	Document(ctx context.Context, collection, key string) (engine.Document, error)
	PutDocument(ctx context.Context, d engine.Document) (engine.Document, error)
}

// Replayer is the handler of replays.
type Replayer struct {
	Log       Log
	Documents Documents
	Target    func(r Request) (Target, error) // finds where it goes; its error ends the job for good

	Live func(ctx context.Context) (Live, error) // beside a replay into the sink; nil: some is taken to be there always
}

var _ worker.JobHandler = (*Replayer)(nil)

// noteEvery is how often a replay's place is kept and its progress told: both are writes
// beside the live ones. What came after the last place is done again after a crash.
const noteEvery = 500 * time.Millisecond

// HandleJob replays from where an earlier attempt has come to. A server that stops need
// not wait for it: it gives up what it is at, which is done again.
func (r *Replayer) HandleJob(ctx context.Context, j *worker.Job) ([]byte, error) {
	var req Request
	if err := json.Unmarshal(j.Payload, &req); err != nil {
		return nil, forebay.Permanent(fmt.Errorf("the job is no replay: %w", err))
	}
	if err := req.Check(); err != nil {
		return nil, forebay.Permanent(err)
	}
	run := running{Replayer: r, job: j, req: &req, pace: pacer{rate: req.Rate}}
	if !req.DryRun {
		var err error
		if run.target, err = r.Target(req); err != nil {
			return nil, forebay.Permanent(err)
		}
	}
	if req.Into == IntoSink {
		run.pace.live = r.Live
	}
	if err := r.begin(ctx, j.ID, &req, &run.at); err != nil {
		return nil, err
	}
	working, stop := worker.UntilDraining(ctx)
	defer stop()
	if err := run.all(working); err != nil {
		if ctx.Err() != nil { // another may have the job, or nobody wants it any more
			return nil, context.Cause(ctx)
		}
		if cause := context.Cause(working); cause != nil {
			err = cause
		}
		return nil, errors.Join(err, r.keep(ctx, j.ID, &run.at))
	}
	run.at.Done.DryRun = req.DryRun
	return json.Marshal(run.at.Done)
}

// running is one attempt of a replay.
type running struct {
	*Replayer
	job    *worker.Job
	req    *Request
	target Target // nil: count only
	pace   pacer
	at     place
	noted  time.Time
}

// all does what is left.
func (r *running) all(ctx context.Context) error {
	for r.at.After < r.at.End {
		from, limit := r.at, replayBatch
		if r.target != nil {
			limit = r.pace.batch()
		}
		entries, more, err := r.next(ctx, r.req, &r.at, limit)
		if err == nil && r.target != nil && len(entries) > 0 {
			r.pace.begin()
			err = r.write(ctx, entries)
		}
		if err != nil {
			r.at = from
			return err
		}
		r.at.Done.count(entries)
		if !more {
			r.at.After = r.at.End
		}
		if err := r.note(ctx); err != nil {
			return err
		}
		if r.target != nil && r.at.After < r.at.End {
			if err := r.pace.rest(ctx, len(entries)); err != nil {
				return err
			}
		}
	}
	return nil
}

// note keeps the place and tells the progress now and then, and at the end.
func (r *running) note(ctx context.Context) error {
	now := time.Now()
	if r.at.After < r.at.End && now.Sub(r.noted) < noteEvery {
		return nil
	}
	r.noted = now
	r.job.Progress("replay", r.at.percent(), fmt.Sprintf("%d messages", r.at.Done.Messages))
	return r.keep(ctx, r.job.ID, &r.at)
}

// write gives a batch to the target until it takes it.
func (r *running) write(ctx context.Context, entries []engine.LogEntry) error {
	for wait := patience / 8; ; wait = min(2*wait, 30*patience) {
		refused, reason, err := r.target.Write(ctx, r.job.ID, entries)
		if err == nil {
			r.at.Done.Refused += int64(refused)
			if reason != nil {
				r.at.Done.Reason = reason.Error()
			}
			return nil
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		r.job.Logf("a batch was not taken and is tried again: %v", err)
		if err := sleep(ctx, wait); err != nil {
			return err
		}
	}
}
