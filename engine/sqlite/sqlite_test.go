package sqlite_test

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
	"github.com/forebayhq/forebay/engine/sqlite"
)

// pageSize is that of the files that the engine makes.
const pageSize = 16 << 10

func open(t testing.TB, cfg sqlite.Config) *sqlite.Engine {
	t.Helper()
	e, err := sqlite.Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	return e
}

func send(t testing.TB, e engine.Engine, msgs ...forebay.Message) []forebay.SendResult {
	t.Helper()
	res, err := e.Send(context.Background(), msgs)
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

func messages(n int, prefix string) []forebay.Message {
	msgs := make([]forebay.Message, n)
	for i := range msgs {
		id := fmt.Sprint(prefix, i)
		msgs[i] = forebay.Message{ID: id, Queue: "q", Kind: "k", Payload: []byte("payload of " + id)}
	}
	return msgs
}

func receive(t testing.TB, e engine.Engine, n int) []forebay.Delivery {
	t.Helper()
	ds, err := e.Receive(context.Background(), engine.Receive{Queue: "q", Max: n})
	if err != nil {
		t.Fatal(err)
	}
	return ds
}

func settle(t testing.TB, e engine.Engine, v forebay.Verdict, ds ...forebay.Delivery) {
	t.Helper()
	var s []forebay.Settlement
	for _, d := range ds {
		s = append(s, forebay.Settlement{Receipt: d.Receipt, Verdict: v})
	}
	errs, err := e.Settle(context.Background(), s)
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
}

func TestRestart(t *testing.T) {
	path := filepath.Join(t.TempDir(), "forebay.db")
	e, err := sqlite.Open(sqlite.Config{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	send(t, e, messages(3000, "m")...)
	ds := receive(t, e, 1500)
	if len(ds) != 1500 || string(ds[7].Payload) != "payload of m7" {
		t.Fatalf("%d deliveries: %+v", len(ds), ds[7])
	}
	settle(t, e, forebay.Ack, ds[:1000]...)
	settle(t, e, forebay.Retry, ds[1000:1100]...)
	settle(t, e, forebay.Dead, ds[1100:1110]...)
	stats := func() forebay.QueueStats {
		s, err := e.Stats(context.Background(), "q")
		if err != nil {
			t.Fatal(err)
		}
		return s[0]
	}
	before := stats()
	if before.Waiting != 1600 || before.Active != 390 || before.Dead != 10 || before.Completed != 1000 {
		t.Fatalf("%+v", before)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	e = open(t, sqlite.Config{Path: path})
	after := stats()
	if after.Waiting != 1990 || after.Active != 0 || after.Delayed != 0 || after.Dead != 10 || after.Bytes != before.Bytes {
		t.Fatalf("%+v, before %+v", after, before)
	}
	if res := send(t, e, messages(3000, "m")...); !res[0].Duplicate || !res[2999].Duplicate {
		t.Fatalf("not duplicates: %+v", res[0])
	}
	seen := map[string]int{}
	for {
		ds := receive(t, e, 700)
		if len(ds) == 0 {
			break
		}
		for _, d := range ds {
			seen[d.ID]++
			if d.ID == "m1050" && (d.Attempt != 2 || d.Deliveries != 2 || len(d.Failures) != 1) {
				t.Errorf("%+v", d)
			}
			if d.ID == "m1200" && (d.Attempt != 1 || d.Deliveries != 2) {
				t.Errorf("%+v", d)
			}
		}
		settle(t, e, forebay.Ack, ds...)
	}
	if len(seen) != 1990 {
		t.Fatalf("%d messages", len(seen))
	}
	if s := stats(); s.Waiting != 0 || s.Bytes != 0 {
		t.Fatalf("%+v", s)
	}
}
