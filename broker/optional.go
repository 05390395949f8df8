package broker

import (
	"context"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
)

// abilities of the engine beyond the contract; nil: it lacks one.
type abilities struct {
	dead    engine.DeadLetters
	groups  engine.DeadGroups
	locator engine.Locator
	limiter engine.Limiter
	sizer   engine.Sizer
	purger  engine.Purger
	checker engine.Checker
	jobs    engine.Jobs
	lister  engine.JobLister
	history engine.History
	docs    engine.Documents
	peeker  engine.Peeker
	log     engine.Log
}

func findAbilities(e engine.Engine) abilities {
	var a abilities
	a.dead, _ = engine.As[engine.DeadLetters](e)
	a.groups, _ = engine.As[engine.DeadGroups](e)
	a.locator, _ = engine.As[engine.Locator](e)
	a.limiter, _ = engine.As[engine.Limiter](e)
	a.sizer, _ = engine.As[engine.Sizer](e)
	a.purger, _ = engine.As[engine.Purger](e)
	a.checker, _ = engine.As[engine.Checker](e)
	a.jobs, _ = engine.As[engine.Jobs](e)
	a.lister, _ = engine.As[engine.JobLister](e)
	a.history, _ = engine.As[engine.History](e)
	a.docs, _ = engine.As[engine.Documents](e)
	a.peeker, _ = engine.As[engine.Peeker](e)
	a.log, _ = engine.As[engine.Log](e)
	return a
}

func unsupported(what string) error {
	return forebay.Errorf(forebay.CodeUnsupported, "broker", "this engine cannot %s", what)
}

// Replay sends dead letters again, as engine.DeadLetters says.
func (b *Broker) Replay(ctx context.Context, seqs []int64) ([]error, error) {
	if b.able.dead == nil {
		return nil, unsupported("replay dead letters")
	}
	return b.able.dead.Replay(ctx, seqs)
}

// Discard removes dead letters for good, as engine.DeadLetters says.
func (b *Broker) Discard(ctx context.Context, seqs []int64) ([]error, error) {
	if b.able.dead == nil {
		return nil, unsupported("discard dead letters")
	}
	return b.able.dead.Discard(ctx, seqs)
}

// Locate tells where a message is.
func (b *Broker) Locate(ctx context.Context, id string) (engine.Location, error) {
	if b.able.locator == nil {
		return engine.Location{}, unsupported("find a message by its id")
	}
	return b.able.locator.Locate(ctx, id)
}

// SetLimits limits what is handed out of a queue.
func (b *Broker) SetLimits(ctx context.Context, queue string, l engine.QueueLimits) error {
	if b.able.limiter == nil {
		return unsupported("limit or pause a queue")
	}
	if err := engine.CheckQueue(queue); err != nil {
		return err
	}
	return b.able.limiter.SetLimits(ctx, queue, l)
}

// QueueLimits are the limits of a queue.
func (b *Broker) QueueLimits(ctx context.Context, queue string) (engine.QueueLimits, error) {
	if b.able.limiter == nil {
		return engine.QueueLimits{}, unsupported("limit or pause a queue")
	}
	return b.able.limiter.QueueLimits(ctx, queue)
}

// Size tells bytes in use on disk and bytes still free there.
func (b *Broker) Size(ctx context.Context) (used, free int64, err error) {
	if b.able.sizer == nil {
		return 0, 0, unsupported("tell its size on disk")
	}
	return b.able.sizer.Size(ctx)
}

// Purge drops all messages of a queue that are not active.
func (b *Broker) Purge(ctx context.Context, queue string) (dropped int64, err error) {
	if b.able.purger == nil {
		return 0, unsupported("purge a queue")
	}
	return b.able.purger.Purge(ctx, queue)
}

// Check tells whether messages can be stored durably now. Where the engine cannot
// tell, it is asked for its counts, which it gives while it answers at all.
func (b *Broker) Check(ctx context.Context) error {
	if b.able.checker == nil {
		_, err := b.Stats(ctx)
		return err
	}
	return b.able.checker.Check(ctx)
}
