package api_test

import (
	"errors"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/api"
	"github.com/forebayhq/forebay/engine"
	"github.com/forebayhq/forebay/engine/sqlite"
	"github.com/forebayhq/forebay/engine/sqs"
	"github.com/forebayhq/forebay/sqsapi"
	"github.com/forebayhq/forebay/sqsapi/queue"
)

// A canary of which nothing is known any more has not passed; and it has one time to end
// by, however often it is taken up again.
func TestCanaryThatIsNotThereAndOneThatIsLate(t *testing.T) {
	inGraveyard(t, func(t *testing.T, g *graveyard) {
		ctx := t.Context()
		g.bury(100)
		canary := &api.Canary{Count: 10, Timeout: api.Duration(time.Minute)}
		act := api.DeadAction{Action: "replay", DeadFilter: api.DeadFilter{Queue: "buried"}, Canary: canary}
		w := must[api.DeadWork](t)(g.ActOnDead(ctx, act))
		time.Sleep(2*time.Second + 100*time.Millisecond) // not while they are looked at, every half second: all are gone at once
		must[int64](t)(g.broker.Purge(ctx, "buried"))
		time.Sleep(2 * time.Second)
		s := g.at(w.ID)
		if s.State != api.DeadStopped || s.Canary.Verdict != "unknown" || s.Canary.Unknown != 10 || s.Canary.Passed != 0 || s.Done != 10 || s.Canary.Failures[0].Code != "unknown" {
			t.Errorf("purged: %+v %+v", s, s.Canary)
		}

		begun := time.Now()
		w = must[api.DeadWork](t)(g.ActOnDead(ctx, act))
		time.Sleep(40 * time.Second)
		must[api.DeadWork](t)(g.ChangeDeadAction(ctx, w.ID, "pause"))
		time.Sleep(10 * time.Second)
		must[api.DeadWork](t)(g.ChangeDeadAction(ctx, w.ID, "resume"))
		time.Sleep(15 * time.Second)
		if s := g.at(w.ID); s.State != api.DeadStopped || s.Canary.Verdict != "timeout" || !s.Canary.Until.Equal(begun.Add(time.Minute)) {
			t.Errorf("late: %+v %+v", s, s.Canary)
		}
		must[api.DeadWork](t)(g.ChangeDeadAction(ctx, w.ID, "resume"))
		time.Sleep(time.Second)
		if s := g.at(w.ID); !s.Canary.Until.After(begun.Add(2 * time.Minute)) {
			t.Errorf("another canary has another time: %+v", s.Canary)
		}
	})
}

// An action that waits, for its rate or for ever, holds up no shutdown, costs no attempt
// by it, and goes on where it was.
func TestActionOnDeadWhileDraining(t *testing.T) {
	inGraveyard(t, func(t *testing.T, g *graveyard) {
		ctx := t.Context()
		g.drain = time.Hour
		g.restart()
		g.bury(20)
		w := must[api.DeadWork](t)(g.ActOnDead(ctx, api.DeadAction{Action: "replay", DeadFilter: api.DeadFilter{Queue: "buried"}, Rate: 0.1}))
		time.Sleep(25 * time.Second)
		stopped := time.Now()
		g.stop()
		if took := time.Since(stopped); took > time.Second {
			t.Errorf("it held the shutdown for %s", took)
		}
		g.stop = nil
		if s := g.at(w.ID); s.State != api.DeadRunning || s.Done != 3 {
			t.Errorf("interrupted: %+v", s)
		}
		g.restart()
		time.Sleep(5 * time.Minute)
		s := g.at(w.ID)
		if j := must[api.Job](t)(g.Job(ctx, s.JobID)); s.State != api.DeadCompleted || s.Done != 20 || s.Runs != 2 || j.Attempts != 0 {
			t.Errorf("the end: %+v of %+v", s, j)
		}
	})
}

// A queue that is not there is told, not done nothing about; and what died may go into
// another queue than its own.
func TestDeadOfAQueueThatIsNotThereAndIntoAnother(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	s.die(t, "mail", "x", 3)
	f := api.DeadFilter{Queue: "mial"}
	_, begun := s.ActOnDead(t.Context(), api.DeadAction{Action: "replay", DeadFilter: f})
	_, once := s.ReplayDead(t.Context(), api.DeadReplay{Selection: api.Selection{All: true}, DeadFilter: f})
	_, gone := s.DiscardDead(t.Context(), api.DeadDiscard{Selection: api.Selection{All: true}, DeadFilter: f, Reason: "r"})
	for _, err := range []error{begun, once, gone} {
		var e *forebay.Error
		if forebay.CodeOf(err) != forebay.CodeNotFound || !errors.As(err, &e) || e.Field != "queue" || !strings.Contains(e.Hint, "mail") {
			t.Errorf("%v (%+v)", err, e)
		}
	}
	_, err := s.ActOnDead(t.Context(), api.DeadAction{Action: "replay", DeadFilter: api.DeadFilter{Queue: "mail"}, Into: "no queue"})
	wantCode(t, err, forebay.CodeInvalid)
	out := must[api.Outcome](t)(s.ReplayDead(t.Context(), api.DeadReplay{Selection: api.Selection{All: true}, DeadFilter: api.DeadFilter{Queue: "mail"}, Into: "slow"}))
	ds := must[[]forebay.Delivery](t)(s.broker.Receive(t.Context(), engine.Receive{Queue: "slow", Max: 10}))
	if out.Done != 3 || len(ds) != 3 || ds[0].Headers["forebay-replay-of"] != "mail-x-0" {
		t.Errorf("%+v: %+v", out, ds)
	}
}

// Dead letters that SQS keeps are told of and given back, through the real engine.
func TestRedriveOverTheAPI(t *testing.T) {
	for name, value := range map[string]string{
		"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "AWS_REGION": "us-east-1",
		"AWS_CONFIG_FILE": os.DevNull, "AWS_SHARED_CREDENTIALS_FILE": os.DevNull, "AWS_EC2_METADATA_DISABLED": "true",
	} {
		t.Setenv(name, value)
	}
	service := must[*queue.Service](t)(queue.New(queue.Config{Engine: must[*sqlite.Engine](t)(sqlite.Open(sqlite.Config{}))}))
	front := must[*sqsapi.Front](t)(sqsapi.New(sqsapi.Config{Service: service, Unsigned: true}))
	at := httptest.NewServer(front)
	t.Cleanup(func() {
		front.Close()
		at.Close()
	})
	background(t, service.Run)
	remote := must[*sqs.Engine](t)(sqs.Open(t.Context(), sqs.Config{Endpoint: at.URL, Create: true}))
	s := startOn(t, remote, func(c *api.Config) { c.Redrivers = map[string]engine.Redriver{"q": remote} })
	s.send(t, forebay.Message{ID: "m", Queue: "q", Kind: "k", Payload: []byte("1")})
	d := must[[]forebay.Delivery](t)(s.broker.Receive(t.Context(), engine.Receive{Queue: "q", Max: 1, Wait: 5 * time.Second}))
	if len(d) != 1 {
		t.Fatal("nothing came")
	}
	must[[]error](t)(s.broker.Settle(t.Context(), []forebay.Settlement{{Receipt: d[0].Receipt, Queue: "q", Verdict: forebay.Dead, Cause: forebay.Cause{Code: "x", Message: "m"}}}))

	_, err := s.RedriveDead(t.Context(), "other", 0)
	wantCode(t, err, forebay.CodeUnsupported)
	task := must[api.Redriven](t)(s.RedriveDead(t.Context(), "q", 500))
	again := must[[]forebay.Delivery](t)(s.broker.Receive(t.Context(), engine.Receive{Queue: "q", Max: 1, Wait: 20 * time.Second}))
	if task.Task == "" || len(again) != 1 || again[0].ID != "m" {
		t.Errorf("%+v gave back %+v", task, again)
	}
	_, err = s.CancelRedrive(t.Context(), "q", "nothing")
	wantCode(t, err, forebay.CodeInvalid)
}
