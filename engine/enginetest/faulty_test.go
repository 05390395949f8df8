package enginetest_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
	"github.com/forebayhq/forebay/engine/enginetest"
)

func message(id string) forebay.Message { return forebay.Message{ID: id, Queue: "q"} }

func TestFaultyWithoutPlanConforms(t *testing.T) {
	t.Setenv("ENGINETEST_KEYS", "100")
	h := modelHarness()
	h.Open = func(testing.TB) engine.Engine { return enginetest.Faulty(enginetest.NewModel(), enginetest.Plan{}) }
	h.Reopen = nil
	enginetest.Run(t, h)
}

func TestFaultyBefore(t *testing.T) {
	ctx, broken := context.Background(), errors.New("broken")
	m := enginetest.NewModel()
	f := enginetest.Faulty(m, enginetest.Plan{Before: 1, Times: 2, Err: broken, Ops: []enginetest.Op{enginetest.OpSend}})
	for range 2 {
		if _, err := f.Send(ctx, []forebay.Message{message("a")}); !errors.Is(err, broken) {
			t.Fatalf("send gave %v, want the planned error", err)
		}
		if s, err := f.Stats(ctx, "q"); err != nil || s[0].Waiting != 0 {
			t.Fatalf("stats %+v, %v after a send that failed before", s, err)
		}
	}
	if res, err := f.Send(ctx, []forebay.Message{message("a")}); err != nil || res[0].Duplicate {
		t.Fatalf("the third send gave %+v, %v", res, err)
	}
	if f.Count() != 2 {
		t.Fatalf("%d faults counted, want 2", f.Count())
	}
}

func TestFaultyAfter(t *testing.T) {
	ctx := context.Background()
	f := enginetest.Faulty(enginetest.NewModel(), enginetest.Plan{After: 1, Times: 1})
	if _, err := f.Send(ctx, []forebay.Message{message("a")}); forebay.CodeOf(err) != forebay.CodeUnavailable {
		t.Fatalf("send gave %v, want code unavailable", err)
	}
	if res, err := f.Send(ctx, []forebay.Message{message("a")}); err != nil || !res[0].Duplicate {
		t.Fatalf("the second send gave %+v, %v; the first was done", res, err)
	}
}

func TestFaultyItems(t *testing.T) {
	ctx := context.Background()
	f := enginetest.Faulty(enginetest.NewModel(), enginetest.Plan{Seed: 5, Item: 0.5})
	var msgs []forebay.Message
	for i := range 100 {
		msgs = append(msgs, message(fmt.Sprint(i)))
	}
	res, err := f.Send(ctx, msgs)
	if err != nil || len(res) != len(msgs) {
		t.Fatalf("send gave %d results, %v", len(res), err)
	}
	stored := 0
	for i, r := range res {
		if r.Err == nil {
			stored++
			if r.ID != msgs[i].ID {
				t.Fatalf("result %d is of %q", i, r.ID)
			}
		}
	}
	s, err := f.Stats(ctx, "q")
	if err != nil || int(s[0].Waiting) != stored || stored == 0 || stored == 100 || f.Count() != 100-stored {
		t.Fatalf("%d stored, %d faults, stats %+v, %v", stored, f.Count(), s, err)
	}
}

func TestFaultyDeafAndDelayed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := context.Background()
		f := enginetest.Faulty(enginetest.NewModel(), enginetest.Plan{
			Seed: 1, Deaf: 1, Delay: time.Second, Ops: []enginetest.Op{enginetest.OpReceive},
		})
		begin := time.Now()
		go func() {
			<-time.After(5 * time.Second)
			if _, err := f.Send(ctx, []forebay.Message{message("a")}); err != nil {
				t.Error(err)
			}
		}()
		ds, err := f.Receive(ctx, engine.Receive{Queue: "q", Max: 1, Wait: time.Minute})
		if took := time.Since(begin); err != nil || len(ds) != 1 || took < time.Minute || took > time.Minute+time.Second {
			t.Fatalf("receive gave %d, %v after %v; want one when the wait ends", len(ds), err, took)
		}
		if _, ok := engine.As[engine.DeadLetters](f); !ok {
			t.Fatal("the abilities of the engine below are hidden")
		}
	})
}

func TestFaultyPassesTheLedger(t *testing.T) {
	ctx := context.Background()
	f := enginetest.Faulty(enginetest.NewModel(), enginetest.Plan{Before: 1, Ops: []enginetest.Op{enginetest.OpSettle}})
	if _, err := f.Send(ctx, []forebay.Message{{ID: "a", Queue: "q", Job: &forebay.JobOptions{}}}); err != nil {
		t.Fatal(err)
	}
	jobs, ok := engine.As[engine.Jobs](f)
	if !ok {
		t.Fatal("the ledger of the engine below is hidden")
	}
	if j, err := jobs.Job(ctx, "a"); err != nil || j.State != forebay.StateWaiting {
		t.Fatalf("job %+v, %v", j, err)
	}
	_, history := engine.As[engine.History](f)
	_, lister := engine.As[engine.JobLister](f)
	_, docs := engine.As[engine.Documents](f)
	if !history || !lister || !docs {
		t.Fatalf("history %v, lister %v, documents %v; want all of the engine below", history, lister, docs)
	}
}

func TestFaultySeed(t *testing.T) {
	faults := func(seed uint64) string {
		f := enginetest.Faulty(enginetest.NewModel(), enginetest.Plan{Seed: seed, Before: 0.3, After: 0.3})
		s := ""
		for i := range 40 {
			_, err := f.Send(context.Background(), []forebay.Message{message(fmt.Sprint(i))})
			s += fmt.Sprint(err != nil, " ")
		}
		return s
	}
	if faults(3) != faults(3) || faults(3) == faults(4) {
		t.Fatal("a seed does not decide the faults")
	}
}
