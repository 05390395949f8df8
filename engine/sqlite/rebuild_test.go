package sqlite_test

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
	"github.com/forebayhq/forebay/engine/sqlite"
)

// ledgerOf is all that the ledger tells.
type ledgerOf struct {
	Jobs     []forebay.Job
	Finished map[string]map[forebay.State]int64
}

func readLedger(t *testing.T, e *sqlite.Engine) (l ledgerOf) {
	t.Helper()
	var err error
	for q := (engine.JobQuery{Limit: 100}); ; {
		page, err := e.Jobs(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		l.Jobs = append(l.Jobs, page.Jobs...)
		if q.After = page.Next; q.After == "" {
			break
		}
	}
	if l.Finished, err = e.Finished(t.Context()); err != nil {
		t.Fatal(err)
	}
	for i := range l.Jobs { // each is found by its id, too
		if one, err := e.Job(t.Context(), l.Jobs[i].ID); err != nil || !reflect.DeepEqual(one, l.Jobs[i]) {
			t.Errorf("by id %+v, %v; listed %+v", one, err, l.Jobs[i])
		}
	}
	// Nobody promises an order among those of one instant.
	slices.SortFunc(l.Jobs, func(a, b forebay.Job) int { return strings.Compare(a.ID, b.ID) })
	return l
}

// live is a moment in the life of random jobs.
func live(t *testing.T, e *sqlite.Engine, rng *rand.Rand, prefix string) {
	t.Helper()
	ctx := t.Context()
	all := jobs(10, prefix)
	for i := range all {
		m := &all[i]
		m.Queue, m.Kind = []string{"a", "b"}[rng.IntN(2)], "k"
		m.Job = &forebay.JobOptions{Tags: []string{"t"}, Keep: forebay.Retention{Finished: []forebay.Keep{{}, {Count: 40}, {Age: 30 * time.Minute}}[rng.IntN(3)]}}
		m.Headers = map[string]string{"h": m.ID}
		switch rng.IntN(8) {
		case 0:
			m.Job.Tenant = "big"
		case 1:
			m.Priority = forebay.At(rng.IntN(10))
		case 2:
			m.Queue, m.Job.Expires = "idle", time.Now().Add(5*time.Minute)
		}
	}
	send(t, e, all...)
	if _, err := e.Cancel(ctx, []string{all[rng.IntN(10)].ID}, "no more wanted"); err != nil {
		t.Fatal(err)
	}
	for _, queue := range []string{"a", "b"} {
		ds, err := e.Receive(ctx, engine.Receive{Queue: queue, Max: 1 + rng.IntN(12), Lease: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		endSome(t, e, rng, ds)
	}
}

// endSome ends deliveries in any way, and leaves some to the end of their leases.
func endSome(t *testing.T, e *sqlite.Engine, rng *rand.Rand, ds []forebay.Delivery) {
	t.Helper()
	var done []forebay.Settlement
	for _, d := range ds {
		if rng.IntN(2) == 0 {
			u := forebay.ProgressUpdate{Receipt: d.Receipt, Progress: &forebay.Progress{Stage: "half", Percent: float64(rng.IntN(100)), Data: []byte(`{"x":1}`)}}
			if _, err := e.Progress(t.Context(), []forebay.ProgressUpdate{u}); err != nil {
				t.Fatal(err)
			}
		}
		s := forebay.Settlement{Receipt: d.Receipt, Verdict: []forebay.Verdict{
			forebay.Ack, forebay.Ack, forebay.Retry, forebay.Release, forebay.Dead, forebay.Cancelled}[rng.IntN(6)]}
		if s.Verdict == forebay.Ack {
			s.Result = fmt.Appendf(nil, `{"n":%d}`, rng.IntN(9))
		} else if s.Verdict != forebay.Release {
			s.Cause = forebay.Cause{Code: "because", Message: "of " + d.ID}
		}
		if rng.IntN(8) > 0 {
			done = append(done, s)
		}
	}
	if _, err := e.Settle(t.Context(), done); err != nil {
		t.Fatal(err)
	}
}

func replaySome(t *testing.T, e *sqlite.Engine) {
	t.Helper()
	letters, err := e.Dead(t.Context(), engine.DeadQuery{Limit: 10})
	if err != nil {
		t.Fatal(err)
	}
	for i, d := range letters {
		if i%2 > 0 {
			_, err = e.Replay(t.Context(), []int64{d.Seq})
		} else {
			_, err = e.Discard(t.Context(), []int64{d.Seq})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// The ledger that is thrown away, and made anew from the history and the logs, tells
// the same: of random lives, over a restart.
func TestLedgerIsRebuiltFromHistory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		seed := rand.Uint64()
		t.Logf("seed %d", seed)
		rng := rand.New(rand.NewPCG(seed, 0))
		var asked atomic.Int64 // no two commits are of one instant, as with a real clock
		now := func() time.Time { return time.Now().Add(time.Duration(asked.Add(1))) }
		cfg := sqlite.Config{Path: filepath.Join(t.TempDir(), "forebay.db"), Log: sqlite.LogConfig{Age: 24 * time.Hour}, Now: now}
		period := func(e *sqlite.Engine, name string) {
			for round := range 20 {
				live(t, e, rng, fmt.Sprint(name, round, "-"))
				time.Sleep(time.Duration(rng.IntN(90)) * time.Second)
			}
			replaySome(t, e)
		}
		e := open(t, cfg)
		period(e, "x")
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
		e = open(t, cfg)
		period(e, "y")
		time.Sleep(time.Hour) // leases and what is kept by age run out
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
		e = open(t, cfg) // which looks at all that is kept by count
		time.Sleep(time.Minute)
		before := readLedger(t, e)
		if n := before.Finished["a"][forebay.StateCompleted]; n < 10 {
			t.Fatalf("only %d jobs were completed", n)
		}
		for _, sql := range []string{"DELETE FROM finished WHERE seq % 3 = 0", "DELETE FROM finished_id WHERE h % 2 = 0", "DELETE FROM ledger"} {
			if err := e.Exec(sql); err != nil {
				t.Fatal(err)
			}
		}
		found, err := e.RebuildLedger(t.Context(), false)
		if err != nil || found.Missing > 0 || found.Jobs < 100 {
			t.Fatalf("rebuilt %+v, %v", found, err)
		}
		time.Sleep(time.Minute) // what would have left leaves
		after := readLedger(t, e)
		if !reflect.DeepEqual(before.Finished, after.Finished) || len(before.Jobs) != len(after.Jobs) {
			t.Fatalf("seed %d: %d jobs, counted %v; before %d, %v", seed, len(after.Jobs), after.Finished, len(before.Jobs), before.Finished)
		}
		for i := range before.Jobs {
			if before.Jobs[i].Progress.At.IsZero() { // that of a job which waited for its retry ends with the process; history has it
				after.Jobs[i].Progress = forebay.Progress{}
			}
			if !reflect.DeepEqual(before.Jobs[i], after.Jobs[i]) {
				t.Fatalf("seed %d: rebuilt %+v\nbefore %+v", seed, after.Jobs[i], before.Jobs[i])
			}
		}
	})
}

// What cannot be made anew is not thrown away unasked.
func TestRebuildKeepsWhatItWouldLose(t *testing.T) {
	e := open(t, sqlite.Config{Log: sqlite.LogConfig{Ages: map[string]time.Duration{"logged": time.Hour}}})
	for _, queue := range []string{"logged", "q"} {
		m := jobs(1, queue)[0]
		m.Queue = queue
		send(t, e, m)
		ds, err := e.Receive(t.Context(), engine.Receive{Queue: queue, Max: 1})
		if err != nil || len(ds) != 1 {
			t.Fatal(ds, err)
		}
		settle(t, e, forebay.Ack, ds...)
	}
	found, err := e.RebuildLedger(t.Context(), false)
	if forebay.CodeOf(err) != forebay.CodeConflict || found.Missing != 1 || found.Jobs != 1 {
		t.Errorf("%+v, %v", found, err)
	}
	if _, err := e.Job(t.Context(), "q0"); err != nil {
		t.Errorf("it was thrown away: %v", err)
	}
	if found, err := e.RebuildLedger(t.Context(), true); err != nil || found.Jobs != 1 {
		t.Errorf("%+v, %v", found, err)
	}
	if _, err := e.Job(t.Context(), "logged0"); err != nil {
		t.Error(err)
	}
	if _, err := e.Job(t.Context(), "q0"); forebay.CodeOf(err) != forebay.CodeNotFound {
		t.Errorf("the other: %v", err)
	}
}
