package redis

import (
	"context"
	"time"

	goredis "github.com/redis/go-redis/v9"
)

// blocker waits in the server: for the markers of queues, and for the history. What
// comes by time only, and does not come in time, is goredis.Nil.
type blocker interface {
	pop(most time.Duration, keys []string) (goredis.ZWithKey, error)
	read(most time.Duration, key, after string) ([]goredis.XMessage, error)
	close() error
}

// blocking is the real one, on connections of its own.
type blocking struct {
	client  goredis.UniversalClient
	timeout time.Duration // beyond what it blocks
}

func (b blocking) pop(most time.Duration, keys []string) (goredis.ZWithKey, error) {
	ctx, cancel := context.WithTimeout(context.Background(), most+b.timeout)
	defer cancel()
	got, err := b.client.BZPopMin(ctx, most, keys...).Result()
	if err != nil {
		return goredis.ZWithKey{}, err
	}
	return *got, nil
}

func (b blocking) read(most time.Duration, key, after string) ([]goredis.XMessage, error) {
	ctx, cancel := context.WithTimeout(context.Background(), most+b.timeout)
	defer cancel()
	got, err := b.client.XRead(ctx, &goredis.XReadArgs{Streams: []string{key, after}, Count: scanAtOnce, Block: most}).Result()
	if err != nil || len(got) == 0 {
		return nil, err
	}
	return got[0].Messages, nil
}

func (b blocking) close() error { return b.client.Close() }
