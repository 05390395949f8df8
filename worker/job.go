package worker

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/forebayhq/forebay"
)

// JobHandler handles one delivery and may say what came of it. The result is JSON,
// or nil; it is kept in the ledger when err is nil. Errors steer as for Handler.
type JobHandler interface {
	HandleJob(ctx context.Context, j *Job) (result []byte, err error)
}

// JobFunc makes a function a JobHandler.
type JobFunc func(ctx context.Context, j *Job) ([]byte, error)

// HandleJob calls f.
func (f JobFunc) HandleJob(ctx context.Context, j *Job) ([]byte, error) { return f(ctx, j) }

// Job is a delivery as its handler sees it: it can tell how far it is. All methods
// return at once; what is told faster than it can be stored is coalesced, the
// latest wins.
type Job struct {
	forebay.Delivery
	tell   Teller
	follow *atomic.Pointer[Follow] // of its work; nil: no worker made it
	effect func(ctx context.Context, key string, run func(context.Context) ([]byte, error)) ([]byte, error)
}

// Teller takes what a job tells; one of the two is nil. It must not wait.
type Teller func(*forebay.Progress, *forebay.LogLine)

// NewJob makes a job of a delivery. Workers do so; tests of handlers may.
func NewJob(d forebay.Delivery, tell Teller) *Job { return &Job{Delivery: d, tell: tell} }

// Key is the same in every attempt: it names the job's effects elsewhere.
func (j *Job) Key() string { return j.ID }

// Progress tells the stage, how far it is in percent, and a text for people.
func (j *Job) Progress(stage string, percent float64, message string) {
	j.Tell(forebay.Progress{Stage: stage, Percent: percent, Message: message})
}

// Tell tells progress with data of the handler's own.
func (j *Job) Tell(p forebay.Progress) {
	if p.At.IsZero() {
		p.At = time.Now()
	}
	j.tell(&p, nil)
}

// Logf writes a line to the job's log.
func (j *Job) Logf(format string, args ...any) {
	j.tell(nil, &forebay.LogLine{At: time.Now(), Text: fmt.Sprintf(format, args...)})
}

// Follow changes the verdict of a delivery before it is stored.
type Follow func(forebay.Settlement) forebay.Settlement

// Follow lets f see, and change, the verdict of this delivery: what it puts into Next
// appears together with the verdict. It is called for every verdict that this worker
// gives once a handler has begun, also for one that is left behind. f must be quick and
// do no I/O; the last call of Follow counts.
func (j *Job) Follow(f Follow) {
	if j.follow != nil {
		j.follow.Store(&f)
	}
}

// Once runs an effect that must not happen twice, such as a payment, and remembers
// its result: whenever the job is delivered again, that result is returned and
// nothing runs. The name tells effects of one job apart. The rest is as
// broker.Effect says. In a job that no worker made nothing is remembered.
func (j *Job) Once(ctx context.Context, name string, run func(ctx context.Context) ([]byte, error)) ([]byte, error) {
	if j.effect == nil {
		return run(ctx)
	}
	return j.effect(ctx, j.ID+"/"+name, run)
}
