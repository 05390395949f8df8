package sqsapi_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/smithy-go"

	"github.com/forebayhq/forebay/sqsapi"
	"github.com/forebayhq/forebay/sqsapi/sign"
)

// strange is a body that a protocol could spoil.
const strange = "a \"b\" 'c'\r\n\t<d>&amp;\u00e9\u4e16\U0001f600 %20+="

// session is a client that signs, and a queue.
type session struct {
	*sqs.Client
	t   *testing.T
	ctx context.Context
	url *string
}

func newSession(t *testing.T, name string, attributes map[string]string) *session {
	t.Helper()
	srv := serve(t, func(c *sqsapi.Config) { c.Unsigned = false })
	key := srv.withKey(t)
	s := &session{Client: srv.client(key.id, key.secret), t: t, ctx: t.Context()}
	s.url = s.make(name, attributes)
	if want := srv.URL + "/000000000000/" + name; *s.url != want {
		t.Errorf("the queue's URL is %s, not %s", *s.url, want)
	}
	return s
}

func (s *session) make(name string, attributes map[string]string) *string {
	s.t.Helper()
	made, err := s.CreateQueue(s.ctx, &sqs.CreateQueueInput{QueueName: &name, Attributes: attributes, Tags: map[string]string{"team": "shop"}})
	if err != nil {
		s.t.Fatal(err)
	}
	return made.QueueUrl
}

func (s *session) fill(bodies ...string) {
	s.t.Helper()
	in := &sqs.SendMessageBatchInput{QueueUrl: s.url}
	for i, body := range bodies {
		in.Entries = append(in.Entries, types.SendMessageBatchRequestEntry{Id: aws.String(strings.Repeat("i", i+1)), MessageBody: aws.String(body)})
	}
	out, err := s.SendMessageBatch(s.ctx, in)
	if err != nil || len(out.Successful) != len(bodies) || len(out.Failed) != 0 {
		s.t.Fatalf("sent %+v, %v", out, err)
	}
}

func (s *session) receive(want int) []types.Message {
	s.t.Helper()
	out, err := s.ReceiveMessage(s.ctx, &sqs.ReceiveMessageInput{QueueUrl: s.url, MaxNumberOfMessages: 10,
		MessageAttributeNames: []string{"All"}, MessageSystemAttributeNames: []types.MessageSystemAttributeName{"All"}})
	if err != nil || len(out.Messages) != want {
		s.t.Fatalf("received %+v, %v; want %d messages", out, err, want)
	}
	return out.Messages
}

func TestSDKMessages(t *testing.T) {
	t.Parallel()
	s := newSession(t, "orders", nil)
	sent, err := s.SendMessage(s.ctx, &sqs.SendMessageInput{QueueUrl: s.url, MessageBody: aws.String(strange), MessageAttributes: map[string]types.MessageAttributeValue{
		"text":  {DataType: aws.String("String.kind"), StringValue: aws.String(strange)},
		"bytes": {DataType: aws.String("Binary"), BinaryValue: []byte{0, 1, 0xff}},
	}, MessageSystemAttributes: map[string]types.MessageSystemAttributeValue{
		"AWSTraceHeader": {DataType: aws.String("String"), StringValue: aws.String("Root=1-5759e988-bd862e3fe1be46a994272793")},
	}})
	if err != nil || sent.MD5OfMessageAttributes == nil || sent.MD5OfMessageSystemAttributes == nil {
		t.Fatalf("sent %+v, %v", sent, err)
	}
	m := s.receive(1)[0]
	if *m.MessageId != *sent.MessageId || *m.Body != strange || *m.MD5OfMessageAttributes != *sent.MD5OfMessageAttributes ||
		*m.MessageAttributes["text"].StringValue != strange || string(m.MessageAttributes["bytes"].BinaryValue) != "\x00\x01\xff" {
		t.Errorf("received %+v", m)
	}
	if m.Attributes["AWSTraceHeader"] == "" || m.Attributes["ApproximateReceiveCount"] != "1" || m.Attributes["SenderId"] == "" {
		t.Errorf("attributes %v", m.Attributes)
	}
	if _, err := s.ChangeMessageVisibility(s.ctx, &sqs.ChangeMessageVisibilityInput{QueueUrl: s.url, ReceiptHandle: m.ReceiptHandle, VisibilityTimeout: 0}); err != nil {
		t.Fatal(err)
	}
	m = s.receive(1)[0]
	if _, err := s.DeleteMessage(s.ctx, &sqs.DeleteMessageInput{QueueUrl: s.url, ReceiptHandle: m.ReceiptHandle}); err != nil {
		t.Fatal(err)
	}
	s.receive(0)
}

func TestSDKBatches(t *testing.T) {
	t.Parallel()
	s := newSession(t, "orders", nil)
	s.fill("a", "b", "c")
	got := s.receive(3)
	change := &sqs.ChangeMessageVisibilityBatchInput{QueueUrl: s.url}
	remove := &sqs.DeleteMessageBatchInput{QueueUrl: s.url}
	for i, m := range got {
		id := aws.String(strings.Repeat("x", i+1))
		change.Entries = append(change.Entries, types.ChangeMessageVisibilityBatchRequestEntry{Id: id, ReceiptHandle: m.ReceiptHandle, VisibilityTimeout: 60})
		remove.Entries = append(remove.Entries, types.DeleteMessageBatchRequestEntry{Id: id, ReceiptHandle: m.ReceiptHandle})
	}
	remove.Entries[2].ReceiptHandle = aws.String("garbage")
	changed, err := s.ChangeMessageVisibilityBatch(s.ctx, change)
	if err != nil || len(changed.Successful) != 3 || *changed.Successful[1].Id != "xx" {
		t.Errorf("changed %+v, %v", changed, err)
	}
	removed, err := s.DeleteMessageBatch(s.ctx, remove)
	if err != nil || len(removed.Successful) != 2 || len(removed.Failed) != 1 {
		t.Fatalf("removed %+v, %v", removed, err)
	}
	if f := removed.Failed[0]; *f.Id != "xxx" || !f.SenderFault || *f.Code != "ReceiptHandleIsInvalid" {
		t.Errorf("failed %+v", f)
	}
	if _, err := s.PurgeQueue(s.ctx, &sqs.PurgeQueueInput{QueueUrl: s.url}); err != nil {
		t.Error(err)
	}
}

func TestSDKQueues(t *testing.T) {
	t.Parallel()
	s := newSession(t, "orders", map[string]string{"VisibilityTimeout": "7"})
	name := aws.String("orders")
	if got, err := s.GetQueueUrl(s.ctx, &sqs.GetQueueUrlInput{QueueName: name}); err != nil || *got.QueueUrl != *s.url {
		t.Errorf("%+v, %v", got, err)
	}
	if got, err := s.ListQueues(s.ctx, &sqs.ListQueuesInput{QueueNamePrefix: aws.String("ord")}); err != nil || len(got.QueueUrls) != 1 || got.QueueUrls[0] != *s.url {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := s.SetQueueAttributes(s.ctx, &sqs.SetQueueAttributesInput{QueueUrl: s.url, Attributes: map[string]string{"DelaySeconds": "3"}}); err != nil {
		t.Error(err)
	}
	got, err := s.GetQueueAttributes(s.ctx, &sqs.GetQueueAttributesInput{QueueUrl: s.url, AttributeNames: []types.QueueAttributeName{"All"}})
	if err != nil || got.Attributes["VisibilityTimeout"] != "7" || got.Attributes["DelaySeconds"] != "3" {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := s.TagQueue(s.ctx, &sqs.TagQueueInput{QueueUrl: s.url, Tags: map[string]string{"a": "b"}}); err != nil {
		t.Error(err)
	}
	if _, err := s.UntagQueue(s.ctx, &sqs.UntagQueueInput{QueueUrl: s.url, TagKeys: []string{"team"}}); err != nil {
		t.Error(err)
	}
	if got, err := s.ListQueueTags(s.ctx, &sqs.ListQueueTagsInput{QueueUrl: s.url}); err != nil || len(got.Tags) != 1 || got.Tags["a"] != "b" {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := s.AddPermission(s.ctx, &sqs.AddPermissionInput{QueueUrl: s.url, Label: aws.String("l"), AWSAccountIds: []string{"111111111111"}, Actions: []string{"SendMessage"}}); err != nil {
		t.Error(err)
	}
	if _, err := s.RemovePermission(s.ctx, &sqs.RemovePermissionInput{QueueUrl: s.url, Label: aws.String("l")}); err != nil {
		t.Error(err)
	}
	if _, err := s.DeleteQueue(s.ctx, &sqs.DeleteQueueInput{QueueUrl: s.url}); err != nil {
		t.Error(err)
	}
}

const arns = "arn:aws:sqs:us-east-1:000000000000:"

func TestSDKMoves(t *testing.T) {
	t.Parallel()
	s := newSession(t, "dead", nil)
	s.make("orders", map[string]string{"RedrivePolicy": `{"deadLetterTargetArn":"` + arns + `dead","maxReceiveCount":"3"}`})
	sources, err := s.ListDeadLetterSourceQueues(s.ctx, &sqs.ListDeadLetterSourceQueuesInput{QueueUrl: s.url})
	if err != nil || len(sources.QueueUrls) != 1 || !strings.HasSuffix(sources.QueueUrls[0], "/000000000000/orders") {
		t.Errorf("%+v, %v", sources, err)
	}
	s.fill("a", "b")
	start, err := s.StartMessageMoveTask(s.ctx, &sqs.StartMessageMoveTaskInput{SourceArn: aws.String(arns + "dead"), MaxNumberOfMessagesPerSecond: aws.Int32(1)})
	if err != nil {
		t.Fatal(err)
	}
	list, err := s.ListMessageMoveTasks(s.ctx, &sqs.ListMessageMoveTasksInput{SourceArn: aws.String(arns + "dead")})
	if err != nil || len(list.Results) != 1 || *list.Results[0].SourceArn != arns+"dead" || list.Results[0].StartedTimestamp == 0 {
		t.Errorf("%+v, %v", list, err)
	}
	if _, err := s.CancelMessageMoveTask(s.ctx, &sqs.CancelMessageMoveTaskInput{TaskHandle: start.TaskHandle}); err != nil {
		t.Error(err)
	}
}

// The SDK finds its own types in errors, and the codes that Query clients knew.
func TestSDKErrors(t *testing.T) {
	t.Parallel()
	s := newSession(t, "orders", nil)
	s.fill("a")
	none := aws.String(*s.url + "none")
	_, err := s.SendMessage(s.ctx, &sqs.SendMessageInput{QueueUrl: none, MessageBody: aws.String("a")})
	is[*types.QueueDoesNotExist](t, err, "AWS.SimpleQueueService.NonExistentQueue")
	_, err = s.CreateQueue(s.ctx, &sqs.CreateQueueInput{QueueName: aws.String("orders"), Attributes: map[string]string{"DelaySeconds": "9"}})
	is[*types.QueueNameExists](t, err, "QueueAlreadyExists")
	_, err = s.DeleteMessage(s.ctx, &sqs.DeleteMessageInput{QueueUrl: s.url, ReceiptHandle: aws.String("garbage")})
	is[*types.ReceiptHandleIsInvalid](t, err, "ReceiptHandleIsInvalid")
	_, err = s.GetQueueAttributes(s.ctx, &sqs.GetQueueAttributesInput{QueueUrl: s.url, AttributeNames: []types.QueueAttributeName{"Colour"}})
	is[*types.InvalidAttributeName](t, err, "InvalidAttributeName")
	two := []types.DeleteMessageBatchRequestEntry{{Id: aws.String("a"), ReceiptHandle: aws.String("x")}, {Id: aws.String("a"), ReceiptHandle: aws.String("x")}}
	_, err = s.DeleteMessageBatch(s.ctx, &sqs.DeleteMessageBatchInput{QueueUrl: s.url, Entries: two})
	is[*types.BatchEntryIdsNotDistinct](t, err, "AWS.SimpleQueueService.BatchEntryIdsNotDistinct")
	_, err = s.DeleteMessageBatch(s.ctx, &sqs.DeleteMessageBatchInput{QueueUrl: s.url, Entries: []types.DeleteMessageBatchRequestEntry{}})
	is[*types.EmptyBatchRequest](t, err, "AWS.SimpleQueueService.EmptyBatchRequest")
	if _, err := s.PurgeQueue(s.ctx, &sqs.PurgeQueueInput{QueueUrl: s.url}); err != nil {
		t.Error(err)
	}
	_, err = s.PurgeQueue(s.ctx, &sqs.PurgeQueueInput{QueueUrl: s.url})
	is[*types.PurgeQueueInProgress](t, err, "AWS.SimpleQueueService.PurgeQueueInProgress")
	_, err = s.StartMessageMoveTask(s.ctx, &sqs.StartMessageMoveTaskInput{SourceArn: aws.String(arns + "none")})
	is[*types.ResourceNotFoundException](t, err, "ResourceNotFoundException")
	_, err = s.ReceiveMessage(s.ctx, &sqs.ReceiveMessageInput{QueueUrl: s.url, MaxNumberOfMessages: 11})
	is[smithy.APIError](t, err, "InvalidParameterValue")
}

func TestSDKTellsWhySignaturesAreRefused(t *testing.T) {
	t.Parallel()
	s := serve(t, nil)
	key := s.withKey(t)
	_, err := s.client("FBKNOBODY", "x").ListQueues(t.Context(), &sqs.ListQueuesInput{})
	is[smithy.APIError](t, err, sign.Unknown)
	_, err = s.client(key.id, "x").ListQueues(t.Context(), &sqs.ListQueuesInput{})
	is[smithy.APIError](t, err, sign.Mismatch)
	narrow := s.withKey(t, sign.Right{Queues: "a", Actions: []string{"send"}})
	_, err = s.client(narrow.id, narrow.secret).CreateQueue(t.Context(), &sqs.CreateQueueInput{QueueName: aws.String("a")})
	is[smithy.APIError](t, err, "AccessDenied")
}

func is[T error](t *testing.T, err error, code string) {
	t.Helper()
	var want T
	if !errors.As(err, &want) {
		t.Errorf("%v is no %T", err, want)
	}
	var api smithy.APIError
	if !errors.As(err, &api) || api.ErrorCode() != code || api.ErrorMessage() == "" {
		t.Errorf("%v has not the code %s", err, code)
	}
}

// The delay of a FIFO queue reaches what waits already, both ways.
func TestSDKDelayOfAFifoQueue(t *testing.T) {
	t.Parallel()
	s := newSession(t, "orders.fifo", map[string]string{"FifoQueue": "true", "ContentBasedDeduplication": "true"})
	send := func(body string) {
		t.Helper()
		if _, err := s.SendMessage(s.ctx, &sqs.SendMessageInput{QueueUrl: s.url, MessageBody: &body, MessageGroupId: aws.String("g")}); err != nil {
			t.Fatal(err)
		}
	}
	delay := func(seconds, delayed string) {
		t.Helper()
		if _, err := s.SetQueueAttributes(s.ctx, &sqs.SetQueueAttributesInput{QueueUrl: s.url, Attributes: map[string]string{"DelaySeconds": seconds}}); err != nil {
			t.Fatal(err)
		}
		got, err := s.GetQueueAttributes(s.ctx, &sqs.GetQueueAttributesInput{QueueUrl: s.url,
			AttributeNames: []types.QueueAttributeName{types.QueueAttributeNameApproximateNumberOfMessagesDelayed}})
		if n := got.Attributes["ApproximateNumberOfMessagesDelayed"]; err != nil || n != delayed {
			t.Fatalf("%s are delayed, %v; want %s", n, err, delayed)
		}
	}
	send("1")
	send("2")
	delay("900", "2")
	s.receive(0)
	send("3")
	delay("600", "3")
	s.receive(0)
	delay("0", "0")
	for i, m := range s.receive(3) {
		if *m.Body != []string{"1", "2", "3"}[i] {
			t.Errorf("message %d is %s", i+1, *m.Body)
		}
	}
}
