package postgres

import (
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/event"
	"github.com/forebayhq/forebay/internal/pgtest"
)

// Nothing is kept in a session: a pooler may give each transaction another one.
func TestNothingInTheSession(t *testing.T) {
	s, err := Open(t.Context(), pgtest.Database(t), Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for _, n := range []int{1, 2 * copyFrom, 3} {
		var ds []forebay.Delivery
		for i := range n {
			e := event.Event{ID: fmt.Sprint(n, "-", i), Type: "t", ReceivedAt: time.Now(), Payload: []byte(`{}`)}
			b, err := e.Append(nil)
			if err != nil {
				t.Fatal(err)
			}
			ds = append(ds, forebay.Delivery{Message: forebay.Message{ID: e.ID, Payload: b}})
		}
		if errs := s.HandleBatch(t.Context(), ds); errs != nil {
			t.Fatal(errs)
		}
		if _, ok, err := s.Find(t.Context(), ds[0].ID); !ok || err != nil {
			t.Fatal(ok, err)
		}
	}
	for _, conn := range s.db.pool.AcquireAllIdle(t.Context()) {
		var left int
		err := conn.QueryRow(t.Context(), "SELECT count(*) FROM pg_prepared_statements", pgx.QueryExecModeSimpleProtocol).Scan(&left)
		if err != nil || left != 0 {
			t.Errorf("%d statements are prepared in the session, %v", left, err)
		}
		conn.Release()
	}
}

// Every attempt to connect ends, whatever the address says: the pool does not end
// one with the call that asked for it.
func TestConnectTimeout(t *testing.T) {
	for query, want := range map[string]time.Duration{
		"": connectTimeout, "?connect_timeout=0": connectTimeout, "?connect_timeout=60": connectTimeout, "?connect_timeout=2": 2 * time.Second,
	} {
		pc, err := poolConfig("postgres://u@127.0.0.1:1/d" + query)
		if err != nil {
			t.Fatal(err)
		}
		if got := pc.ConnConfig.ConnectTimeout; got != want {
			t.Errorf("%q: %s, want %s", query, got, want)
		}
	}
}
