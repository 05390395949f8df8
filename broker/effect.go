package broker

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
)

// Bounds of effects.
const (
	MaxEffectBytes = engine.MaxDocumentBytes - 1 // of a result that is remembered
	effectKept     = 30 * 24 * time.Hour
	effectTimeout  = 30 * time.Second // to remember one that has run

	effectCollection = "effect"
)

// The first byte of a remembered effect says what the rest is.
const (
	effectResult = 'r'
	effectFailed = 'f' // why its result cannot be told
)

// effects that run in this process.
type effects struct {
	mu      sync.Mutex
	running map[string]chan struct{} // closed when the run has ended
}

// Effect runs something that must not be done twice, and remembers its result
// under the key: who asks again, in this process or another, now or in the next 30
// days, gets that result and nothing runs. In one process one call of a key runs at
// a time, and the others wait for it. A run that fails remembers nothing.
//
// Between the end of the run and the moment when it is remembered lies one write. A
// process that is killed just there has had the effect without knowing: give the
// key to the other side too, where it takes one.
func (b *Broker) Effect(ctx context.Context, key string, run func(ctx context.Context) ([]byte, error)) ([]byte, error) {
	if b.able.docs == nil {
		return nil, noDocuments()
	}
	if key == "" || len(key) > engine.MaxDocumentKey {
		return nil, invalid("key", "the key has %d bytes; 1 to %d are allowed", len(key), engine.MaxDocumentKey)
	}
	leave, err := b.effects.enter(ctx, key)
	if err != nil {
		return nil, err
	}
	defer leave()
	known, err := b.able.docs.Document(ctx, effectCollection, key)
	if err == nil {
		return recall(known.Value)
	}
	if forebay.CodeOf(err) != forebay.CodeNotFound {
		return nil, err
	}
	result, err := run(ctx)
	if err != nil {
		return nil, err
	}
	return b.remember(ctx, key, result)
}

// Remembered tells whether an effect has run, and its result is known.
func (b *Broker) Remembered(ctx context.Context, key string) (bool, error) {
	_, err := b.Document(ctx, effectCollection, key)
	if forebay.CodeOf(err) == forebay.CodeNotFound {
		return false, nil
	}
	return err == nil, err
}

// enter waits until no other call of the key runs in this process.
func (e *effects) enter(ctx context.Context, key string) (leave func(), err error) {
	for {
		e.mu.Lock()
		other, busy := e.running[key]
		if !busy {
			mine := make(chan struct{})
			e.running[key] = mine
			e.mu.Unlock()
			return func() {
				e.mu.Lock()
				delete(e.running, key)
				e.mu.Unlock()
				close(mine)
			}, nil
		}
		e.mu.Unlock()
		select {
		case <-other:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// remember stores what a run gave. The run cannot be undone, so it is tried for a
// while, also when the caller has gone.
func (b *Broker) remember(ctx context.Context, key string, result []byte) ([]byte, error) {
	value := append([]byte{effectResult}, result...)
	if len(result) > MaxEffectBytes {
		value = fmt.Appendf([]byte{effectFailed}, "the result has %d bytes; at most %d can be remembered", len(result), MaxEffectBytes)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), effectTimeout)
	defer cancel()
	d := engine.Document{Collection: effectCollection, Key: key, Value: value, Expires: b.now().Add(effectKept)}
	for wait := 50 * time.Millisecond; ; wait = min(2*wait, 2*time.Second) {
		stored, err := b.able.docs.PutDocument(ctx, d)
		switch forebay.CodeOf(err) {
		case "":
			return recall(value)
		case forebay.CodeConflict: // another process was first, or our first try arrived after all
			return recall(stored.Value)
		case forebay.CodeClosed, forebay.CodeInvalid, forebay.CodeUnsupported:
			return nil, fmt.Errorf("the effect %q has run, but cannot be remembered: %w", key, err)
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return nil, fmt.Errorf("the effect %q has run, but cannot be remembered: %w", key, err)
		}
	}
}

func recall(value []byte) ([]byte, error) {
	if len(value) == 0 {
		return nil, forebay.Errorf(forebay.CodeDamaged, "broker: effect", "the remembered effect is empty")
	}
	if value[0] == effectFailed {
		return nil, forebay.Permanent(forebay.Because(forebay.Cause{Code: "effect"}, errors.New(string(value[1:]))))
	}
	return value[1:], nil
}
