package api_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/api"
	"github.com/forebayhq/forebay/badrow"
	"github.com/forebayhq/forebay/engine"
	"github.com/forebayhq/forebay/ingest"
)

func TestDeadLetters(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	s.die(t, "events", "22P02", 3)
	s.die(t, "events", "23502", 2)
	s.die(t, "mail", "handler", 1)

	page := must[api.DeadList](t)(s.Dead(t.Context(), api.DeadFilter{}, 0, 4))
	rest := must[api.DeadList](t)(s.Dead(t.Context(), api.DeadFilter{}, page.Next, 4))
	if len(page.Items) != 4 || len(rest.Items) != 2 || rest.Next != 0 || page.Items[0].Message.Queue != "mail" {
		t.Fatalf("pages of %d and %d: %+v", len(page.Items), len(rest.Items), page)
	}
	one := must[api.DeadLetter](t)(s.DeadLetter(t.Context(), rest.Items[1].Seq))
	if string(one.Message.Payload.Bytes()) != `{"a":1e400}` || one.Cause.Detail["column"] != "a" || page.Items[0].Message.Payload != nil {
		t.Errorf("%+v", one)
	}
	_, err := s.DeadLetter(t.Context(), 99)
	wantCode(t, err, forebay.CodeNotFound)

	sel := func(f api.DeadFilter, sel api.Selection) api.DeadReplay {
		return api.DeadReplay{Selection: sel, DeadFilter: f}
	}
	all := api.Selection{All: true}
	dry := must[api.Outcome](t)(s.ReplayDead(t.Context(), sel(api.DeadFilter{Code: "22P02"}, api.Selection{All: true, DryRun: true})))
	if dry.Matched != 3 || dry.Done != 0 {
		t.Errorf("dry run: %+v", dry)
	}
	limited := must[api.Outcome](t)(s.ReplayDead(t.Context(), sel(api.DeadFilter{Code: "22P02"}, api.Selection{All: true, Limit: 2})))
	if limited.Done != 2 || !limited.More {
		t.Errorf("limited: %+v", limited)
	}
	some := must[api.Outcome](t)(s.ReplayDead(t.Context(), sel(api.DeadFilter{}, api.Selection{Seqs: []int64{one.Seq, 99, one.Seq}})))
	if some.Matched != 1 || some.Done != 1 || some.FailedCount != 1 || some.Failed[0].Seq != 99 || some.Failed[0].Code != forebay.CodeNotFound {
		t.Errorf("some: %+v", some)
	}
	gone := must[api.Outcome](t)(s.DiscardDead(t.Context(), api.DeadDiscard{Selection: all, DeadFilter: api.DeadFilter{Queue: "events"}, Reason: "test"}))
	left := must[api.DeadList](t)(s.Dead(t.Context(), api.DeadFilter{}, 0, 10))
	if gone.Done != 2 || len(left.Items) != 1 || left.Items[0].Message.Queue != "mail" {
		t.Errorf("discarded %+v, left %+v", gone, left)
	}

	for _, wrong := range []api.Selection{{}, {All: true, Seqs: []int64{1}}, {Seqs: []int64{1}, Limit: 3}} {
		_, err := s.ReplayDead(t.Context(), sel(api.DeadFilter{}, wrong))
		wantCode(t, err, forebay.CodeInvalid)
	}
	_, err = s.ReplayDead(t.Context(), sel(api.DeadFilter{Code: "x"}, api.Selection{Seqs: []int64{1}}))
	wantCode(t, err, forebay.CodeInvalid)
	_, err = s.DiscardDead(t.Context(), api.DeadDiscard{Selection: all})
	if wantCode(t, err, forebay.CodeInvalid); err == nil || !strings.Contains(err.Error(), "body/reason") {
		t.Errorf("without a reason: %v", err)
	}
}

// Replay of many, over several parts, keeps the order in which they died.
func TestReplayKeepsOrderOverParts(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	const n = 450
	s.die(t, "events", "x", n)
	out := must[api.Outcome](t)(s.ReplayDead(t.Context(), api.DeadReplay{Selection: api.Selection{All: true}}))
	ds := must[[]forebay.Delivery](t)(s.broker.Receive(t.Context(), engine.Receive{Queue: "events", Max: n}))
	if out.Done != n || out.More || len(ds) != n {
		t.Fatalf("%+v, received %d", out, len(ds))
	}
	for i, d := range ds {
		if want := fmt.Sprintf("events-x-%d", i); d.ID != want {
			t.Fatalf("place %d has %s, want %s", i, d.ID, want)
		}
	}
}

// edge takes every row but those that are cut or still bad.
type edge struct {
	replayed []string
	most     int // bytes of one call
}

func (e *edge) Replay(_ context.Context, rows []badrow.Row) ([]ingest.Result, error) {
	results := make([]ingest.Result, len(rows))
	size := 0
	defer func() { e.most = max(e.most, size) }()
	for i, r := range rows {
		size += len(r.Bytes)
		if r.Cut {
			results[i] = ingest.Result{Index: i, Status: ingest.Rejected, Code: "too_large", Message: "only the beginning of the event was kept"}
			continue
		}
		e.replayed = append(e.replayed, r.EventID)
		results[i] = ingest.Result{Index: i, ID: r.EventID, Status: ingest.Accepted}
		if r.Code == "still_bad" {
			results[i] = ingest.Result{Index: i, Status: ingest.Rejected, Code: "missing", Pointer: "/eventType", Message: "eventType is missing"}
		}
	}
	return results, nil
}

func TestBadRows(t *testing.T) {
	t.Parallel()
	edge := &edge{}
	s := start(t, func(c *api.Config) { c.Edge = edge })
	rows := []badrow.Row{
		{EventID: "e1", Code: "mended", KeyID: "k1", Bytes: []byte(`{"x":1}`)},
		{EventID: "e2", Code: "still_bad", Bytes: []byte("\xff\x00")},
		{EventID: "e3", Code: "mended", Cut: true, Bytes: []byte(`{"x`)},
		{EventID: "e4", Code: "mended", Bytes: []byte(`{}`)},
	}
	if err := s.bad.Put(t.Context(), rows); err != nil {
		t.Fatal(err)
	}
	page := must[api.BadList](t)(s.Bad(t.Context(), api.BadFilter{Code: "mended"}, 0, 2))
	rest := must[api.BadList](t)(s.Bad(t.Context(), api.BadFilter{Code: "mended"}, page.Next, 2))
	if len(page.Items) != 2 || page.Items[0].EventID != "e4" || len(rest.Items) != 1 || rest.Items[0].EventID != "e1" || rest.Items[0].Content != nil {
		t.Fatalf("%+v %+v", page, rest)
	}
	if r := must[api.BadRow](t)(s.BadRow(t.Context(), 1)); string(r.Content.JSON) != `{"x":1}` {
		t.Errorf("%+v", r)
	}
	if r := must[api.BadRow](t)(s.BadRow(t.Context(), 2)); string(r.Content.Bytes()) != "\xff\x00" || r.Content.JSON != nil {
		t.Errorf("%+v", r)
	}
	_, err := s.BadRow(t.Context(), 9)
	wantCode(t, err, forebay.CodeNotFound)

	out := must[api.Outcome](t)(s.ReplayBad(t.Context(), api.BadReplay{Selection: api.Selection{All: true}}))
	if out.Matched != 4 || out.Done != 2 || out.FailedCount != 2 || !slices.Equal(edge.replayed, []string{"e1", "e2", "e4"}) {
		t.Errorf("%+v, replayed %v", out, edge.replayed)
	}
	left := must[api.BadList](t)(s.Bad(t.Context(), api.BadFilter{}, 0, 10))
	if len(left.Items) != 2 || left.Items[0].EventID != "e3" || left.Items[1].EventID != "e2" {
		t.Errorf("left: %+v", left.Items)
	}
	out = must[api.Outcome](t)(s.DiscardBad(t.Context(), api.BadDiscard{Selection: api.Selection{Seqs: []int64{2, 1}}, Reason: "not ours"}))
	if out.Done != 1 || out.FailedCount != 1 {
		t.Errorf("%+v", out)
	}

	none := start(t, nil)
	if err := none.bad.Put(t.Context(), rows[:1]); err != nil {
		t.Fatal(err)
	}
	_, err = none.ReplayBad(t.Context(), api.BadReplay{Selection: api.Selection{All: true}})
	wantCode(t, err, forebay.CodeUnsupported)
}

// Large rows are replayed in parts, so that a replay of many takes little memory.
func TestReplayHoldsFewRowsAtOnce(t *testing.T) {
	t.Parallel()
	edge := &edge{}
	s := start(t, func(c *api.Config) { c.Edge = edge })
	var rows []badrow.Row
	var ids []string
	for i := range 20 {
		ids = append(ids, fmt.Sprint("e", i))
		rows = append(rows, badrow.Row{EventID: ids[i], Code: "mended", Bytes: make([]byte, 900_000)})
	}
	rows[7].Code = "still_bad"
	if err := s.bad.Put(t.Context(), rows); err != nil {
		t.Fatal(err)
	}
	out := must[api.Outcome](t)(s.ReplayBad(t.Context(), api.BadReplay{Selection: api.Selection{All: true}}))
	if out.Done != 19 || out.FailedCount != 1 || out.Failed[0].Seq != 8 || !slices.Equal(edge.replayed, ids) || edge.most > 6<<20 {
		t.Errorf("%+v, %d bytes at once, replayed %v", out, edge.most, edge.replayed)
	}
}
