package queue_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/forebayhq/forebay/engine"
	"github.com/forebayhq/forebay/engine/sqlite"
	"github.com/forebayhq/forebay/sqsapi/queue"
)

// env is a service on an engine in memory, inside a bubble: hours cost nothing.
type env struct {
	*testing.T
	ctx context.Context
	e   engine.Engine
	s   *queue.Service

	skew time.Duration // of the clock, where the test restarts
}

func bubble(t *testing.T, f func(v *env)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) { serve(t, queue.Config{}, f) })
}

func bubbleOf(t *testing.T, cfg queue.Config, f func(v *env)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) { serve(t, cfg, f) })
}

// serve gives f a service that runs.
func serve(t *testing.T, cfg queue.Config, f func(v *env)) {
	t.Helper()
	e, err := sqlite.Open(sqlite.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	cfg.Engine = e
	s, err := queue.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	defer func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("Run: %v", err)
		}
	}()
	f(&env{T: t, ctx: t.Context(), e: e, s: s})
}

// attrs makes a map of names and values.
func attrs(pairs ...string) map[string]string {
	m := map[string]string{}
	for i := 0; i < len(pairs); i += 2 {
		m[pairs[i]] = pairs[i+1]
	}
	return m
}

// create makes a queue.
func (v *env) create(name string, attributes ...string) string {
	v.Helper()
	set := attrs(attributes...)
	if len(name) > 5 && name[len(name)-5:] == ".fifo" {
		set["FifoQueue"] = "true"
	}
	out, err := v.s.CreateQueue(v.ctx, queue.CreateQueueInput{QueueName: name, Attributes: set})
	v.fine(err)
	return out.QueueUrl
}

func (v *env) fine(err error) {
	v.Helper()
	if err != nil {
		v.Fatalf("%v", err)
	}
}

// refused wants a fault of one shape.
func (v *env) refused(err error, shape string) *queue.Fault {
	v.Helper()
	var f *queue.Fault
	if !errors.As(err, &f) || f.Shape != shape {
		v.Fatalf("got %v, want %s", err, shape)
	}
	return f
}

// send sends a body, changed by with.
func (v *env) send(name, body string, with ...func(*queue.SendInput)) queue.SendOutput {
	v.Helper()
	out, err := v.trySend(name, body, with...)
	v.fine(err)
	return out
}

func (v *env) trySend(name, body string, with ...func(*queue.SendInput)) (queue.SendOutput, error) {
	in := queue.SendInput{QueueUrl: name, MessageBody: body}
	for _, f := range with {
		f(&in)
	}
	return v.s.SendMessage(v.ctx, in)
}

func group(id string) func(*queue.SendInput) {
	return func(in *queue.SendInput) { in.MessageGroupId = &id }
}

func dedup(id string) func(*queue.SendInput) {
	return func(in *queue.SendInput) { in.MessageDeduplicationId = &id }
}

func delay(n int) func(*queue.SendInput) {
	return func(in *queue.SendInput) { in.DelaySeconds = &n }
}

func text(name, value string) func(*queue.SendInput) {
	return with(name, queue.Attribute{DataType: "String", StringValue: &value})
}

func with(name string, a queue.Attribute) func(*queue.SendInput) {
	return func(in *queue.SendInput) {
		if in.MessageAttributes == nil {
			in.MessageAttributes = map[string]queue.Attribute{}
		}
		in.MessageAttributes[name] = a
	}
}

// receive takes up to ten messages with all that can be known of them.
func (v *env) receive(name string, with ...func(*queue.ReceiveInput)) []queue.Message {
	v.Helper()
	ten := 10
	in := queue.ReceiveInput{QueueUrl: name, MaxNumberOfMessages: &ten, SystemAttributeNames: []string{"All"}, MessageAttributeNames: []string{"All"}}
	for _, f := range with {
		f(&in)
	}
	out, err := v.s.ReceiveMessage(v.ctx, in)
	v.fine(err)
	return out.Messages
}

func most(n int) func(*queue.ReceiveInput) {
	return func(in *queue.ReceiveInput) { in.MaxNumberOfMessages = &n }
}

func wait(n int) func(*queue.ReceiveInput) {
	return func(in *queue.ReceiveInput) { in.WaitTimeSeconds = &n }
}

func hidden(n int) func(*queue.ReceiveInput) {
	return func(in *queue.ReceiveInput) { in.VisibilityTimeout = &n }
}

// one wants exactly one message, with a body.
func (v *env) one(name, body string, with ...func(*queue.ReceiveInput)) queue.Message {
	v.Helper()
	got := v.receive(name, with...)
	v.bodies(got, body)
	return got[0]
}

// bodies wants messages with these bodies, in this order.
func (v *env) bodies(got []queue.Message, want ...string) {
	v.Helper()
	var is []string
	for _, m := range got {
		is = append(is, m.Body)
	}
	if fmt.Sprint(is) != fmt.Sprint(want) {
		v.Fatalf("got messages %q, want %q", is, want)
	}
}

func (v *env) remove(name string, m queue.Message) error {
	return v.s.DeleteMessage(v.ctx, queue.HandleInput{QueueUrl: name, ReceiptHandle: m.ReceiptHandle})
}

func (v *env) hide(name string, m queue.Message, seconds int) error {
	return v.s.ChangeMessageVisibility(v.ctx, queue.HandleInput{QueueUrl: name, ReceiptHandle: m.ReceiptHandle, VisibilityTimeout: &seconds})
}

// attribute gives one attribute of a queue.
func (v *env) attribute(name, attribute string) string {
	v.Helper()
	out, err := v.s.GetQueueAttributes(v.ctx, queue.GetAttributesInput{QueueUrl: name, AttributeNames: []string{attribute}})
	v.fine(err)
	return out.Attributes[attribute]
}

func (v *env) set(name string, pairs ...string) error {
	return v.s.SetQueueAttributes(v.ctx, queue.SetAttributesInput{QueueUrl: name, Attributes: attrs(pairs...)})
}
