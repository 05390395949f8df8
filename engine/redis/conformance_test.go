package redis_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"sync/atomic"
	"testing"

	"github.com/forebayhq/forebay/engine"
	"github.com/forebayhq/forebay/engine/enginetest"
	"github.com/forebayhq/forebay/engine/redis"
	"github.com/forebayhq/forebay/internal/redistest"
)

func TestMain(m *testing.M) {
	if url := os.Getenv(mixedEnv); url != "" {
		worker(url)
	}
	flag.Parse()
	os.Exit(m.Run())
}

// opened remembers how an engine was opened, so that the suite can open it again.
type opened struct {
	*redis.Engine
	cfg redis.Config
}

func (o opened) Unwrap() engine.Engine { return o.Engine }

// harness works engines on one server, each with a prefix of its own.
func harness(t testing.TB, connect func(ctx context.Context, cfg redis.Config) (*redis.Engine, error)) enginetest.Harness {
	s := redistest.Start(t, redistest.Config{})
	var n atomic.Int64
	open := func(t testing.TB, cfg redis.Config) engine.Engine {
		t.Helper()
		e, err := connect(context.Background(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		return opened{e, cfg}
	}
	return enginetest.Harness{
		Open: func(t testing.TB) engine.Engine {
			return open(t, redis.Config{URL: s.URL(0), Prefix: fmt.Sprint("t", n.Add(1))})
		},
		Reopen: func(t testing.TB, e engine.Engine) engine.Engine {
			if err := e.Close(); err != nil {
				t.Fatal(err)
			}
			return open(t, e.(opened).cfg)
		},
		Cannot: map[enginetest.Ability]string{
			enginetest.Sizing:       "Redis tells the memory of all, not of the queues",
			enginetest.LateSettling: "a receipt leads to its message only while it is live",
			enginetest.QueueDelays:  "messages have a time each; FIFO queues of SQS are not spoken over Redis",
			enginetest.Logging:      "memory is too dear for what was settled",
		},
	}
}

// The suite runs on a real server in the time of bubbles; what the readers do that
// block in the server is shown by the tests with Node, and of outages.
func TestConformance(t *testing.T) { enginetest.Run(t, harness(t, redis.OpenInBubble)) }

func BenchmarkSuite(b *testing.B) { enginetest.Benchmark(b, harness(b, redis.Open)) }
