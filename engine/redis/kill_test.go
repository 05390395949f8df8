package redis_test

import (
	"context"
	"os"
	"testing"

	"github.com/forebayhq/forebay/engine"
	"github.com/forebayhq/forebay/engine/enginetest"
	"github.com/forebayhq/forebay/engine/redis"
	"github.com/forebayhq/forebay/internal/redistest"
)

const killEnv = "REDIS_TEST_KILL"

// A process of ours is killed again and again while Redis goes on. What it held is held until
// the time of each lock.
func TestKill(t *testing.T) {
	url := os.Getenv(killEnv) // the child of this test gets it
	if url == "" {
		url = redistest.Start(t, redistest.Config{}).URL(0)
		t.Setenv(killEnv, url)
	}
	enginetest.Kill(t, enginetest.KillConfig{Rounds: 5, Keeps: true, AllKept: true, Open: func(string) (engine.Engine, error) {
		return redis.Open(context.Background(), redis.Config{URL: url})
	}})
}
