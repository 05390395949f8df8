package sqlite_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
	"github.com/forebayhq/forebay/engine/sqlite"
)

func grouped(names string) []forebay.Message {
	var msgs []forebay.Message
	count := map[string]int{}
	for _, g := range strings.Fields(names) {
		count[g]++
		msgs = append(msgs, forebay.Message{ID: fmt.Sprint(g, count[g]), Queue: "q", Group: g, Payload: []byte("x")})
	}
	return msgs
}

func together(t testing.TB, e engine.Engine, n int) []forebay.Delivery {
	t.Helper()
	ds, err := e.Receive(context.Background(), engine.Receive{Queue: "q", Max: n, Together: true, Kept: true, Lease: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	return ds
}

func idsOf(ds []forebay.Delivery) string {
	var ids []string
	for _, d := range ds {
		ids = append(ids, d.ID)
	}
	return strings.Join(ids, " ")
}

func TestTogether(t *testing.T) {
	e := open(t, sqlite.Config{})
	send(t, e, grouped("a b a b c a a b")...)
	first := together(t, e, 3)
	if got := idsOf(first); got != "a1 a2 a3" {
		t.Fatalf("received %s", got)
	}
	if got := idsOf(together(t, e, 3)); got != "b1 b2 b3" { // a4 waits for its group
		t.Fatalf("received %s", got)
	}
	settle(t, e, forebay.Release, first...)
	if got := idsOf(together(t, e, 10)); got != "a1 a2 a3 c1 a4" { // a4 is in the lane yet, c1 before it
		t.Fatalf("received %s", got)
	}
}

// What somebody else holds of a group is not passed over.
func TestTogetherStopsAtWhatIsHeld(t *testing.T) {
	path := filepath.Join(t.TempDir(), "forebay.db")
	e := mustOpen(t, sqlite.Config{Path: path})
	send(t, e, grouped("a a a b a a")...)
	settle(t, e, forebay.Release, together(t, e, 2)[0]) // a2 is held on
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	e = open(t, sqlite.Config{Path: path}) // the cursor is before them again
	if got := idsOf(together(t, e, 10)); got != "a1 b1" {
		t.Fatalf("received %s", got)
	}
}

// Whatever is received together, given back and taken up again after a restart: each
// message of a group ends once, in the order of its group.
func TestTogetherKeepsTheOrder(t *testing.T) {
	path := filepath.Join(t.TempDir(), "forebay.db")
	e := mustOpen(t, sqlite.Config{Path: path, Durability: sqlite.DurabilityProcess})
	rng := rand.New(rand.NewPCG(7, 7))
	sent, ended := map[string]int{}, map[string]int{}
	var held []forebay.Delivery
	for round := 0; round < 500 || len(held) > 0 || ended["all"] < sent["all"]; round++ {
		if round > 10_000 {
			t.Fatalf("%d of %d ended", ended["all"], sent["all"])
		}
		switch rng.IntN(6) {
		case 0, 1:
			var msgs []forebay.Message
			for i := rng.IntN(40); i > 0 && round < 500; i-- {
				g := string(rune('a' + rng.IntN(6)))
				sent[g]++
				sent["all"]++
				msgs = append(msgs, forebay.Message{ID: fmt.Sprintf("%s%06d", g, sent[g]), Queue: "q", Group: g})
			}
			send(t, e, msgs...)
		case 2, 3:
			held = append(held, together(t, e, 1+rng.IntN(12))...)
		case 4:
			if n := len(held); n > 0 && rng.IntN(3) == 0 { // all of a group that is held, or its order is another's to keep
				settle(t, e, forebay.Release, held...)
				held = nil
			}
			if rng.IntN(40) == 0 {
				if err := e.Close(); err != nil {
					t.Fatal(err)
				}
				e = mustOpen(t, sqlite.Config{Path: path, Durability: sqlite.DurabilityProcess})
			}
		default:
			for _, d := range held {
				ended[d.Group]++
				ended["all"]++
				if want := fmt.Sprintf("%s%06d", d.Group, ended[d.Group]); d.ID != want {
					t.Fatalf("%s ended, want %s", d.ID, want)
				}
			}
			settle(t, e, forebay.Ack, held...)
			held = nil
		}
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
}
