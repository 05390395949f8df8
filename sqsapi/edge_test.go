package sqsapi_test

import (
	"encoding/json"
	"encoding/xml"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/forebayhq/forebay"
	"github.com/forebayhq/forebay/sqsapi"
)

// Other senders put what they like into a queue: it can be received over SQS, in
// whatever form, rather than block the queue with an error.
func TestPayloadsOfOtherSendersCanBeReceived(t *testing.T) {
	t.Parallel()
	s := serve(t, nil)
	s.json(t, "CreateQueue", `{"QueueName":"q","Attributes":{"VisibilityTimeout":"0"}}`)
	for _, payload := range []string{"plain", "\xff\xfe", "\x00\x01", "\ufffe", ""} {
		m := forebay.Message{ID: uuid.NewString(), Queue: "q", Payload: []byte(payload)}
		if _, err := s.engine.Send(t.Context(), []forebay.Message{m}); err != nil {
			t.Fatal(err)
		}
	}
	var j struct{ Messages []struct{ Body *string } }
	if a := s.json(t, "ReceiveMessage", `{"QueueUrl":"q","MaxNumberOfMessages":10}`); a.status != 200 || json.Unmarshal([]byte(a.body), &j) != nil || len(j.Messages) != 5 {
		t.Errorf("JSON: %d %q", a.status, a.body)
	}
	var x struct {
		Messages []struct{ Body *string } `xml:"ReceiveMessageResult>Message"`
	}
	if a := s.query(t, "/", "Action=ReceiveMessage", "QueueUrl=q", "MaxNumberOfMessages=10"); a.status != 200 || xml.Unmarshal([]byte(a.body), &x) != nil || len(x.Messages) != 5 {
		t.Errorf("Query: %d %q", a.status, a.body)
	}
}

// What is empty is not in an answer, numbers too.
func TestMovesWithoutARateTellNone(t *testing.T) {
	t.Parallel()
	s := serve(t, nil)
	s.json(t, "CreateQueue", `{"QueueName":"dead"}`)
	s.json(t, "CreateQueue", `{"QueueName":"q","Attributes":{"RedrivePolicy":"{\"deadLetterTargetArn\":\"`+arns+`dead\",\"maxReceiveCount\":1}"}}`)
	if a := s.json(t, "StartMessageMoveTask", `{"SourceArn":"`+arns+`dead"}`); a.status != 200 {
		t.Fatal(a.body)
	}
	if a := s.json(t, "ListMessageMoveTasks", `{"SourceArn":"`+arns+`dead"}`); !strings.Contains(a.body, "StartedTimestamp") || strings.Contains(a.body, "PerSecond") {
		t.Errorf("%d %s", a.status, a.body)
	}
	if a := s.query(t, "/", "Action=ListMessageMoveTasks", "SourceArn="+arns+"dead"); !strings.Contains(a.body, "StartedTimestamp") || strings.Contains(a.body, "PerSecond") {
		t.Errorf("%d %s", a.status, a.body)
	}
}

// All bodies together have a bound, and what one took is given back.
func TestBodiesTogetherAreBounded(t *testing.T) {
	t.Parallel()
	s := serve(t, func(c *sqsapi.Config) { c.MaxBodies = 1 << 20 })
	body := func(n int) string { return `{"x":"` + strings.Repeat("a", n) + `"}` }
	if a := s.json(t, "ListQueues", body(3<<20)); a.status != 403 || !strings.Contains(a.body, "RequestThrottled") {
		t.Errorf("%d %s", a.status, a.body)
	}
	for range 10 {
		if a := s.json(t, "ListQueues", body(300<<10)); a.status != 200 {
			t.Fatalf("%d %s", a.status, a.body)
		}
	}
}
