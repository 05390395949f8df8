package redis

import (
	"context"
	"sync"
	"time"

	goredis "github.com/redis/go-redis/v9"
)

// Sweep does what the keeper does from time to time for queues in use.
func (e *Engine) Sweep(ctx context.Context, queue string) error {
	return e.tidy(ctx, []any{sweepMost, 1, queue})
}

// OpenInBubble opens an engine that can live in a bubble of testing/synctest with a
// real server. There time stands still while a goroutine waits for the network, which
// suits a question and its answer, but would never pass while a reader blocks in the
// server. So here the readers wait in this process, and look again after each script
// that it has run. All else is as it is in use.
func OpenInBubble(ctx context.Context, cfg Config) (*Engine, error) {
	cfg.Now = time.Now
	return open(ctx, cfg, func(e *Engine) {
		_ = e.block.close()
		k := &kicked{e: e, again: make(chan struct{}), closed: make(chan struct{})}
		e.block, e.ran = k, k.kick
	})
}

// OpenApart opens an engine whose server has a clock that is ahead of this machine's.
func OpenApart(ctx context.Context, cfg Config, ahead time.Duration) (*Engine, error) {
	return open(ctx, cfg, func(e *Engine) {
		e.clock = func() time.Time { return time.Now().Add(ahead) }
	})
}

// kicked is a blocker that looks again when it is told to.
type kicked struct {
	e      *Engine
	closed chan struct{}

	mu    sync.Mutex // guards again
	again chan struct{}
}

func (k *kicked) kick() {
	k.mu.Lock()
	defer k.mu.Unlock()
	close(k.again)
	k.again = make(chan struct{})
}

// wait looks until it finds, at most for a time.
func (k *kicked) wait(most time.Duration, look func(ctx context.Context) (bool, error)) error {
	end := time.NewTimer(most)
	defer end.Stop()
	for {
		k.mu.Lock()
		again := k.again
		k.mu.Unlock()
		if found, err := look(context.Background()); found || err != nil {
			return err
		}
		select {
		case <-again:
		case <-end.C:
			return goredis.Nil
		case <-k.closed:
			return goredis.ErrClosed
		}
	}
}

func (k *kicked) pop(most time.Duration, keys []string) (z goredis.ZWithKey, err error) {
	err = k.wait(most, func(ctx context.Context) (bool, error) {
		for _, key := range keys {
			got, err := k.e.client.ZPopMin(ctx, key).Result()
			if err != nil {
				return false, err
			}
			if len(got) > 0 {
				z = goredis.ZWithKey{Z: got[0], Key: key}
				return true, nil
			}
		}
		return false, nil
	})
	return z, err
}

func (k *kicked) read(most time.Duration, key, after string) (ms []goredis.XMessage, err error) {
	err = k.wait(most, func(ctx context.Context) (bool, error) {
		ms, err = k.e.client.XRangeN(ctx, key, "("+after, "+", scanAtOnce).Result()
		return len(ms) > 0, err
	})
	return ms, err
}

func (k *kicked) cut() {}

func (k *kicked) close() error {
	close(k.closed)
	return nil
}

// Waits tells whether a receive waits for a queue, and the reader knows of it.
func (e *Engine) Waits(queue string) bool {
	e.waits.mu.Lock()
	defer e.waits.mu.Unlock()
	return e.waits.reading[queue] && e.waits.queues[queue] != nil
}

// ListAgain does what the keeper does from time to time for the names of connections.
func (e *Engine) ListAgain() { e.listed.again() }

// ByServer gives a time by the clock of Redis, of which something was heard.
func ByServer(server, heardAt, now, t time.Time) time.Time {
	return atMillis((&heard{server.UnixMilli(), heardAt}).shift(t.UnixMilli(), now))
}
