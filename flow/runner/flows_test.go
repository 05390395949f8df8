package runner_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
	"github.com/forebayhq/forebay/flow"
	"github.com/forebayhq/forebay/flow/runner"
	"github.com/forebayhq/forebay/worker"
)

func imageHandlers(s *stand, pixels int) {
	s.handle("image.inspect", func(*worker.Job) (any, error) { return map[string]int{"pixels": pixels}, nil })
	s.handle("image.resize", func(j *worker.Job) (any, error) { return json.RawMessage(j.Payload), nil })
	s.handle("image.preview", func(*worker.Job) (any, error) { return nil, forebay.Permanent(errNo) })
	s.handleOK("image.watermark", "page.publish")
}

const image = `{"source":"s3://up/1.png","widths":[200,400,800],"watermark":"Forebay"}`

func TestImages(t *testing.T) {
	bubble(t, func(s *stand) {
		imageHandlers(s, 1000)
		s.open()
		s.putExample("images.yaml")
		s.start("images", "i1", image)
		s.wait(time.Minute)
		s.want("i1", "completed size:completed review:skipped resize:completed preview:skipped all_there:completed publish:completed told:completed")
		if got := s.get("i1").Steps["resize"].Each; got.Done != 3 || got.Total != 3 {
			t.Errorf("the items: %+v", got)
		}
		if got := string(s.job("i1/resize/2").Payload); got != `{"source":"s3://up/1.png","width":800}` {
			t.Errorf("an item's payload is %s", got)
		}
		st, err := s.broker.Stats(s.t.Context(), runner.DefaultEvents)
		if err != nil || st[0].Waiting != 1 {
			t.Errorf("events emitted: %+v %v", st, err)
		}
	})
}

// A large image waits for a person; who says no ends it.
func TestApproval(t *testing.T) {
	bubble(t, func(s *stand) {
		imageHandlers(s, 60_000_000)
		s.open()
		s.putExample("images.yaml")
		for _, id := range []string{"yes", "no", "late"} {
			s.start("images", id, image)
		}
		s.wait(time.Hour)
		s.want("yes", "running review:sent accept:blocked watermark:completed")
		if w := s.get("yes").Waiting; w[0].Step != "review" || !strings.Contains(w[0].Text, "an approval by editors") {
			t.Errorf("it waits for %v", w)
		}
		answer := func(run string, a runner.Approval) error { return s.runner.Approve(s.t.Context(), run, "review", a) }
		if err := answer("yes", runner.Approval{Approved: true, By: "ann"}); err != nil {
			t.Error(err)
		}
		pause := func(paused bool) { // nobody takes up what has come
			if err := s.broker.SetLimits(s.t.Context(), s.runner.Queue(), engine.QueueLimits{Paused: paused}); err != nil {
				t.Fatal(err)
			}
		}
		pause(true)
		if err := answer("no", runner.Approval{By: "bob", Comment: "too dark"}); err != nil {
			t.Error(err)
		}
		if err := answer("no", runner.Approval{Approved: true, By: "eve"}); forebay.CodeOf(err) != forebay.CodeConflict {
			t.Errorf("a second answer, at once: %v", err)
		}
		pause(false)
		s.wait(time.Second)
		s.want("yes", "completed review:completed publish:completed")
		s.want("no", "failed review:failed publish:blocked")
		if why := s.get("no").Failure; why.Code != "rejected" || why.Message != "not approved: too dark" {
			t.Errorf("the failure is %+v", why)
		}
		if err := answer("yes", runner.Approval{Approved: true}); forebay.CodeOf(err) != forebay.CodeConflict {
			t.Errorf("a second answer: %v", err)
		}
		s.wait(24 * time.Hour)
		s.want("late", "failed review:failed")
		if why := s.get("late").Failure; why.Code != flow.FailTimeout {
			t.Errorf("the failure is %+v", why)
		}
	})
}

func orderHandlers(s *stand, charge func(*worker.Job) (any, error)) {
	s.handleOK("stock.reserve", "stock.release", "payment.refund", "mail.ask_for_card", "ship.pack")
	s.handle("payment.charge", charge)
	s.open()
	s.put("flow: shipping\nsteps:\n  pack: {use: ship.pack, with: '${input}'}\noutput: {parcel: '${input.order}'}\n")
	s.putExample("order.yaml")
	s.start("order", "o1", `{"orderId":"A1","amount":12.5}`)
}

func TestOrderWithSubFlowAndDelay(t *testing.T) {
	bubble(t, func(s *stand) {
		orderHandlers(s, func(*worker.Job) (any, error) { return map[string]string{"id": "ch1"}, nil })
		s.wait(time.Minute)
		s.want("o1", "running pay:completed ask_again:skipped cool_down:sent")
		s.wait(10 * time.Minute)
		s.want("o1", "completed ship:completed done:completed")
		s.want("o1/ship", "completed pack:completed")
		if got := string(s.job("o1/ship").Result); got != `{"parcel":"A1"}` {
			t.Errorf("the sub-flow gave %s", got)
		}
		if got := string(s.job("o1/ship/pack").Payload); got != `{"country":"DE","order":"A1"}` && got != `{"order":"A1","country":"DE"}` {
			t.Errorf("the sub-flow's step got %s", got)
		}
	})
}

// The card is refused until the customer gives another: an event, and a goto back.
func TestOrderWithEventAndGotoBack(t *testing.T) {
	bubble(t, func(s *stand) {
		orderHandlers(s, failing(6, map[string]string{"id": "ch2"}))
		s.wait(time.Hour)
		s.want("o1", "running pay:failed ask_again:completed paid_later:sent")
		told := func(order string) int {
			n, err := s.runner.Event(s.t.Context(), "card.updated", json.RawMessage(fmt.Sprintf(`{"orderId":%q}`, order)))
			if err != nil {
				s.t.Fatal(err)
			}
			return n
		}
		if n := told("another"); n != 0 {
			t.Errorf("%d runs took the event of another order", n)
		}
		if n := told("A1"); n != 1 {
			t.Errorf("%d runs took the event, want 1", n)
		}
		s.wait(time.Hour)
		s.want("o1", "running pay_later:blocked ask_again:completed paid_later:sent")
		if round := s.get("o1").Steps["paid_later"].Round; round != 1 {
			t.Errorf("the round is %d, want 1", round)
		}
		told("A1")
		s.wait(time.Hour)
		s.want("o1", "completed pay_later:completed ship:completed")
	})
}

// What was done is undone in reverse order when the run fails.
func TestCompensation(t *testing.T) {
	bubble(t, func(s *stand) {
		s.handleOK("a", "b", "c", "undo-a", "undo-b", "undo-c")
		s.handle("d", func(*worker.Job) (any, error) { return nil, forebay.Permanent(errNo) })
		s.open()
		s.put(`flow: f
steps:
  a: {use: a, compensate: undo-a}
  b: {use: b, needs: a, compensate: {use: undo-b, with: {made: "${steps.b.output.ok}"}}}
  c: {use: c, needs: b, compensate: undo-c}
  d: {use: d, needs: c, on_failure: fail}
  e: {use: a, needs: d}
`)
		s.start("f", "x", `{}`)
		s.wait(time.Second)
		s.want("x", "failed a:completed c:completed d:failed e:blocked")
		if got := strings.Join(s.order, " "); got != "x/a x/b x/c x/d x/c~undo x/b~undo x/a~undo" {
			t.Errorf("it ran as %s", got)
		}
		if got := string(s.job("x/b~undo").Payload); got != `{"made":true}` {
			t.Errorf("a compensation got %s", got)
		}
	})
}

func TestForEachIsBounded(t *testing.T) {
	bubble(t, func(s *stand) {
		most, now := 0, 0
		s.handle("item", func(j *worker.Job) (any, error) {
			s.mu.Lock()
			now++
			most = max(most, now)
			s.mu.Unlock()
			time.Sleep(time.Second)
			s.mu.Lock()
			now--
			s.mu.Unlock()
			if string(j.Payload) == "13" || string(j.Payload) == "14" {
				return nil, forebay.Permanent(errNo)
			}
			return nil, nil
		})
		s.open()
		s.put("flow: ok\nsteps:\n  a: {use: item, for_each: {in: input.n, max_in_flight: 4, max_failures: 2}}\n")
		s.put("flow: bad\nsteps:\n  a: {use: item, for_each: {in: input.n, max_in_flight: 4, max_failures: 1}, on_failure: skip}\n")
		s.start("ok", "x", `{"n":30}`)
		s.wait(time.Minute)
		s.want("x", "completed a:completed")
		if most != 4 {
			t.Errorf("%d items were in flight, want 4", most)
		}
		if got := string(s.job("x").Result); got != `{"a":{"completed":28,"count":30,"failed":2}}` {
			t.Errorf("the result is %s", got)
		}
		s.start("bad", "y", `{"n":300}`)
		s.wait(time.Minute)
		s.want("y", "completed a:skipped")
		if e := s.get("y").Steps["a"]; e.Each.Next > 20 || !strings.Contains(e.Error.Message, "2 of 300 items failed; 1 may. The first: the server refuses") {
			t.Errorf("the items: %+v %+v", e.Each, e.Error)
		}
	})
}

func TestPauseResumeCancel(t *testing.T) {
	bubble(t, func(s *stand) {
		s.handle("slow", func(*worker.Job) (any, error) { time.Sleep(10 * time.Second); return nil, nil })
		s.handleOK("undo")
		s.open()
		s.put("flow: f\nsteps:\n  a: {use: slow, compensate: undo}\n  b: {use: slow, needs: a}\n  c: {delay: 1h, needs: b}\n")
		s.start("f", "x", `{}`)
		s.wait(time.Second)
		s.do("x", flow.Command{Do: flow.DoPause})
		s.wait(time.Hour)
		s.want("x", "running a:completed b:blocked")
		s.do("x", flow.Command{Do: flow.DoResume})
		s.wait(time.Minute)
		s.want("x", "running b:completed c:sent")
		s.do("x", flow.Command{Do: flow.DoCancel, Reason: "changed our minds"})
		s.wait(time.Second)
		s.want("x", "cancelled c:cancelled")
		if j := s.job("x"); j.State != forebay.StateCancelled || !strings.Contains(j.Cause.Message, "changed our minds") {
			t.Errorf("the run's job is %s: %+v", j.State, j.Cause)
		}
		if !slices.Contains(s.order, "x/a~undo") {
			t.Error("what was done was not undone")
		}
		if err := s.runner.Do(s.t.Context(), "x", flow.Command{Do: flow.DoRetry}); forebay.CodeOf(err) != forebay.CodeConflict {
			t.Errorf("a cancelled run was retried: %v", err)
		}
	})
}

func TestRetryAndSkip(t *testing.T) {
	bubble(t, func(s *stand) {
		s.handleOK("a", "c")
		s.handle("b", func(j *worker.Job) (any, error) {
			if string(j.Payload) != `"mended"` {
				return nil, forebay.Permanent(errNo)
			}
			return nil, nil
		})
		s.open()
		s.put("flow: f\nsteps:\n  a: {use: a}\n  b: {use: b, needs: a, with: broken}\n  c: {use: c, needs: b}\n")
		s.start("f", "x", `{}`)
		s.start("f", "y", `{}`)
		s.wait(time.Second)
		s.want("x", "failed a:completed b:failed c:blocked")
		s.do("x", flow.Command{Do: flow.DoRetry})
		s.wait(time.Second)
		s.want("x", "failed b:failed")
		s.do("x", flow.Command{Do: flow.DoRetry, Step: "b", Payload: json.RawMessage(`"mended"`)})
		s.wait(time.Second)
		s.want("x", "completed b:completed c:completed")
		if s.began["x/a"] != 1 || s.began["x/b"] != 1 || s.began["x/b@1"] != 1 || s.began["x/b@2"] != 1 {
			t.Errorf("the steps ran %v", s.began)
		}
		s.do("y", flow.Command{Do: flow.DoSkip, Step: "b", Reason: "not needed"})
		s.wait(time.Second)
		s.want("y", "completed b:skipped c:completed")
	})
}

func TestRunKeepsItsVersion(t *testing.T) {
	bubble(t, func(s *stand) {
		s.handleOK("old", "new")
		s.open()
		s.put("flow: f\nsteps:\n  a: {delay: 1h}\n  b: {use: old, needs: a}\n")
		s.start("f", "x", `{}`)
		s.wait(time.Second)
		s.put("flow: f\nsteps:\n  a: {delay: 1h}\n  b: {use: new, needs: a}\n")
		s.start("f", "y", `{}`)
		s.wait(2 * time.Hour)
		s.want("x", "completed b:completed")
		if x, y := s.job("x/b").Kind, s.job("y/b").Kind; x != "old" || y != "new" {
			t.Errorf("the runs did %s and %s", x, y)
		}
		if n, _, err := s.runner.Put(s.t.Context(), []byte("flow: f\nsteps:\n  a: {delay: 1h}\n  b: {use: new, needs: a}\n"), flow.Known{}); n != 2 || err != nil {
			t.Errorf("the same again is version %d, want 2: %v", n, err)
		}
	})
}

// A step whose job is ended behind the run's back, by somebody who cancels it or by a
// deadline of the queue, is heard of; and found where nobody heard.
func TestJobsThatEndOtherwise(t *testing.T) {
	bubble(t, func(s *stand) {
		s.handleOK("a")
		s.open()
		s.put("flow: f\nsteps:\n  a: {use: a, queue: nobody, on_failure: skip}\n  b: {use: a, needs: a}\n")
		s.put("flow: g\nsteps:\n  a: {use: a, queue: nobody}\n")
		s.start("f", "x", `{}`)
		s.start("g", "y", `{}`)
		s.wait(time.Second)
		if _, err := s.broker.Cancel(s.t.Context(), []string{"x/a", "y/a"}, "by hand"); err != nil {
			s.t.Fatal(err)
		}
		s.wait(time.Second)
		s.want("x", "completed a:skipped b:completed")
		s.want("y", "failed a:failed")
		// The run itself, cancelled as the job that it is.
		s.start("f", "z", `{}`)
		s.wait(time.Second)
		if _, err := s.broker.Cancel(s.t.Context(), []string{"z"}, "the run too"); err != nil {
			s.t.Fatal(err)
		}
		s.wait(time.Second)
		s.want("z", "cancelled a:cancelled")
	})
}

// A run waits for no dead letter that is not there: of a job that somebody has cancelled,
// and of an approval that was refused.
func TestNoWaitForADeadLetterThatIsNotThere(t *testing.T) {
	bubble(t, func(s *stand) {
		s.open()
		s.put("flow: f\nsteps:\n  a: {use: a, queue: nobody, on_failure: dead_letter}\n")
		s.put("flow: g\nsteps:\n  a: {wait: {approval: {role: ops}, timeout: 1h}, on_failure: dead_letter}\n")
		s.start("f", "x", `{}`)
		s.start("g", "y", `{}`)
		s.wait(time.Second)
		if _, err := s.broker.Cancel(s.t.Context(), []string{"x/a"}, "by hand"); err != nil {
			s.t.Fatal(err)
		}
		if err := s.runner.Approve(s.t.Context(), "y", "a", runner.Approval{By: "me"}); err != nil {
			s.t.Fatal(err)
		}
		s.wait(time.Second)
		s.want("x", "failed a:failed")
		s.want("y", "failed a:failed")
	})
}

func TestRunTimeout(t *testing.T) {
	bubble(t, func(s *stand) {
		s.handleOK("a")
		s.open()
		s.put("flow: f\ntimeout: 1h\nsteps:\n  a: {use: a, queue: nobody}\n")
		s.start("f", "x", `{}`)
		s.wait(59 * time.Minute)
		s.want("x", "running a:sent")
		s.wait(2 * time.Minute)
		s.want("x", "failed a:cancelled")
		if why := s.get("x").Failure; why.Code != flow.FailTimeout {
			t.Errorf("the failure is %+v", why)
		}
	})
}

// However long a for_each is, what is stored of it and what is on its way stays small.
func TestLongForEachStaysSmall(t *testing.T) {
	const items, inFlight = 1500, 50
	bubble(t, func(s *stand) {
		s.handle("item", func(j *worker.Job) (any, error) {
			s.mu.Lock()
			wait := time.Duration(len(s.order)%7) * time.Second // they end in another order
			s.mu.Unlock()
			time.Sleep(wait)
			return nil, nil
		})
		s.open()
		s.put(fmt.Sprintf("flow: f\nsteps:\n  a: {use: item, for_each: {in: input.list, max_in_flight: %d}}\n", inFlight))
		list, err := json.Marshal(map[string]any{"list": make([]int, items)})
		if err != nil {
			s.t.Fatal(err)
		}
		s.start("f", "x", string(list))
		for range 10 {
			s.wait(20 * time.Second)
			d, err := s.broker.Document(s.t.Context(), "flow-run", "x")
			if err != nil {
				s.t.Fatal(err)
			}
			if len(d.Value) > 1500 {
				t.Errorf("the state of the run has %d bytes: %s", len(d.Value), d.Value)
			}
			st, err := s.broker.Stats(s.t.Context(), flow.DefaultQueue)
			if err != nil || st[0].Waiting+st[0].Active+st[0].Delayed > inFlight {
				t.Errorf("more than %d items are on their way: %+v %v", inFlight, st, err)
			}
		}
		s.wait(time.Hour)
		s.want("x", "completed a:completed")
		if len(s.began) != items {
			t.Errorf("%d items began, want %d", len(s.began), items)
		}
	})
}

// The longest names and the oddest texts that a file may have can be run.
func TestLongestNames(t *testing.T) {
	bubble(t, func(s *stand) {
		s.handleOK("x")
		s.open()
		name := strings.Repeat("n", flow.MaxNameBytes)
		step := strings.Repeat("s", flow.MaxStepBytes)
		s.put(fmt.Sprintf("flow: %s\nsteps:\n  %s: {use: x}\n  end: {needs: %s, dead_letter: \"no\\nway\"}\n", name, step, step))
		run := strings.Repeat("r", flow.MaxRunBytes)
		s.start(name, run, `{}`)
		s.wait(time.Second)
		s.want(run, "failed "+step+":completed end:failed")
		if j := s.job(run + "/end"); j.State != forebay.StateDead || j.Cause.Message != "no way" {
			t.Errorf("the dead letter is %s: %+v", j.State, j.Cause)
		}
		if why := s.get(run).Failure; why.Code != "dead_letter" || why.Step != "end" {
			t.Errorf("the run failed with %+v", why)
		}
	})
}
