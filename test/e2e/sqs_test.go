//go:build e2e && linux

package e2e

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	shape "github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

// sqsServer is a server that speaks SQS too.
func sqsServer(t *testing.T, env ...string) *server {
	t.Helper()
	s := newServer(t, env...)
	s.sqs = freeAddress(t)
	s.start()
	return s
}

// awsEnv is how an AWS SDK finds the endpoint.
func (s *server) awsEnv() []string {
	return []string{"AWS_REGION=us-east-1", "AWS_ACCESS_KEY_ID=test", "AWS_SECRET_ACCESS_KEY=test", "AWS_ENDPOINT_URL_SQS=http://" + s.sqs}
}

func (s *server) queueURL(name string) string { return "http://" + s.sqs + "/000000000000/" + name }

// sqsClient is the AWS SDK for Go.
func (s *server) sqsClient() *sqs.Client {
	return sqs.New(sqs.Options{
		Region: "us-east-1", BaseEndpoint: aws.String("http://" + s.sqs),
		Credentials: credentials.NewStaticCredentialsProvider("test", "test", ""),
	})
}

func (s *server) makeQueue(c *sqs.Client, name string, attributes map[string]string) string {
	s.t.Helper()
	out, err := c.CreateQueue(s.t.Context(), &sqs.CreateQueueInput{QueueName: &name, Attributes: attributes})
	if err != nil {
		s.t.Fatal(err)
	}
	return *out.QueueUrl
}

func TestNodeSDKSpeaksToEndpoint(t *testing.T) {
	s := sqsServer(t)
	var last string
	n := runNode(t, s.awsEnv(), "sqs.mjs")
	for n.lines.Scan() {
		last = n.lines.Text()
		t.Log(last)
	}
	if last != "done" {
		t.Errorf("the script ended after %q", last)
	}
}

func TestSQSConsumerLibrary(t *testing.T) {
	const count = 500
	s := sqsServer(t)
	c := s.sqsClient()
	url := s.makeQueue(c, "work", map[string]string{"VisibilityTimeout": "30"})
	for i := 0; i < count; i += 10 {
		entries := make([]shape.SendMessageBatchRequestEntry, 10)
		for k := range entries {
			entries[k] = shape.SendMessageBatchRequestEntry{Id: aws.String(fmt.Sprint(k)), MessageBody: aws.String(fmt.Sprint(i + k))}
		}
		if out, err := c.SendMessageBatch(t.Context(), &sqs.SendMessageBatchInput{QueueUrl: &url, Entries: entries}); err != nil || len(out.Failed) > 0 {
			t.Fatalf("send: %+v, %v", out, err)
		}
	}
	seen, last := map[string]int{}, ""
	n := runNode(t, s.awsEnv(), "sqsconsumer.mjs", url, fmt.Sprint(count))
	for n.lines.Scan() {
		last = n.lines.Text()
		body, ok := strings.CutPrefix(last, "seen ")
		if !ok && last != "stopped" {
			t.Error(last)
		}
		if ok {
			seen[body]++
		}
	}
	if last != "stopped" {
		t.Errorf("the consumer ended with %q", last)
	}
	for i := range count {
		if n := seen[fmt.Sprint(i)]; n != 1 {
			t.Errorf("message %d was handled %d times", i, n)
		}
	}
}

// The producer and the consumer of examples/sqs-node.
func TestExampleOverSQS(t *testing.T) {
	s := sqsServer(t)
	c := s.sqsClient()
	dead := s.makeQueue(c, "clicks-dead", nil)
	arn, err := c.GetQueueAttributes(t.Context(), &sqs.GetQueueAttributesInput{QueueUrl: &dead, AttributeNames: []shape.QueueAttributeName{"QueueArn"}})
	if err != nil {
		t.Fatal(err)
	}
	policy := fmt.Sprintf(`{"deadLetterTargetArn":%q,"maxReceiveCount":1}`, arn.Attributes["QueueArn"])
	url := s.makeQueue(c, "clicks", map[string]string{"RedrivePolicy": policy})
	dir := exampleBesideModules(t)
	port := strings.Split(freeAddress(t), ":")[1]
	env := append(s.awsEnv(), "AWS_SQS_QUEUE_URL="+url)
	producer := runUntilTerm(t, append(env, "PORT="+port), filepath.Join(dir, "producer.mjs"))
	consumer := runUntilTerm(t, env, filepath.Join(dir, "consumer.mjs"))
	producer.await(t, "producer listens")

	post := func(body string, want int) {
		t.Helper()
		resp, err := http.Post("http://127.0.0.1:"+port+"/ingestion/event", "application/json", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != want {
			t.Errorf("%s was answered with %d, want %d", body, resp.StatusCode, want)
		}
	}
	post(`{"eventType":"app_open","payload":{"screen":"home"},"userId":"u1","eventId":"e1"}`, 202)
	post(`{"eventType":"bad","payload":{"fail":true},"userId":"u1","eventId":"e2"}`, 202)
	post(`{"eventType":"","payload":{}}`, 400)
	post(`{"eventType":"a","payload":[]}`, 400)
	post(`{`, 400)
	consumer.await(t, `written {"eventId":"e1","eventType":"app_open"}`)
	consumer.await(t, "failed this event cannot be written")
	if !eventually(t, 30*time.Second, func() bool {
		out, err := c.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: &dead, WaitTimeSeconds: 1})
		return err == nil && len(out.Messages) == 1 && strings.Contains(*out.Messages[0].Body, `"e2"`)
	}) {
		t.Error("the event that failed is not in the dead-letter queue")
	}
	consumer.term(t, "consumer stopped")
	producer.term(t, "producer stopped")
}

// exampleBesideModules copies the example to where Node finds the modules of the tests.
func exampleBesideModules(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("node_modules", ".example-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.CopyFS(dir, os.DirFS(filepath.Join("..", "..", "examples", "sqs-node"))); err != nil {
		t.Fatal(err)
	}
	return dir
}
