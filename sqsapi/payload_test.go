package sqsapi_test

import (
	"encoding/json"
	"encoding/xml"
	"testing"

	"github.com/google/uuid"

	"github.com/forebayhq/forebay"
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
