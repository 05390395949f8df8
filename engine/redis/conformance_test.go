package redis_test

import (
	"flag"
	"fmt"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/forebayhq/forebay/engine"
	"github.com/forebayhq/forebay/engine/enginetest"
	"github.com/forebayhq/forebay/engine/redis"
	"github.com/forebayhq/forebay/internal/redistest"
)

// Cases wait in real time, so many of them may do so side by side.
func TestMain(m *testing.M) {
	if url := os.Getenv(mixedEnv); url != "" {
		worker(url)
	}
	flag.Parse()
	if f := flag.Lookup("test.parallel"); f.Value.String() == f.DefValue {
		_ = f.Value.Set("10")
	}
	// A run of the model in real time takes its steps' units; more with ENGINETEST_ROUNDS.
	for name, value := range map[string]string{"ENGINETEST_ROUNDS": "4", "ENGINETEST_STEPS": "80", "ENGINETEST_KEYS": "1000"} {
		if os.Getenv(name) == "" {
			_ = os.Setenv(name, value)
		}
	}
	os.Exit(m.Run())
}

// opened remembers how an engine was opened, so that the suite can open it again.
type opened struct {
	*redis.Engine
	cfg    redis.Config
	offset *atomic.Int64 // of its clock
}

func (o opened) Unwrap() engine.Engine { return o.Engine }

// unit is long enough to be told from the noise of a quiet machine; ENGINETEST_UNIT, in
// ms, sets another.
var unit = func() time.Duration {
	if ms, err := strconv.Atoi(os.Getenv("ENGINETEST_UNIT")); err == nil {
		return time.Duration(ms) * time.Millisecond
	}
	return 120 * time.Millisecond
}()

// registry knows the engine of each test, so that its clock can be moved.
type registry struct {
	mu  sync.Mutex // guards all
	all map[testing.TB]opened
}

func (r *registry) set(t testing.TB, o opened) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all[t] = o
}

func (r *registry) get(t testing.TB) opened {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.all[t]
}

// pass waits for short whiles in real time, as what the suite tells the engine is in
// real time. Of long ones, which come last in their cases, the engine's clock jumps.
func (r *registry) pass(t testing.TB, d time.Duration) {
	if d > 150*unit {
		o := r.get(t)
		o.offset.Add(int64(d))
		o.Nudge()
		d = 4 * unit
	}
	<-time.After(d)
}

func harness(t testing.TB) enginetest.Harness {
	var servers []*redistest.Server // several, so that a heavy case does not hold up the time of the others
	for range 4 {
		servers = append(servers, redistest.Start(t, redistest.Config{}))
	}
	var n atomic.Int64
	open := func(t testing.TB, o opened) opened {
		e, err := redis.Open(t.Context(), o.cfg)
		if err != nil {
			t.Fatal(err)
		}
		o.Engine = e
		return o
	}
	engines := &registry{all: make(map[testing.TB]opened)}
	return enginetest.Harness{
		Open: func(t testing.TB) engine.Engine {
			o := opened{offset: &atomic.Int64{}}
			o.cfg = redis.Config{Prefix: fmt.Sprint("t", n.Add(1)), Now: func() time.Time { return time.Now().Add(time.Duration(o.offset.Load())) }}
			o.cfg.URL = servers[n.Load()%4].URL(0)
			o = open(t, o)
			engines.set(t, o)
			return o
		},
		Reopen: func(t testing.TB, e engine.Engine) engine.Engine {
			o := e.(opened)
			if err := o.Close(); err != nil {
				t.Fatal(err)
			}
			o = open(t, o)
			engines.set(t, o)
			return o
		},
		Pass: engines.pass,
		Unit: unit,
		Cannot: map[enginetest.Ability]string{
			enginetest.Sizing:       "Redis tells the memory of all, not of the queues",
			enginetest.Listing:      "no index is kept yet by which jobs are found",
			enginetest.LateSettling: "a receipt leads to its message only while it is live",
			enginetest.Peeking:      "not built yet",
		},
	}
}

func TestConformance(t *testing.T) { enginetest.Run(t, harness(t)) }

func BenchmarkSuite(b *testing.B) { enginetest.Benchmark(b, harness(b)) }
