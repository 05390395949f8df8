package history

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
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
	Rate   int    `json:"rate,omitempty"`   // messages a second at most; 0: half of what the target takes
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
	replayBatch = 500
	maxRate     = 1_000_000
	patience    = 10 * time.Second // a batch that the target does not take is tried again after, at first
	restMost    = time.Second      // after one batch, where no rate is said
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
		return bad("rate", "the rate is %d; 1 to %d a second are allowed, or 0 for half of what the target takes", r.Rate, maxRate)
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
}

var _ worker.JobHandler = (*Replayer)(nil)

// place is how far a replay is.
type place struct {
	Epoch string  `json:"epoch"`
	After int64   `json:"after"`
	First int64   `json:"first"`
	End   int64   `json:"end"` // what was sent later is not of it
	Done  Outcome `json:"done"`
}

const (
	collection = "replay"
	placeKept  = 30 * 24 * time.Hour
)

// HandleJob replays from where an earlier attempt has come to.
func (r *Replayer) HandleJob(ctx context.Context, j *worker.Job) ([]byte, error) {
	var req Request
	if err := json.Unmarshal(j.Payload, &req); err != nil {
		return nil, forebay.Permanent(fmt.Errorf("the job is no replay: %w", err))
	}
	if err := req.Check(); err != nil {
		return nil, forebay.Permanent(err)
	}
	var target Target
	if !req.DryRun {
		var err error
		if target, err = r.Target(req); err != nil {
			return nil, forebay.Permanent(err)
		}
	}
	p, err := r.begin(ctx, j.ID, req.Queue)
	if err != nil {
		return nil, err
	}
	pace := pacer{rate: req.Rate}
	for p.After < p.End {
		entries, more, err := r.next(ctx, &req, &p)
		if err != nil {
			return nil, err
		}
		if target != nil && len(entries) > 0 {
			pace.begin()
			if err := r.write(ctx, j, target, entries, &p); err != nil {
				return nil, err
			}
		}
		p.Done.count(entries)
		if !more {
			p.After = p.End
		}
		if err := r.keep(ctx, j.ID, &p); err != nil {
			return nil, err
		}
		j.Progress("replay", p.percent(), fmt.Sprintf("%d messages", p.Done.Messages))
		if target != nil {
			if err := pace.rest(ctx, len(entries)); err != nil {
				return nil, err
			}
		}
	}
	p.Done.DryRun = req.DryRun
	return json.Marshal(p.Done)
}

// begin takes up the place of an earlier attempt, or begins at the start.
func (r *Replayer) begin(ctx context.Context, id, queue string) (p place, err error) {
	d, err := r.Documents.Document(ctx, collection, id)
	switch {
	case err == nil:
		err = json.Unmarshal(d.Value, &p)
		return p, err
	case forebay.CodeOf(err) != forebay.CodeNotFound:
		return p, err
	}
	newest, err := r.Log.ReadLog(ctx, engine.LogQuery{Queue: queue, After: -1})
	if forebay.CodeOf(err) == forebay.CodeUnsupported {
		return p, forebay.Permanent(err)
	}
	if err != nil {
		return p, err
	}
	p = place{Epoch: newest.Epoch, After: newest.Oldest, First: newest.Oldest, End: newest.Next}
	return p, nil
}

// next reads what comes, and moves the place on.
func (r *Replayer) next(ctx context.Context, req *Request, p *place) (entries []engine.LogEntry, more bool, err error) {
	page, err := Read(ctx, r.Log, req.Selection, p.After, replayBatch)
	if err != nil {
		return nil, false, err
	}
	if page.Epoch != p.Epoch {
		return nil, false, forebay.Permanent(forebay.Errorf(forebay.CodeConflict, "", "the store is another one than when the replay began"))
	}
	if page.Oldest > p.After { // retention was faster: what lies between is gone, and that is said
		p.Done.Gone, p.Done.Reason = true, "part of what was meant has left the log before it was read"
	}
	for _, e := range page.Entries {
		if e.Seq <= p.End {
			entries = append(entries, e)
		}
	}
	if page.More && page.Next == p.After {
		return nil, false, forebay.Errorf(forebay.CodeInternal, "", "the log says that there is more after %d, and does not give it", p.After)
	}
	p.After = page.Next
	return entries, page.More && page.Next < p.End, nil
}

// write gives a batch to the target until it takes it.
func (r *Replayer) write(ctx context.Context, j *worker.Job, target Target, entries []engine.LogEntry, p *place) error {
	for wait := patience / 8; ; wait = min(2*wait, 30*patience) {
		refused, reason, err := target.Write(ctx, j.ID, entries)
		if err == nil {
			p.Done.Refused += int64(refused)
			if reason != nil {
				p.Done.Reason = reason.Error()
			}
			return nil
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		j.Logf("a batch was not taken and is tried again: %v", err)
		if err := sleep(ctx, wait); err != nil {
			return err
		}
	}
}

func (r *Replayer) keep(ctx context.Context, id string, p *place) error {
	value, err := json.Marshal(p)
	if err != nil {
		return err
	}
	_, err = r.Documents.PutDocument(ctx, engine.Document{
		Collection: collection, Key: id, Rev: engine.AnyRev, Value: value, Expires: time.Now().Add(placeKept),
	})
	return err
}

func (o *Outcome) count(entries []engine.LogEntry) {
	if len(entries) == 0 {
		return
	}
	if o.Messages += int64(len(entries)); o.First.IsZero() {
		o.First = entries[0].SentAt
	}
	o.Last = entries[len(entries)-1].SentAt
}

func (p *place) percent() float64 {
	if p.End <= p.First {
		return 100
	}
	return math.Round(1000*float64(min(p.After, p.End)-p.First)/float64(p.End-p.First)) / 10
}

// pacer keeps a replay to its rate. Without one it rests as long as it works, so that
// live work has the target for itself half of the time.
type pacer struct {
	rate  int
	start time.Time
	due   time.Time
}

func (p *pacer) begin() { p.start = time.Now() }

func (p *pacer) rest(ctx context.Context, n int) error {
	if n == 0 {
		return ctx.Err()
	}
	now := time.Now()
	if p.rate == 0 {
		return sleep(ctx, min(now.Sub(p.start), restMost))
	}
	if p.due.Before(p.start) { // it was slower than its rate: nothing is made up for
		p.due = p.start
	}
	p.due = p.due.Add(time.Duration(float64(n) / float64(p.rate) * float64(time.Second)))
	return sleep(ctx, p.due.Sub(now))
}

func sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
