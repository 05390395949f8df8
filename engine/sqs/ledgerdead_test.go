package sqs_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/forebayhq/forebay/engine"
	"github.com/forebayhq/forebay/engine/sqlite"
	"github.com/forebayhq/forebay/engine/sqs"
)

// What another program sent, and what cannot be a job, is a dead letter of the ledger where
// the queue of SQS has no redrive policy, and is gone from SQS then.
func TestNoJobAndNoRedrivePolicy(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ep := newEndpoint(t)
		url := ep.bare(t)
		attributes := make(map[string]types.MessageAttributeValue)
		for i := range 10 {
			attributes[fmt.Sprint("a", i)] = types.MessageAttributeValue{DataType: aws.String("String"), StringValue: aws.String(strings.Repeat("x", 1000))}
		}
		others := ep.others(t)
		if _, err := others.SendMessage(t.Context(), &awssqs.SendMessageInput{QueueUrl: &url, MessageBody: aws.String("hello"), MessageAttributes: attributes}); err != nil {
			t.Fatal(err)
		}
		rows, err := sqlite.Open(sqlite.Config{})
		if err != nil {
			t.Fatal(err)
		}
		e, err := overSQS(rows, ep.open(t, func(c *sqs.Config) { c.Queues = map[string]string{"q": url} }), ep.stop)
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := e.Close(); err != nil {
				t.Error(err)
			}
		}()
		if ds, err := e.Receive(t.Context(), engine.Receive{Queue: "q", Max: 10, Wait: time.Minute}); len(ds) > 0 || err != nil {
			t.Fatalf("received %+v, %v", ds, err)
		}
		dead, err := rows.Dead(t.Context(), engine.DeadQuery{Queue: "q"})
		if err != nil || len(dead) != 1 {
			t.Fatalf("%d dead letters, %v", len(dead), err)
		}
		if d := dead[0]; string(d.Message.Payload) != "hello" || !strings.Contains(d.Cause.Message, `cut was: the attribute "a3" of 1000 bytes`) {
			t.Errorf("body %q, cause %q", d.Message.Payload, d.Cause.Message)
		}
		synctest.Wait()
		all, err := ep.store.Stats(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range all {
			if s.Waiting+s.Delayed+s.Active > 0 {
				t.Errorf("SQS has still %+v", s)
			}
		}
	})
}
