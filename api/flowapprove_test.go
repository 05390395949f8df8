package api_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/api"
	"github.com/forebayhq/forebay/flow"
	"github.com/forebayhq/forebay/keyring"
	"github.com/forebayhq/forebay/task"
)

// Only approvers answer a step that names some, and pass it over; a key by its name or a
// scope, and this machine's token as an admin.
func TestOnlyApproversApprove(t *testing.T) {
	t.Parallel()
	var mux task.Mux
	s, ctx := withFlows(t, &mux), t.Context()
	with := func(name string, scope keyring.Scope) *api.Client {
		_, secret, err := s.ring.Add(keyring.Spec{Name: name, Scopes: []keyring.Scope{scope}})
		if err != nil {
			t.Fatal(err)
		}
		return must[*api.Client](t)(api.NewClient(s.url, secret, s.http))
	}
	ann, bob, boss := with("ann", keyring.ScopeOperate), with("bob", keyring.ScopeOperate), with("boss", keyring.ScopeAdmin)
	put := func(who string) {
		must[api.PutFlow](t)(boss.PutFlow(ctx, "ask", []byte("flow: ask\nsteps:\n  look: {wait: {approval: {approvers: "+who+"}, timeout: 1h}}\n")))
	}
	ask := func() string {
		id := must[api.StartedRun](t)(boss.StartRun(ctx, "ask", api.StartRun{Input: json.RawMessage("1")}, "")).RunID
		asked := errors.New("it waits for its answer")
		_, err := boss.WatchRun(ctx, id, func(u api.RunUpdate) error {
			if u.Run != nil && u.Run.Steps[0].State == flow.StepSent {
				return asked
			}
			return nil
		})
		if !errors.Is(err, asked) {
			t.Fatal(err)
		}
		return id
	}
	put("[ann, admin]")
	if f := must[api.Flow](t)(bob.Flow(ctx, "ask", 0)); strings.Join(f.Steps[0].Approvers, " ") != "ann admin" {
		t.Errorf("shown: %+v", f.Steps)
	}
	for _, one := range []*api.Client{ann, boss} {
		id := ask()
		_, err := bob.ApproveRun(ctx, id, api.ApproveRun{Step: "look"})
		wantCode(t, err, forebay.CodeUnauthorized)
		_, err = bob.TellRun(ctx, id, flow.DoSkip, api.RunCommand{Step: "look"})
		wantCode(t, err, forebay.CodeUnauthorized)
		must[api.ApprovedRun](t)(one.ApproveRun(ctx, id, api.ApproveRun{Step: "look"}))
	}
	put("operate")
	must[api.ApprovedRun](t)(bob.ApproveRun(ctx, ask(), api.ApproveRun{Step: "look"}))
}
