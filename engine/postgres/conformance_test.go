package postgres_test

import (
	"context"
	"fmt"
	"os"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/forebayhq/forebay/engine"
	"github.com/forebayhq/forebay/engine/enginetest"
	"github.com/forebayhq/forebay/engine/postgres"
	"github.com/forebayhq/forebay/internal/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// opened remembers how an engine was opened, so that the suite can open it again.
type opened struct {
	*postgres.Engine
	cfg postgres.Config
}

func (o opened) Unwrap() engine.Engine { return o.Engine }

// quick are settings under which the machine may lose what was stored, which these tests
// do not look at.
var quick = map[string]string{"fsync": "off", "full_page_writes": "off", "autovacuum": "off", "max_connections": "200"}

// shelves are schemas of one database that engines of tests take and give back: to make
// one costs more than most cases.
type shelves struct {
	mu   sync.Mutex // guards all below
	free []string
	n    int
}

func (s *shelves) take(t testing.TB, url string, dial pgconn.DialFunc) string {
	t.Helper()
	s.mu.Lock()
	var name string
	if k := len(s.free); k > 0 {
		name, s.free = s.free[k-1], s.free[:k-1]
	} else {
		s.n++
		name = fmt.Sprint("t", s.n)
	}
	s.mu.Unlock()
	t.Cleanup(func() {
		if err := postgres.Wipe(context.Background(), url, name, dial); err != nil {
			t.Error(err)
			return
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.free = append(s.free, name)
	})
	return name
}

// harness works engines on one database, each with a schema of its own. Sessions are lent.
func harness(t testing.TB, url string, connect func(ctx context.Context, cfg postgres.Config, dial pgconn.DialFunc) (*postgres.Engine, error)) enginetest.Harness {
	all, sessions := &shelves{}, newLender(t, url+"&application_name=forebay")
	open := func(t testing.TB, cfg postgres.Config) engine.Engine {
		t.Helper()
		e, err := connect(context.Background(), cfg, sessions.dial)
		if err != nil {
			t.Fatal(err)
		}
		return opened{e, cfg}
	}
	return enginetest.Harness{
		Open: func(t testing.TB) engine.Engine {
			return open(t, postgres.Config{URL: url, Schema: all.take(t, url, sessions.dial)})
		},
		Reopen: func(t testing.TB, e engine.Engine) engine.Engine {
			if err := e.Close(); err != nil {
				t.Fatal(err)
			}
			return open(t, e.(opened).cfg)
		},
		Cannot: map[enginetest.Ability]string{
			enginetest.Sizing:       "PostgreSQL does not tell what is free on its disk",
			enginetest.LateSettling: "not built yet: a receipt leads to its message only while it is live",
			enginetest.QueueDelays:  "messages have a time each; FIFO queues of SQS are not spoken over PostgreSQL",
			enginetest.Logging:      "not built yet: what was settled is not kept",
		},
	}
}

// local is the address of a database by the server's socket, where nobody asks for a
// password: to prove one costs more than most cases.
func local(t testing.TB, url string) string {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }()
	var dir, name string
	if err := conn.QueryRow(t.Context(), `SELECT current_setting('unix_socket_directories'), current_database()`).Scan(&dir, &name); err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("postgres://forebay@/%s?host=%s&port=%d", name, dir, conn.Config().Port)
}

// The suite runs on a real server in the time of bubbles; what is heard of other processes
// is shown by the tests of several engines.
func TestConformance(t *testing.T) {
	for name, value := range map[string]string{"ENGINETEST_ROUNDS": "2", "ENGINETEST_KEYS": "1000"} {
		if os.Getenv(name) == "" {
			t.Setenv(name, value) // each step is a question to a server
		}
	}
	s := pgtest.Start(t, pgtest.Config{Settings: quick})
	enginetest.Run(t, harness(t, local(t, s.Database(t)), postgres.OpenInBubble))
}

// direct opens an engine that dials by itself.
func direct(ctx context.Context, cfg postgres.Config, _ pgconn.DialFunc) (*postgres.Engine, error) {
	return postgres.Open(ctx, cfg)
}

func BenchmarkSuite(b *testing.B) {
	enginetest.Benchmark(b, harness(b, pgtest.Start(b, pgtest.Config{}).Database(b), direct))
}
