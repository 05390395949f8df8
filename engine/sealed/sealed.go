// Package sealed is an engine in front of another one that seals what messages say
// before it is stored, and opens it when it is asked for.
//
// # What it promises
//
//   - Sealed are payloads, results, the texts and details of causes, the messages and data
//     of progress, the lines that handlers log, and the values of documents: AES-256-GCM
//     under a data key, which is itself sealed by a master key. Each says for which queue
//     and id it is; put in another place, or changed, it does not open.
//   - What is not sealed stays readable: it is what the engine works by. That are ids, queue,
//     kind, headers, priority, times, group, limit key, dedup key, tenant, owner, tags,
//     parent, trace, state, counts, codes of causes, stage and percent of progress, and
//     the reasons that people give when they cancel or discard.
//   - What was stored before, plain or under another master key that is still given,
//     opens as ever.
//   - A delivery that cannot be opened reaches no handler. Changed or misplaced, it is a
//     dead letter with the cause "tampered". Where only the key is not here, it is
//     released and waits, and Trouble says so.
//   - All that the engine behind it can do (engine.As) holds, and nothing more.
//
// # Keys
//
// Where the store keeps documents, data keys are among them, and to rotate is to seal
// these few anew. A transport (SQS) keeps nothing: there each message carries its own.
//
// # What it refuses
//
// To prove who sent a message: who can write to the store can put a plain one there. To
// seal what begins as if it were sealed. To hide lengths, times, or that two causes have
// the same text.
package sealed

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
)

// Config of an engine.
type Config struct {
	// Keys seal and open. Without a current one nothing new is sealed.
	Keys *Keys

	// Plain names queues that are not sealed. Nil: none.
	Plain func(queue string) bool

	// Logger is told of what cannot be opened. Nil: nobody is.
	Logger *slog.Logger

	// Now is the clock, for the times of data keys. Nil: time.Now.
	Now func() time.Time
}

// Engine seals in front of another one. Make one with New.
type Engine struct {
	inner  engine.Engine
	sealer *sealer
	plain  func(queue string) bool
	log    *slog.Logger

	mu      sync.Mutex // guards those below
	waiting string     // the error of the last message whose key is not here
	since   time.Time  // when that was
	now     func() time.Time
}

var _ engine.Engine = (*Engine)(nil)

// New seals in front of inner, whose closing is then Close's. It reads the data keys that
// are there and makes one if it must. CodeUnauthorized: one was sealed by a master key
// that is not among those given.
func New(ctx context.Context, inner engine.Engine, cfg Config) (*Engine, error) {
	if inner == nil || cfg.Keys == nil {
		return nil, forebay.Errorf(forebay.CodeInvalid, "sealed", "an engine and keys are needed; keys without a current one only open")
	}
	if cfg.Plain == nil {
		cfg.Plain = func(string) bool { return false }
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	s := &sealer{keys: cfg.Keys, opened: make(map[string]*dataKey)}
	if docs, ok := engine.As[engine.Documents](inner); ok {
		s.vault = &vault{docs: docs, keys: cfg.Keys, now: cfg.Now}
	}
	if err := s.begin(ctx); err != nil {
		return nil, err
	}
	return &Engine{inner: inner, sealer: s, plain: cfg.Plain, log: cfg.Logger, now: cfg.Now}, nil
}

// Used tells whether a store has data keys, so that it can be read with keys only.
func Used(ctx context.Context, e engine.Engine) (bool, error) {
	docs, ok := engine.As[engine.Documents](e)
	if !ok {
		return false, nil
	}
	some, err := docs.Documents(ctx, Collection, "", 1)
	return len(some) > 0, err
}

// seals tells whether what belongs to a queue is sealed now.
func (e *Engine) seals(queue string) bool { return e.sealer.seals() && !e.plain(queue) }

// Send seals and sends.
func (e *Engine) Send(ctx context.Context, msgs []forebay.Message) ([]forebay.SendResult, error) {
	if len(msgs) > engine.MaxSend {
		return e.inner.Send(ctx, msgs) // which refuses
	}
	out, refused := e.sealAll(msgs)
	results, err := e.inner.Send(ctx, out)
	if err != nil || refused == nil {
		return results, err
	}
	all := make([]forebay.SendResult, len(msgs))
	for i := range msgs {
		if refused[i] != nil {
			all[i] = forebay.SendResult{ID: msgs[i].ID, Err: refused[i]}
			continue
		}
		all[i], results = results[0], results[1:]
	}
	return all, nil
}

// Stats counts as the engine behind does: bytes are those that are stored.
func (e *Engine) Stats(ctx context.Context, queues ...string) ([]forebay.QueueStats, error) {
	return e.inner.Stats(ctx, queues...)
}

// Close closes the engine behind.
func (e *Engine) Close() error { return e.inner.Close() }

// troubled is how long Check tells of a message that could not be opened.
const troubled = 10 * time.Minute

// Trouble tells of messages that wait since the key that sealed them is not here.
func (e *Engine) Trouble(context.Context) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.waiting == "" || e.now().Sub(e.since) > troubled {
		return nil
	}
	return forebay.Errorf(forebay.CodeUnauthorized, "", "messages wait: %s", e.waiting)
}

// As gives the abilities of the engine behind, each with sealing where it is needed. There
// is no Unwrap: nothing leads past the seals.
func (e *Engine) As(target any) bool {
	switch t := target.(type) {
	case *engine.DeadLetters:
		return over(e, t, func(in engine.DeadLetters) engine.DeadLetters { return &deadLetters{e, in} })
	case *engine.DeadGroups:
		return over(e, t, func(in engine.DeadGroups) engine.DeadGroups { return &deadGroups{e, in} })
	case *engine.Locator:
		return over(e, t, func(in engine.Locator) engine.Locator { return &locator{e, in} })
	case *engine.Jobs:
		return over(e, t, func(in engine.Jobs) engine.Jobs { return &jobs{e, in} })
	case *engine.JobLister:
		return over(e, t, func(in engine.JobLister) engine.JobLister { return &lister{e, in} })
	case *engine.History:
		return over(e, t, func(in engine.History) engine.History { return &history{e, in} })
	case *engine.Documents:
		return over(e, t, func(in engine.Documents) engine.Documents { return &documents{e, in} })
	case *engine.Late:
		return over(e, t, func(in engine.Late) engine.Late { return &late{e.sealer, in} })
	case *engine.Peeker:
		return over(e, t, func(in engine.Peeker) engine.Peeker { return &peeker{e, in} })
	case *engine.Log:
		return over(e, t, func(in engine.Log) engine.Log { return &sentLog{e, in} })
	}
	return e.asIs(target)
}

// asIs gives abilities that carry nothing sealed.
func (e *Engine) asIs(target any) bool {
	switch t := target.(type) {
	case *engine.Limiter:
		return over(e, t, same[engine.Limiter])
	case *engine.Delayer:
		return over(e, t, same[engine.Delayer])
	case *engine.Sizer:
		return over(e, t, same[engine.Sizer])
	case *engine.Checker:
		return over(e, t, same[engine.Checker])
	case *engine.Purger:
		return over(e, t, same[engine.Purger])
	case *engine.Redriver:
		return over(e, t, same[engine.Redriver])
	}
	return false
}

func same[T any](t T) T { return t }

func over[T any](e *Engine, target *T, wrap func(T) T) bool {
	in, ok := engine.As[T](e.inner)
	if ok {
		*target = wrap(in)
	}
	return ok
}
