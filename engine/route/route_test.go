package route_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
	"github.com/forebayhq/forebay/engine/enginetest"
	"github.com/forebayhq/forebay/engine/route"
	"github.com/forebayhq/forebay/engine/sqlite"
)

func open(t testing.TB) *sqlite.Engine {
	t.Helper()
	e, err := sqlite.Open(sqlite.Config{})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// pair is a route over two engines: "away" is kept in the second.
func pair(t testing.TB) (both *route.Engine, main, away *sqlite.Engine) {
	t.Helper()
	main, away = open(t), open(t)
	both, err := route.New(main, map[string]engine.Engine{"away": away})
	if err != nil {
		t.Fatal(err)
	}
	return both, main, away
}

// What goes to the main engine comes back as from it.
func TestConformance(t *testing.T) {
	enginetest.Run(t, enginetest.Harness{
		Open: func(t testing.TB) engine.Engine {
			both, _, _ := pair(t)
			return both
		},
		Only: []string{"send", "receive", "lease", "settle", "next", "stats", "purge", "limit", "close", "dead", "locate", "cancel"},
	})
}

func message(id, queue string) forebay.Message {
	return forebay.Message{ID: id, Queue: queue, Payload: []byte(id)}
}

func take(t testing.TB, e engine.Engine, queue string) []forebay.Delivery {
	t.Helper()
	ds, err := e.Receive(t.Context(), engine.Receive{Queue: queue, Max: 10})
	if err != nil {
		t.Fatal(err)
	}
	return ds
}

func ids(ds []forebay.Delivery) []string {
	var all []string
	for _, d := range ds {
		all = append(all, d.ID)
	}
	return all
}

func want(t testing.TB, ds []forebay.Delivery, wanted ...string) {
	t.Helper()
	if got := ids(ds); !slices.Equal(got, wanted) {
		t.Fatalf("received %v, want %v", got, wanted)
	}
}

func send(t testing.TB, e engine.Engine, msgs ...forebay.Message) []forebay.SendResult {
	t.Helper()
	results, err := e.Send(t.Context(), msgs)
	if err != nil {
		t.Fatal(err)
	}
	return results
}

func settle(t testing.TB, e engine.Engine, s ...forebay.Settlement) []error {
	t.Helper()
	errs, err := e.Settle(t.Context(), s)
	if err != nil || len(errs) != len(s) {
		t.Fatalf("settle of %d gave %v, %v", len(s), errs, err)
	}
	return errs
}

func TestQueuesAreKeptWhereTheyBelong(t *testing.T) {
	both, main, away := pair(t)
	defer both.Close()
	results := send(t, both, message("a", "here"), message("b", "away"), message("", "away"), message("c", "here"))
	for i, wanted := range []string{"a", "b", "", "c"} {
		if r := results[i]; r.ID != wanted || (r.Err != nil) != (wanted == "") {
			t.Errorf("item %d: %+v, want id %q", i, r, wanted)
		}
	}
	want(t, take(t, main, "away"))
	want(t, take(t, away, "here"))
	here, there := take(t, both, "here"), take(t, both, "away")
	want(t, here, "a", "c")
	want(t, there, "b")

	stats, err := both.Stats(t.Context(), "away", "here")
	if err != nil || stats[0].Queue != "away" || stats[0].Active != 1 || stats[1].Active != 2 {
		t.Errorf("stats %+v, %v", stats, err)
	}
	extended, err := both.Extend(t.Context(), []forebay.Receipt{there[0].Receipt, here[0].Receipt, "@7:x", "@1:none"}, time.Minute)
	if err != nil || extended[0] != nil || extended[1] != nil || extended[2] == nil || extended[3] == nil {
		t.Errorf("extend gave %v, %v", extended, err)
	}
	errs := settle(t, both, ack(there[0]), ack(here[0]), forebay.Settlement{Receipt: "@1:none", Verdict: forebay.Ack}, ack(here[1]))
	if errs[0] != nil || errs[1] != nil || forebay.CodeOf(errs[2]) != forebay.CodeLeaseLost || errs[3] != nil {
		t.Errorf("settle gave %v", errs)
	}
}

func ack(d forebay.Delivery, next ...forebay.Message) forebay.Settlement {
	return forebay.Settlement{Receipt: d.Receipt, Verdict: forebay.Ack, Next: next}
}

func TestWhatFollowsReachesTheOtherEngine(t *testing.T) {
	both, main, _ := pair(t)
	defer both.Close()
	send(t, both, message("a", "here"), message("b", "away"))
	errs := settle(t, both,
		ack(take(t, both, "here")[0], message("a1", "here"), message("a2", "away")),
		ack(take(t, both, "away")[0], message("b1", "away"), message("b2", "here")))
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	want(t, take(t, main, "here"), "b2", "a1") // what leaves goes ahead
	want(t, take(t, both, "away"), "a2", "b1")
}

func TestWhatCannotFollowKeepsItsDelivery(t *testing.T) {
	main, away := open(t), open(t)
	faulty := enginetest.Faulty(away, enginetest.Plan{Ops: []enginetest.Op{enginetest.OpSend}, Before: 1})
	both, err := route.New(main, map[string]engine.Engine{"away": faulty})
	if err != nil {
		t.Fatal(err)
	}
	defer both.Close()
	send(t, both, message("a", "here"), message("b", "here"), message("c", "here"))
	ds := take(t, both, "here")
	errs := settle(t, both, ack(ds[0]), ack(ds[1], message("b1", "away")), ack(ds[2]))
	if errs[0] != nil || forebay.CodeOf(errs[1]) != forebay.CodeUnavailable || errs[2] != nil {
		t.Fatalf("settle gave %v, want only the second refused", errs)
	}
	if errs := settle(t, both, ack(ds[1])); errs[0] != nil {
		t.Errorf("the delivery of what could not follow is over: %v", errs[0])
	}
}

func TestOneEngineThatFailsTakesItsOwnItemsOnly(t *testing.T) {
	main, away := open(t), open(t)
	faulty := enginetest.Faulty(away, enginetest.Plan{Before: 1})
	both, err := route.New(main, map[string]engine.Engine{"away": faulty})
	if err != nil {
		t.Fatal(err)
	}
	defer both.Close()
	results := send(t, both, message("a", "away"), message("b", "here"))
	if forebay.CodeOf(results[0].Err) != forebay.CodeUnavailable || results[1].Err != nil {
		t.Errorf("send gave %+v", results)
	}
	if _, err := both.Send(t.Context(), []forebay.Message{message("a", "away")}); forebay.CodeOf(err) != forebay.CodeUnavailable {
		t.Errorf("a send of which nothing was stored gave %v", err)
	}
}

// bareEngine hides what an engine can do beyond the contract.
type bareEngine struct{ engine.Engine }

func TestAbilitiesGoByTheQueue(t *testing.T) {
	main, away := open(t), open(t)
	both, err := route.New(main, map[string]engine.Engine{"away": bareEngine{away}})
	if err != nil {
		t.Fatal(err)
	}
	defer both.Close()
	ctx := context.Background()
	if err := both.SetLimits(ctx, "here", engine.QueueLimits{Paused: true}); err != nil {
		t.Error(err)
	}
	if l, err := both.QueueLimits(ctx, "here"); err != nil || !l.Paused {
		t.Errorf("limits %+v, %v", l, err)
	}
	send(t, both, message("a", "here"), message("b", "away"))
	if n, err := both.Purge(ctx, "here"); n != 1 || err != nil {
		t.Errorf("purge gave %d, %v", n, err)
	}
	_, errPurge := both.Purge(ctx, "away")
	_, errLimits := both.QueueLimits(ctx, "away")
	for _, err := range []error{errPurge, errLimits, both.SetLimits(ctx, "away", engine.QueueLimits{})} {
		if forebay.CodeOf(err) != forebay.CodeUnsupported {
			t.Errorf("the other engine cannot, and answered %v", err)
		}
	}
	want(t, take(t, both, "away"), "b")
	if err := both.Check(ctx); err != nil {
		t.Error(err)
	}
}

func TestNewRefuses(t *testing.T) {
	main := open(t)
	defer main.Close()
	for name, elsewhere := range map[string]map[string]engine.Engine{
		"a name that is none": {"no name": main},
		"no engine":           {"away": nil},
	} {
		if _, err := route.New(main, elsewhere); forebay.CodeOf(err) != forebay.CodeInvalid {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := route.New(nil, nil); forebay.CodeOf(err) != forebay.CodeInvalid {
		t.Errorf("no main engine: %v", err)
	}
}
