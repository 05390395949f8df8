package queue_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/engine"
	"github.com/forebayhq/forebay/sqsapi/queue"
)

func TestQueueThatOnlyTheEngineKnows(t *testing.T) {
	bubble(t, func(v *env) {
		_, err := v.s.GetQueueUrl(v.ctx, queue.GetQueueUrlInput{QueueName: "events"})
		v.refused(err, "QueueDoesNotExist")
		_, err = v.e.Send(v.ctx, []forebay.Message{
			{ID: "native", Queue: "events", Kind: "app_open", Payload: []byte(`{"a":1}`), Headers: map[string]string{"x": "y", "sqs-frame": "9,9", "sqs-a-bad": "no tab"}},
			{ID: "in order", Queue: "orders.fifo", Group: "user 1", Payload: []byte("1")},
		})
		v.fine(err)
		out, err := v.s.ListQueues(v.ctx, queue.ListQueuesInput{})
		v.fine(err)
		if !slices.Equal(out.QueueUrls, []string{"events", "orders.fifo"}) {
			t.Errorf("there are %v", out.QueueUrls)
		}
		m := v.one("http://localhost:9324/000000000000/events", `{"a":1}`)
		if m.MessageId != "native" || len(m.MessageAttributes) != 1 || *m.MessageAttributes["Forebay.Kind"].StringValue != "app_open" {
			t.Errorf("got %+v", m)
		}
		v.fine(v.remove("events", m))
		m = v.one("orders.fifo", "1")
		if m.Attributes["MessageGroupId"] != "user 1" {
			t.Errorf("got %v", m.Attributes)
		}
		v.create("events") // with default attributes: it is there already
	})
}

func TestForebaysOwnConsumersReadTheBody(t *testing.T) {
	bubble(t, func(v *env) {
		v.create("a")
		v.send("a", "body", text("k", "v"))
		ds, err := v.e.Receive(v.ctx, engine.Receive{Queue: "a", Max: 1})
		v.fine(err)
		if len(ds) != 1 || string(ds[0].Payload) != "body" || ds[0].Headers["sqs-a-k"] != "String\tv" {
			t.Errorf("got %+v", ds)
		}
	})
}

func TestUnknownQueue(t *testing.T) {
	bubble(t, func(v *env) {
		for _, name := range []string{"none", "http://x/1/none", "a b", ""} {
			_, err := v.trySend(name, "x")
			want := "QueueDoesNotExist"
			if name == "" {
				want = "MissingRequiredParameterException"
			}
			v.refused(err, want)
		}
		v.create("a")
		_, err := v.s.GetQueueUrl(v.ctx, queue.GetQueueUrlInput{QueueName: "a", QueueOwnerAWSAccountId: "111111111111"})
		v.refused(err, "QueueDoesNotExist")
	})
}

func TestEndedContextIsPassedOn(t *testing.T) {
	bubble(t, func(v *env) {
		q := v.create("a")
		ctx, cancel := context.WithTimeout(v.ctx, time.Second)
		defer cancel()
		_, err := v.s.ReceiveMessage(ctx, queue.ReceiveInput{QueueUrl: q, WaitTimeSeconds: new(20)})
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
		v.send(q, "x")
		v.one(q, "x") // nothing stayed with the poll that was cut
	})
}

// bare is an engine without optional abilities.
type bare struct{ engine.Engine }

func TestNewRefuses(t *testing.T) {
	bubble(t, func(v *env) {
		if _, err := queue.New(queue.Config{}); forebay.CodeOf(err) != forebay.CodeInvalid {
			t.Errorf("no engine: %v", err)
		}
		if _, err := queue.New(queue.Config{Engine: bare{v.e}}); forebay.CodeOf(err) != forebay.CodeUnsupported {
			t.Errorf("an engine without documents: %v", err)
		}
	})
}

func TestInFlightLimit(t *testing.T) {
	bubble(t, func(v *env) {
		v.s.LimitInFlight(20)
		q := v.create("a")
		for range 3 {
			_, err := v.s.SendMessageBatch(v.ctx, queue.SendBatchInput{QueueUrl: q, Entries: entries(10, "x")})
			v.fine(err)
		}
		first := v.receive(q)
		v.receive(q)
		_, err := v.s.ReceiveMessage(v.ctx, queue.ReceiveInput{QueueUrl: q})
		f := v.refused(err, "OverLimit")
		if _, status, _ := f.Describe(); status != 403 {
			t.Errorf("status %d", status)
		}
		start := time.Now()
		v.bodies(v.receive(q, wait(20))) // a long poll is silent
		if took := time.Since(start); took != 20*time.Second {
			t.Errorf("silent for %s", took)
		}
		v.fine(v.remove(q, first[0]))
		if n := len(v.receive(q)); n != 10 {
			t.Errorf("then %d were received", n)
		}
	})
}

func TestFoundQueuesKeepTheirMessages(t *testing.T) {
	bubble(t, func(v *env) {
		_, err := v.e.Send(v.ctx, []forebay.Message{{ID: "1", Queue: "events", Payload: []byte("x")}})
		v.fine(err)
		if r := v.attribute("events", "MessageRetentionPeriod"); r != "345600" {
			t.Errorf("its retention is %s", r)
		}
		later, err := queue.New(queue.Config{Engine: v.e, Now: func() time.Time { return time.Now().Add(5 * 24 * time.Hour) }})
		v.fine(err)
		v.s = later
		v.one("events", "x", hidden(0))
		v.fine(v.set("events", "MessageRetentionPeriod", "345600"))
		v.bodies(v.receive("events"))
		if n := v.waiting("events"); n != "0" {
			t.Errorf("%s are left", n)
		}
	})
}

// leaving is an engine whose caller leaves while it is handed messages.
type leaving struct {
	engine.Engine
	leave context.CancelFunc
}

func (l *leaving) Receive(ctx context.Context, r engine.Receive) ([]forebay.Delivery, error) {
	ds, err := l.Engine.Receive(ctx, r)
	l.leave()
	return ds, err
}

func (l *leaving) Unwrap() engine.Engine { return l.Engine }

func TestMessagesOfACallerThatLeftAreGivenBack(t *testing.T) {
	bubble(t, func(v *env) {
		v.send(v.create("a"), "x")
		ctx, leave := context.WithCancel(v.ctx)
		s, err := queue.New(queue.Config{Engine: &leaving{v.e, leave}})
		v.fine(err)
		if _, err := s.ReceiveMessage(ctx, queue.ReceiveInput{QueueUrl: "a"}); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
		if m := v.one("a", "x"); m.Attributes["ApproximateReceiveCount"] != "1" {
			t.Errorf("got %v", m.Attributes)
		}
	})
}

func TestKindsCrossBothWays(t *testing.T) {
	bubble(t, func(v *env) {
		v.create("a")
		v.send("a", "x", text("Forebay.Kind", "mail"))
		ds, err := v.e.Receive(v.ctx, engine.Receive{Queue: "a", Max: 1})
		v.fine(err)
		if len(ds) != 1 || ds[0].Kind != "mail" {
			t.Errorf("got %+v", ds)
		}
		_, err = v.trySend("a", "x", text("Forebay.Kind", "a\nb"))
		v.refused(err, "InvalidParameterValueException")
	})
}

// A body that is no text would not survive a protocol, and clients check its MD5.
func TestPayloadsThatAreNoText(t *testing.T) {
	bubble(t, func(v *env) {
		_, err := v.e.Send(v.ctx, []forebay.Message{{ID: "1", Queue: "a", Payload: []byte{0, 0xff}}, {ID: "2", Queue: "a"}})
		v.fine(err)
		got := v.receive("a")
		v.bodies(got, "AP8=", "")
		if e := got[0].MessageAttributes["Forebay.Encoding"]; e.StringValue == nil || *e.StringValue != "base64" || len(got[1].MessageAttributes) > 0 {
			t.Errorf("got %+v", got)
		}
	})
}

func TestPurgeLosesNothingNewWhenTheClocksDiffer(t *testing.T) {
	bubble(t, func(v *env) {
		ahead, err := queue.New(queue.Config{Engine: v.e, Now: func() time.Time { return time.Now().Add(time.Hour) }})
		v.fine(err)
		v.s = ahead
		q := v.create("a")
		v.fine(v.s.PurgeQueue(v.ctx, queue.NamedInput{QueueUrl: q}))
		v.send(q, "x")
		v.one(q, "x")
	})
}
