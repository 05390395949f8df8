package postgres_test

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/forebayhq/forebay/engine"
	"github.com/forebayhq/forebay/engine/enginetest"
	"github.com/forebayhq/forebay/engine/postgres"
	"github.com/forebayhq/forebay/internal/pgtest"
)

const killEnv = "POSTGRES_TEST_KILL"

// A process of ours is killed again and again while PostgreSQL goes on, with fsync as it is
// in use. What it held is held until the time of each lease.
func TestKill(t *testing.T) {
	url := os.Getenv(killEnv) // the child of this test gets it
	if url == "" {
		url = pgtest.Database(t)
		t.Setenv(killEnv, url)
	}
	enginetest.Kill(t, enginetest.KillConfig{Rounds: 5, Life: 2 * time.Second, Keeps: true, AllKept: true, Open: func(string) (engine.Engine, error) {
		return postgres.Open(context.Background(), postgres.Config{URL: url})
	}})
}
