package sqlite_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
	"github.com/forebayhq/forebay/engine/sqlite"
)

// refuseWrites makes a table refuse what is done to it, until mend is called.
func refuseWrites(t *testing.T, e *sqlite.Engine, what, table string) (mend func()) {
	t.Helper()
	if err := e.Exec("CREATE TRIGGER refuse BEFORE " + what + " ON " + table + " BEGIN SELECT RAISE(ABORT, 'refused'); END"); err != nil {
		t.Fatal(err)
	}
	return func() {
		if err := e.Exec("DROP TRIGGER refuse"); err != nil {
			t.Error(err)
		}
	}
}

// What the store refuses has not happened: not in the ledger, not in the history.
func TestRefusedSettleOfJobs(t *testing.T) {
	for _, table := range []string{"finished", "finished_id", "ledger", "history"} {
		t.Run(table, func(t *testing.T) {
			e := open(t, sqlite.Config{Path: filepath.Join(t.TempDir(), "forebay.db")})
			send(t, e, jobs(2, "f")...)
			ds := receive(t, e, 1)
			mend := refuseWrites(t, e, "INSERT", table)
			s := []forebay.Settlement{{Receipt: ds[0].Receipt, Verdict: forebay.Ack, Result: []byte("1")}}
			for range 3 {
				if errs, err := e.Settle(context.Background(), s); err == nil && errs[0] == nil {
					t.Fatal("it was not refused")
				}
			}
			if j := jobOf(t, e, "f0"); j.State != forebay.StateActive {
				t.Errorf("%+v", j)
			}
			mend()
			settleOne(t, e, s[0])
			if j := jobOf(t, e, "f0"); j.State != forebay.StateCompleted || string(j.Result) != "1" {
				t.Errorf("%+v", j)
			}
			if got := story(t, e, "f0"); !slices.Equal(got, []forebay.HistoryType{"added", "started", "completed"}) {
				t.Errorf("story %v", got)
			}
			if n := e.Count("SELECT completed FROM ledger"); n != 1 {
				t.Errorf("%d are counted", n)
			}
		})
	}
}

// What the engine does by itself it does again when the store has refused it.
func TestRefusedEndsOfJobs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := open(t, sqlite.Config{Path: filepath.Join(t.TempDir(), "forebay.db")})
		all := jobs(3, "e")
		all[1].Job.Expires, all[2].Job.Deadline = time.Now().Add(time.Second), time.Now().Add(time.Second)
		send(t, e, all[0])
		receive(t, e, 1)
		send(t, e, all[1:]...)
		if _, err := e.Cancel(context.Background(), []string{"e0"}, ""); err != nil {
			t.Fatal(err)
		}
		mend := refuseWrites(t, e, "INSERT", "history")
		time.Sleep(time.Minute) // its lease is over
		for i, want := range []forebay.State{"active", "waiting", "waiting"} {
			if j := jobOf(t, e, fmt.Sprint("e", i)); j.State != want {
				t.Errorf("refused: %+v", j)
			}
		}
		if ds := receive(t, e, 3); len(ds) != 0 {
			t.Errorf("handed out %v", ids(ds))
		}
		mend()
		time.Sleep(2 * time.Second)
		for i, want := range []forebay.State{"cancelled", "expired", "dead"} {
			if j := jobOf(t, e, fmt.Sprint("e", i)); j.State != want {
				t.Errorf("%+v", j)
			}
		}
		stats, err := e.Stats(context.Background(), "q")
		if s := stats[0]; err != nil || s.Active != 0 || s.Waiting != 0 || s.Dead != 1 || s.Cancelled != 1 || s.Expired != 1 {
			t.Errorf("%+v, %v", s, err)
		}
	})
}

func TestRefusedChangeOfJobs(t *testing.T) {
	path := filepath.Join(t.TempDir(), "forebay.db")
	e := open(t, sqlite.Config{Path: path})
	send(t, e, jobs(3, "c")...)
	high, later := forebay.At(1), time.Now().Add(time.Hour)
	mend := refuseWrites(t, e, "INSERT", "history")
	for i, c := range []engine.JobChange{{Payload: []byte("x")}, {Priority: &high}, {Due: &later}} {
		c.ID = fmt.Sprint("c", i)
		if _, err := e.Change(context.Background(), []engine.JobChange{c}); err == nil {
			t.Error("it was not refused")
		}
	}
	res, err := e.Cancel(context.Background(), []string{"c0"}, "")
	if err == nil && res[0].Err == nil {
		t.Error("it was not refused")
	}
	mend()
	for i := range 3 {
		if j := jobOf(t, e, fmt.Sprint("c", i)); j.State != forebay.StateWaiting || string(j.Payload) != "payload of "+j.ID || j.Priority.Level() != 5 {
			t.Errorf("%+v", j)
		}
	}
	mustChange(t, e, engine.JobChange{ID: "c0", Payload: []byte("y")})
	e = reopen(t, e, path)
	if ds := receive(t, e, 3); len(ds) != 3 || string(ds[0].Payload) != "y" {
		t.Errorf("%+v", ds)
	}
}

// Damage in one row of the ledger or the history costs that row.
func TestDamagedLedger(t *testing.T) {
	path := filepath.Join(t.TempDir(), "forebay.db")
	e := open(t, sqlite.Config{Path: path})
	for i := range 3 {
		send(t, e, jobs(1, fmt.Sprint("d", i, "-"))...)
		settle(t, e, forebay.Ack, receive(t, e, 1)...)
	}
	e = reopen(t, e, path) // so that the history is read from the store
	for _, sql := range []string{
		"UPDATE finished SET data = substr(data, 1, 40) || x'00ff' || substr(data, 43) WHERE seq = (SELECT min(seq) FROM finished)",
		"UPDATE history SET data = substr(data, 1, 20) || x'00ff' || substr(data, 23) WHERE seq = (SELECT min(seq) FROM history)",
	} {
		if err := e.Exec(sql); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := e.Job(context.Background(), "d0-0"); forebay.CodeOf(err) != forebay.CodeDamaged {
		t.Errorf("damaged: %v", err)
	}
	if j := jobOf(t, e, "d1-0"); j.State != forebay.StateCompleted {
		t.Errorf("%+v", j)
	}
	if got := story(t, e, "d0-0"); !slices.Equal(got, []forebay.HistoryType{"started", "completed"}) {
		t.Errorf("story %v", got)
	}
	if got := story(t, e, "d2-0"); len(got) != 3 {
		t.Errorf("story %v", got)
	}
}

// No place in the history is used twice, also when the end of it is lost with the power.
func TestHistoryPlacesAfterACrash(t *testing.T) {
	path, copied := filepath.Join(t.TempDir(), "forebay.db"), filepath.Join(t.TempDir(), "forebay.db")
	e := open(t, sqlite.Config{Path: path})
	send(t, e, jobs(3, "before")...)
	for _, suffix := range []string{"", "-wal"} { // as the disk has it when the power fails
		b, err := os.ReadFile(path + suffix)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(copied+suffix, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	send(t, e, jobs(100, "lost")...)
	seen, err := e.History(context.Background(), engine.HistoryQuery{})
	if err != nil || len(seen.Events) != 103 {
		t.Fatalf("%d events, %v", len(seen.Events), err)
	}
	e = open(t, sqlite.Config{Path: copied})
	send(t, e, jobs(1, "after")...)
	page, err := e.History(context.Background(), engine.HistoryQuery{})
	if err != nil || len(page.Events) != 4 || page.Epoch != seen.Epoch {
		t.Fatalf("%+v, %v", page, err)
	}
	if last := page.Events[3]; last.Job != "after0" || last.Seq <= seen.Next {
		t.Errorf("%+v after %d", last, seen.Next)
	}
}

// A recovery keeps the ledger and the history, and counts them anew.
func TestRecoveredLedger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "forebay.db")
		e := open(t, sqlite.Config{Path: path})
		all := jobs(6, "r")
		all[4].Job.Expires = time.Now().Add(time.Minute)
		send(t, e, all[:4]...)
		ds := receive(t, e, 4)
		settle(t, e, forebay.Ack, ds[0])
		settle(t, e, forebay.Cancelled, ds[1])
		settle(t, e, forebay.Dead, ds[2])
		if _, err := e.Cancel(context.Background(), []string{"r3"}, "why"); err != nil {
			t.Fatal(err)
		}
		send(t, e, all[4:]...)
		before, err := e.History(context.Background(), engine.HistoryQuery{})
		if err != nil {
			t.Fatal(err)
		}
		for _, sql := range []string{"INSERT INTO meta (name, value) VALUES ('damaged', 1)", "DELETE FROM ledger", "DELETE FROM ends", "DELETE FROM finished_id"} {
			if err := e.Exec(sql); err != nil {
				t.Fatal(err)
			}
		}
		e = reopen(t, e, path)
		if e.Recovery().Copy == "" || len(e.Recovery().Lost) > 0 {
			t.Fatalf("%+v", e.Recovery())
		}
		for i, want := range []forebay.State{"completed", "cancelled", "dead", "cancelled", "waiting", "waiting"} {
			if j := jobOf(t, e, fmt.Sprint("r", i)); j.State != want {
				t.Errorf("%+v", j)
			}
		}
		after, err := e.History(context.Background(), engine.HistoryQuery{})
		if err != nil || after.Epoch != before.Epoch || len(after.Events) != len(before.Events)+1 { // r3 was cancelled
			t.Errorf("%d events, then %d, %v", len(before.Events), len(after.Events), err)
		}
		if c, x := e.Count("SELECT completed FROM ledger"), e.Count("SELECT cancelled FROM ledger"); c != 1 || x != 2 {
			t.Errorf("%d completed, %d cancelled are counted", c, x)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if j := jobOf(t, e, "r4"); j.State != forebay.StateExpired {
			t.Errorf("%+v", j)
		}
	})
}
