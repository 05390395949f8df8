package broker

import (
	"fmt"
	"strings"
	"testing"

	"github.com/forebayhq/forebay"
)

func seqs(events []forebay.HistoryEvent) (all []int64) {
	for _, e := range events {
		all = append(all, e.Seq)
	}
	return all
}

func TestRingSince(t *testing.T) {
	t.Parallel()
	var r ring
	if _, ok := r.since(0, ""); ok {
		t.Error("it answers before it knows its place")
	}
	r.reset(10)
	for _, seq := range []int64{11, 14, 15, 20} {
		r.add(forebay.HistoryEvent{Seq: seq, Job: fmt.Sprint("j", seq%2)})
	}
	for name, c := range map[string]struct {
		after int64
		job   string
		want  string
		ok    bool
	}{
		"all":            {10, "", "[11 14 15 20]", true},
		"in a gap":       {12, "", "[14 15 20]", true},
		"at one":         {14, "", "[15 20]", true},
		"the last":       {20, "", "[]", true},
		"of one job":     {10, "j0", "[14 20]", true},
		"of another":     {11, "j1", "[15]", true},
		"before its own": {9, "", "[]", false},
	} {
		events, ok := r.since(c.after, c.job)
		if got := fmt.Sprint(seqs(events)); got != c.want || ok != c.ok {
			t.Errorf("%s: got %s %t, want %s %t", name, got, ok, c.want, c.ok)
		}
	}
}

// It keeps the newest, in order, within both bounds, and says what it lost.
func TestRingIsBounded(t *testing.T) {
	t.Parallel()
	t.Run("events", func(t *testing.T) {
		t.Parallel()
		var r ring
		r.reset(0)
		const n = ringEvents + 1000
		for seq := range int64(n) {
			r.add(forebay.HistoryEvent{Seq: seq + 1})
		}
		if _, ok := r.since(999, ""); ok {
			t.Error("it claims to have what it dropped")
		}
		events, ok := r.since(1000, "")
		if !ok || len(events) != ringEvents || events[0].Seq != 1001 || events[ringEvents-1].Seq != n {
			t.Errorf("it has %d events, %t", len(events), ok)
		}
	})
	t.Run("bytes", func(t *testing.T) {
		t.Parallel()
		var r ring
		r.reset(0)
		text := strings.Repeat("x", 1<<20)
		for seq := range int64(100) {
			r.add(forebay.HistoryEvent{Seq: seq + 1, Text: text, Progress: &forebay.Progress{}})
		}
		events, ok := r.since(100-ringBytes>>20, "")
		if len(events) != ringBytes>>20 || !ok {
			t.Errorf("it has %d MiB, %t", len(events), ok)
		}
	})
}
