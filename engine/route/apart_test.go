package route_test

import (
	"fmt"
	"testing"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
	"github.com/forebayhq/forebay/engine/route"
)

func bury(t testing.TB, e engine.Engine, queue string) {
	t.Helper()
	for _, d := range take(t, e, queue) {
		settle(t, e, forebay.Settlement{Receipt: d.Receipt, Verdict: forebay.Dead, Cause: forebay.Cause{Code: "test", Message: "no"}})
	}
}

// Two stores have dead letters of the same numbers: each is shown, replayed and
// discarded by itself, page by page.
func TestDeadLettersOfTwoStores(t *testing.T) {
	main, away := open(t), open(t)
	both, err := route.NewApart(main, map[string]engine.Engine{"away": away})
	if err != nil {
		t.Fatal(err)
	}
	defer both.Close()
	for i := range 3 {
		send(t, both, message(fmt.Sprint("a", i), "here"), message(fmt.Sprint("b", i), "away"))
		bury(t, both, "here")
		bury(t, both, "away")
	}
	var got []string
	seqs := map[string]int64{}
	for q := (engine.DeadQuery{Limit: 2}); ; {
		page, err := both.Dead(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		if len(page) == 0 {
			break
		}
		for _, d := range page {
			got, seqs[d.Message.ID], q.Before = append(got, d.Message.ID), d.Seq, d.Seq
		}
	}
	if fmt.Sprint(got) != "[b2 b1 b0 a2 a1 a0]" {
		t.Errorf("listed %v", got)
	}
	for queue, wanted := range map[string]string{"here": "[a2 a1 a0]", "away": "[b2 b1 b0]"} {
		page, err := both.Dead(t.Context(), engine.DeadQuery{Queue: queue})
		got = nil
		for _, d := range page {
			got = append(got, d.Message.ID)
		}
		if err != nil || fmt.Sprint(got) != wanted {
			t.Errorf("of %s: %v, %v", queue, got, err)
		}
	}
	if l, err := both.Locate(t.Context(), "b1"); err != nil || l.Where != engine.WhereDead || l.DeadSeq != seqs["b1"] {
		t.Errorf("b1 is at %+v, %v", l, err)
	}
	if l, err := both.Locate(t.Context(), "none"); err != nil || l.Where != engine.WhereUnknown {
		t.Errorf("none is at %+v, %v", l, err)
	}
	errs, err := both.Replay(t.Context(), []int64{seqs["b1"], seqs["a1"], seqs["b1"] + 77, 1 << 60})
	if err != nil || errs[0] != nil || errs[1] != nil || forebay.CodeOf(errs[2]) != forebay.CodeNotFound || forebay.CodeOf(errs[3]) != forebay.CodeNotFound {
		t.Errorf("replay gave %v, %v", errs, err)
	}
	want(t, take(t, both, "here"), "a1")
	want(t, take(t, both, "away"), "b1")
	if errs, err := both.Discard(t.Context(), []int64{seqs["b2"], seqs["a0"]}); err != nil || errs[0] != nil || errs[1] != nil {
		t.Errorf("discard gave %v, %v", errs, err)
	}
	if page, err := both.Dead(t.Context(), engine.DeadQuery{}); err != nil || len(page) != 2 || page[0].Message.ID != "b0" || page[1].Message.ID != "a2" {
		t.Errorf("left are %+v, %v", page, err)
	}
}
