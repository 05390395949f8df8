package postgres_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/event"
	"github.com/forebayhq/forebay/internal/pgtest"
	"github.com/forebayhq/forebay/sink"
	"github.com/forebayhq/forebay/sink/postgres"
)

// Every way in which pgx can talk to the server, which a URL chooses for a pooler,
// writes the same rows, by COPY and by INSERT.
func TestWriteAndFind(t *testing.T) {
	whole := event.Event{
		ID: "whole", Type: "purchase", UserID: "u\"1\\é世", Source: "ios/segment",
		Payload:    []byte(`{"total": 1e400, "note": "a<b>&c", "deep": [[{"x": null}]]}`),
		ReceivedAt: noon.Add(123456 * time.Microsecond), OccurredAt: noon.Add(-time.Hour),
		SentAt: noon.Add(-time.Minute), OriginalAt: noon.AddDate(-10, 0, 0),
	}
	for _, mode := range []string{"cache_statement", "cache_describe", "describe_exec", "exec", "simple_protocol"} {
		t.Run(mode, func(t *testing.T) {
			url := pgtest.Database(t) + "&default_query_exec_mode=" + mode
			s := open(t, url, fast())
			total := 0
			for _, n := range []int{1, 2, 99, 100, 1000} {
				last := whole
				last.ID = fmt.Sprintf("whole-%d", n)
				events := append(samples(total, n-1), last)
				mustWrite(t, s, events...)
				found(t, s, events[0])
				found(t, s, last)
				total += n
			}
			if _, ok, err := s.Find(t.Context(), "other"); ok || err != nil {
				t.Errorf("found an event that was never written: %v", err)
			}
			if got := count(t, admin(t, url), rows); got != total {
				t.Errorf("%d rows, want %d", got, total)
			}
		})
	}
}

func found(t *testing.T, s *postgres.Sink, want event.Event) {
	t.Helper()
	got, ok, err := s.Find(t.Context(), want.ID)
	if err != nil || !ok {
		t.Fatalf("find %s: %v, %v", want.ID, ok, err)
	}
	if !sameJSON(t, got.Payload, want.Payload) {
		t.Errorf("payload %s, want %s", got.Payload, want.Payload)
	}
	got.Payload, want.Payload = nil, nil
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

// sameJSON compares as JSON, numbers by their value.
func sameJSON(t *testing.T, a, b []byte) bool {
	t.Helper()
	var va, vb any
	for _, x := range []struct {
		b []byte
		v *any
	}{{a, &va}, {b, &vb}} {
		text := strings.ReplaceAll(string(x.b), "1"+strings.Repeat("0", 400), "1e400")
		d := json.NewDecoder(strings.NewReader(text))
		d.UseNumber()
		if err := d.Decode(x.v); err != nil {
			t.Fatal(err)
		}
	}
	return reflect.DeepEqual(va, vb)
}

func TestRepeatingIsHarmless(t *testing.T) {
	url := pgtest.Database(t)
	var seen []sink.Batch
	cfg := fast()
	cfg.Observe = func(b sink.Batch) { b.Latency = nil; seen = append(seen, b) }
	s := open(t, url, cfg)
	mustWrite(t, s, samples(0, 500)...)         // COPY
	mustWrite(t, s, samples(250, 500)...)       // COPY fails on the known half
	mustWrite(t, s, samples(0, 50)...)          // all known
	mustWrite(t, s, sample(9000), sample(9000)) // twice in one batch
	mustWrite(t, s, samples(700, 400)...)       // cautious: INSERT at once
	conn := admin(t, url)
	if got := count(t, conn, rows); got != 1101 {
		t.Errorf("%d rows, want 1101", got)
	}
	want := []sink.Batch{
		{Rows: 500, Written: 500}, {Rows: 500, Written: 250, Duplicates: 250},
		{Rows: 50, Duplicates: 50}, {Rows: 2, Written: 1, Duplicates: 1},
		{Rows: 400, Written: 350, Duplicates: 50},
	}
	if !reflect.DeepEqual(seen, want) {
		t.Errorf("observed %+v\nwant     %+v", seen, want)
	}
}

func TestLatencyIsFromReceivedToWritten(t *testing.T) {
	var got []time.Duration
	cfg := fast()
	cfg.Observe = func(b sink.Batch) { got = append(got, b.Latency...) }
	s := open(t, pgtest.Database(t), cfg)
	late := sample(2)
	late.ReceivedAt = noon.Add(-time.Minute)
	mustWrite(t, s, sample(1), late)
	if want := []time.Duration{time.Second, time.Minute}; !reflect.DeepEqual(got, want) {
		t.Errorf("latency %v, want %v", got, want)
	}
}

// What valid JSON can hold and jsonb cannot, and what is only large.
func TestHardPayloads(t *testing.T) {
	cases := []struct{ name, payload, code string }{
		{"nul", `{"a":"x\u0000y"}`, "22P05"},
		{"nul key", `{"\u0000":1}`, "22P05"},
		{"lone surrogate", `{"a":"\ud800"}`, "decode"},
		{"1e400", `{"a":1e400}`, ""},
		{"1e200000", `{"a":1e200000}`, "22003"},
		{"-1e-200000", `{"a":-1e-200000}`, "22003"},
		{"nested 100", `{"a":` + strings.Repeat("[", 100) + strings.Repeat("]", 100) + `}`, ""},
		{"nested 9000", `{"a":` + strings.Repeat("[", 9000) + strings.Repeat("]", 9000) + `}`, "54001"},
		{"nested 20000", `{"a":` + strings.Repeat("[", 20000) + strings.Repeat("]", 20000) + `}`, "decode"},
		{"1 MiB", `{"a":"` + strings.Repeat("x", 1<<20-100) + `"}`, ""},
		{"not json", `{"a":`, "decode"},
	}
	url := pgtest.Database(t)
	s := open(t, url+"&options=-c%20max_stack_depth%3D100kB", fast())
	events := samples(0, 300)
	for i, c := range cases {
		events[i*20+5].Payload = []byte(c.payload)
	}
	errs := s.HandleBatch(t.Context(), deliveries(t, events...))
	refused := 0
	for i, c := range cases {
		err := errs[i*20+5]
		if got := codes([]error{err})[0]; got != c.code {
			t.Errorf("%s: code %q, want %q (%v)", c.name, got, c.code, err)
		}
		if err == nil {
			continue
		}
		refused++
		if !forebay.IsPermanent(err) {
			t.Errorf("%s: not permanent: %v", c.name, err)
		}
		if column := forebay.CauseOf(err, noon).Detail["column"]; c.code != "decode" && column != "payload" {
			t.Errorf("%s: column %q", c.name, column)
		}
		errs[i*20+5] = nil
	}
	if err := errors.Join(errs...); err != nil {
		t.Errorf("other rows: %v", err)
	}
	if got := count(t, admin(t, url), rows); got != 300-refused {
		t.Errorf("%d rows, want %d", got, 300-refused)
	}
}

// One row among 1,000 is refused, named, and lands once after the cause is mended.
func TestPoisonRow(t *testing.T) {
	cases := []struct {
		name, set, unset, code, column, constraint string
		sure                                       bool
	}{
		{"check", "ALTER TABLE events ADD CONSTRAINT known CHECK (user_id <> 'bad')", "ALTER TABLE events DROP CONSTRAINT known",
			"23514", "user_id", "known", true},
		{"not null", "ALTER TABLE events ALTER source SET NOT NULL", "ALTER TABLE events ALTER source DROP NOT NULL",
			"23502", "source", "", true},
		{"unique", "CREATE UNIQUE INDEX once ON events (event_type, received_at) WHERE event_type <> 'app_open'", "DROP INDEX once",
			"23505", "event_type, received_at", "", true},
		{"trigger", trigger("P0001", "NEW.user_id = 'bad'"), dropTrigger, "P0001", "", "", true},
		{"unknown code", trigger("ZZ001", "NEW.user_id = 'bad'"), dropTrigger, "ZZ001", "", "", false},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			url := pgtest.Database(t)
			s := open(t, url, fast())
			conn := admin(t, url)
			if c.name == "unique" {
				known := sample(5000)
				known.Type = "first"
				mustWrite(t, s, known)
			}
			before := count(t, conn, rows)
			exec(t, conn, c.set)
			events := samples(0, 1000)
			events[777].UserID, events[777].Source, events[777].Type = "bad", "", "first"
			errs := s.HandleBatch(t.Context(), deliveries(t, events...))
			if len(errs) != len(events) {
				t.Fatal("no row was refused")
			}
			for i, err := range errs {
				if (err != nil) != (i == 777) {
					t.Fatalf("row %d: %v", i, err)
				}
			}
			if forebay.IsPermanent(errs[777]) != c.sure {
				t.Errorf("permanent: %v, want %v", !c.sure, c.sure)
			}
			cause := forebay.CauseOf(errs[777], noon)
			if cause.Code != c.code || cause.Detail["column"] != c.column || cause.Detail["table"] != "events" ||
				c.constraint != "" && cause.Detail["constraint"] != c.constraint {
				t.Errorf("cause %+v", cause)
			}
			if got := count(t, conn, rows) - before; got != 999 {
				t.Errorf("%d rows, want 999", got)
			}
			exec(t, conn, c.unset)
			mustWrite(t, s, events[777])
			mustWrite(t, s, events[777])
			if got := count(t, conn, rows) - before; got != 1000 {
				t.Errorf("%d rows after the replay, want 1000", got)
			}
		})
	}
}

// dropTrigger locks the table first: DROP TRIGGER alone locks the partitions before
// it, against the order of whoever writes meanwhile, and PostgreSQL ends one of both.
const dropTrigger = "LOCK TABLE ONLY events IN ACCESS EXCLUSIVE MODE; DROP TRIGGER refuse ON events"

func trigger(code, when string) string {
	return `CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
			IF ` + when + ` THEN RAISE EXCEPTION 'no' USING ERRCODE = '` + code + `'; END IF; RETURN NEW; END $$;
		CREATE TRIGGER refuse BEFORE INSERT ON events FOR EACH ROW EXECUTE FUNCTION refuse()`
}

// A batch that is bad as a whole costs a bounded number of statements per row.
func TestAllBadCost(t *testing.T) {
	const n = 400
	url := pgtest.Database(t)
	cfg := fast()
	s, err := postgres.Open(t.Context(), url, cfg)
	if err != nil {
		t.Fatal(err)
	}
	conn := admin(t, url)
	exec(t, conn, "ALTER TABLE events ADD CONSTRAINT never CHECK (event_type <> 'app_open')")
	for i, code := range codes(s.HandleBatch(t.Context(), deliveries(t, samples(0, n)...))) {
		if code != "23514" {
			t.Fatalf("row %d: code %q", i, code)
		}
	}
	if err := s.Close(); err != nil { // its connections report their statements when they end
		t.Fatal(err)
	}
	const rolledBack = "SELECT xact_rollback FROM pg_stat_database WHERE datname = current_database()"
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	got := count(t, conn, rolledBack)
	for ; got < n; got = count(t, conn, rolledBack) {
		<-tick.C
	}
	if got > n+n/2+2 {
		t.Errorf("%d failed statements for %d bad rows", got, n)
	}
}
