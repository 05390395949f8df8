package sqlite_test

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine/sqlite"
)

// keyed makes n messages of a limit key that are no jobs.
func keyed(key, prefix string, n int) []forebay.Message {
	msgs := messages(n, prefix)
	for i := range msgs {
		msgs[i].LimitKey, msgs[i].Kind = key, key
	}
	return msgs
}

// until takes and acks messages one by one until one of a kind comes, and gives how
// many were before it.
func until(t testing.TB, e *sqlite.Engine, kind string) int {
	t.Helper()
	for n := 0; n < 1000; n++ {
		ds := receive(t, e, 1)
		if len(ds) == 0 {
			break
		}
		settle(t, e, forebay.Ack, ds...)
		if ds[0].Kind == kind {
			return n
		}
	}
	t.Fatalf("nothing of %q comes", kind)
	return 0
}

// Messages of one limit key that has many do not hold up the others, whether the many
// came in one call or in many, and also after a restart.
func TestFewAreNotBehindMany(t *testing.T) {
	path := filepath.Join(t.TempDir(), "forebay.db")
	e := mustOpen(t, sqlite.Config{Path: path, Durability: sqlite.DurabilityProcess})
	send(t, e, keyed("noisy", "n-", 5000)...)
	for i := range 300 {
		send(t, e, keyed("noisy", fmt.Sprint("m", i, "-"), 10)...)
	}
	send(t, e, keyed("quiet", "q-", 1)...)
	send(t, e, messages(1, "plain-")...) // without a key: kind "k"
	if n := until(t, e, "quiet"); n > 2*30+1 {
		t.Fatalf("a quiet one came after %d of 8000 noisy ones; 30 of these are in front, and turns are taken", n)
	}
	if n := until(t, e, "k"); n > 1 {
		t.Fatalf("the next quiet one came after %d others", n)
	}
	for i := range 40 {
		key := fmt.Sprint("quiet", i)
		send(t, e, keyed(key, key, 1)...)
		if n := until(t, e, key); n > 1 {
			t.Fatalf("a quiet one came after %d noisy ones", n)
		}
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	e = open(t, sqlite.Config{Path: path, Durability: sqlite.DurabilityProcess})
	send(t, e, keyed("quiet", "r-", 1)...)
	if n := until(t, e, "quiet"); n > 1 {
		t.Fatalf("after a restart a quiet one came after %d noisy ones", n)
	}
}

// All of the many come, in their order where nobody else wants a turn, and a key that
// has few again is in front again.
func TestManyComeAllTheSame(t *testing.T) {
	e := open(t, sqlite.Config{})
	send(t, e, keyed("noisy", "n-", 3000)...)
	last, got := -1, 0
	for {
		ds := receive(t, e, 100)
		if len(ds) == 0 {
			break
		}
		for _, d := range ds {
			var at int
			if _, err := fmt.Sscanf(d.ID, "n-%d", &at); err != nil {
				t.Fatal(err)
			}
			if got++; got > 60 && at < last {
				t.Fatalf("%s came after n-%d", d.ID, last)
			}
			last = at
		}
		settle(t, e, forebay.Ack, ds...)
	}
	if got != 3000 {
		t.Fatalf("%d of 3000 came", got)
	}
}

// A key that had many and has few again is in front again, whether its messages were
// worked, while others stay, or purged.
func TestFewAgain(t *testing.T) {
	for name, less := range map[string]func(e *sqlite.Engine){
		"worked": func(e *sqlite.Engine) {
			send(t, e, keyed("stays", "s-", 1)...)
			for _, d := range receive(t, e, 4000) {
				if d.Kind == "noisy" {
					settle(t, e, forebay.Ack, d)
				}
			}
		},
		"purged": func(e *sqlite.Engine) {
			if n, err := e.Purge(t.Context(), "q"); n != 1000 || err != nil {
				t.Fatal(n, err)
			}
		},
	} {
		e := open(t, sqlite.Config{})
		send(t, e, keyed("noisy", "n-", 1000)...)
		less(e)
		send(t, e, keyed("other", "o-", 500)...)
		send(t, e, keyed("noisy", "again-", 1)...)
		if n := until(t, e, "noisy"); n > 2*30+2 {
			t.Errorf("%s: the key has few now, and came after %d others", name, n)
		}
	}
}

// However many keys there are, what is counted of them is bounded, and one that has
// many is known among them.
func TestManyKeys(t *testing.T) {
	e := open(t, sqlite.Config{})
	for i := range 50 {
		var msgs []forebay.Message
		for k := range 200 {
			key := fmt.Sprint("k", i, "-", k)
			msgs = append(msgs, keyed(key, key, 1)...)
		}
		msgs = append(msgs, keyed("noisy", fmt.Sprint("n", i, "-"), 100)...)
		send(t, e, msgs...)
	}
	front, all := 0, 0
	for all < 50*300 {
		ds := receive(t, e, 1000)
		if len(ds) == 0 {
			t.Fatalf("%d of %d came", all, 50*300)
		}
		for _, d := range ds {
			if all++; all <= 50*300/2 && d.Kind == "noisy" {
				front++
			}
		}
		settle(t, e, forebay.Ack, ds...)
	}
	if front > 50*300/4+100 {
		t.Fatalf("%d of the first half were noisy; every second is the most", front)
	}
}
