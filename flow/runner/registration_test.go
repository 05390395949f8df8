package runner_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
	"github.com/forebayhq/forebay/flow"
	"github.com/forebayhq/forebay/flow/runner"
	"github.com/forebayhq/forebay/worker"
)

const somebody = `{"email":"a@example.com","name":"Ada"}`

func registration(s *stand, mail, database func(*worker.Job) (any, error)) {
	s.handleOK("validate-user-data", "delete-user-record")
	s.handle("create-user-record", database)
	s.handle("send-welcome-email", mail)
	s.handle("initialize-workspace", func(j *worker.Job) (any, error) {
		if j.Queue != "workspace-setup" {
			return nil, errors.New("on the queue " + j.Queue)
		}
		return json.RawMessage(j.Payload), nil
	})
	s.open()
	s.putExample("registration.yaml")
	s.start("registration", "r1", somebody)
}

func user(*worker.Job) (any, error) { return map[string]string{"userId": "user_123"}, nil }

func TestRegistration(t *testing.T) {
	bubble(t, func(s *stand) {
		registration(s, func(*worker.Job) (any, error) { return nil, nil }, user)
		s.wait(time.Second)
		s.want("r1", "completed validate:completed create:completed welcome:completed workspace:completed")
		want := `{"userId":"user_123","welcomed":true,"workspace":{"name":"Ada's workspace","userId":"user_123"}}`
		if got := s.job("r1").Result; string(got) != want {
			t.Errorf("the run's result is %s, want %s", got, want)
		}
		if order := strings.Join(s.order, " "); order != "r1/validate r1/create r1/welcome r1/workspace" {
			t.Errorf("the steps ran as %s", order)
		}
	})
}

// A mail server that refuses: the run completes, and the skip is in its history.
func TestRegistrationWithoutMail(t *testing.T) {
	bubble(t, func(s *stand) {
		registration(s, failing(100, nil), user)
		s.wait(time.Minute)
		s.want("r1", "completed create:completed welcome:skipped workspace:completed")
		if got := string(s.job("r1").Result); !strings.Contains(got, `"welcomed":false`) {
			t.Errorf("the run's result is %s", got)
		}
		if h := s.history("r1/welcome"); !strings.Contains(h, "cancelled(skipped after 3 attempts: the server refuses)") {
			t.Errorf("the history of the mail: %s", h)
		}
		if n := s.began["r1/welcome"]; n != 3 {
			t.Errorf("%d mails were tried, want 3", n)
		}
		dead, err := s.broker.Dead(s.t.Context(), engine.DeadQuery{})
		if err != nil || len(dead) > 0 {
			t.Errorf("a skipped step left a dead letter: %v %v", dead, err)
		}
	})
}

// A database that refuses: retried, then a dead letter; replayed after the cause is
// mended, the run goes on from there.
func TestRegistrationWithoutDatabase(t *testing.T) {
	bubble(t, func(s *stand) {
		broken := true
		registration(s, func(*worker.Job) (any, error) { return nil, nil }, func(j *worker.Job) (any, error) {
			if broken {
				return nil, errNo
			}
			return user(j)
		})
		s.wait(10 * time.Minute)
		s.want("r1", "running validate:completed create:dead welcome:blocked")
		if n := s.began["r1/create"]; n != 5 {
			t.Errorf("the database was tried %d times, want 5", n)
		}
		if w := s.get("r1").Waiting; len(w) == 0 || !strings.Contains(w[0].Text, "dead letter (the server refuses)") {
			t.Errorf("the run waits for %v", w)
		}
		broken = false
		if results, err := s.broker.Retry(s.t.Context(), []string{"r1/create"}); err != nil || results[0].Err != nil {
			s.t.Fatal(err, results)
		}
		s.wait(time.Second)
		s.want("r1", "completed create:completed workspace:completed")
		if s.began["r1/validate"] != 1 {
			t.Error("the first step ran again")
		}
	})
}

// Its dead letter is given up: the run fails, and what was done is undone.
func TestRegistrationIsGivenUp(t *testing.T) {
	bubble(t, func(s *stand) {
		registration(s, func(*worker.Job) (any, error) { return nil, nil }, failing(100, nil))
		s.wait(10 * time.Minute)
		dead, err := s.broker.Dead(s.t.Context(), engine.DeadQuery{})
		if err != nil || len(dead) != 1 || dead[0].Message.ID != "r1/create" {
			s.t.Fatal(dead, err)
		}
		if _, err := s.broker.Discard(s.t.Context(), []int64{dead[0].Seq}); err != nil {
			s.t.Fatal(err)
		}
		s.wait(time.Minute)
		s.want("r1", "failed create:failed")
		if j := s.job("r1"); j.State != forebay.StateDead || j.Cause.Code != flow.FailDiscarded || j.Cause.Detail["step"] != "create" {
			t.Errorf("the run's job is %s: %+v", j.State, j.Cause)
		}
	})
}

func TestInputHasToFitTheFlow(t *testing.T) {
	bubble(t, func(s *stand) {
		registration(s, user, user)
		_, err := s.runner.Start(s.t.Context(), runner.Start{Flow: "registration", Input: json.RawMessage(`{"email":7,"name":"x"}`)})
		if forebay.CodeOf(err) != forebay.CodeInvalid || !strings.Contains(err.Error(), "email") {
			t.Errorf("an email that is a number: %v", err)
		}
		_, err = s.runner.Start(s.t.Context(), runner.Start{Flow: "no-such", Input: json.RawMessage(`1`)})
		if forebay.CodeOf(err) != forebay.CodeNotFound {
			t.Errorf("a flow that is not there: %v", err)
		}
	})
}
