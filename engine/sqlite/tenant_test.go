package sqlite_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
	"github.com/forebayhq/forebay/engine/sqlite"
)

// jobsOf makes n jobs of a tenant.
func jobsOf(tenant string, n int) []forebay.Message {
	msgs := messages(n, tenant+"-")
	for i := range msgs {
		msgs[i].Job = &forebay.JobOptions{Tenant: tenant}
		msgs[i].Kind = tenant
	}
	return msgs
}

// kinds are those of deliveries, in their order.
func kinds(ds []forebay.Delivery) (s string) {
	for _, d := range ds {
		s += d.Kind
	}
	return s
}

func stats(t testing.TB, e engine.Engine) forebay.QueueStats {
	t.Helper()
	s, err := e.Stats(context.Background(), "q")
	if err != nil {
		t.Fatal(err)
	}
	return s[0]
}

func TestTenantsTakeTurns(t *testing.T) {
	path := filepath.Join(t.TempDir(), "forebay.db")
	e := mustOpen(t, sqlite.Config{Path: path})
	send(t, e, jobsOf("a", 3000)...)
	send(t, e, jobsOf("b", 2)...)
	send(t, e, messages(1, "m")...) // of no tenant: "k"
	if got := kinds(receive(t, e, 7)); got != "abkabaa" {
		t.Fatal(got)
	}
	send(t, e, jobsOf("c", 2)...)
	if got := kinds(receive(t, e, 1)) + kinds(receive(t, e, 1)) + kinds(receive(t, e, 2)); got != "acac" && got != "caca" {
		t.Fatal(got)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	e = open(t, sqlite.Config{Path: path}) // what was leased comes again
	if s := stats(t, e); s.Waiting != 3005 || s.Active != 0 || s.Oldest.IsZero() {
		t.Fatalf("%+v", s)
	}
	got := map[rune]int{}
	for _, kind := range kinds(receive(t, e, 8)) {
		got[kind]++
	}
	if got['k'] != 1 || got['b'] != 2 || got['c'] != 2 || got['a'] != 3 {
		t.Fatal(got)
	}
}

// Within a tenant the order is that of priority and age.
func TestTenantPriority(t *testing.T) {
	e := open(t, sqlite.Config{})
	a, b := jobsOf("a", 4), jobsOf("b", 1)
	a[2].Priority, a[3].Priority = forebay.At(0), forebay.At(9)
	send(t, e, append(a, b...)...)
	var ids []string
	for _, d := range receive(t, e, 5) {
		ids = append(ids, d.ID)
	}
	if got := fmt.Sprint(ids); got != "[a-2 b-0 a-0 a-1 a-3]" {
		t.Fatal(got)
	}
}

// However many of one tenant are delayed, retried or parked for a limit key, the
// next of another has its turn.
func TestTenantsTakeTurnsOutsideLanes(t *testing.T) {
	t.Run("delayed", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			e := open(t, sqlite.Config{})
			a, b := jobsOf("a", 9000), jobsOf("b", 3)
			for i := range a {
				a[i].NotBefore = time.Now().Add(time.Hour)
			}
			for i := range b {
				b[i].NotBefore = time.Now().Add(time.Hour + time.Second)
			}
			send(t, e, append(a, b...)...)
			if s := stats(t, e); s.Delayed != 9003 {
				t.Fatalf("%+v", s)
			}
			time.Sleep(2 * time.Hour)
			if got := kinds(receive(t, e, 6)); got != "ababab" && got != "bababa" {
				t.Fatal(got)
			}
			if s := stats(t, e); s.Delayed != 0 || s.Waiting != 8997 {
				t.Fatalf("%+v", s)
			}
		})
	})
	t.Run("again", func(t *testing.T) {
		e := open(t, sqlite.Config{})
		send(t, e, jobsOf("a", 5000)...)
		settle(t, e, forebay.Retry, receive(t, e, 5000)...)
		send(t, e, jobsOf("b", 2)...)
		if got := kinds(receive(t, e, 4)); got != "abab" {
			t.Fatal(got)
		}
	})
	t.Run("limit key", func(t *testing.T) {
		e := open(t, sqlite.Config{})
		if err := e.SetLimits(context.Background(), "q", engine.QueueLimits{KeyActive: 1}); err != nil {
			t.Fatal(err)
		}
		a := jobsOf("a", 6000)
		for i := range a {
			a[i].LimitKey = "x"
		}
		send(t, e, append(a, jobsOf("b", 2)...)...)
		got := kinds(receive(t, e, 10)) // a is parked meanwhile, which ends it
		if got += kinds(receive(t, e, 10)); got != "abb" {
			t.Fatal(got)
		}
	})
	t.Run("group", func(t *testing.T) {
		e := open(t, sqlite.Config{})
		a := jobsOf("a", 100)
		for i := range a {
			a[i].Group = "g"
		}
		send(t, e, append(a, jobsOf("b", 2)...)...)
		ds := receive(t, e, 1)
		receive(t, e, 1) // parks what is left of the group
		settle(t, e, forebay.Ack, ds...)
		if got := kinds(receive(t, e, 3)); got != "ab" && got != "ba" && got != "aba" {
			t.Fatal(got)
		}
	})
}

// A model knows what is waiting, and how many hand-outs others had since.
func TestTenantsTurnsRandom(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	e := open(t, sqlite.Config{Path: filepath.Join(t.TempDir(), "forebay.db")})
	waiting, since, most := map[string]int{}, map[string]int{}, map[string]int{}
	leased, sent := []forebay.Delivery{}, 0
	for range 600 {
		switch rng.IntN(3) {
		case 0:
			tenant := string(rune('a' + rng.IntN(rng.IntN(12)+1)))
			msgs := jobsOf(tenant, rng.IntN(20)+1)
			for i := range msgs {
				msgs[i].ID = fmt.Sprint(sent)
				msgs[i].Priority = forebay.At(rng.IntN(10))
				sent++
			}
			send(t, e, msgs...)
			waiting[tenant] += len(msgs)
		case 1:
			for _, d := range receive(t, e, rng.IntN(15)+1) {
				leased = append(leased, d)
				n := 0
				for _, w := range waiting {
					n += min(w, 1)
				}
				waiting[d.Kind]--
				for tenant, w := range waiting {
					if since[tenant]++; w == 0 || tenant == d.Kind {
						since[tenant], most[tenant] = 0, 0
					}
					if most[tenant] = max(most[tenant], n); since[tenant] >= most[tenant] {
						t.Fatalf("%s waits since %d hand-outs; %d tenants had something waiting at most", tenant, since[tenant], most[tenant])
					}
				}
			}
		case 2:
			for range min(len(leased), rng.IntN(20)) {
				i := rng.IntN(len(leased))
				if rng.IntN(3) == 0 {
					settle(t, e, forebay.Retry, leased[i])
					waiting[leased[i].Kind]++
				} else {
					settle(t, e, forebay.Ack, leased[i])
				}
				leased = append(leased[:i], leased[i+1:]...)
			}
		}
	}
	total := int64(0)
	for _, n := range waiting {
		total += int64(n)
	}
	if s := stats(t, e); s.Waiting != total || s.Active != int64(len(leased)) {
		t.Fatalf("%+v, and the model has %d waiting, %d active", s, total, len(leased))
	}
}

// Tenants that have nothing stored leave no row, and their numbers are used again.
func TestIdleTenantsGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "forebay.db")
		e := mustOpen(t, sqlite.Config{Path: path})
		var msgs []forebay.Message
		for i := range 1000 {
			msgs = append(msgs, jobsOf(fmt.Sprint("t", i), 1)...)
		}
		round := func() int64 {
			t.Helper()
			send(t, e, msgs...)
			ds := receive(t, e, 1000)
			if len(ds) != 1000 {
				t.Fatalf("%d messages", len(ds))
			}
			if n := rows(t, e, "SELECT count(*) FROM tenant"); n != 1000 {
				t.Fatalf("%d rows while all have something", n)
			}
			top := rows(t, e, "SELECT max(id) FROM tenant")
			settle(t, e, forebay.Ack, ds...)
			time.Sleep(2 * time.Minute)
			if n := rows(t, e, "SELECT count(*) FROM tenant"); n != 0 {
				t.Fatalf("%d rows are left", n)
			}
			if n := e.Tenants(); n != 0 {
				t.Fatalf("%d are in memory", n)
			}
			for i := range msgs {
				msgs[i].ID += "+"
			}
			return top
		}
		first := round()
		if second := round(); second > first {
			t.Fatalf("numbers up to %d, after those up to %d", second, first)
		}
		// Those of a process that ended while they were idle.
		send(t, e, msgs[:10]...)
		settle(t, e, forebay.Ack, receive(t, e, 10)...)
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
		e = open(t, sqlite.Config{Path: path})
		time.Sleep(2 * time.Minute)
		if n := rows(t, e, "SELECT count(*) FROM tenant"); n != 0 {
			t.Fatalf("%d rows are left after a restart", n)
		}
	})
}

// The blocks of tenants that wait for their turn leave memory, and what comes
// then is what would have come.
func TestManyTenantsInLittleMemory(t *testing.T) {
	e := open(t, sqlite.Config{Path: filepath.Join(t.TempDir(), "forebay.db")})
	const tenants, each = 30, 8
	for i := range tenants {
		msgs := jobsOf(fmt.Sprintf("%02d", i), each)
		for j := range msgs {
			msgs[j].Payload = make([]byte, 128<<10)
		}
		send(t, e, msgs[:each/2]...)
		send(t, e, msgs[each/2:]...)
	}
	seen := map[string]int{}
	for range each {
		turn := map[string]bool{}
		for _, d := range receive(t, e, tenants) {
			if want := fmt.Sprint(d.Kind, "-", seen[d.Kind]); d.ID != want {
				t.Fatalf("%s comes where %s should", d.ID, want)
			}
			seen[d.Kind]++
			turn[d.Kind] = true
		}
		if len(turn) != tenants {
			t.Fatalf("%d of %d tenants had their turn", len(turn), tenants)
		}
		if ahead := e.AheadBytes(); ahead > 18<<20 {
			t.Fatalf("%d bytes are in memory", ahead)
		}
	}
	if ds := receive(t, e, 1); len(ds) > 0 {
		t.Fatalf("%s comes again", ds[0].ID)
	}
}

func TestPurgeOfTenants(t *testing.T) {
	e := open(t, sqlite.Config{})
	for i := range 300 {
		send(t, e, jobsOf(fmt.Sprint("t", i), 3)...)
	}
	active := receive(t, e, 100)
	if n, err := e.Purge(context.Background(), "q"); err != nil || n != 800 {
		t.Fatalf("%d were dropped, %v", n, err)
	}
	if s := stats(t, e); s.Waiting != 0 || s.Active != 100 {
		t.Fatalf("%+v", s)
	}
	settle(t, e, forebay.Release, active...)
	if ds := receive(t, e, 200); len(ds) != 100 {
		t.Fatalf("%d of the 100 that were active come again", len(ds))
	}
}

// Messages of one group come in the order in which they were sent, whoever sends
// them, also when the queue had no tenants at first.
func TestGroupsAcrossTenants(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	path := filepath.Join(t.TempDir(), "forebay.db")
	e := mustOpen(t, sqlite.Config{Path: path})
	const groups = 12
	sent, order := 0, map[string][]string{} // ids of each group that are not settled
	some := func(tenants int) {
		var msgs []forebay.Message
		for range rng.IntN(8) + 1 {
			m := forebay.Message{ID: fmt.Sprint(sent), Queue: "q", Kind: "k", Group: fmt.Sprint("g", rng.IntN(groups))}
			if tenant := rng.IntN(tenants); tenant > 0 {
				m.Job = &forebay.JobOptions{Tenant: fmt.Sprint("t", tenant)}
			}
			order[m.Group] = append(order[m.Group], m.ID)
			msgs = append(msgs, m)
			sent++
		}
		send(t, e, msgs...)
	}
	take := func(n int) (got int) {
		ds := receive(t, e, n)
		next := map[string]int{}
		for _, d := range ds {
			if want := order[d.Group][next[d.Group]]; d.ID != want {
				t.Fatalf("of group %s comes %s where %s should", d.Group, d.ID, want)
			}
			next[d.Group]++
		}
		for i, d := range ds {
			if rng.IntN(9) == 0 { // the ones after it wait until it is done
				settle(t, e, forebay.Retry, d)
				settle(t, e, forebay.Release, ds[i+1:]...)
				break
			}
			settle(t, e, forebay.Ack, d)
			order[d.Group] = order[d.Group][1:]
		}
		return len(ds)
	}
	for range 10 {
		some(1)
	}
	for i := range 400 {
		if some(4); rng.IntN(3) > 0 {
			take(rng.IntN(24) + 1)
		}
		for i%30 == 29 && take(20) > 0 { // groups that are done may go to others
		}
		if i%100 == 99 {
			if err := e.Close(); err != nil {
				t.Fatal(err)
			}
			e = mustOpen(t, sqlite.Config{Path: path})
		}
	}
	t.Cleanup(func() { e.Close() })
	if n := rows(t, e, "SELECT count(DISTINCT tenant) FROM grp"); n < 2 {
		t.Fatalf("groups are with %d tenants", n)
	}
	for take(20) > 0 {
	}
	for group, ids := range order {
		if len(ids) > 0 {
			t.Errorf("%d of group %s did not come", len(ids), group)
		}
	}
}

// A group that was used once leaves no row for ever.
func TestSeatsAreCleaned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := open(t, sqlite.Config{})
		for i := range 500 {
			msgs := jobsOf("a", 1)
			msgs[0].ID, msgs[0].Group = fmt.Sprint(i), fmt.Sprint(i)
			send(t, e, msgs...)
			settle(t, e, forebay.Ack, receive(t, e, 1)...)
		}
		if n := rows(t, e, "SELECT count(*) FROM grp"); n > 10 {
			t.Fatalf("%d rows of groups that are done", n)
		}
		time.Sleep(2 * time.Minute)
		if n := rows(t, e, "SELECT count(*) FROM grp"); n != 0 {
			t.Fatalf("%d rows are left of a tenant that is gone", n)
		}
	})
}

// Where a job was is told by the ledger or not at all, once its tenant has gone: the
// tenant's number may be somebody else's by then.
func TestLocateAfterTheTenant(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "forebay.db")
		e := mustOpen(t, sqlite.Config{Path: path})
		msgs := append(jobsOf("kept", 1), jobsOf("gone", 1)...)
		msgs[1].Job.Keep.Finished.None = true
		send(t, e, msgs...)
		settle(t, e, forebay.Ack, receive(t, e, 2)...)
		at := func(when string) {
			t.Helper()
			for id, queue := range map[string]string{msgs[0].ID: "q", msgs[1].ID: ""} {
				loc, err := e.Locate(t.Context(), id)
				if err != nil || loc.Where != engine.WhereDone || loc.Queue != queue {
					t.Errorf("%s, %s is at %+v: %v", when, id, loc, err)
				}
			}
		}
		at("while its tenant is there")
		time.Sleep(2 * time.Minute)
		at("when it has gone")
		add := func(name string, tenants ...string) {
			t.Helper()
			for _, tenant := range tenants {
				m := jobsOf(tenant, 1)
				m[0].Queue, m[0].ID = name, name+tenant
				send(t, e, m...)
			}
		}
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
		e = mustOpen(t, sqlite.Config{Path: path})
		add("a", "")
		at("when another queue came")
		add("b", "x", "y", "z")
		at("when other tenants came")
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
	})
}
