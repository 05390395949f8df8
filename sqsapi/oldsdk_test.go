package sqsapi_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go/aws"
	"github.com/aws/aws-sdk-go/aws/awserr"
	"github.com/aws/aws-sdk-go/aws/credentials"
	awssession "github.com/aws/aws-sdk-go/aws/session"
	"github.com/aws/aws-sdk-go/service/sqs"
)

// The Go SDK v1 of 2023, the last that speaks Query, does all 23 actions. It checks
// MD5 sums too.

func oldClient(t *testing.T) *sqs.SQS {
	t.Helper()
	s := serve(t, nil)
	key := s.withKey(t)
	old, err := awssession.NewSession(&aws.Config{
		Region: aws.String("us-east-1"), Endpoint: aws.String(s.URL), HTTPClient: s.Server.Client(), MaxRetries: aws.Int(0),
		Credentials: credentials.NewStaticCredentials(key.id, key.secret, ""),
	})
	if err != nil {
		t.Fatal(err)
	}
	return sqs.New(old)
}

func oldQueue(t *testing.T, c *sqs.SQS, name string, attributes map[string]*string) *string {
	t.Helper()
	made, err := c.CreateQueue(&sqs.CreateQueueInput{QueueName: &name, Attributes: attributes, Tags: map[string]*string{"team": aws.String("shop")}})
	if err != nil {
		t.Fatal(err)
	}
	return made.QueueUrl
}

func TestOldSDKMessages(t *testing.T) {
	t.Parallel()
	c := oldClient(t)
	url := oldQueue(t, c, "orders", nil)
	sent, err := c.SendMessage(&sqs.SendMessageInput{QueueUrl: url, MessageBody: aws.String(strange), MessageAttributes: map[string]*sqs.MessageAttributeValue{
		"text":  {DataType: aws.String("String.kind"), StringValue: aws.String(strange)},
		"bytes": {DataType: aws.String("Binary"), BinaryValue: []byte{0, 1, 0xff}},
	}, MessageSystemAttributes: map[string]*sqs.MessageSystemAttributeValue{
		"AWSTraceHeader": {DataType: aws.String("String"), StringValue: aws.String("Root=1-5759e988-bd862e3fe1be46a994272793")},
	}})
	if err != nil || sent.MD5OfMessageAttributes == nil || sent.MD5OfMessageSystemAttributes == nil {
		t.Fatalf("sent %+v, %v", sent, err)
	}
	receive := &sqs.ReceiveMessageInput{QueueUrl: url, MessageAttributeNames: []*string{aws.String("All")}, AttributeNames: []*string{aws.String("All")}}
	got, err := c.ReceiveMessage(receive)
	if err != nil || len(got.Messages) != 1 {
		t.Fatalf("received %+v, %v", got, err)
	}
	m := got.Messages[0]
	if *m.MessageId != *sent.MessageId || *m.Body != strange || *m.MD5OfMessageAttributes != *sent.MD5OfMessageAttributes ||
		*m.MessageAttributes["text"].StringValue != strange || string(m.MessageAttributes["bytes"].BinaryValue) != "\x00\x01\xff" ||
		*m.Attributes["ApproximateReceiveCount"] != "1" || m.Attributes["AWSTraceHeader"] == nil {
		t.Errorf("received %+v", m)
	}
	if _, err := c.ChangeMessageVisibility(&sqs.ChangeMessageVisibilityInput{QueueUrl: url, ReceiptHandle: m.ReceiptHandle, VisibilityTimeout: aws.Int64(60)}); err != nil {
		t.Error(err)
	}
	if _, err := c.DeleteMessage(&sqs.DeleteMessageInput{QueueUrl: url, ReceiptHandle: m.ReceiptHandle}); err != nil {
		t.Error(err)
	}
	if got, err = c.ReceiveMessage(receive); err != nil || len(got.Messages) != 0 {
		t.Errorf("received %+v, %v", got, err)
	}
}

func TestOldSDKBatches(t *testing.T) {
	t.Parallel()
	c := oldClient(t)
	url := oldQueue(t, c, "orders", nil)
	in := &sqs.SendMessageBatchInput{QueueUrl: url}
	for i := range 11 { // eleven are one too many
		in.Entries = append(in.Entries, &sqs.SendMessageBatchRequestEntry{Id: aws.String(strings.Repeat("i", i+1)), MessageBody: aws.String(strings.Repeat("b", i+1)),
			MessageAttributes: map[string]*sqs.MessageAttributeValue{"n": {DataType: aws.String("Number"), StringValue: aws.String("1")}}})
	}
	_, err := c.SendMessageBatch(in)
	oldCode(t, err, "AWS.SimpleQueueService.TooManyEntriesInBatchRequest")
	in.Entries = in.Entries[:10]
	sent, err := c.SendMessageBatch(in)
	if err != nil || len(sent.Successful) != 10 || *sent.Successful[9].Id != strings.Repeat("i", 10) {
		t.Fatalf("sent %+v, %v", sent, err)
	}
	got, err := c.ReceiveMessage(&sqs.ReceiveMessageInput{QueueUrl: url, MaxNumberOfMessages: aws.Int64(10), WaitTimeSeconds: aws.Int64(1)})
	if err != nil || len(got.Messages) != 10 {
		t.Fatalf("received %+v, %v", got, err)
	}
	change := &sqs.ChangeMessageVisibilityBatchInput{QueueUrl: url}
	remove := &sqs.DeleteMessageBatchInput{QueueUrl: url}
	for i, m := range got.Messages {
		id := aws.String(strings.Repeat("x", i+1))
		change.Entries = append(change.Entries, &sqs.ChangeMessageVisibilityBatchRequestEntry{Id: id, ReceiptHandle: m.ReceiptHandle, VisibilityTimeout: aws.Int64(60)})
		remove.Entries = append(remove.Entries, &sqs.DeleteMessageBatchRequestEntry{Id: id, ReceiptHandle: m.ReceiptHandle})
	}
	remove.Entries[9].ReceiptHandle = aws.String("garbage")
	changed, err := c.ChangeMessageVisibilityBatch(change)
	if err != nil || len(changed.Successful) != 10 {
		t.Errorf("changed %+v, %v", changed, err)
	}
	removed, err := c.DeleteMessageBatch(remove)
	if err != nil || len(removed.Successful) != 9 || len(removed.Failed) != 1 {
		t.Fatalf("removed %+v, %v", removed, err)
	}
	if f := removed.Failed[0]; *f.Id != strings.Repeat("x", 10) || !*f.SenderFault || *f.Code != "ReceiptHandleIsInvalid" {
		t.Errorf("failed %+v", f)
	}
}

func TestOldSDKQueues(t *testing.T) {
	t.Parallel()
	c := oldClient(t)
	url := oldQueue(t, c, "orders", map[string]*string{"VisibilityTimeout": aws.String("7")})
	if got, err := c.GetQueueUrl(&sqs.GetQueueUrlInput{QueueName: aws.String("orders")}); err != nil || *got.QueueUrl != *url {
		t.Errorf("%+v, %v", got, err)
	}
	if got, err := c.ListQueues(&sqs.ListQueuesInput{MaxResults: aws.Int64(5)}); err != nil || len(got.QueueUrls) != 1 || *got.QueueUrls[0] != *url {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := c.SetQueueAttributes(&sqs.SetQueueAttributesInput{QueueUrl: url, Attributes: map[string]*string{"DelaySeconds": aws.String("3")}}); err != nil {
		t.Error(err)
	}
	got, err := c.GetQueueAttributes(&sqs.GetQueueAttributesInput{QueueUrl: url, AttributeNames: []*string{aws.String("All")}})
	if err != nil || *got.Attributes["VisibilityTimeout"] != "7" || *got.Attributes["DelaySeconds"] != "3" {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := c.TagQueue(&sqs.TagQueueInput{QueueUrl: url, Tags: map[string]*string{"a": aws.String("b")}}); err != nil {
		t.Error(err)
	}
	if _, err := c.UntagQueue(&sqs.UntagQueueInput{QueueUrl: url, TagKeys: []*string{aws.String("team")}}); err != nil {
		t.Error(err)
	}
	if got, err := c.ListQueueTags(&sqs.ListQueueTagsInput{QueueUrl: url}); err != nil || len(got.Tags) != 1 || *got.Tags["a"] != "b" {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := c.AddPermission(&sqs.AddPermissionInput{QueueUrl: url, Label: aws.String("l"), AWSAccountIds: []*string{aws.String("111111111111")}, Actions: []*string{aws.String("SendMessage")}}); err != nil {
		t.Error(err)
	}
	if _, err := c.RemovePermission(&sqs.RemovePermissionInput{QueueUrl: url, Label: aws.String("l")}); err != nil {
		t.Error(err)
	}
	if _, err := c.PurgeQueue(&sqs.PurgeQueueInput{QueueUrl: url}); err != nil {
		t.Error(err)
	}
	_, err = c.PurgeQueue(&sqs.PurgeQueueInput{QueueUrl: url})
	oldCode(t, err, sqs.ErrCodePurgeQueueInProgress)
	if _, err := c.DeleteQueue(&sqs.DeleteQueueInput{QueueUrl: url}); err != nil {
		t.Error(err)
	}
	_, err = c.GetQueueAttributes(&sqs.GetQueueAttributesInput{QueueUrl: url})
	oldCode(t, err, sqs.ErrCodeQueueDoesNotExist)
}

func TestOldSDKMoves(t *testing.T) {
	t.Parallel()
	c := oldClient(t)
	url := oldQueue(t, c, "dead", nil)
	oldQueue(t, c, "orders", map[string]*string{"RedrivePolicy": aws.String(`{"deadLetterTargetArn":"` + arns + `dead","maxReceiveCount":3}`)})
	sources, err := c.ListDeadLetterSourceQueues(&sqs.ListDeadLetterSourceQueuesInput{QueueUrl: url})
	if err != nil || len(sources.QueueUrls) != 1 || !strings.HasSuffix(*sources.QueueUrls[0], "/000000000000/orders") {
		t.Errorf("%+v, %v", sources, err)
	}
	for range 2 {
		if _, err := c.SendMessage(&sqs.SendMessageInput{QueueUrl: url, MessageBody: aws.String("a")}); err != nil {
			t.Fatal(err)
		}
	}
	start, err := c.StartMessageMoveTask(&sqs.StartMessageMoveTaskInput{SourceArn: aws.String(arns + "dead"), MaxNumberOfMessagesPerSecond: aws.Int64(1)})
	if err != nil {
		t.Fatal(err)
	}
	list, err := c.ListMessageMoveTasks(&sqs.ListMessageMoveTasksInput{SourceArn: aws.String(arns + "dead")})
	if err != nil || len(list.Results) != 1 || *list.Results[0].SourceArn != arns+"dead" || *list.Results[0].StartedTimestamp == 0 {
		t.Errorf("%+v, %v", list, err)
	}
	if out, err := c.CancelMessageMoveTask(&sqs.CancelMessageMoveTaskInput{TaskHandle: start.TaskHandle}); err != nil || out.ApproximateNumberOfMessagesMoved == nil {
		t.Errorf("%+v, %v", out, err)
	}
}

func oldCode(t *testing.T, err error, code string) {
	t.Helper()
	var e awserr.RequestFailure
	if !errors.As(err, &e) || e.Code() != code || e.Message() == "" || e.RequestID() == "" {
		t.Errorf("%v has not the code %s", err, code)
	}
}
