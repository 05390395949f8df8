package api_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/api"
	"github.com/forebayhq/forebay/keyring"
	"github.com/forebayhq/forebay/task"
)

func by(who, name string) bool { return strings.HasSuffix(who, "("+name+")") }

// A version is gone back to with a reason, and approved by another than its author.
func TestAVersionIsRestoredAndReleased(t *testing.T) {
	t.Parallel()
	var mux task.Mux
	s, ctx := withFlows(t, &mux), t.Context()
	with := func(name string) *api.Client {
		_, secret, err := s.ring.Add(keyring.Spec{Name: name, Scopes: []keyring.Scope{keyring.ScopeOperate}})
		if err != nil {
			t.Fatal(err)
		}
		return must[*api.Client](t)(api.NewClient(s.url, secret, s.http))
	}
	ann, bob := with("ann"), with("bob")
	first := "flow: f\nsteps:\n  a: {delay: 1h} # short\nlayout: {notes: {n: {x: 1, y: 2, text: why}}}\n"
	must[api.PutFlow](t)(ann.PutFlow(ctx, "f", []byte(first)))
	must[api.PutFlow](t)(bob.PutFlow(ctx, "f", []byte("flow: f\nsteps:\n  a: {delay: 2h}\n")))
	if v := must[api.PutFlow](t)(bob.RestoreFlow(ctx, "f", 1, "two hours are too long")); v.Version != 3 || !v.Created {
		t.Errorf("restored: %+v", v)
	}
	if v := must[api.PutFlow](t)(bob.RestoreFlow(ctx, "f", 1, "again")); v.Version != 3 || v.Created {
		t.Errorf("restored twice: %+v", v)
	}
	f := must[api.Flow](t)(ann.Flow(ctx, "f", 0))
	if f.Source != first || f.Version != 3 || !by(f.Release.Author, "bob") || f.Release.Reason != "two hours are too long" || string(f.Layout) != `{"notes":{"n":{"x":1,"y":2,"text":"why"}}}` || f.FourEyes {
		t.Errorf("the flow is %+v, %+v", f, f.Release)
	}
	_, err := bob.ReleaseFlow(ctx, "f", 3, "")
	wantCode(t, err, forebay.CodeUnauthorized)
	if v := must[api.ReleasedFlow](t)(ann.ReleaseFlow(ctx, "f", 3, "fine")); !by(v.Release.ApprovedBy, "ann") || !by(v.Release.Author, "bob") {
		t.Errorf("released: %+v", v)
	}
	list := must[api.FlowVersions](t)(ann.FlowVersions(ctx, "f", 0, 10)).Items
	if len(list) != 3 || !by(list[0].Release.ApprovedBy, "ann") || list[1].Release.ApprovedBy != "" || !by(list[2].Release.Author, "ann") || list[0].Changes[0].Text != "what it does was waits for 2h, and is waits for 1h" {
		t.Errorf("versions: %+v", list)
	}
	_, err = ann.ReleaseFlow(ctx, "f", 9, "")
	wantCode(t, err, forebay.CodeNotFound)
	_, err = ann.RestoreFlow(ctx, "f", 9, "x")
	wantCode(t, err, forebay.CodeNotFound)
	_, err = ann.StartRun(ctx, "f", api.StartRun{Input: json.RawMessage("1"), Version: 1}, "")
	if err != nil {
		t.Errorf("without four eyes any version runs: %v", err)
	}
}
