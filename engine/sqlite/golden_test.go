package sqlite_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
	"github.com/forebayhq/forebay/engine/sqlite"
)

var makeGolden = flag.String("golden", "", "write a golden database of this version to a file")

// fillGolden puts some of everything into an engine.
func fillGolden(t *testing.T, e *sqlite.Engine) {
	msgs := messages(20, "m")
	for i := range msgs {
		if i%4 == 0 {
			msgs[i].Group = "g"
		}
	}
	msgs[19].NotBefore = time.Now().Add(time.Hour)
	send(t, e, msgs...)
	ds := receive(t, e, 8)
	settle(t, e, forebay.Ack, ds[:2]...)
	settle(t, e, forebay.Retry, ds[2:4]...)
	settle(t, e, forebay.Dead, ds[4:6]...)
	fillJobs(t, e)
	if err := e.SetLimits(context.Background(), "q", engine.QueueLimits{Active: 100}); err != nil {
		t.Fatal(err)
	}
}

// endings are how the golden jobs ended.
var endings = []forebay.Settlement{
	{Verdict: forebay.Ack, Result: []byte(`[1]`)}, {Verdict: forebay.Dead, Cause: forebay.Cause{Code: "x"}},
	{Verdict: forebay.Cancelled}, {Verdict: forebay.Expired},
}

// fillJobs puts in jobs of all states.
func fillJobs(t *testing.T, e *sqlite.Engine) {
	all := jobs(6, "job")
	for i := range all {
		all[i].Queue = "jobs"
		all[i].Job = &forebay.JobOptions{Tags: []string{"golden"}, Tenant: "t", Deadline: time.Now().Add(30 * 24 * time.Hour)}
	}
	all[5].NotBefore = time.Now().Add(24 * time.Hour)
	send(t, e, all...)
	ds, err := e.Receive(context.Background(), engine.Receive{Queue: "jobs", Max: len(endings)})
	if err != nil || len(ds) != len(endings) {
		t.Fatal(ds, err)
	}
	for i, s := range endings {
		s.Receipt = ds[i].Receipt
		settleOne(t, e, s)
	}
}

func checkJobs(t *testing.T, e *sqlite.Engine) {
	for i, want := range []forebay.State{forebay.StateCompleted, forebay.StateDead, forebay.StateCancelled, forebay.StateExpired, forebay.StateWaiting} {
		id := fmt.Sprint("job", i)
		j := jobOf(t, e, id)
		if j.State != want || j.Job.Tenant != "t" || j.Job.Tags[0] != "golden" || string(j.Payload) != "payload of "+id {
			t.Errorf("%+v", j)
		}
		if got := story(t, e, id); got[0] != forebay.HistoryAdded || i < 4 && len(got) != 3 {
			t.Errorf("%s: %v", id, got)
		}
	}
}

// A database that any version wrote opens for ever, with all that is in it. Files
// are added, never changed: go test -run GoldenDatabase -golden testdata/golden/NEW.db
func TestGoldenDatabase(t *testing.T) {
	if *makeGolden != "" {
		e := mustOpen(t, sqlite.Config{Path: *makeGolden})
		fillGolden(t, e)
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
	}
	files, err := filepath.Glob(filepath.Join("testdata", "golden", "*.db"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no golden files, %v", err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			golden, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(t.TempDir(), "forebay.db")
			if err := os.WriteFile(path, golden, 0o600); err != nil {
				t.Fatal(err)
			}
			e := open(t, sqlite.Config{Path: path})
			checkGolden(t, e)
		})
	}
}

func checkGolden(t *testing.T, e *sqlite.Engine) {
	ctx := context.Background()
	if l, err := e.QueueLimits(ctx, "q"); err != nil || l.Active != 100 {
		t.Errorf("limits %+v, %v", l, err)
	}
	checkJobs(t, e)
	letters, err := e.Dead(ctx, engine.DeadQuery{Queue: "q"})
	if err != nil || len(letters) != 2 {
		t.Errorf("dead letters %+v, %v", letters, err)
	}
	again := map[int]int{} // attempts of what comes
	for {
		ds := receive(t, e, 100)
		if len(ds) == 0 {
			break
		}
		for _, d := range ds {
			again[d.Attempt]++
			if string(d.Payload) != "payload of "+d.ID {
				t.Errorf("%+v", d)
			}
		}
		settle(t, e, forebay.Ack, ds...)
	}
	// 20, of which 2 were acked, 2 retried, 2 died; the delayed one has come or will.
	if n := again[1] + again[2]; again[2] != 2 || n != 15 && n != 16 {
		t.Errorf("attempts %v", again)
	}
	if rec := e.Recovery(); rec.Copy != "" {
		t.Errorf("recovery %+v", rec)
	}
}
