package sqsapi_test

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
)

func TestSDKSendsReceivesAndDeletes(t *testing.T) {
	t.Parallel()
	s := serve(t, nil)
	c, ctx := s.client("test", "test"), t.Context()
	made, err := c.CreateQueue(ctx, &sqs.CreateQueueInput{QueueName: aws.String("orders")})
	if err != nil {
		t.Fatal(err)
	}
	if want := s.URL + "/000000000000/orders"; *made.QueueUrl != want {
		t.Errorf("the queue's URL is %s, not %s", *made.QueueUrl, want)
	}
	sent, err := c.SendMessage(ctx, &sqs.SendMessageInput{QueueUrl: made.QueueUrl, MessageBody: aws.String("a \"b\"\r\n<c>&\u00e9")})
	if err != nil {
		t.Fatal(err)
	}
	got, err := c.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{QueueUrl: made.QueueUrl})
	if err != nil || len(got.Messages) != 1 || *got.Messages[0].MessageId != *sent.MessageId || *got.Messages[0].Body != "a \"b\"\r\n<c>&\u00e9" {
		t.Fatalf("received %+v, %v", got, err)
	}
	if _, err := c.DeleteMessage(ctx, &sqs.DeleteMessageInput{QueueUrl: made.QueueUrl, ReceiptHandle: got.Messages[0].ReceiptHandle}); err != nil {
		t.Fatal(err)
	}
}
