package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
	"github.com/forebayhq/forebay/engine/postgres"
	"github.com/forebayhq/forebay/internal/pgtest"
)

func open(t *testing.T, cfg postgres.Config) *postgres.Engine {
	t.Helper()
	e, err := postgres.Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Close() })
	return e
}

func send(t *testing.T, e *postgres.Engine, msgs ...forebay.Message) []forebay.SendResult {
	t.Helper()
	res, err := e.Send(t.Context(), msgs)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range res {
		if r.Err != nil {
			t.Fatal(r.Err)
		}
	}
	return res
}

func message(id string) forebay.Message {
	return forebay.Message{ID: id, Queue: "q", Payload: []byte("{}")}
}

// What one process sends another one that waits gets, long before it would look by itself.
func TestSignalsBetweenProcesses(t *testing.T) {
	cfg := postgres.Config{URL: pgtest.Database(t)}
	a, b := open(t, cfg), open(t, cfg)
	// The first is found without a signal: that b listens is only known once it has heard.
	for i := range 3 {
		got, errs := make(chan []forebay.Delivery, 1), make(chan error, 1)
		go func() {
			ds, err := b.Receive(context.Background(), engine.Receive{Queue: "q", Max: 1, Wait: time.Minute})
			got <- ds
			errs <- err
		}()
		send(t, a, message(fmt.Sprint("m", i)))
		if ds, err := <-got, <-errs; err != nil || len(ds) != 1 {
			t.Fatal(ds, err)
		}
	}
	if !postgres.Hears(b) {
		t.Fatal("b has heard nothing: its receives looked by themselves")
	}
}

// Groups, limits and dedup hold for all processes together.
func TestOneOrderForAll(t *testing.T) {
	cfg := postgres.Config{URL: pgtest.Database(t)}
	a, b := open(t, cfg), open(t, cfg)
	m := func(id string) forebay.Message {
		m := message(id)
		m.Group = "g"
		return m
	}
	send(t, a, m("1"))
	send(t, b, m("2"))
	if res := send(t, b, m("1")); !res[0].Duplicate {
		t.Fatalf("the second of an id is %+v", res[0])
	}
	first, err := b.Receive(t.Context(), engine.Receive{Queue: "q", Max: 1})
	if err != nil || len(first) != 1 || first[0].ID != "1" {
		t.Fatal(first, err)
	}
	if ds, err := a.Receive(t.Context(), engine.Receive{Queue: "q", Max: 1}); err != nil || len(ds) != 0 {
		t.Fatalf("beside the first of the group came %v, %v", ds, err)
	}
	errs, err := a.Settle(t.Context(), []forebay.Settlement{{Receipt: first[0].Receipt, Verdict: forebay.Ack}})
	if err != nil || errs[0] != nil {
		t.Fatal(errs, err)
	}
	if ds, err := a.Receive(t.Context(), engine.Receive{Queue: "q", Max: 1}); err != nil || len(ds) != 1 || ds[0].ID != "2" {
		t.Fatal(ds, err)
	}
}

// The answer to a commit is lost: the caller is told that it is not known, and repeating
// does no harm.
func TestAnswerOfACommitIsLost(t *testing.T) {
	direct, err := url.Parse(pgtest.Database(t))
	if err != nil {
		t.Fatal(err)
	}
	p := startProxy(t, direct.Host)
	through := *direct
	through.Host = p.l.Addr().String()
	e := open(t, postgres.Config{URL: through.String()})
	send(t, e, message("first")) // all is prepared
	ds, err := e.Receive(t.Context(), engine.Receive{Queue: "q", Max: 1})
	if err != nil || len(ds) != 1 {
		t.Fatal(ds, err)
	}
	p.lose("the payload that is lost")
	m := message("lost")
	m.Payload = []byte("the payload that is lost")
	if _, err := e.Send(t.Context(), []forebay.Message{m}); forebay.CodeOf(err) != forebay.CodeUnavailable {
		t.Fatalf("the send gave %v, want code unavailable", err)
	}
	if res := send(t, e, m); !res[0].Duplicate || res[0].Conflict {
		t.Fatalf("sent again it is %+v, want a duplicate: it had been stored", res[0])
	}
	next := message("next")
	next.Payload = []byte("what follows it")
	p.lose("what follows it")
	s := []forebay.Settlement{{Receipt: ds[0].Receipt, Verdict: forebay.Ack, Next: []forebay.Message{next}}}
	if _, err := e.Settle(t.Context(), s); forebay.CodeOf(err) != forebay.CodeUnavailable {
		t.Fatalf("the settle gave %v, want code unavailable", err)
	}
	if errs, err := e.Settle(t.Context(), s); err != nil || forebay.CodeOf(errs[0]) != forebay.CodeLeaseLost {
		t.Fatalf("settled again it gave %v, %v; want lease_lost: it had been settled", errs, err)
	}
	if ds, err := e.Receive(t.Context(), engine.Receive{Queue: "q", Max: 9}); err != nil || len(ds) != 2 {
		t.Fatalf("%d messages are there, %v; want the one sent twice and the one that followed, once each", len(ds), err)
	}
}

// A schema of a later version is left alone, and a wrong address does not show its password.
func TestOpenRefuses(t *testing.T) {
	at := pgtest.Database(t)
	e := open(t, postgres.Config{URL: at})
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	conn, err := pgx.Connect(t.Context(), at)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }()
	if _, err := conn.Exec(t.Context(), `UPDATE forebay.about SET version = 999`); err != nil {
		t.Fatal(err)
	}
	if _, err := postgres.Open(t.Context(), postgres.Config{URL: at}); forebay.CodeOf(err) != forebay.CodeTooNew {
		t.Fatalf("a schema of version 999 gave %v, want code too_new", err)
	}
	_, err = postgres.Open(t.Context(), postgres.Config{URL: "postgres://u:secret@:no-port:/x"})
	if forebay.CodeOf(err) != forebay.CodeInvalid || contains([]byte(err.Error()), "secret") {
		t.Fatalf("a wrong address gave %v", err)
	}
	if _, err := postgres.Open(t.Context(), postgres.Config{URL: "postgres://127.0.0.1:1/x", Timeout: 300 * time.Millisecond}); forebay.CodeOf(err) != forebay.CodeUnavailable {
		t.Fatalf("an address where nobody is gave %v, want code unavailable", err)
	}
}

// A receive whose caller goes away while it is being claimed for ends, whatever the server
// does, and what is left of it ends with that claim: the engine can be closed.
func TestCallerGoesDuringAClaim(t *testing.T) {
	cfg := postgres.Config{URL: pgtest.Database(t)}
	e := open(t, cfg)
	send(t, e, message("m"))
	if ds, err := e.Receive(t.Context(), engine.Receive{Queue: "q", Max: 1}); err != nil || len(ds) != 1 {
		t.Fatal(ds, err)
	}
	conn, err := pgx.Connect(t.Context(), cfg.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	tx, err := conn.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), "LOCK TABLE forebay.item"); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() {
		_, err := e.Receive(ctx, engine.Receive{Queue: "q", Max: 1, Wait: engine.MaxWait})
		ended <- err
	}()
	for waiting := 0; waiting == 0; {
		if err := tx.QueryRow(t.Context(), `SELECT count(*) FROM pg_stat_activity
			WHERE datname = current_database() AND wait_event_type = 'Lock'`).Scan(&waiting); err != nil {
			t.Fatal(err)
		}
	}
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := e.Close(); err != nil {
		t.Error(err)
	}
}
