package redis

import (
	"context"
	"sync"
	"time"

	goredis "github.com/redis/go-redis/v9"
)

// blocker waits in the server: for the markers of queues, and for the history. What
// comes by time only, and does not come in time, is goredis.Nil.
type blocker interface {
	pop(most time.Duration, keys []string) (goredis.ZWithKey, error)
	read(most time.Duration, key, after string) ([]goredis.XMessage, error)
	cut() // ends what waits now with an error; what comes next has new connections
	close() error
}

// blocking is the real one, on connections of its own.
type blocking struct {
	cfg Config

	mu     sync.Mutex // guards all below
	client goredis.UniversalClient
	since  time.Time // of client
	closed bool
}

func newBlocking(cfg Config) (*blocking, error) {
	client, err := connect(cfg, 4)
	return &blocking{cfg: cfg, client: client, since: time.Now()}, err
}

func (b *blocking) now() goredis.UniversalClient {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.client
}

// cut is for when another call had no answer: the network may have lost one of those that
// block as well, and nobody would learn of it before their time is over. A server that is
// slow for long is not dialled at each call.
func (b *blocking) cut() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed || time.Since(b.since) < b.cfg.Timeout {
		return
	}
	if client, err := connect(b.cfg, 4); err == nil {
		_ = b.client.Close()
		b.client, b.since = client, time.Now()
	}
}

func (b *blocking) pop(most time.Duration, keys []string) (goredis.ZWithKey, error) {
	ctx, cancel := context.WithTimeout(context.Background(), most+b.cfg.Timeout)
	defer cancel()
	got, err := b.now().BZPopMin(ctx, most, keys...).Result()
	if err != nil {
		return goredis.ZWithKey{}, err
	}
	return *got, nil
}

func (b *blocking) read(most time.Duration, key, after string) ([]goredis.XMessage, error) {
	ctx, cancel := context.WithTimeout(context.Background(), most+b.cfg.Timeout)
	defer cancel()
	got, err := b.now().XRead(ctx, &goredis.XReadArgs{Streams: []string{key, after}, Count: scanAtOnce, Block: most}).Result()
	if err != nil || len(got) == 0 {
		return nil, err
	}
	return got[0].Messages, nil
}

func (b *blocking) close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	return b.client.Close()
}
