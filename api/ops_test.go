package api_test

import (
	"context"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/api"
	"github.com/forebayhq/forebay/audit"
	"github.com/forebayhq/forebay/keyring"
	"github.com/forebayhq/forebay/monitor"
	"github.com/forebayhq/forebay/monitor/alert"
)

func TestHealthAndScaling(t *testing.T) {
	t.Parallel()
	s := start(t, func(c *api.Config) {
		c.Checks = []api.Check{
			{Name: "sink", Optional: true, Run: func(context.Context) error { return forebay.Errorf(forebay.CodeUnavailable, "", "paused") }},
		}
	})
	h := must[api.Health](t)(s.Health(t.Context()))
	if h.Grade != monitor.Warning || len(h.Queues) != 0 || h.Parts[0].Grade != monitor.Warning || h.Parts[1].Grade != monitor.Healthy {
		t.Errorf("%+v", h)
	}
	s.die(t, "mail", "x", 101)
	h = must[api.Health](t)(s.Health(t.Context()))
	if h.Grade != monitor.Critical || len(h.Queues) != 1 || h.Queues[0].Grade != monitor.Critical || h.Queues[0].Reasons[0].Code != monitor.ReasonDead {
		t.Errorf("%+v", h)
	}
	s.send(t, forebay.Message{Queue: "mail", Kind: "k"})
	for queue, want := range map[string]int{"mail": 1, "none": 0} {
		if v := must[monitor.Scaling](t)(s.Scaling(t.Context(), queue)); v.Queue != queue || v.DesiredWorkers != want {
			t.Errorf("%+v", v)
		}
	}
	if r := s.do(t, "GET", "/api/scaling", "", nil); !strings.Contains(r.body, `"desiredWorkers":1`) {
		t.Error(r.body)
	}
}

func TestAlertsAreShownAndMuted(t *testing.T) {
	t.Parallel()
	a := must[*alert.Alerts](t)(alert.New(alert.Config{
		Rules: []alert.Rule{{Name: "disk", Of: monitor.MeasureDiskFree, Limit: 5, Under: true}, {Name: "age", Of: monitor.MeasureOldestAge, Limit: 60, For: time.Minute}},
		Read:  func(context.Context) ([]monitor.Reading, error) { return nil, nil },
		Send:  func(context.Context, alert.Notice) error { return nil },
	}))
	s := start(t, func(c *api.Config) { c.Alerts = a })
	r := must[api.AlertRule](t)(s.MuteAlert(t.Context(), "disk", time.Hour, "a bigger one comes"))
	all := must[[]api.AlertRule](t)(s.AlertRules(t.Context()))
	if r.MutedUntil.IsZero() || len(all) != 2 || all[0].MuteReason != "a bigger one comes" || *all[0].Under != 5 || *all[1].Over != 60 || time.Duration(all[1].For) != time.Minute {
		t.Errorf("%+v %+v", r, all)
	}
	_, err := s.MuteAlert(t.Context(), "nothing", time.Hour, "")
	wantCode(t, err, forebay.CodeNotFound)
}

// Every change has an entry with its actor, what was asked for and what came of it;
// what was sent, and secrets, have no place there.
func TestChangesAreNoted(t *testing.T) {
	t.Parallel()
	log := must[*audit.Log](t)(audit.Open(filepath.Join(t.TempDir(), "audit.jsonl"), audit.Config{}))
	t.Cleanup(func() { log.Close() })
	s := start(t, func(c *api.Config) { c.Audit = log })
	_, secret, err := s.ring.Add(keyring.Spec{Name: "boss", Scopes: []keyring.Scope{keyring.ScopeAdmin}})
	if err != nil {
		t.Fatal(err)
	}
	_, looks, err := s.ring.Add(keyring.Spec{Name: "guest", Scopes: []keyring.Scope{keyring.ScopeView}})
	if err != nil {
		t.Fatal(err)
	}
	boss := s.with(t, secret)
	s.die(t, "mail", "x", 3)
	must[api.Outcome](t)(boss.ReplayDead(t.Context(), api.DeadReplay{Selection: api.Selection{Seqs: []int64{1, 2}}}))
	must[api.AddedKey](t)(boss.AddKey(t.Context(), api.NewKey{Name: "new", Secret: strings.Repeat("s3cret", 6), Scopes: []keyring.Scope{keyring.ScopeAdmin}}))
	header := map[string]string{"Authorization": "Bearer " + secret}
	s.do(t, "POST", "/api/queues/mail/purge", `{"confirm":"wrong","reason":"a try"}`, header)
	s.do(t, "POST", "/api/jobs", `{"queue":"q","name":"n","data":{"card":"4111"}}`, header) // work, not a change
	s.do(t, "GET", "/api/queues", "", header)
	if r := s.do(t, "POST", "/api/queues/mail/pause", "", map[string]string{"Authorization": "Bearer " + looks}); r.status != 401 && r.status != 403 {
		t.Errorf("a viewer pauses: %d", r.status)
	}

	list := must[api.AuditList](t)(boss.Audit(t.Context(), api.AuditFilter{Since: "1h"}, 0, 10))
	text, _ := json.Marshal(list)
	if len(list.Items) != 3 || list.Next != 0 {
		t.Fatalf("%d entries: %s", len(list.Items), text)
	}
	purge, add, replay := list.Items[0], list.Items[1], list.Items[2]
	if purge.Action != "POST /api/queues/{name}/purge" || purge.Target != "/api/queues/mail/purge" || purge.Status < 400 || purge.Reason != "a try" || purge.Via != "api" {
		t.Errorf("%+v", purge)
	}
	if add.Asked["name"] != "new" || add.Status != 201 || strings.Contains(string(text), "s3cret") {
		t.Errorf("%s", text)
	}
	if !strings.Contains(replay.Actor, "boss") || replay.Via != "cli" || len(replay.Asked["seqs"].([]any)) != 2 || replay.Done["done"] != 2.0 {
		t.Errorf("%+v", replay)
	}
	one := must[api.AuditList](t)(boss.Audit(t.Context(), api.AuditFilter{Action: "dead/replay", Actor: "boss"}, 0, 1))
	if len(one.Items) != 1 || one.Items[0].Seq != replay.Seq {
		t.Errorf("%+v", one)
	}
	_, err = s.with(t, looks).Audit(t.Context(), api.AuditFilter{}, 0, 10)
	wantCode(t, err, forebay.CodeUnauthorized)
}
