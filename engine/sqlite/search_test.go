package sqlite_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
	"github.com/forebayhq/forebay/engine/sqlite"
)

// What a search finds by the payload stays found when the payload changes, whatever
// signatures said of the job before, and however the payload is written.
func TestSearchOfChangedJobs(t *testing.T) {
	ctx := context.Background()
	e := open(t, sqlite.Config{})
	for i := range 10 {
		msgs := jobsOf("a", 20)
		for j := range msgs {
			msgs[j].ID = fmt.Sprint(i*20 + j)
			msgs[j].Payload = fmt.Appendf(nil, `{"n":%d}`, i*20+j)
		}
		send(t, e, msgs...)
	}
	sign := func() {
		t.Helper()
		if err := e.Sign(30); err != nil {
			t.Fatal(err)
		}
	}
	finds := func(value, id string) {
		t.Helper()
		f := engine.JobFilter{Payload: []engine.PayloadTerm{{Path: []string{"n"}, Value: value}}}
		if got := listAll(t, e, f, 10); len(got) != 1 || got[0].ID != id {
			t.Fatalf("%q finds %d jobs", value, len(got))
		}
	}
	sign()
	for id, payload := range map[string]string{"7": `{"n":"seven"}`, "133": `{"n":"\u0042 \"C\""}`} {
		errs, err := e.Change(ctx, []engine.JobChange{{ID: id, Payload: []byte(payload)}})
		if err = errors.Join(append(errs, err)...); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		finds("seven", "7")
		finds(`B "C"`, "133")
		finds("134", "134")
		sign()
	}
	if n := rows(t, e, "SELECT count(*) FROM fresh"); n > 1 {
		t.Fatalf("%d blocks have no signature", n)
	}
	// Also when they have finished.
	settle(t, e, forebay.Ack, receive(t, e, 200)...)
	sign()
	finds("seven", "7")
	counts, err := e.Finished(ctx)
	if err != nil || counts["q"][forebay.StateCompleted] != 200 {
		t.Fatal(counts, err)
	}
}
